"""The composition root: which tiers the settings ask for, and whose log is heard."""

import subprocess
import sys

import pytest

from monkeycode_lsp import app, config
from monkeycode_lsp.domain import Origin


@pytest.fixture
async def made(tmp_path):
    recalls = []

    def make(**cache):
        reports = []
        tree = {"cache": {"directory": str(tmp_path / "kept")} | cache}
        settings, problems = config.decode(tree)
        assert not problems
        recalls.append(app.make_recall(settings.cache, reports.append))
        return [tier.origin for tier in recalls[-1]._tiers], [str(report) for report in reports]

    yield make
    for recall in recalls:
        await recall.aclose()


async def test_the_disk_is_there_by_default_and_a_team_only_by_its_address(made):
    assert made() == ([Origin.DISK], [])
    assert made(sharedUrl="redis://127.0.0.1:1")[0] == [Origin.DISK, Origin.SHARED]


@pytest.mark.parametrize(
    ("cache", "tiers"),
    [
        ({"enabled": False, "sharedUrl": "redis://127.0.0.1:1"}, []),
        ({"diskTtlSeconds": 0}, []),
        ({"sharedUrl": "redis://127.0.0.1:1", "sharedTtlSeconds": 0}, [Origin.DISK]),
    ],
)
async def test_what_is_switched_off_is_not_there(made, cache, tiers):
    assert made(**cache)[0] == tiers


async def test_a_folder_that_cannot_be_named_is_told_and_costs_the_disk_only(made):
    tiers, (told,) = made(directory="~no-such-user-of-this-machine/x", sharedUrl="redis://127.0.0.1:1")
    assert tiers == [Origin.SHARED]
    assert "cache.directory" in told


def test_libraries_that_log_whole_messages_are_not_heard_whatever_the_level():
    program = """
import logging
from monkeycode_lsp import app
app.start_logging("debug")
for name in ("pygls.protocol.json_rpc", "pygls.server", "httpx", "httpcore.http11", "hpack.hpack", "websockets.server", "asyncio"):
    for level in (logging.DEBUG, logging.INFO, logging.ERROR):
        logging.getLogger(name).log(level, "the user's text, by %s", name)
logging.getLogger("monkeycode_lsp.app").debug("what we say")
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60).stderr
    assert "what we say" in said
    assert "the user's text" not in said
