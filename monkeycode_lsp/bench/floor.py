"""The floor: what a server costs that does nothing but pass text on.  Stock pygls, the same HTTP client, no thought.

Run as `python -m monkeycode_lsp.bench.floor URL [--debounce-ms N]`; with the option it waits so long before it asks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
from functools import cache

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from monkeycode_lsp.engines.remote import address
from monkeycode_lsp.engines.remote.http.transport import Transport

logging.disable(logging.CRITICAL)
server = LanguageServer("floor", "0")
client: list[Transport] = []


@cache
def chosen() -> argparse.Namespace:
    """What the command line says."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("url")
    arguments.add_argument("--debounce-ms", type=int, default=0)
    return arguments.parse_args()


@server.feature(lsp.TEXT_DOCUMENT_INLINE_COMPLETION, lsp.InlineCompletionOptions())
async def complete(ls: LanguageServer, params: lsp.InlineCompletionParams) -> lsp.InlineCompletionList:
    """The text around the cursor to the endpoint, its stream back.  An editor's cancel ends it wherever it is."""
    document = ls.workspace.get_text_document(params.text_document.uri)
    at = document.offset_at_position(params.position)
    source = document.source
    prompt = f"<|fim_prefix|>{source[max(0, at - 3000) : at]}<|fim_suffix|>{source[at : at + 800]}<|fim_middle|>"
    await asyncio.sleep(chosen().debounce_ms / 1e3)
    if not client:
        client.append(Transport(address.parse(chosen().url), {"content-type": "application/json"}, environ={}))
    text = ""
    body = json.dumps({"prompt": prompt, "max_tokens": 96, "temperature": 0, "stream": True}).encode()
    reply = await client[0].send("/v1/completions", body)
    rest = b""
    try:
        async for piece in reply.pieces():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line.startswith(b"data: ") and line != b"data: [DONE]":
                    text += json.loads(line[6:])["choices"][0]["text"]
    finally:
        await reply.aclose()
    return lsp.InlineCompletionList([lsp.InlineCompletionItem(insert_text=text, range=lsp.Range(params.position, params.position))])


if __name__ == "__main__":
    server.start_io()
