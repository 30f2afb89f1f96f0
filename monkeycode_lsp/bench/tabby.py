"""tabby-agent as a peer: how it is started against the endpoint of a benchmark, and what it asks of that.

Nothing of it reaches beyond this machine: its server is ours, its telemetry is off, its home is a temporary folder.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from monkeycode_lsp.errors import MonkeyCodeError

NAME = "tabby-agent"
REMEDY = "`npm install tabby-agent@1.5.0` in a folder of your choice, then `--peer FOLDER/node_modules/.bin/tabby-agent`."

_HEALTH = {
    "model": "qwen2.5-coder",
    "device": "cpu",
    "arch": "",
    "cpu_info": "",
    "cpu_count": 1,
    "cuda_devices": [],
    "version": {"build_date": "", "build_timestamp": "", "git_sha": "", "git_describe": "v0.11.0"},
}
PAGES: dict[bytes, bytes] = {
    b"/v1/health": msgspec.json.encode(_HEALTH),
    b"/v1beta/server_setting": b'{"disable_client_side_telemetry":true}',
    b"/v1/events": b"",
}
"""What it reads besides completions."""

_CONFIG = """[server]
endpoint = "{url}"
token = ""

[completion.debounce]
mode = "fixed"
interval = 0

[anonymousUsageTracking]
disable = true
"""


def is_asked(body: bytes) -> bool:
    """Whether a completion is asked for in its way: the prompt in segments."""
    return b'"segments":{' in body


def answer(text: str) -> bytes:
    """A completion as its server says it."""
    return msgspec.json.encode({"id": "cmpl-0", "choices": [{"index": 0, "text": text}]})


def find(command: str) -> str:
    """The program's whole path.  Raises `MonkeyCodeError`."""
    found = shutil.which(command)
    if found is None:
        raise MonkeyCodeError(f"There is no program {command} to compare with.", remedy=REMEDY)
    return str(Path(found).absolute())


def command(program: str) -> list[str]:
    """How it is started."""
    return [program, "--lsp", "--stdio"]


def prepare(home: Path, url: str) -> dict[str, str]:
    """Write its settings under `home`; the environment in which it finds them."""
    folder = home / ".tabby-client" / "agent"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(_CONFIG.format(url=url), encoding="utf-8")
    return os.environ | {"HOME": str(home), "USERPROFILE": str(home)}


def params(uri: str, line: int, character: int) -> Mapping[str, Any]:
    """Of `textDocument/completion`, the request that it answers."""
    return {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}, "context": {"triggerKind": 1}}
