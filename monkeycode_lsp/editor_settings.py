"""The settings as the editor tells them: at start, when asked for them, and whenever they change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from lsprotocol import types as lsp

from monkeycode_lsp.config import Config
from monkeycode_lsp.protocol import Protocol
from monkeycode_lsp.settings import SECTION, Layers

logger = logging.getLogger(__name__)

ANSWER_S = 5.0
"""An editor that has not told its settings by then is served with those from elsewhere."""


class EditorSettings:
    """Of one editor."""

    # The mutable state is the layers (theirs), the workspace's root, whether the editor answers questions, and the problems that
    # the user was told of; it changes in the methods below only.

    def __init__(
        self,
        layers: Layers,
        protocol: Protocol,
        *,
        apply: Callable[[Config], None],
        say: Callable[[str], None],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        """`apply` puts settings in force; `say` tells the user what is wrong with them."""
        self._layers = layers
        self._protocol = protocol
        self._apply = apply
        self._say = say
        self._spawn = spawn
        self._root = ""
        self._answers = False
        self._problems: frozenset[str] = frozenset()

    def begin(self, root: str, options: Any, *, answers: bool) -> None:
        """What `initialize` says; `answers`: the editor can be asked."""
        self._root, self._answers = root, answers
        self._layers.read_files(root)
        self._layers.set_client(options)

    def started(self) -> None:
        """The editor is ready."""
        if self._answers:
            self._spawn(self._ask())
        else:
            self._resolve()

    def changed(self, pushed: Any) -> None:
        """The editor, or the user's files, may say something else."""
        self._layers.read_files(self._root)  # they may be what has changed
        if isinstance(pushed, dict) and pushed:
            self._layers.set_pushed(pushed)
            self._resolve()
        else:
            self.started()

    async def _ask(self) -> None:
        item = lsp.ConfigurationItem(section=SECTION)
        try:
            async with asyncio.timeout(ANSWER_S):
                answer = await self._protocol.ask_editor(lsp.WORKSPACE_CONFIGURATION, lsp.ConfigurationParams([item]))
        except Exception as exc:  # noqa: BLE001 - an editor that cannot answer leaves the settings as they are
            logger.info("The editor did not answer workspace/configuration (%s).", type(exc).__name__)
            answer = None
        if isinstance(answer, list) and answer:
            self._layers.set_current(answer[0])
        self._resolve()

    def _resolve(self) -> None:
        settings, problems = self._layers.resolve()
        self._apply(settings)
        for problem in dict.fromkeys(problems):
            if problem not in self._problems:
                self._say(f"Setting {problem}")
        self._problems = frozenset(problems)
        logging.getLogger("monkeycode_lsp").setLevel(self._layers.log_level(settings))
