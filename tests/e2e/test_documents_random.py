"""Random edits through the real server: what the backend is shown is what the editor has, in every encoding."""

import random

import pytest

from tests import driver, servers
from tests.e2e import scene as scenes

pytestmark = pytest.mark.e2e

PIECES = [
    "x", "ab", " = ", "(", ")", "    ", "\t", "\n", "\n", "\r\n", "\r", "\n\n", "é", "e\u0301", "имя", "漢字", "😋", "👩\u200d👩\u200d👧", "🇩🇪", "\u200f",
    "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029", "\ufeff", "\ufffd", "\U0010ffff", "\ud7ff", "\ue000", "",
]  # fmt: skip
LONGEST = 500
"""Short enough for the whole document to be shown."""


def speaking(encoding):
    return driver.VSCODE | {"capabilities": driver.VSCODE["capabilities"] | {"general": {"positionEncodings": [encoding]}}}


def lf(text):
    return text.replace("\r\n", "\n").replace("\r", "\n")


def offset_in(dice, text):
    """Somewhere that a position can name: not inside CRLF."""
    offset = dice.randrange(len(text) + 1)
    return offset + 1 if text[offset - 1 : offset + 1] == "\r\n" and offset else offset


def edit(dice, lsp, uri):
    """One edit as an editor would send it."""
    text = lsp.texts[uri]
    new = "".join(dice.choice(PIECES) for _ in range(dice.choice([0, 1, 1, 1, 2, 8])))
    kind = dice.random()
    if kind < 0.05 or len(text) > LONGEST:
        return None, None, new
    start = end = offset_in(dice, text)
    if kind < 0.5:
        end = offset_in(dice, text)
    start, end = min(start, end), max(start, end)
    return lsp.position(uri, start), lsp.position(uri, end), new


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("seed", [1, 2])
async def test_the_backend_sees_the_text_that_the_editor_has(tmp_path, encoding, seed):
    dice = random.Random(f"{encoding} {seed}")  # noqa: S311 - dice, no secrets
    async with scenes.running(tmp_path, params=speaking(encoding), options={"cache": {"enabled": False}}) as scene:
        assert scene.lsp.encoding == encoding
        scene.says.script = servers.reply("value")
        uri, _, _ = scene.put("x = '😋'\r\n‸")
        for _ in range(300):
            for n_edits in dice.choice([[1], [1], [1, 1], [3], [2, 1, 1]]):
                scene.lsp.changes(uri, (edit(dice, scene.lsp, uri) for _ in range(n_edits)))
            text = scene.lsp.texts[uri]
            offset = offset_in(dice, text)
            shown = await scene.ask(uri, *scene.lsp.position(uri, offset), invoked=True)
            assert shown.halves == (lf(text[:offset]), lf(text[offset:]))
            if shown.text is not None:
                assert shown.range[1] == scene.lsp.position(uri, offset)
