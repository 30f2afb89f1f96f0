"""JSON-RPC as this server speaks it, on top of pygls.

What differs from the framework's own dispatch, and why:

- A handler is a plain function that runs while its message is dispatched and may return a
  coroutine for the rest: whatever it reads before that (the snapshot) belongs to its message.
- Every request gets exactly one reply, also malformed ones and those before `initialize` or after
  `shutdown`.  No traceback and no pop-up leaves the server.
- Text is synchronised by `documents`, not by the framework's workspace.
- No message body reaches a log.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Callable, Generator
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from monkeycode_lsp.transport import Writer

logger = logging.getLogger(__name__)

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
NOT_INITIALIZED, CANCELLED = -32002, -32800

_OURS = (
    lsp.TEXT_DOCUMENT_DID_OPEN,
    lsp.TEXT_DOCUMENT_DID_CHANGE,
    lsp.TEXT_DOCUMENT_DID_CLOSE,
    lsp.NOTEBOOK_DOCUMENT_DID_OPEN,
    lsp.NOTEBOOK_DOCUMENT_DID_CHANGE,
    lsp.NOTEBOOK_DOCUMENT_DID_CLOSE,
    lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS,
)
"""Without a built-in handler, the server's own feature is called."""

_NOTIFICATIONS = frozenset(method for method, (_, response, *_) in lsp.METHOD_TO_TYPES.items() if response is None)

_decoder = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()


class Protocol(LanguageServerProtocol):
    """One connection with one editor."""

    # The mutable state is the editor's open requests, ours to it, and how far the connection is.

    def __init__(self, server: LanguageServer, converter: Any) -> None:
        self.on_exit: Callable[[int], None] = lambda _code: None
        self.on_unfit: Callable[[str, Any], None] = lambda _method, _params: None
        """A notification that cannot be understood was dropped."""
        self._out: Writer | None = None
        self._framed = True
        self._initialized = False
        self._open: dict[str | int, asyncio.Future[Any]] = {}
        self._questions: dict[str, asyncio.Future[Any]] = {}
        super().__init__(server, converter)

    # In

    def connected(self, writer: Writer, *, framed: bool) -> None:
        """Replies go to `writer` from now on, with headers if `framed`."""
        self._out = writer
        self._framed = framed

    def receive(self, body: bytes) -> None:
        """Handle one message, whatever it is."""
        try:
            data = decode(body)
        except ValueError:
            self._refuse(None, PARSE_ERROR, "The message is not JSON.")
            return
        if not isinstance(data, dict) or data.get("jsonrpc") != "2.0":
            self._refuse(_id_of(data), INVALID_REQUEST, "The message is not a JSON-RPC 2.0 object.")
            return
        method = data.get("method")
        if method is None:
            self._receive_reply(data)
        elif not isinstance(method, str):
            self._refuse(_id_of(data), INVALID_REQUEST, "The method is not a string.")
        elif "id" in data:
            self._receive_request(data, method)
        else:
            self._receive_notification(data, method)

    def _receive_request(self, data: dict[str, Any], method: str) -> None:
        msg_id = _id_of(data)
        if msg_id is None:
            self._refuse(None, INVALID_REQUEST, "The request's id is neither a string nor a whole number.")
        elif self._shutdown:
            self._refuse(msg_id, INVALID_REQUEST, "The server is shutting down.")
        elif not self._initialized and method != lsp.INITIALIZE:
            self._refuse(msg_id, NOT_INITIALIZED, "The server is not initialized yet.")
        elif self._initialized and method == lsp.INITIALIZE:
            self._refuse(msg_id, INVALID_REQUEST, "The server is initialized already.")
        elif not self._knows(method):
            self._refuse(msg_id, METHOD_NOT_FOUND, f"The method {method[:100]} is not known.")
        elif method in _NOTIFICATIONS:
            self._refuse(msg_id, INVALID_REQUEST, f"{method} is a notification and takes no id.")
        else:
            message = self._structure(data)
            if message is None:
                self._refuse(msg_id, INVALID_PARAMS, "The parameters do not fit the method.")
                return
            self._initialized = True
            self.handle_message(message)

    def _receive_notification(self, data: dict[str, Any], method: str) -> None:
        if method != lsp.EXIT and (self._shutdown or not self._initialized):
            return
        if method == lsp.CANCEL_REQUEST:
            params = data.get("params")
            msg_id = _id_of(params)
            future = None if msg_id is None else self._open.get(msg_id)
            if future is not None:
                future.cancel()
            return
        if not self._knows(method):
            return
        message = self._structure(data)
        if message is None:
            logger.warning("A %s notification with unfit parameters was dropped.", method)
            self.on_unfit(method, data.get("params"))
            return
        self.handle_message(message)

    def _knows(self, method: str) -> bool:
        return method in self.fm.features or method in self.fm.builtin_features

    def _receive_reply(self, data: dict[str, Any]) -> None:
        msg_id = data.get("id")
        future = self._questions.pop(msg_id, None) if isinstance(msg_id, str) else None
        if future is None or future.done():
            return
        if "error" in data:
            error = data["error"] if isinstance(data["error"], dict) else {}
            future.set_exception(JsonRpcException(message=str(error.get("message", "")), code=int(error.get("code") or INTERNAL_ERROR)))
        else:
            future.set_result(data.get("result"))

    def _structure(self, data: dict[str, Any]) -> Any:
        try:
            return self.structure_message(data)
        except Exception:  # noqa: BLE001 - whatever the converter trips over, the message is unfit
            return None

    # Dispatch

    def _execute_handler(
        self,
        msg_id: Any,
        handler: Any,
        callback: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        """Run the handler now; a coroutine that it returns is the rest of it."""
        if getattr(handler, "__name__", "").startswith("lsp_"):
            super()._execute_handler(msg_id, handler, callback, args, kwargs)
            return
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any]
        try:
            result = handler(*(args or ()), **(kwargs or {}))
        except Exception as exc:  # noqa: BLE001 - the guard of every handler
            future = loop.create_future()
            future.set_exception(exc)
        else:
            if asyncio.iscoroutine(result):
                future = loop.create_task(result)
                self._open[msg_id] = future
            else:
                future = loop.create_future()
                future.set_result(result)
        if future.done():
            callback(future)
        else:
            future.add_done_callback(callback)

    def _send_handler_result(self, future: Any, *, msg_id: Any) -> None:
        if self._open.get(msg_id) is future:
            del self._open[msg_id]
        self._request_futures.pop(msg_id, None)
        if future.cancelled():
            self._refuse(msg_id, CANCELLED, "The request was cancelled.")
            return
        exc = future.exception()
        if exc is None:
            self._send_response(msg_id, future.result())
        elif isinstance(exc, JsonRpcException):
            self._refuse(msg_id, exc.code or INTERNAL_ERROR, exc.message or "The request failed.")
        else:
            logger.error("A request failed.", exc_info=exc)
            self._refuse(msg_id, INTERNAL_ERROR, "An error of the server; its log has the details.")

    def _check_handler_result(self, future: Any) -> None:
        if not future.cancelled() and future.exception() is not None:
            logger.error("A notification could not be handled.", exc_info=future.exception())

    def cancel_all(self) -> None:
        """Cancel every request that is still open; each is answered."""
        for future in list(self._open.values()):
            future.cancel()

    # Life

    def _register_builtin_features(self) -> None:
        super()._register_builtin_features()  # type: ignore[no-untyped-call]  # the framework's
        builtin = self.fm.builtin_features
        for method in _OURS:
            builtin.pop(method, None)
        builtin[lsp.INITIALIZE] = self.lsp_initialize_anywhere
        builtin[lsp.SHUTDOWN] = self._shut_down
        builtin[lsp.EXIT] = self._exit

    def lsp_initialize_anywhere(self, params: lsp.InitializeParams) -> Generator[Any, Any, Any]:
        """The framework's, which trips over a folder whose URI cannot be parsed; such a folder is none."""
        if not _can_be_parsed(params.root_uri or ""):
            params.root_uri = None
        params.workspace_folders = [folder for folder in params.workspace_folders or [] if _can_be_parsed(folder.uri)]
        return (yield from super().lsp_initialize(params))

    def _shut_down(self, _params: Any) -> None:
        self.cancel_all()
        self._shutdown = True

    def _exit(self, _params: Any) -> None:
        """0 after `shutdown`, 1 without it."""
        self.on_exit(0 if self._shutdown else 1)

    # Out

    def _refuse(self, msg_id: str | int | None, code: int, message: str) -> None:
        self._write({"jsonrpc": "2.0", "id": msg_id, "error": {"code": code, "message": message}})

    def _send_response(self, msg_id: Any, result: Any = None, error: Any = None) -> None:
        if error is not None:
            self._refuse(msg_id, error.code, error.message)
        else:
            self._write({"jsonrpc": "2.0", "id": msg_id, "result": self._converter.unstructure(result)})

    def _send_data(self, data: Any) -> None:
        self._write(self._converter.unstructure(data))

    def _write(self, data: dict[str, Any]) -> None:
        if self._out is None:
            return
        try:
            body = _encoder.encode(data)
        except UnicodeError:  # a file name, for example, may hold bytes that are no text
            body = _encoder.encode(_mend(data))
        self._out.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body) if self._framed else body)

    def ask_editor(self, method: str, params: Any) -> asyncio.Future[Any]:
        """Send a request to the editor; the future holds its raw result."""
        msg_id = str(uuid.uuid4())
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._questions[msg_id] = future
        future.add_done_callback(partial(self._forget_question, msg_id))
        self._write({"jsonrpc": "2.0", "id": msg_id, "method": method, "params": self._converter.unstructure(params)})
        return future

    def _forget_question(self, msg_id: str, future: asyncio.Future[Any]) -> None:
        self._questions.pop(msg_id, None)
        if not future.cancelled():
            future.exception()  # read: an editor that says no is no error of ours


def _can_be_parsed(uri: str) -> bool:
    try:
        urlsplit(uri)
    except ValueError:
        return False
    return True


def decode(body: bytes) -> Any:
    """JSON of an editor.  Lone surrogates become U+FFFD, which has the same length in UTF-16.

    Raises `ValueError`.
    """
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        text = body.decode("utf-8", "replace")
        return _mend(json.loads(text))
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc


def _mend(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_mend(item) for item in value]
    if isinstance(value, dict):
        return {_mend(key): _mend(item) for key, item in value.items()}
    return value


def _id_of(data: Any) -> str | int | None:
    msg_id = data.get("id") if isinstance(data, dict) else None
    return msg_id if isinstance(msg_id, str) or (isinstance(msg_id, int) and not isinstance(msg_id, bool)) else None
