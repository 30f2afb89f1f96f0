"""What is known of places like others, verified by the real model: it is there sooner, and it is the same answer."""

import pytest

from monkeycode_lsp import prompt, stops
from monkeycode_lsp.engines.local.batch.batcher import Batcher
from monkeycode_lsp.engines.local.batch.shelf import Shelf
from monkeycode_lsp.engines.local.wire import Delta, Done, Generate
from monkeycode_lsp.recall.near import Near
from tests.unit.places import at

pytestmark = [pytest.mark.model, pytest.mark.native]

FAMILY = prompt.by_setting("qwen2.5-coder", None)
PAIRS = {
    "a loop": ("def show(users):\n    for user in users:\n        ‸\n", "def show(pages):\n    for page in pages:\n        ‸\n"),
    "a reader": (
        "import json\n\ndef load_settings(path):\n    with open(path) as stream:\n        ‸\n",
        "import json\n\ndef load_users(filename):\n    with open(filename) as stream:\n        ‸\n",
    ),
    "a handler": (
        "@app.get('/users/{user_id}')\nasync def read_user(user_id: int, db: Session = Depends(get_db)):\n    ‸\n",
        "@app.get('/pages/{page_id}')\nasync def read_page(page_id: int, db: Session = Depends(get_db)):\n    ‸\n",
    ),
    "an edit above": (
        "import csv\n\ndef read_rows(path):\n    rows = []\n    reader = csv.reader(open(path))\n    next(reader)\n    ‸\n",
        "import csv\n\ndef read_rows(path):\n    rows = []\n    reader = csv.reader(open(path))\n    header = next(reader)\n    ‸\n",
    ),
    "another text below": (
        "def mean(values):\n    total = sum(values)\n    count = len(values)\n    ‸\n",
        "def mean(values):\n    total = sum(values)\n    count = len(values)\n    ‸\n\n\ndef median(values):\n    pass\n",
    ),
}
FEW = 1
"""So many answers may differ: where the model is undecided, a batch can decide it."""


class Timed:
    """The model with a clock of its own, by which drafts pay on every machine."""

    def __init__(self, llama):
        self._llama = llama
        self.now_s = 0.0

    def __getattr__(self, name):
        return getattr(self._llama, name)

    def decode(self, rows, should_stop):
        self.now_s += 0.02 + 0.001 * len(rows)
        return self._llama.decode(rows, should_stop)


class Engine:
    """Answers one ask after the other, each as far as it would be shown."""

    def __init__(self, llama):
        self.timed = Timed(llama)
        self._batcher = Batcher(self.timed, shelf=Shelf(1 << 26), clock=lambda: self.timed.now_s)
        self._n = 0

    def answer(self, window, draft=""):
        """The text, how many tokens of a draft were right, and milliseconds of the answer."""
        self._n += 1
        rendered = prompt.render(window, (), FAMILY, max_tokens=64, session="a", draft=draft)
        ask = Generate(self._n, rendered.segments, max_tokens=64, stop=rendered.stop, draft=rendered.draft, session="a")
        plan, text, is_over, began_s = stops.plan(window, "auto"), "", False, None
        self._batcher.begin(self._n, ask, lambda: is_over)
        while self._batcher.busy:
            for step in self._batcher.step(lambda priority: False):
                if isinstance(step.event, Delta) and not is_over:
                    began_s = began_s or self.timed.now_s
                    text += step.event.text
                    stop = stops.find(text, window, plan)
                    is_over = stop is not None
                    text = text[: stop.at] if stop is not None else text
                elif isinstance(step.event, Done):
                    done = step.event
        return text, done.accepted, (self.timed.now_s - (began_s or self.timed.now_s)) * 1e3


def test_answers_with_drafts_from_like_places_are_the_same_and_sooner(runtime):
    engine = Engine(runtime)
    n_different = n_offered = n_confirmed = 0
    plain_ms = drafted_ms = 0.0
    for there, here in PAIRS.values():
        near = Near()
        near.add("s", at(there), engine.answer(at(there))[0])
        draft = near.draft("s", at(here))
        n_offered += bool(draft)
        plain, n_looked_up, ms = engine.answer(at(here))
        plain_ms += ms
        drafted, n_accepted, ms = engine.answer(at(here), draft)
        drafted_ms += ms
        n_different += drafted != plain
        n_confirmed += n_accepted - n_looked_up
    print(f"{n_offered} drafts, {n_confirmed} tokens confirmed, {n_different} answers differ, {drafted_ms / plain_ms:.2f} of the time")
    assert n_offered >= len(PAIRS) - 1
    assert n_confirmed >= 10
    assert n_different <= FEW
    assert drafted_ms < plain_ms
