"""Each program is run once."""

from __future__ import annotations

import sys

import pytest

from monkeycode_lsp.bench.quality.verdicts import Verdicts

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no limits on Windows")


async def test_a_verdict_is_kept_for_the_next_run(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    with Verdicts(path) as verdicts:
        assert await verdicts.passes("x = 1")
        assert not await verdicts.passes("x = ")
    written = path.read_bytes()
    with Verdicts(path) as verdicts:
        assert await verdicts.passes("x = 1")
        assert not await verdicts.passes("x = ")
    assert path.read_bytes() == written
    assert written.count(b"\n") == 2


async def test_one_that_was_late_is_run_again_by_the_next(tmp_path):
    path = tmp_path / "verdicts.jsonl"
    with Verdicts(path, wall_s=0.5) as verdicts:
        assert not await verdicts.passes("while True: pass")
    assert not path.exists()
