"""The real server with an editor on one side and a completion server on the other."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests import driver, servers

PREFIX, SUFFIX, MIDDLE = "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"
MODEL = "qwen2.5-coder"


def endpoint(url, model=MODEL, **more):
    """Settings that send every ask to `url`."""
    return {"remote": {"endpoints": [{"url": url, "model": model, "api": "openai"} | more]}}


def merged(*trees):
    result = {}
    for tree in trees:
        for key, value in tree.items():
            result[key] = merged(result[key], value) if isinstance(result.get(key), dict) and isinstance(value, dict) else value
    return result


def halves(request):
    """What stood before and after the cursor in a recorded prompt."""
    prompt = request.json["prompt"]
    assert prompt.startswith(PREFIX), prompt
    assert prompt.endswith(MIDDLE), prompt
    before, _, after = prompt[len(PREFIX) : -len(MIDDLE)].partition(SUFFIX)
    return before, after


class Says:
    """A script that can be changed while the server runs."""

    def __init__(self, script=None):
        self.script = script or servers.reply("ok")

    async def __call__(self, exchange):
        await self.script(exchange)


@dataclass
class Shown:
    """What one ask brought."""

    reply: dict
    uri: str
    text: str | None
    """The text to insert; None: nothing is shown."""
    result: str
    """The document after the item is applied."""
    requests: list
    """What the backend was asked meanwhile."""

    @property
    def range(self):
        start, end = self.reply["result"]["items"][0]["range"]["start"], self.reply["result"]["items"][0]["range"]["end"]
        return (start["line"], start["character"]), (end["line"], end["character"])

    @property
    def halves(self):
        assert len(self.requests) == 1, self.requests
        return halves(self.requests[0])


class Scene:
    """A running server, its editor (`lsp`) and its backend."""

    def __init__(self, lsp, backend, says):
        self.lsp = lsp
        self.backend = backend
        self.says = says
        self._numbers = itertools.count()

    def uri(self, name="document{}.py"):
        """A new one."""
        return "file:///w/" + name.format(next(self._numbers))

    def put(self, marked, *, language="python", uri=None):
        """Open a new document with the cursor at `‸`; its URI and the cursor's position."""
        uri = self.uri() if uri is None else uri
        self.lsp.open(uri, marked.replace("‸", ""), language)
        return uri, *self.lsp.position(uri, marked.index("‸"))

    async def show(self, marked, said="ok", *, language="python", uri=None, **how):
        """Open `marked`, let the backend say `said` (a text or a script) and ask."""
        self.says.script = servers.reply(said) if isinstance(said, str) else said
        uri, line, units = self.put(marked, language=language, uri=uri)
        return await self.ask(uri, line, units, **how)

    async def ask(self, uri, line, units, **how):
        """Ask in a document that is open."""
        n_before = len(self.backend.requests)
        reply = await asyncio.wait_for(self.lsp.ask(uri, line, units, **how), 30)
        assert "error" not in reply, reply
        items = reply.items_
        result = self.lsp.apply(uri, items[0]) if items else self.lsp.texts[uri]
        return Shown(reply, uri, items[0]["insertText"] if items else None, result, self.backend.requests[n_before:])

    async def answered(self, uri, line, column, within_s=3, **how):
        """Ask again and again, as a user who goes on typing does, until something is shown; how long that took."""
        start = asyncio.get_running_loop().time()
        async with asyncio.timeout(within_s):
            while True:
                shown = await self.ask(uri, line, column, **how)
                if shown.text is not None:
                    return shown, asyncio.get_running_loop().time() - start
                await asyncio.sleep(0.05)

    async def ready(self):
        """Let the pipeline of the newest settings learn its model: before that it remembers nothing."""
        await self.lsp.ask(*self.put("ready = ‸"))

    async def alive(self):
        """A plain ask on another document is answered; nothing popped up meanwhile unless the test looked at it before."""
        shown = await self.show(f"alive_{next(self._numbers)} = ‸", "1")
        assert shown.text == "1"


@asynccontextmanager
async def running(home, script=None, *, backend=None, options=None, **how):
    """A scene; `how` is for `driver.server`.  Unless `options` say so, prompts hold nothing of other documents."""
    says = Says(script)
    async with (
        backend or servers.CompletionServer(says) as completions,
        driver.server(home, options=merged(endpoint(completions.url), {"context": {"snippetTokens": 0}}, options or {}), **how) as lsp,
    ):
        yield Scene(lsp, completions, says)
