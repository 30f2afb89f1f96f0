"""What the user is told: each problem once, and the offer of a model where there is none."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from monkeycode_lsp.errors import ModelMissingError, MonkeyCodeError
from monkeycode_lsp.protocol import Protocol

logger = logging.getLogger(__name__)

PullModel = Callable[[str, str, Callable[[str, int, int | None], None]], Any]
"""Fetch a catalogue model (blocking): name, mirror, progress(stage, bytes done, bytes in all); progress may raise to stop it."""
_Progress = lsp.WorkDoneProgressBegin | lsp.WorkDoneProgressReport | lsp.WorkDoneProgressEnd


class Notices:
    """The mutable state is what has been said and offered already, and whether the editor is still there."""

    def __init__(
        self, ls: LanguageServer, protocol: Protocol, *, pull_model: PullModel | None, pulled: Callable[[], Awaitable[None]]
    ) -> None:
        self._ls = ls
        self._protocol = protocol
        self._pull_model = pull_model
        self._pulled = pulled
        self._said: set[str] = set()
        self._offered: set[str] = set()
        self._gone = threading.Event()
        self.shows_progress = False
        self.mirror = ""
        """Where models are fetched from, as the settings say."""

    def say(self, text: str) -> None:
        """One message per problem, until `forget`."""
        if text in self._said:
            return
        self._said.add(text)
        logger.warning("%s", text)
        self._ls.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Warning, f"MonkeyCode: {text}"))

    def forget(self) -> None:
        """The settings changed: what is still wrong is worth another word."""
        self._said.clear()

    def can_offer(self, error: MonkeyCodeError) -> bool:
        """Whether there is more to do about it than to say it."""
        return isinstance(error, ModelMissingError) and bool(error.offer) and self._pull_model is not None

    async def offer(self, error: ModelMissingError) -> None:
        """Ask once whether the model should be fetched, and fetch it."""
        if error.offer in self._offered or self._pull_model is None:
            return
        self._offered.add(error.offer)
        logger.warning("%s", error)
        actions = [lsp.MessageActionItem("Download"), lsp.MessageActionItem("Not now")]
        params = lsp.ShowMessageRequestParams(lsp.MessageType.Info, f"MonkeyCode: {error.message} {error.offer_text}", actions=actions)
        try:
            choice = await self._protocol.ask_editor(lsp.WINDOW_SHOW_MESSAGE_REQUEST, params)
        except Exception as exc:  # noqa: BLE001 - an editor that cannot ask is told
            logger.info("The editor asks no questions (%s).", type(exc).__name__)
            self.say(str(error))
            return
        if isinstance(choice, dict) and choice.get("title") == "Download":
            await self._download(error.offer, self._pull_model)

    def close(self) -> None:
        """The editor is gone; a download stops where it is and can be resumed."""
        self._gone.set()

    async def _download(self, name: str, pull: PullModel) -> None:
        token = f"monkeycode-pull-{name}"
        shows = self.shows_progress and await self._begin_progress(token, f"Downloading {name}")
        try:
            await self._in_thread(name, pull, token if shows else "")
        except MonkeyCodeError as exc:
            self.say(str(exc))
        else:
            self._ls.window_show_message(lsp.ShowMessageParams(lsp.MessageType.Info, f"MonkeyCode: {name} is ready."))
            await self._pulled()
        finally:
            if shows:
                self._progress(token, lsp.WorkDoneProgressEnd())

    async def _in_thread(self, name: str, pull: PullModel, token: str) -> None:
        """On a thread that the process does not wait for at its end."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        last = -1

        def progress(stage: str, n_done: int, n_total: int | None) -> None:
            nonlocal last
            if self._gone.is_set():
                raise InterruptedError
            percent = int(100 * n_done / n_total) if n_total else max(last, 0)
            if token and percent != last:
                last = percent
                loop.call_soon_threadsafe(self._progress, token, lsp.WorkDoneProgressReport(message=stage, percentage=percent))

        def work() -> None:
            error: Exception | None = None
            try:
                pull(name, self.mirror, progress)
            except Exception as exc:  # noqa: BLE001 - handed over to the one who waits
                error = exc
            if not self._gone.is_set():
                loop.call_soon_threadsafe(_finish, done, error)

        threading.Thread(target=work, name="pull", daemon=True).start()
        await done

    async def _begin_progress(self, token: str, title: str) -> bool:
        try:
            await self._protocol.ask_editor(lsp.WINDOW_WORK_DONE_PROGRESS_CREATE, lsp.WorkDoneProgressCreateParams(token))
        except Exception as exc:  # noqa: BLE001 - an editor that refuses simply shows nothing
            logger.info("The editor shows no progress (%s).", type(exc).__name__)
            return False
        self._progress(token, lsp.WorkDoneProgressBegin(title=title, percentage=0))
        return True

    def _progress(self, token: str, value: _Progress) -> None:
        self._ls.progress(lsp.ProgressParams(token, value))


def _finish(done: asyncio.Future[None], error: Exception | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
