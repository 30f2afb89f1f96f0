"""What a workspace is called in the team's tier: the same for colleagues whose folders lie elsewhere.

It is the repository's `origin` and the folder's place in it.  Where that is not certain to mean the same on
another machine, it is the folder's own URI, which shares nothing: a wrong reuse is worse than a miss.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

_MOST_BYTES = 1_048_576
_MOST_LEVELS = 64
_MOST_URL = 2_048
_PORTS = {"http": 80, "https": 443, "ssh": 22, "git": 9418, "git+ssh": 22, "ssh+git": 22}
_SECTION = re.compile(r"\[\s*([A-Za-z0-9.-]+)(?:\s+\"((?:[^\"\\]|\\.)*)\")?\s*\]")
_SCP = re.compile(r"(?:([^@/:]+)@)?(\[[0-9A-Fa-f:]+\]|[^@/:\[\]]+):(?!//)(.+)")
_SHARED_USERS = frozenset({"git"})
"""Whose home folder is the same for everybody: `git@host:team/project`."""
_ONE_LETTER = 1


def identity(workspace_uri: str) -> str:
    """Reads a few small files; never fails."""
    try:
        folder = _folder(workspace_uri)
        found = _repository(folder) if folder is not None else None
        if folder is None or found is None:
            return workspace_uri
        top, config = found
        origin = normalised(origin_url(_read(config)))
        inside = unicodedata.normalize("NFC", folder.relative_to(top).as_posix())
    except (OSError, ValueError):  # no such file, no right to read it, a NUL in its name
        return workspace_uri
    return f"git:{origin}#{inside}" if origin else workspace_uri


# Pure


def origin_url(config: str) -> str:
    """The URL of the remote `origin` in the text of a `.git/config`; empty if there is none."""
    url, here = "", False
    for line in re.sub(r"\\\r?\n", "", config).splitlines():
        text = line.strip()
        if section := _SECTION.match(text):
            here = section[1].lower() == "remote" and section[2] == "origin"
            text = text[section.end() :].strip()
        name, equals, value = text.partition("=")
        if here and equals and name.strip().lower() == "url" and not url:
            url = _value(value)
    return url


def normalised(url: str) -> str:
    """`host/path` for each spelling of one repository's URL; empty if it can mean something else on another machine."""
    url = url.strip()
    if len(url) > _MOST_URL or not url.isprintable() or " " in url or "\\" in url:
        return ""
    host, path = _parts(url) if "://" in url else _scp_parts(url)
    path = path.strip("/").removesuffix(".git").strip("/")
    if not host or not path or path.startswith("~") or any(step in ("", ".", "..") for step in path.split("/")):
        return ""
    return f"{host}/{path}"


def _value(text: str) -> str:
    """A value as git reads it: quotes are taken off, and a comment."""
    value, quoted, escaped = [], False, False
    for char in text.strip():
        if escaped:
            value.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == '"':
            quoted = not quoted
        elif char in "#;" and not quoted:
            break
        else:
            value.append(char)
    return "".join(value).strip()


def _parts(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "", ""
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    if scheme not in _PORTS or parts.query or parts.fragment or _is_this_machine(host):
        return "", ""
    return (host if port in (None, _PORTS[scheme]) else f"{host}:{port}"), parts.path


def _scp_parts(url: str) -> tuple[str, str]:
    match = _SCP.fullmatch(url)
    if match is None or len(match[2]) == _ONE_LETTER:  # a path, or a drive of Windows
        return "", ""
    user, host, path = match[1] or "", match[2].strip("[]").lower(), match[3]
    if _is_this_machine(host) or not (path.startswith("/") or user in _SHARED_USERS):
        return "", ""  # in somebody's own home folder
    return host, path


def _is_this_machine(host: str) -> bool:
    return not host or host == "localhost" or host.endswith(".localhost") or host.startswith("127.") or host == "::1"


# Reading


def _folder(uri: str) -> Path | None:
    parts = urlsplit(uri)
    if parts.scheme != "file" or (parts.netloc not in ("", "localhost") and os.name != "nt"):
        return None
    return Path(os.path.realpath(url2pathname(parts.path)))


def _repository(folder: Path) -> tuple[Path, Path] | None:
    """The working tree's top folder and the file with its settings."""
    for top in (folder, *folder.parents)[:_MOST_LEVELS]:
        entry = top / ".git"
        try:
            kind = entry.stat().st_mode
        except FileNotFoundError:
            continue
        if stat.S_ISDIR(kind):
            return top, entry / "config"
        return top, _linked(top, _read(entry)) / "config"
    return None


def _linked(top: Path, text: str) -> Path:
    """The folder with the settings of a worktree or a submodule, whose `.git` is a file."""
    if not text.startswith("gitdir:"):
        raise ValueError("no file of git's")
    git = top / text.removeprefix("gitdir:").strip()
    try:
        return git / _read(git / "commondir").strip()
    except FileNotFoundError:
        return git  # a submodule


def _read(path: Path) -> str:
    """The text of a small file.  A workspace may hold anything: a pipe or a device is neither read nor waited for."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
        kind = os.fstat(descriptor)
        if not stat.S_ISREG(kind.st_mode) or kind.st_size > _MOST_BYTES:
            raise ValueError("no file of git's")
        return file.read(_MOST_BYTES).decode("utf-8", "replace")
