"""May a document be asked about, and how far may its text go?"""

import pytest

from monkeycode_lsp import config
from monkeycode_lsp.admission import Admission
from monkeycode_lsp.domain import Ask, OutcomeKind
from monkeycode_lsp.privacy.rules import Rules
from tests.unit.places import snapshot
from tests.unit.test_completer import Pipeline


def admission(*said, **settings):
    decoded, problems = config.decode(settings)
    assert not problems
    return Admission(decoded, Rules((".gitignore", ".monkeycodeignore"), report=list(said).append))


def asking(path, workspace):
    return Ask(snapshot("x = ‸\n", uri=path.as_uri(), workspace=workspace.as_uri()))


@pytest.mark.parametrize(
    ("patterns", "forbids", "stays_here"),
    [
        ("", "", False),
        ("other.py\n", "", False),
        ("*.py\n", ".monkeycodeignore", False),
        ("[local]\n*.py\n", "", True),
        ("*.py\n[anywhere]\napp.py\n", "", False),
        ("[nonsense]\n", ".monkeycodeignore", False),
    ],
)
async def test_the_ignore_files_say_whether_and_how_far(tmp_path, patterns, forbids, stays_here):
    (tmp_path / ".monkeycodeignore").write_text(patterns)
    ask, rule = await admission().admitted(asking(tmp_path / "app.py", tmp_path), n_nuls=0)
    assert (forbids in rule, bool(rule)) == (True, bool(forbids))
    assert ask.stays_here is stays_here


async def test_what_git_ignores_is_served_when_the_user_opens_it(tmp_path):
    (tmp_path / ".gitignore").write_text("*.py\n")
    ask, rule = await admission().admitted(asking(tmp_path / "app.py", tmp_path), n_nuls=0)
    assert (ask.stays_here, rule) == (False, "")


async def test_a_change_of_an_ignore_file_counts_at_once(tmp_path):
    admitted = admission()
    assert (await admitted.admitted(asking(tmp_path / "app.py", tmp_path), n_nuls=0))[1] == ""
    (tmp_path / ".monkeycodeignore").write_text("*.py\n")
    assert admitted.file_written((tmp_path / ".monkeycodeignore").as_uri())
    assert not admitted.file_written((tmp_path / "app.py").as_uri())
    assert (await admitted.admitted(asking(tmp_path / "app.py", tmp_path), n_nuls=0))[1] != ""


async def test_the_engine_is_told_that_the_text_must_stay_here(tmp_path):
    (tmp_path / ".monkeycodeignore").write_text("[local]\n*.py\n")
    pipeline = Pipeline(["1"], rules=Rules((".monkeycodeignore",), report=[].append))
    await pipeline("x = ‸\n", uri=(tmp_path / "app.py").as_uri(), workspace=tmp_path.as_uri())
    assert [prompt.stays_here for prompt in pipeline.engine.prompts] == [True]
    await pipeline("x = ‸\n", uri=(tmp_path / "app.txt").as_uri(), workspace=tmp_path.as_uri())
    assert [prompt.stays_here for prompt in pipeline.engine.prompts] == [True, False]


async def test_a_private_document_reaches_no_engine_and_the_reason_is_told(tmp_path):
    (tmp_path / ".monkeycodeignore").write_text("*.py\n")
    pipeline = Pipeline(["1"], rules=Rules((".monkeycodeignore",), report=[].append))
    assert await pipeline("x = ‸\n", uri=(tmp_path / "app.py").as_uri(), workspace=tmp_path.as_uri(), invoked=True) == []
    assert pipeline.engine.prompts == []
    assert pipeline.last.kind is OutcomeKind.GATED
    assert "line 1" in pipeline.last.reason


async def test_the_ignore_files_of_every_folder_that_holds_the_document_count(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / ".monkeycodeignore").write_text("inner/*.py\n")
    folders = [tmp_path.as_uri(), inner.as_uri()]
    rules = Rules((".monkeycodeignore",), report=[].append, folders=lambda: folders)
    admitted = Admission(config.Config(), rules)
    assert (await admitted.admitted(asking(inner / "app.py", inner), n_nuls=0))[1] != ""
    folders.remove(tmp_path.as_uri())
    rules.changed()
    assert (await admitted.admitted(asking(inner / "app.py", inner), n_nuls=0))[1] == ""
