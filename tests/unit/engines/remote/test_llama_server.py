"""What llama-server's events say."""

import json

from monkeycode_lsp.domain import Usage
from monkeycode_lsp.engines.remote.dialects.llama_server import LlamaServer
from tests.servers import CompletionServer, event, stream
from tests.unit.engines.remote import asking


async def test_how_much_was_read_is_known_with_the_first_text_and_not_only_at_the_end():
    """We cut most streams ourselves, and then the last event never comes."""
    progress = {"content": "", "stop": False, "prompt_progress": {"total": 90, "cache": 60, "processed": 90, "time_ms": 1}}
    said = [event(progress), event({"content": "a", "tokens": [1], "stop": False}), event({"content": "b", "tokens": [2], "stop": True})]
    async with CompletionServer(stream(*said)) as server, asking.engine(server.url, api="llama-server") as engine:
        first = (await asking.chunks(engine))[0]
    assert (first.text, first.usage) == ("a", Usage(reused=60, read=30))


def test_the_last_event_has_all_figures():
    data = json.dumps({"content": "", "stop": True, "timings": {"cache_n": 5, "prompt_n": 6, "predicted_n": 7}}).encode()
    assert LlamaServer().read(data).usage == Usage(reused=5, read=6, generated=7)
