"""How far what is remembered of an answer goes: to the team, to this machine's disk, or no farther than this process."""

import asyncio

import pytest

from monkeycode_lsp.context.ignores import Level
from monkeycode_lsp.context.policy import ANYWHERE, Verdict
from monkeycode_lsp.domain import Origin
from monkeycode_lsp.privacy.rules import Rules
from tests.unit.test_completer import Pipeline
from tests.unit.test_gathering import CELSIUS, HERE, Index, gathering, opened
from tests.unit.virtual import on_virtual_time

SECRET = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class Tier:
    """Knows nothing, and keeps what it is asked and told."""

    patience_s = 0.05

    def __init__(self, origin):
        self.origin = origin
        self.asked, self.told = [], []

    def open(self):
        pass

    async def get(self, key):
        self.asked.append(key)

    def put(self, _key, record):
        self.told.append(record.text)

    async def aclose(self):
        pass


def remembering(*answers, **more):
    disk, team = Tier(Origin.DISK), Tier(Origin.SHARED)
    return Pipeline(answers, tiers=(disk, team), **more), disk, team


async def known_to_the_team(pipeline, marked):
    """After the first ask the workspace's name in the team is known."""
    await pipeline.completer.warm()
    pipeline.completer.recall.meet("file:///w")
    await asyncio.gather(*pipeline.completer.recall._identifying.values())
    shown = await pipeline.text(marked)
    await pipeline.completer.retire()
    return shown


@pytest.mark.parametrize("redacts", [True, False])
@pytest.mark.parametrize(
    ("marked", "said", "n_asked", "n_told"),
    [
        ("total = ‸\n", "sum(items)", 1, 1),
        (f'TOKEN = "{SECRET}"\nlater = ‸\n', "TOKEN.strip()", 0, 0),
        (f'later = ‸\nTOKEN = "{SECRET}"\n', "TOKEN.strip()", 0, 0),
        ("TOKEN = ‸\n", f'"{SECRET}"', 1, 0),
    ],
    ids=["nothing secret", "a secret above", "a secret below", "a secret in the answer"],
)
async def test_where_a_secret_stands_no_other_process_and_no_disk_hears_of_it(marked, said, n_asked, n_told, *, redacts):
    pipeline, disk, team = remembering(said, privacy={"redactSecrets": redacts})
    assert await known_to_the_team(pipeline, marked) == said
    assert [len(tier.asked) for tier in (disk, team)] == [n_asked] * 2
    assert [len(tier.told) for tier in (disk, team)] == [n_told] * 2


@pytest.mark.parametrize("redacts", [True, False])
async def test_what_a_secret_began_is_kept_in_this_process(*, redacts):
    pipeline, _, _ = remembering(f'"{SECRET}"', "other", privacy={"redactSecrets": redacts})
    assert await pipeline.text("TOKEN = ‸\n") == await pipeline.text("TOKEN = ‸\n") == f'"{SECRET}"'
    assert len(pipeline.engine.prompts) == 1


@pytest.mark.parametrize(("verdict", "n_team"), [(Verdict(Level.LOCAL), 0), (ANYWHERE, 1)])
@on_virtual_time
async def test_an_answer_to_a_prompt_that_quotes_what_must_not_leave_does_not_go_to_the_team(verdict, n_team):
    gathered = gathering(Index(CELSIUS), said={"file:///w/weather.py": verdict})
    pipeline, disk, team = remembering("reading)", gathering=gathered)
    pipeline.completer.recall._identities["file:///w"] = "team/project"
    marked = HERE.replace("‸", "return to_celsius(‸")
    opened(gathered, marked)
    await pipeline.completer.warm()
    assert await pipeline.text(marked) == "reading)"
    await pipeline.completer.retire()
    assert (disk.told, team.told) == (["reading)"], ["reading)"] * n_team)


@pytest.mark.parametrize(("ignored", "n_team"), [("[local]\ninside.py\n", 0), ("", 1)])
async def test_the_team_neither_hears_of_a_document_that_must_not_leave_nor_is_asked(tmp_path, ignored, n_team):
    (tmp_path / ".monkeycodeignore").write_text(ignored)
    rules = Rules((".monkeycodeignore",), report=pytest.fail)
    pipeline, disk, team = remembering("sum(items)", rules=rules)
    uri, workspace = (tmp_path / "inside.py").as_uri(), tmp_path.as_uri()
    pipeline.completer.recall._identities[workspace] = "team/project"
    await pipeline.completer.warm()
    assert await pipeline.text("total = ‸\n", uri=uri, workspace=workspace) == "sum(items)"
    await pipeline.completer.retire()
    assert (len(disk.asked), disk.told) == (1, ["sum(items)"])
    assert (len(team.asked), team.told) == (n_team, ["sum(items)"] * n_team)
