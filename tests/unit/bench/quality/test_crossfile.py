"""A package as a workspace, a line masked, with snippets and without."""

from __future__ import annotations

import hashlib
import zipfile

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.bench.quality import crossfile, packages
from monkeycode_lsp.bench.quality.answers import Answer, Remembering
from monkeycode_lsp.bench.quality.ledger import Ledger
from monkeycode_lsp.bench.quality.report import WITH, WITHOUT
from monkeycode_lsp.engines.scripted import Answer as Script
from monkeycode_lsp.engines.scripted import ScriptedEngine

FILL = "".join(f"FILL_{n} = {n}\n" for n in range(20))
MODELS = "class Account:\n    def __init__(self, owner: str, balance_in_cents: int) -> None:\n        self.owner = owner\n"
GOLD = "account = Account(owner=name, balance_in_cents=0)"
FILES = {
    "pkg/__init__.py": "",
    "pkg/models.py": MODELS,
    "pkg/bank.py": f"from .models import Account\n{FILL}\n\ndef opened(name: str) -> Account:\n    {GOLD}\n    return account\n",
    "pkg/other.py": "def other() -> int:\n    return 1\n",
}


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "pkg-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("pkg-1.0.dist-info/METADATA", "Name: pkg\nLicense: MIT\n\n")
        for name, text in FILES.items():
            made.writestr(name, text)
    return path


def test_the_masked_line_is_nowhere_in_the_workspace(tmp_path, wheel):
    tasks, texts = crossfile.prepare(wheel, tmp_path / "workspace", 5)
    assert [(task.path, task.gold) for task in tasks] == [("pkg/bank.py", GOLD)]
    assert (tmp_path / "workspace" / "pkg" / "bank.py").read_text() == texts["pkg/bank.py"] == tasks[0].text
    assert not any(GOLD in text for text in texts.values())
    assert (tmp_path / "workspace" / "pkg" / "models.py").read_text() == MODELS


def test_the_files_beside_are_open_and_never_the_file_itself():
    texts = {f"pkg/f{n}.py": f"x = {n}\n" for n in range(8)} | {"pkg/empty.py": "\n", "pkg/deep/g.py": "y\n"}
    assert list(crossfile.neighbours("pkg/f3.py", texts)) == ["pkg/f2.py", "pkg/f4.py", "pkg/f1.py", "pkg/f5.py"]
    assert crossfile.neighbours("pkg/deep/g.py", texts) == {}


def test_without_snippets_their_tokens_go_to_the_window():
    settings = config.Config(context=config.Context(prefix_tokens=900, suffix_tokens=300, snippet_tokens=400))
    larger = crossfile.without_snippets(settings).context
    assert (larger.prefix_tokens, larger.suffix_tokens, larger.snippet_tokens) == (1_200, 400, 0)


async def test_a_line_is_asked_for_in_both_ways_and_only_one_sees_the_definition(tmp_path, wheel):
    pins = tmp_path / "pins.txt"
    pins.write_text(f"pkg==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n")
    model = ScriptedEngine([Script(chunks=(GOLD, "\n    return"))])
    engine = Remembering(model, Ledger(tmp_path / "answers.jsonl", Answer))
    heard = []
    (done,) = await crossfile.run(
        engine, packages.wheels(tmp_path, pins), settings=config.Config(), limit=3, say=lambda *progress: heard.append(progress)
    )
    assert (done.id, done.gold) == ("pkg pkg/bank.py:25", GOLD)
    assert done.said[WITH].exact
    assert done.said[WITHOUT].exact
    assert (done.n_faults, done.shown) == (0, True)
    with_snippets, without = ("".join(segment.text for segment in prompt.segments) for prompt in model.prompts)
    assert "balance_in_cents: int" in with_snippets
    assert "balance_in_cents" not in without
    assert done.n_snippets >= 1
    assert done.n_prompt == {WITH: len(with_snippets), WITHOUT: len(without)}
    assert heard[-1] == (1, 3)
