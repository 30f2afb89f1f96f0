"""What of other files stands in a prompt: the real server, its index in a process of its own, a real folder."""

import asyncio

import pytest

from tests import driver
from tests.e2e import scene as scenes

pytestmark = pytest.mark.e2e

WEATHER = 'def to_celsius(fahrenheit):\n    """Convert a temperature."""\n    scaled = fahrenheit - 32\n    return scaled * 5 / 9\n'
APP = "from weather import to_celsius\n\n\ndef report(reading):\n    return to_celsius(‸\n"


def quoted(request):
    """What stands before the current file in a prompt, by path."""
    head, marker, _ = request.json["prompt"].partition(scenes.PREFIX)
    assert marker
    _, *files = head.split("<|file_sep|>")
    return {path: text for path, _, text in (file.partition("\n") for file in files) if text.strip()}


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "weather.py").write_text(WEATHER)
    return folder


async def asked(scene, uri, line, column, *, until=lambda request: True, within_s=30):
    """Ask by key, each time at another place, until a prompt is as it should be; that prompt's files."""
    async with asyncio.timeout(within_s):
        while True:
            shown = await scene.ask(uri, line, column, invoked=True)
            if shown.requests and until(shown.requests[-1]):
                return quoted(shown.requests[-1])
            await asyncio.sleep(0.1)


def running(home, workspace, **options):
    folders = [{"uri": workspace.as_uri(), "name": "project"}]
    params = driver.VSCODE | {"rootUri": workspace.as_uri(), "workspaceFolders": folders}
    return scenes.running(
        home, params=params, options=scenes.merged({"cache": {"enabled": False}, "context": {"snippetTokens": 512}}, options)
    )


async def test_a_definition_in_another_file_of_the_workspace_is_quoted_with_its_path(home, workspace):
    async with running(home, workspace) as scene:
        uri, line, column = scene.put(APP, uri=(workspace / "app.py").as_uri())
        files = await asked(scene, uri, line, column, until=quoted)
        assert set(files) == {"weather.py"}
        assert "def to_celsius(fahrenheit)" in files["weather.py"]


async def test_a_file_that_is_written_while_the_server_runs_is_found(home, workspace):
    (workspace / "weather.py").unlink()
    async with running(home, workspace) as scene:
        uri, line, column = scene.put(APP, uri=(workspace / "app.py").as_uri())
        assert await asked(scene, uri, line, column) == {}
        (workspace / "weather.py").write_text(WEATHER)
        scene.lsp.notify("textDocument/didSave", {"textDocument": {"uri": (workspace / "weather.py").as_uri()}})
        assert set(await asked(scene, uri, line, column, until=quoted)) == {"weather.py"}


async def test_what_git_ignores_and_what_holds_secrets_is_not_quoted(home, workspace):
    (workspace / ".gitignore").write_text("generated.py\n")
    for name in ("generated.py", "private.py", "credentials"):
        (workspace / name).write_text(WEATHER.replace("Convert", f"From {name}:"))
    (workspace / ".monkeycodeignore").write_text("private.py\n")
    async with running(home, workspace) as scene:
        uri, line, column = scene.put(APP, uri=(workspace / "app.py").as_uri())
        assert set(await asked(scene, uri, line, column, until=quoted)) == {"weather.py"}


async def test_the_index_can_be_switched_off(home, workspace):
    async with running(home, workspace, context={"index": False}) as scene:
        uri, line, column = scene.put(APP, uri=(workspace / "app.py").as_uri())
        assert await asked(scene, uri, line, column) == {}
        assert not list(home.rglob("*.db"))


async def test_the_last_edits_in_another_document_are_quoted(home, workspace):
    async with running(home, workspace, context={"index": False}) as scene:
        other, _, _ = scene.put("TIMEOUT = 5‸\n" + "\n" * 40, uri=(workspace / "limits.py").as_uri())
        scene.lsp.change(other, (0, 11), (0, 11), "00")
        uri, line, column = scene.put("def wait():\n    sleep(‸\n", uri=(workspace / "app.py").as_uri())
        files = await asked(scene, uri, line, column, until=quoted)
        assert "TIMEOUT = 500" in files["limits.py"]


async def test_the_same_text_in_two_files_is_quoted_once_and_the_current_file_not_at_all(home, workspace):
    # continuedev/continue#5336, #6340
    uris = {name: (workspace / name).as_uri() for name in ("a.py", "b.py")}
    text = WEATHER.replace("a temperature", "a temperature from fahrenheit to celsius")
    about = "def convert(fahrenheit):\n    # to celsius, the temperature from fahrenheit, scaled\n    return (fahrenheit ‸\n"
    async with running(home, workspace, context={"index": False}) as scene:
        for name in ("a.py", "b.py", "a.py", "b.py"):
            if uris[name] not in scene.lsp.texts:
                scene.put(text + "‸", uri=uris[name])
            await scene.ask(uris[name], 4, 0)
        # What is quoted has been read, and so has what is quoted in its place once it is closed.
        look, line, column = scene.put(about, uri=(workspace / "look.py").as_uri())
        (first,) = await asked(scene, look, line, column, until=quoted)
        scene.lsp.close_document(uris[first])
        (second,) = await asked(scene, look, line, column, until=lambda request: quoted(request).keys() - {first})
        assert {first, second} == uris.keys()
        scene.put(text + "‸", uri=uris[first])
        uri, line, column = scene.put(text.replace("to_celsius", "to_kelvin") + "\n\n" + about, uri=(workspace / "c.py").as_uri())
        scene.lsp.change(uri, (1, 4), (1, 4), "# ")
        await asyncio.sleep(0.5)  # nothing tells that the current file was read as well
        files = await asked(scene, uri, line, column, until=quoted)
        assert len(files) == 1
        assert files.keys() < uris.keys()
        assert "".join(files.values()).count("def to_celsius") == 1
