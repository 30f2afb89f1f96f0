"""The hub that publishes the models, or a mirror of it: resumed downloads over HTTP.

Every file is checked against the catalogue's hash, or, where that has none, the hash the hub announces.
"""

from __future__ import annotations

import os
import queue
import re
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import msgspec

from monkeycode_lsp import __version__
from monkeycode_lsp.errors import DownloadError
from monkeycode_lsp.models.part import PartFile, UnreachableError
from monkeycode_lsp.models.sources.base import DOWNLOADING, Job

if TYPE_CHECKING:
    import httpx

DEFAULT_ENDPOINT = "https://huggingface.co"

_CONNECT_S = 3.0
_READ_S = 30.0
_CHUNK = 1 << 16
_MAX_TRIES = 4
"""In a row without one new byte."""
_MAX_PAUSE_S = 10.0
_SHA256 = re.compile(r'^(?:W/)?"?([0-9a-f]{64})"?$')
_LOOPBACK = {"127.0.0.1", "::1", "localhost"}

_OK, _PARTIAL, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND, _RANGE, _TOO_MANY = 200, 206, 401, 403, 404, 416, 429
_SERVER_ERRORS = range(500, 600)


class _Wanted(msgspec.Struct, frozen=True):
    """What is known of the file so far."""

    size: int | None
    sha256: str


class _CutError(Exception):
    """The transfer ended early or the hub asks us to wait: worth another try."""

    def __init__(self, message: str, pause_s: float | None = None) -> None:
        super().__init__(message)
        self.pause_s = pause_s


class Hub:
    """Downloads from the hub at `mirror`, `HF_ENDPOINT`, or the hub's own address."""

    def __init__(
        self,
        *,
        mirror: str = "",
        environ: Mapping[str, str] | None = None,
        pause: Callable[[float], None] = time.sleep,
        answer_s: float = 8.0,
    ) -> None:
        """`answer_s` bounds name look-up, every address and redirects: after this the hub counts as unreachable."""
        self._environ = os.environ if environ is None else environ
        self.endpoint = (mirror or self._environ.get("HF_ENDPOINT", "").strip() or DEFAULT_ENDPOINT).rstrip("/")
        self._pause = pause
        self._answer_s = answer_s

    @property
    def name(self) -> str:
        """For people."""
        return f"the model hub ({urlsplit(self.endpoint).netloc or self.endpoint})"

    def deliver(self, job: Job) -> Path:
        """Download the file, going on where an earlier download stopped."""
        if self._environ.get("HF_HUB_OFFLINE", "").strip().lower() in {"1", "true", "yes", "on"}:
            raise DownloadError("not asked, because HF_HUB_OFFLINE is set.")
        wanted = _Wanted(size=job.entry.bytes, sha256=job.entry.sha256)
        with job.open_part() as file:
            if wanted.size is None or file.size != wanted.size:
                with self._client() as client:
                    wanted = self._download(client, job, file, wanted)
            return job.complete(file, size=wanted.size, sha256=wanted.sha256)

    def _client(self) -> httpx.Client:
        import httpx  # noqa: PLC0415 - importing it takes longer than everything else here

        headers = {"User-Agent": f"monkeycode-lsp/{__version__}", "Accept-Encoding": "identity"}
        token = self._token()
        if token and self._may_see_token():
            headers["Authorization"] = f"Bearer {token}"
        timeout = httpx.Timeout(_READ_S, connect=_CONNECT_S)
        try:
            return httpx.Client(headers=headers, timeout=timeout, follow_redirects=True)
        except (ImportError, ValueError, OSError) as exc:  # proxy variables and certificate files of the user's
            raise DownloadError(f"the proxy or certificate settings cannot be used: {exc}.") from exc

    def _token(self) -> str:
        token = self._environ.get("HF_TOKEN", "").strip()
        if token:
            return token
        home = self._environ.get("HF_HOME", "").strip() or "~/.cache/huggingface"
        path = Path(self._environ.get("HF_TOKEN_PATH", "").strip() or Path(home) / "token").expanduser()
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return ""

    def _may_see_token(self) -> bool:
        address = urlsplit(self.endpoint)
        return address.scheme == "https" or address.hostname in _LOOPBACK

    def _download(self, client: httpx.Client, job: Job, file: PartFile, wanted: _Wanted) -> _Wanted:
        """Until the whole file is here; tries again as long as each try brings something."""
        import httpx  # noqa: PLC0415 - as above

        began_at, tries = file.size, 0
        while True:
            before = file.size
            try:
                return self._once(client, job, file, wanted)
            except (_CutError, httpx.ReadTimeout, httpx.NetworkError, httpx.RemoteProtocolError) as exc:
                if isinstance(exc, httpx.ConnectError) and file.size == began_at:
                    raise UnreachableError(f"cannot be reached: {exc}.") from exc
                file.flush()
                tries = 1 if file.size > before else tries + 1
                if tries >= _MAX_TRIES:
                    raise DownloadError(
                        f"the download stopped after {file.size} bytes: {exc}.", remedy="Pull again: it goes on where it stopped."
                    ) from exc
                pause_s = exc.pause_s if isinstance(exc, _CutError) and exc.pause_s is not None else 0.5 * 2**tries
                job.progress("The connection was cut; trying again", file.size, wanted.size)
                self._pause(min(pause_s, _MAX_PAUSE_S))
            except httpx.TimeoutException as exc:
                raise UnreachableError("does not answer.") from exc
            except (httpx.RequestError, httpx.InvalidURL) as exc:
                raise DownloadError(f"cannot be used: {exc}.", remedy="Check HF_ENDPOINT.") from exc

    def _once(self, client: httpx.Client, job: Job, file: PartFile, wanted: _Wanted) -> _Wanted:
        entry = job.entry
        url = f"{self.endpoint}/{quote(entry.repository)}/resolve/main/{quote(entry.file)}"
        headers = {"Range": f"bytes={file.size}-"} if file.size else {}
        job.progress("Asking the hub", file.size, wanted.size)
        response = _first_answer(client, client.build_request("GET", url, headers=headers), self._answer_s)
        try:
            wanted = _announced(response, wanted)
            if response.status_code == _RANGE and file.size:
                if wanted.size == file.size:
                    return wanted
                file.cut(0)
                raise _CutError("the part that is here does not fit the hub's file", pause_s=0.0)
            _refuse_status(response)
            start = _start(response)
            if start is None or start > file.size:
                raise DownloadError("sends another part of the file than it was asked for.")
            file.cut(start)
            if not wanted.sha256:
                raise DownloadError(
                    "announces no checksum for this file, so it could not be checked.", remedy="Unset HF_ENDPOINT, or choose another model."
                )
            job.needs((wanted.size or entry.about_bytes) - file.size)
            for chunk in response.iter_raw(_CHUNK):
                file.write(chunk)
                job.progress(DOWNLOADING, file.size, wanted.size)
                if wanted.size is not None and file.size > wanted.size:
                    break
        finally:
            response.close()
        if wanted.size is not None and file.size < wanted.size:
            raise _CutError("the hub ended the transfer too early")
        return wanted


def _first_answer(client: httpx.Client, request: httpx.Request, within_s: float) -> httpx.Response:
    """The response's head, within a bounded time: looking up a name and trying every address is not bounded by any timeout."""
    answers: queue.SimpleQueue[httpx.Response | BaseException] = queue.SimpleQueue()
    given_up = threading.Event()

    def ask() -> None:
        try:
            response = client.send(request, stream=True)
        except BaseException as exc:  # noqa: BLE001 - it is raised again in the thread that waits
            answers.put(exc)
            return
        if given_up.is_set():
            response.close()
        answers.put(response)

    threading.Thread(target=ask, name="hub", daemon=True).start()
    try:
        answer = answers.get(timeout=within_s)
    except queue.Empty:
        raise UnreachableError(f"did not answer within {within_s:g} seconds.") from None
    finally:
        given_up.set()
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _announced(response: httpx.Response, wanted: _Wanted) -> _Wanted:
    """Add what the hub says of the file; refuse another file than the catalogue's before anything is downloaded."""
    size, sha256 = None, ""
    for step in (*response.history, response):
        match = _SHA256.match(step.headers.get("X-Linked-ETag", "").lower())
        sha256 = match.group(1) if match else sha256
        size = _number(step.headers.get("X-Linked-Size")) or size
    if response.status_code in {_PARTIAL, _RANGE}:
        size = size or _number(response.headers.get("Content-Range", "").rpartition("/")[2])
    elif response.status_code == _OK:
        size = size or _number(response.headers.get("Content-Length"))
    if (wanted.sha256 and sha256 and sha256 != wanted.sha256) or (wanted.size and size and size != wanted.size):
        raise DownloadError("has another file under this name than the one the catalogue describes.")
    return _Wanted(size=wanted.size or size, sha256=wanted.sha256 or sha256)


def _refuse_status(response: httpx.Response) -> None:
    status = response.status_code
    if status in {_OK, _PARTIAL}:
        return
    if status in {_UNAUTHORIZED, _FORBIDDEN}:
        raise DownloadError(
            f"refuses this file without permission (HTTP {status}).", remedy="Accept the model's terms on its page and set HF_TOKEN."
        )
    if status == _NOT_FOUND:
        raise DownloadError("does not have this file (HTTP 404).")
    if status == _TOO_MANY or status in _SERVER_ERRORS:
        raise _CutError(f"the hub answers HTTP {status}", pause_s=_number(response.headers.get("Retry-After")))
    raise DownloadError(f"answers HTTP {status}.")


def _start(response: httpx.Response) -> int | None:
    """Where in the file the body begins: at its start, unless the hub did what we asked."""
    if response.status_code == _OK:
        return 0
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(match.group(1)) if match else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None
