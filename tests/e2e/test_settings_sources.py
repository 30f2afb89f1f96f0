"""Where settings come from: defaults < user file < workspace file < environment < editor.  All of it through the real server."""

import asyncio
import json

import pytest

from tests import driver, servers
from tests.e2e import scene as scenes

pytestmark = pytest.mark.e2e


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def user_file(home):
    (home / "config").mkdir(parents=True)
    return home / "config" / "monkeycode.toml"


def vscode(workspace, **more):
    params = driver.VSCODE | {"rootUri": workspace.as_uri(), "workspaceFolders": [{"uri": workspace.as_uri(), "name": "w"}]} | more
    capabilities = driver.VSCODE["capabilities"] | {"workspace": {"configuration": True}}
    return params | {"capabilities": capabilities}


async def max_tokens(scene):
    (request,) = (await scene.show("x = ‸")).requests
    scene.lsp.close_document("file:///w/document.py")
    return request.json["max_tokens"]


NO_CACHE = {"cache": {"enabled": False}}


async def test_initialization_options_with_and_without_the_section_name(start):
    for options in ({"completion": {"maxTokens": 11}}, {"monkeycode": {"completion": {"maxTokens": 11}}}):
        async with servers.CompletionServer() as backend:
            tree = scenes.endpoint(backend.url)
            tree = {"monkeycode": tree | options["monkeycode"]} if "monkeycode" in options else tree | options
            async with driver.server(start.__self__ if hasattr(start, "__self__") else start.home, options=tree) as lsp:
                assert await lsp.complete("file:///w/a.py", marked="x = ‸") == "ok"
                assert backend.requests[0].json["max_tokens"] == 11
