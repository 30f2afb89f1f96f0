"""The pipeline under random editing, on a clock of its own: what must hold whatever is typed and whatever the engine does."""

from __future__ import annotations

import asyncio
import gc
import random

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as budget
from hypothesis import strategies as st

from monkeycode_lsp.generation import Generation
from monkeycode_lsp.recall.table import DOCUMENTS, PER_DOCUMENT
from tests.unit.editing import TEXT, Document, Editor
from tests.unit.virtual import on_virtual_time

COMMON = (Editor.type_what_is_shown, Editor.accept, Editor.type)
RARE = (
    Editor.reject,
    Editor.paste,
    Editor.delete,
    Editor.undo,
    Editor.jump,
    Editor.jump_and_come_back,
    Editor.go_to_the_other_document,
    Editor.ask_again,
    Editor.ask_by_key,
)
scripts = st.lists(
    st.tuples(
        st.sampled_from(COMMON * 4 + RARE),
        st.integers(0, 40),
        st.sampled_from((0.0, 0.03, 0.06, 0.15, 0.15, 0.35, 0.8, 2.0, 4.0)),
    ),
    min_size=5,
    max_size=40,
)
trees = st.fixed_dictionaries(
    {
        "cache": st.fixed_dictionaries({"enabled": st.sampled_from((True, True, True, False)), "showings": st.sampled_from((0, 3))}),
        "debounce": st.fixed_dictionaries({"mode": st.sampled_from(("adaptive", "fixed", "off")), "maxMs": st.sampled_from((100, 300))}),
        "lookAhead": st.fixed_dictionaries({"mode": st.sampled_from(("auto", "on", "off"))}),
        "completion": st.fixed_dictionaries(
            {"multiline": st.sampled_from(("auto", "always", "never")), "deadlineMs": st.sampled_from((150, 800, 3000))}
        ),
    }
)


@given(script=scripts, tree=trees, takes_background=st.booleans(), cancels=st.booleans())
@budget(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_is_done_what_is_shown_was_said_and_nothing_runs_in_vain(script, tree, takes_background, cancels):
    @on_virtual_time
    async def session():
        editor = Editor(tree, takes_background=takes_background, cancels=cancels)
        for act, number, gap_s in script:
            editor.gap_s = gap_s
            await act(editor, number)
        await editor.finish()

    session()


def alive(completer):
    """What the pipeline could leave behind, by kind."""
    gc.collect()
    kinds = (asyncio.Future, asyncio.Handle, Generation)
    counts = {kind.__name__: sum(isinstance(thing, kind) for thing in gc.get_objects()) for kind in kinds}
    return counts | {"shown": len(completer.screen._shown), "claims": len(completer._turn._newest), "tasks": len(asyncio.all_tasks())}


@pytest.mark.parametrize("cancels", [True, False], ids=["cancelling", "never cancelling"])
def test_nothing_grows_with_the_number_of_asks(cancels):
    @on_virtual_time
    async def session():
        editor = Editor({"lookAhead": {"mode": "on"}}, takes_background=True, cancels=cancels)
        rng, counts = random.Random(1), []  # noqa: S311 - a die for tests
        for n_asks in (2_500, 5_000):
            while len(editor.asks) < n_asks:
                if rng.random() < 0.1:  # the other document is closed, and another one opened
                    other = next(uri for uri in editor.documents if uri != editor.uri)
                    if rng.random() < 0.5:
                        editor.completer.closed(other)
                    new = f"file:///w/{len(editor.asks)}.py"
                    editor.documents = {editor.uri: editor.document, new: Document(TEXT, TEXT.index("\n") + 5)}
                editor.gap_s = rng.choice((0.0, 0.03, 0.1, 0.3))
                editor.engine.streams = editor.engine.running  # what was said is not of interest here
                await rng.choice(COMMON + RARE)(editor, rng.randrange(40))
            await asyncio.sleep(10)
            counts.append(alive(editor.completer))
            assert not editor.engine.running
        assert len(editor.outcomes.all) == len(editor.asks)
        entries = editor.completer.recall.table._documents.values()
        assert len(entries) <= DOCUMENTS
        assert max(map(len, entries)) <= PER_DOCUMENT
        half, whole = counts
        assert {kind: n for kind, n in whole.items() if n > 1.1 * half[kind] + 20} == {}
        await editor.completer.retire()

    session()
