"""Kind Q: secrets and privacy."""

import pytest

from tests import servers
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
