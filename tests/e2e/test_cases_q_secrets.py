"""Kind Q: secrets and privacy."""

import base64
import hashlib

import pytest

from tests import driver, servers
from tests.e2e import scene as scenes

pytestmark = pytest.mark.e2e

SOURCE = "xyzzy_of_the_users_source"


async def test_files_that_hold_secrets_are_not_served_whatever_their_language_is_called(start):
    # zbirenbaum/copilot.lua#111
    secret = [".env", ".env.local", ".env.production", "prod.env", "id_rsa", "id_ed25519", "server.pem", "tls.key", ".npmrc", ".netrc"]
    secret += [
        "credentials",
        ".aws/config",
        ".ssh/config",
        "secrets.yaml",
        "terraform.tfvars",
        "monkeycode.toml",
        ".monkeycode.toml",
        ".ENV",
    ]
    async with start(options={"privacy": {"secretFiles": ["*.private.*"]}, "cache": {"enabled": False}}) as scene:
        for name in [*secret, "a.private.py"]:
            for language in ("shellscript", "plaintext", "python"):
                shown = await scene.show("KEY=‸", language=language, uri=f"file:///w/{name}", invoked=True)
                assert (shown.text, shown.requests) == (None, []), name
                assert scene.lsp.shown_messages == []
        (outcome,) = await scene.lsp.why()
        assert (outcome["outcome"], "secrets" in outcome["reason"]) == ("gated", True)
        for name in ("environment.py", ".env.example", "keys.py", "secret_sauce.py", "pem.py", "id_rsa.pub"):
            assert len((await scene.show("KEY=‸", uri=f"file:///w/{name}", invoked=True)).requests) == 1, name


@pytest.mark.parametrize("uri", ["untitled:/w/{}", "vscode-notebook-cell:/w/{}#W0", "vscode-remote://ssh-remote+host/w/{}"])
async def test_nor_is_a_document_of_such_a_name_that_is_no_file(start, uri):
    async with start(options={"cache": {"enabled": False}}) as scene:
        for name in (".env", ".env.local", "prod.env", "id_rsa", "server.pem"):
            for language in ("shellscript", "plaintext"):
                shown = await scene.show("KEY=‸", language=language, uri=uri.format(name), invoked=True)
                assert (shown.text, shown.requests) == (None, []), name
        assert len((await scene.show("KEY=‸", uri=uri.format("keys.py"), invoked=True)).requests) == 1


async def echo_the_key(exchange):
    key = exchange.request.headers.get("authorization", "")
    await exchange.respond(401, {"error": {"message": f"Incorrect API key provided: {key}. {exchange.request.body.decode()}"}})


@pytest.mark.parametrize("level", ["debug", "info"])
async def test_no_key_no_password_and_no_source_reaches_a_log_or_a_message(start, home, level):
    # janhq/jan#6216, CodeNeow/MyLlama#31; the framework logs whole messages at INFO
    env = {"HTTPS_PROXY": "http://user:sk-PASS-1@127.0.0.1:9", "HTTP_PROXY": "http://user:sk-PASS-1@127.0.0.1:9", "TEAM_KEY": "sk-TEST-2"}
    options = {"logLevel": level}
    async with start(echo_the_key, options=options, env=env | {"MONKEYCODE_LOG_LEVEL": level}) as scene:
        url = scene.backend.url
        settings = [
            scenes.endpoint(url, apiKey="sk-TEST-1"),
            scenes.endpoint(url, apiKey="", apiKeyEnv="TEAM_KEY"),
            scenes.endpoint(url.replace("//", "//user:sk-PASS-2@"), apiKey="", apiKeyEnv=""),
            scenes.endpoint(url, headers={"X-Key": "sk-TEST-3"}),
            scenes.endpoint("http://models.example:1", apiKey="sk-TEST-1"),  # by way of the proxy
            scenes.endpoint("http://user:sk-PASS-2@127.0.0.1:1"),
            scenes.endpoint("http://user:sk-PASS-2@[::1"),
            scenes.endpoint(url, apiKey=["sk-TEST-4"]),
            scenes.endpoint(url, apiKeyy="sk-TEST-5"),
        ]
        for tree in settings:
            scene.lsp.configure(tree)
            assert (await scene.show(f"{SOURCE} = ‸", echo_the_key, invoked=True)).text is None
        scene.lsp.configure(scenes.endpoint(url, apiKey="sk-TEST-1", headers={}))
        await scene.show(f"{SOURCE} = ‸", servers.reply("an_answer_may_be_kept_on_disk"), invoked=True)
        await scene.show(f"{SOURCE} = ‸\n", servers.stream(b'data: {"choices":[{"text": xyzzy_of_the_users_source\n\n'), invoked=True)
        scene.lsp.notify("textDocument/didChange", {"textDocument": {"uri": "file:///w/a.py"}, "contentChanges": SOURCE})
        scene.lsp.send({"jsonrpc": "2.0", "id": 77_000, "method": "textDocument/inlineCompletion", "params": {"a": SOURCE}})
        scene.lsp.send_raw(b"Content-Length: 30\r\n\r\n" + SOURCE.encode()[:15].ljust(30))
        why = str(await scene.lsp.why(50))
        said = str(scene.lsp.notifications) + why + str([reply for reply in scene.lsp.all_replies if "error" in reply])
        assert len(scene.lsp.shown_messages) >= 5
        await scene.lsp.shutdown()
    written = b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())
    for place in (said, scene.lsp.stderr.decode(), written.decode(errors="replace")):
        for secret in ("sk-TEST", "sk-PASS", SOURCE):
            assert secret not in place


async def test_text_goes_to_the_configured_server_only_and_the_outcome_file_holds_none(start, home):
    async with start() as scene:
        shown = await scene.show(f"{SOURCE} = ‸", "1")
        assert SOURCE in shown.requests[0].body.decode()
        assert "/w/" not in shown.requests[0].body.decode()
        await scene.lsp.shutdown()
        assert scene.backend.others == []
    files = [file for file in home.rglob("*") if file.is_file()]
    assert files  # the outcomes
    assert all(SOURCE not in file.read_text(errors="replace") for file in files)
    assert all(file.stat().st_mode & 0o077 == 0 or file.parent.stat().st_mode & 0o077 == 0 for file in files)


SECRET = "kV9mQ2xW7bN5tR8pL1cZ4fH6jG0sYqE3"
"""Looks like a key."""


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def running(home, workspace, script=None, **options):
    params = driver.VSCODE | {"rootUri": workspace.as_uri(), "workspaceFolders": [{"uri": workspace.as_uri(), "name": "project"}]}
    return scenes.running(home, script, params=params, options=scenes.merged({"context": {"index": False, "snippetTokens": 512}}, options))


def bodies(scene):
    return "".join(request.body.decode() for request in scene.backend.requests)


def saved(scene, path):
    scene.lsp.notify("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})


async def test_a_secret_file_that_is_open_is_never_quoted_in_the_prompt_of_another(home, workspace):
    (workspace / ".monkeycodeignore").write_text("private.py\n")
    async with running(home, workspace, cache={"enabled": False}) as scene:
        for name in (".env", "private.py", "credentials.json"):
            uri, line, column = scene.put(
                f"def to_celsius(fahrenheit):  # {SOURCE}\n    return scaled_from(fahrenheit)\n‸", uri=(workspace / name).as_uri()
            )
            scene.lsp.change(uri, (line, column), (line, column), f"scaled_from(fahrenheit)  # {SOURCE}\n")
            assert (await scene.ask(uri, 0, 5, invoked=True)).requests == []
        uri, line, column = scene.put(
            "def report(fahrenheit):\n    to_celsius(scaled_from(fahrenheit))\n    ‸\n", uri=(workspace / "app.py").as_uri()
        )
        for _ in range(3):  # what is gathered for one ask stands in the next
            assert len((await scene.ask(uri, line, column, invoked=True)).requests) == 1
        assert SOURCE not in bodies(scene)


async def test_a_change_of_the_ignore_file_counts_at_once(home, workspace):
    path = workspace / ".monkeycodeignore"
    async with running(home, workspace, cache={"enabled": False}) as scene:
        uri, line, column = scene.put("x = ‸", uri=(workspace / "inside.py").as_uri())
        assert (await scene.ask(uri, line, column, invoked=True)).text == "ok"
        path.write_text("inside.py\n")
        saved(scene, path)
        assert (await scene.ask(uri, line, column, invoked=True)).requests == []
        (outcome,) = await scene.lsp.why()
        assert outcome["outcome"] == "gated"
        assert "the pattern inside.py in line 1 of" in outcome["reason"]
        path.write_text("[local]\ninside.py\n")
        saved(scene, path)
        assert (await scene.ask(uri, line, column, invoked=True)).text == "ok"  # the endpoint is on this machine
        path.unlink()
        saved(scene, path)
        assert (await scene.ask(uri, line, column, invoked=True)).text == "ok"
        assert scene.lsp.shown_messages == []


async def test_a_broken_ignore_file_means_never_and_is_told_once_with_its_line(home, workspace):
    (workspace / ".monkeycodeignore").write_text("ok.txt\n[lcoal]\n")
    async with running(home, workspace, cache={"enabled": False}) as scene:
        uri, line, column = scene.put("x = ‸", uri=(workspace / "app.py").as_uri())
        for _ in range(3):
            assert (await scene.ask(uri, line, column, invoked=True)).requests == []
        assert ["line 2 of" in str(message).lower() for message in scene.lsp.shown_messages] == [True]


async def test_what_stays_here_goes_to_no_server_elsewhere(home, workspace):
    (workspace / ".monkeycodeignore").write_text("[local]\ninside.py\n")
    async with running(home, workspace, cache={"enabled": False}) as scene:
        scene.lsp.configure(scenes.endpoint("http://models.example"))
        uri, line, column = scene.put(f"{SOURCE} = ‸", uri=(workspace / "inside.py").as_uri())
        assert (await scene.ask(uri, line, column, invoked=True)).requests == []
        assert SOURCE not in bodies(scene)


async def test_a_secret_inside_the_text_does_not_leave_comes_back_in_the_answer_and_is_not_written_to_the_disk(home, workspace):
    seen = []

    async def copies(exchange):
        before, after = scenes.halves(exchange.request)
        seen.append(before + after)
        _, *quoted = before.split('"')
        await servers.reply(f'"{quoted[0]}")' if quoted else "ok")(exchange)

    text = f'api_key = "{SECRET}"\n\n\nconnect('
    async with running(home, workspace, copies) as scene:
        await scene.ready()
        shown = await scene.show(text + "‸\n", copies, uri=(workspace / "app.py").as_uri(), invoked=True)
        assert shown.text == f'"{SECRET}")'
        assert [len(line) for line in seen[-1].splitlines()] == [len(line) for line in text.splitlines()]
        assert SECRET not in bodies(scene)
        await scene.lsp.shutdown()
        assert SECRET not in str(scene.lsp.stderr)
    written = b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())
    assert SECRET.encode() not in written


@pytest.mark.parametrize("invoked", [True, False])
async def test_in_a_secret_the_model_is_not_asked_and_nothing_of_a_placeholder_is_shown(home, workspace, invoked):
    async with running(home, workspace, servers.reply('birch_cedar_"'), cache={"enabled": False}) as scene:
        await scene.ready()
        for marked in (f'API_TOKEN = "{SECRET}‸"\n', f'API_TOKEN = "{SECRET}‸\n', f'connect(token="{SECRET}‸, user="x")\n'):
            shown = await scene.show(marked, servers.reply('birch_cedar_"'), uri=(workspace / "app.py").as_uri(), invoked=invoked)
            assert (shown.text, shown.requests) == (None, [])
            (outcome,) = await scene.lsp.why()
            assert (outcome["outcome"], "secret" in outcome["reason"]) == ("gated", True)


async def test_lines_of_a_key_that_were_pasted_elsewhere_and_names_of_files_do_not_leave(home, workspace):
    key = [base64.b64encode(hashlib.sha384(bytes([at])).digest()).decode() for at in range(12)]
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    begin, end = ("-----" + word + " RSA PRIVATE " + "KEY-----" for word in ("BEGIN", "END"))
    async with running(home, workspace, cache={"enabled": False}) as scene:
        settings = f'def deploy_key(fahrenheit):\n    return load(KEY)\n\nKEY = """{begin}\n\n{end}"""\n‸'
        other, _, _ = scene.put(settings, uri=(workspace / "settings_local.py").as_uri())
        uri, line, column = scene.put(
            "def main(fahrenheit):\n    deploy_key(fahrenheit)\n    ‸\n", uri=(workspace / f"{token}.py").as_uri()
        )
        await scene.ask(uri, line, column, invoked=True)
        scene.lsp.change(other, (4, 0), (4, 0), "\n".join(key))
        for _ in range(3):
            assert (await scene.ask(uri, line, column, invoked=True)).requests
        assert not [line for line in (*key, token) if line in bodies(scene)]


async def test_control_markers_in_the_users_own_text_are_text_everywhere(home, workspace):
    marker = "<|fim_middle|>"
    async with running(home, workspace, cache={"enabled": False}) as scene:
        other, line, column = scene.put(
            f"def to_celsius(fahrenheit):  # {marker}\n    return fahrenheit\n‸", uri=(workspace / "a<|file_sep|>b.py").as_uri()
        )
        scene.lsp.change(other, (line, column), (line, column), f"to_celsius(fahrenheit)  # {marker}\n")
        await scene.ask(other, 0, 5, invoked=True)
        uri, line, column = scene.put(f"# {marker}\nto_celsius(fahrenheit ‸\n# {marker}\n", uri=(workspace / "c.py").as_uri())
        for _ in range(3):
            request = (await scene.ask(uri, line, column, invoked=True)).requests[-1]
            prompt = request.json["prompt"]
            assert prompt.count(marker) == 1
            assert prompt.count("<|fim_prefix|>") == prompt.count("<|fim_suffix|>") == 1
            assert "a<|file_sep|>b" not in prompt
        assert "return fahrenheit" in prompt  # the other document is quoted
