"""One running server for all tests of a module, where its state permits.

A module that uses `scene` marks its tests `asyncio(loop_scope="module")` and may name settings in `OPTIONS`
and an `initialize` message in `PARAMS`.
"""

from __future__ import annotations

import pytest
import pytest_asyncio

from tests.e2e import scene as scenes


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(request, tmp_path_factory):
    options = {"cache": {"enabled": False}} | getattr(request.module, "OPTIONS", {})
    async with scenes.running(tmp_path_factory.mktemp("home"), options=options, params=getattr(request.module, "PARAMS", None)) as running:
        yield running


@pytest.fixture
def start(home):
    """Start a server of this test's own: `async with start(script, options=…) as scene`."""

    def started(script=None, **how):
        return scenes.running(home, script, **how)

    return started
