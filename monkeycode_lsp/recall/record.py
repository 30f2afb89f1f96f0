"""What the tiers keep: one finished, cleaned suggestion and where it came from."""

from __future__ import annotations

import msgspec

VERSION = 1
"""Changes whenever a record of before could be misread; then it is a miss."""
MOST_BYTES = 65_536
"""No suggestion is as long; anything larger is not ours."""


class Record(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One suggestion worth using again.  LF only, never empty."""

    version: int
    text: str
    indent: str
    """White space that the cursor's line began with where it was made."""
    confidence: float | None
    engine: str
    """Fingerprint of engine and model."""
    settings: str
    """Fingerprint of the settings that shape an answer, the template among them."""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Record)


def encode(record: Record) -> bytes:
    """As MessagePack."""
    return _encoder.encode(record)


def decode(data: bytes) -> Record | None:
    """None for whatever is not a record of this version: what is kept elsewhere can be anything."""
    if len(data) > MOST_BYTES:
        return None
    try:
        record = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return record if record.version == VERSION and record.text.strip() else None
