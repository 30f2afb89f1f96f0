"""What the engine process and its clients say to each other: length-prefixed MessagePack frames.

A frame is four bytes (big-endian length) and one tagged struct.  Ids are the client's own and unique
on its connection; every `Generate` is answered by exactly one `Done` or `Failed`.  No I/O here.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

import msgspec

from monkeycode_lsp.domain import Priority, Sampling, Segment
from monkeycode_lsp.prompt import Markers

VERSION = 3
"""Raised when a frame changes its meaning.  Part of a host's name, so that two versions do not meet."""
MAX_FRAME_BYTES = 16 * 1024 * 1024
_HEADER_BYTES = 4
FailureKind = Literal["overflow", "template", "grammar", "busy", "decode", "internal"]


class FrameError(ValueError):
    """The other side sent something that is no frame of ours; the connection cannot be used any more."""


class FrameTooLongError(FrameError):
    """A message is over the limit."""


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """A client's first frame."""

    version: int = VERSION
    token: str = ""
    """Proof that the client may read our private folder; empty on a socket that the file system guards."""
    purpose: Literal["ask", "control"] = "ask"
    """control: it only looks or manages.  It does not keep the process alive, and any version may."""


class Generate(msgspec.Struct, frozen=True, tag="generate"):
    """Answer a prompt.  `max_tokens` 0 only reads it, so that a later one finds it in the KV cache."""

    id: int
    segments: tuple[Segment, ...]
    max_tokens: int = 96
    sampling: Sampling = Sampling()
    grammar: str = ""
    """GBNF that the answer must obey; empty: none."""
    heal: str = ""
    """Text that the answer must begin with and that is not given back: the cut-off beginning of a token."""
    stop: tuple[str, ...] = ()
    draft: str = ""
    """A hint at what the model will say; what is said is still the model's own choice."""
    priority: Priority = Priority.INTERACTIVE
    session: str = ""
    """The document; what is known of it helps to place the prompt."""


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Stop a generation; its `Done` says cancelled.  For one that has ended, nothing happens."""

    id: int


class Count(msgspec.Struct, frozen=True, tag="count"):
    """How many tokens do these texts take?  Answered by a `Counted` of the same number; costs no decoding."""

    number: int
    texts: tuple[str, ...]


class Began(msgspec.Struct, frozen=True, tag="began"):
    """An ask went to a managed server.  Its host, which does not see it, is not idle until it hears how it ended."""

    id: int


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """That ask is over; with its figures as far as they are known."""

    id: int
    reused: int = 0
    read: int = 0
    generated: int = 0
    cancelled: bool = False


class Ping(msgspec.Struct, frozen=True, tag="ping"):
    """Are you there?  Answered by the thread that reads, so it says nothing of the one that decodes."""

    number: int


class Retire(msgspec.Struct, frozen=True, tag="retire"):
    """Another process takes over: leave as soon as no client is left, without lingering."""


class Shutdown(msgspec.Struct, frozen=True, tag="shutdown"):
    """Leave now."""


class Look(msgspec.Struct, frozen=True, tag="look"):
    """Tell how it goes: answered by a `Status`."""


class Build(msgspec.Struct, frozen=True):
    """What the installed llama.cpp was built for."""

    version: str
    """Version of the Python binding."""
    system: str
    """llama.cpp's own line of CPU features and back ends."""
    accelerators: tuple[str, ...]
    """Back ends beside the plain CPU, and the CPU features that matter most."""
    gpu: bool
    """Whether it can put layers on a GPU of this machine."""


class Starting(msgspec.Struct, frozen=True, tag="starting"):
    """The library is loaded, the model is not yet: after this a native abort can still come."""

    build: Build


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The model is loaded and has decoded a few tokens."""

    name: str
    architecture: str
    context_tokens: int
    markers: Markers
    """Texts of the vocabulary's fill-in-the-middle tokens."""
    add_bos: bool
    on_gpu: bool
    n_layers: int
    n_parameters: int
    quantization: str
    n_slots: int = 1
    """Generations that can run at the same time."""
    n_gpu_layers: int = 0
    """Layers that are on the GPU."""


class Welcome(msgspec.Struct, frozen=True, tag="welcome"):
    """The answer to a hello, at once, also while a model is loaded."""

    pid: int


class Serving(msgspec.Struct, frozen=True, tag="serving"):
    """A managed server is up: ask it there, not here.  Comes before the `Ready`."""

    url: str
    key: str


class Pong(msgspec.Struct, frozen=True, tag="pong"):
    """The answer to a ping."""

    number: int


class Counted(msgspec.Struct, frozen=True, tag="counted"):
    """The tokens of each text; none at all: no model is loaded that could tell, or they are too much to be counted."""

    number: int
    tokens: tuple[int, ...]


class Leaving(msgspec.Struct, frozen=True, tag="leaving"):
    """The last frame of a process that ends in peace; what was asked and is not answered may be asked of the next one."""


class Totals(msgspec.Struct, frozen=True):
    """What a process has done since it started."""

    asks: int = 0
    cancelled: int = 0
    reused: int = 0
    """Prompt tokens found in the KV cache."""
    read: int = 0
    """Prompt tokens read anew."""
    generated: int = 0
    drafted: int = 0
    """Tokens proposed by drafts."""
    accepted: int = 0
    """Of those, the ones that the model agreed with."""
    busy_s: float = 0.0
    """Time in which something was decoded."""


class Status(msgspec.Struct, frozen=True, tag="status"):
    """How a process goes."""

    pid: int
    name: str
    """The model's, as `Ready` has it; empty while it is loaded."""
    since: float
    """Unix time in seconds of its start."""
    clients: int
    running: int
    """Asks that are not answered yet."""
    totals: Totals = Totals()
    address: str = ""
    """Of a managed server; empty for the native engine."""


class LoadFailed(msgspec.Struct, frozen=True, tag="load-failed"):
    """The model cannot be loaded; the worker leaves."""

    kind: Literal["runtime", "model", "memory", "internal"]
    """The library cannot be imported; the file cannot be used; there was no room; anything else."""
    message: str


class Delta(msgspec.Struct, frozen=True, tag="delta"):
    """The next piece of an answer."""

    id: int
    text: str
    n_tokens: int
    logprob: float
    reused: int | None = None
    """With the first piece: prompt tokens found in the KV cache, for whoever does not wait for the end."""
    read: int | None = None
    """With the first piece: prompt tokens read anew."""


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The end of an answer, with the tokens found in the KV cache, read anew and generated."""

    id: int
    finish: Literal["stop", "length", "cancelled"]
    reused: int = 0
    read: int = 0
    generated: int = 0
    drafted: int = 0
    """Tokens that were proposed by drafts …"""
    accepted: int = 0
    """… and agreed with what the model says: those were not decoded one by one."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """A generation has no (whole) answer."""

    id: int
    kind: FailureKind
    message: str
    limit_tokens: int | None = None


Work = Generate | Cancel | Count | Began | Ended
FromClient = Hello | Work | Ping | Look | Retire | Shutdown
FromWorker = Welcome | Starting | Ready | Serving | LoadFailed | Delta | Done | Failed | Pong | Counted | Status | Leaving

_encoder = msgspec.msgpack.Encoder()
T = TypeVar("T")


def encode(message: FromClient | FromWorker) -> bytes:
    """One frame.  Raises `FrameError` for a message that cannot be sent, `FrameTooLongError` for one over the limit."""
    try:
        body = _encoder.encode(message)
    except (UnicodeEncodeError, OverflowError) as exc:
        raise FrameError(f"it holds what no frame can hold ({exc})") from exc
    if len(body) > MAX_FRAME_BYTES:
        raise FrameTooLongError(f"a frame of {len(body)} bytes is over the limit of {MAX_FRAME_BYTES}")
    return len(body).to_bytes(_HEADER_BYTES, "big") + body


class Frames(Generic[T]):
    """Turns the bytes of one connection into messages, however they were cut on the way."""

    def __init__(self, decoder: msgspec.msgpack.Decoder[T]) -> None:
        # The mutable state is the bytes of the frame that is not whole yet; it changes in `feed` only.
        self._buffer = bytearray()
        self._decoder = decoder

    def feed(self, data: bytes) -> list[T]:
        """The messages that are whole now.  Raises `FrameError`; the connection is then of no use."""
        self._buffer += data
        messages: list[T] = []
        start = 0
        while (body := start + _HEADER_BYTES) <= len(self._buffer):
            n_bytes = int.from_bytes(self._buffer[start:body], "big")
            if n_bytes > MAX_FRAME_BYTES:
                raise FrameError(f"a frame of {n_bytes} bytes is announced, the limit is {MAX_FRAME_BYTES}")
            if len(self._buffer) < body + n_bytes:
                break
            start = body + n_bytes
            try:
                messages.append(self._decoder.decode(self._buffer[body:start]))
            except msgspec.MsgspecError as exc:
                raise FrameError("a frame does not hold a message that we know") from exc
        del self._buffer[:start]
        return messages


def frames_from_client() -> Frames[FromClient]:
    """For the worker's side of a connection."""
    return Frames(msgspec.msgpack.Decoder(FromClient))


def frames_from_worker() -> Frames[FromWorker]:
    """For the client's side of a connection."""
    return Frames(msgspec.msgpack.Decoder(FromWorker))
