"""Watching a suggestion arrive, through a server that says what it is told."""

from __future__ import annotations

import asyncio

from monkeycode_lsp.cli import watch
from monkeycode_lsp.cli.samples import SAMPLES


class Server:
    """Answers one ask after the other, as a client would hear it; the last answer is given again and again."""

    messages = ()

    def __init__(self, *answers):
        self._answers = list(answers)

    def open(self, *_document):
        pass

    def ask(self, *_place, invoked):
        assert invoked
        text, delay_s, self._outcome = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return 1, asyncio.ensure_future(asyncio.sleep(delay_s, {"items": [{"insertText": text}]}))

    async def call(self, *_command):
        return [{"outcome": "shown", "reason": "Shown.", **self._outcome}]


async def test_tokens_are_told_though_the_whole_answer_was_recalled_at_once():
    late = watch.DEADLINE_MS / 1e3 + 0.01
    server = Server(
        ("sum(", late, {"firstMs": 5.0, "generatedTokens": 2}),
        ("sum(items)", late, {"firstMs": 5.0, "generatedTokens": 4}),
        ("sum(items)", 0, {}),
    )
    grown = []
    seen = await watch.suggestion(server, SAMPLES[0], "file:///w/stock.py", grown.append, lambda: None)
    assert grown == ["sum(", "sum(items)"]
    assert (seen.n_tokens, seen.first_ms) == (4, 5.0)
    assert seen.tokens_per_second is not None
