"""Whole servers, as editors start them, that share one engine process: what a window costs, and what it sees when the process is killed."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from monkeycode_lsp.bench import engine_text, processes
from monkeycode_lsp.bench.engine_ipc import one_way_ms
from monkeycode_lsp.bench.engine_report import Figure, Part, at_most
from monkeycode_lsp.bench.engine_stage import Stage
from monkeycode_lsp.bench.figures import Spread
from monkeycode_lsp.client import Client, ClientError, start

WINDOW_MB = 40.0
IPC_MS = 0.3
_SERVER = (sys.executable, "-c", "from monkeycode_lsp.__main__ import serve; import sys; sys.argv[1:] = []; serve()")
_DEADLINE_S = 60.0
_SETTLE_S = 0.5
_SEED = 7
_PAUSE_S = (0.2, 2.0)
"""Between two kills, at random."""
_BACK_S = 45.0
"""How long the next process may take to be there."""
_POLL_S = 0.02


async def ipc(stage: Stage) -> Part:
    """One way, from the decoder's step to the window's stream."""
    times = (await one_way_ms(stage.model, stage.plan.messages))[1:]
    spread = Spread.of(times)
    return Part(
        "ipc",
        f"{spread.n} tokens from an engine process without a model: from its decoder to the window that asked, one way.",
        figures=(at_most("added per token, p50", spread.p50, IPC_MS, "ms"), Figure("added per token, p99", spread.p99, "ms")),
    )


async def memory(stage: Stage) -> Part:
    """The engine process once, and each window's own memory."""
    await stage.clear()
    if not processes.resident_mb(os.getpid()):
        return Part("memory", "", left_out="This system does not tell what a process costs.")
    async with AsyncExitStack() as stack:
        clients: list[Client] = []
        hosts: list[float] = []
        n_answered = 0
        for number in range(stage.plan.servers):
            clients.append(await stack.enter_async_context(_server(stage, number)))
            n_answered += await _ask(clients[-1], number, 0)
            await asyncio.sleep(_SETTLE_S)
            hosts.append(sum(processes.resident_mb(pid) for pid in _hosts(stage.home, clients)))
        private = [processes.private_mb(client.process.pid) for client in clients]
        resident = [processes.resident_mb(client.process.pid) for client in clients]
        n_hosts = len(_hosts(stage.home, clients))
    grown = (hosts[-1] - hosts[0]) / max(1, len(hosts) - 1)
    return Part(
        "memory",
        f"{len(clients)} servers, of which {n_answered} had text for an answer.",
        figures=(
            at_most("engine processes", float(n_hosts), 1.0),
            Figure("engine process, resident", hosts[-1], "MB"),
            Figure("a server, resident", statistics.median(resident), "MB"),
            Figure("a server, private", statistics.median(private), "MB"),
            Figure("growth of the engine process for each further window", grown, "MB"),
            at_most("a window: private and growth", statistics.median(private) + max(0.0, grown), WINDOW_MB, "MB"),
        ),
    )


async def kills(stage: Stage) -> Part:
    """Every ask must have one reply, and nothing may stay behind."""
    await stage.clear()
    if not stage.plan.kills:
        return Part("kills", "", left_out="Only with --kills.")
    if not processes.resident_mb(os.getpid()):
        return Part("kills", "", left_out="This system does not tell which process is the engine.")
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(_server(stage, number)) for number in range(stage.plan.servers)]
        await asyncio.gather(*(_ask(client, number, 0) for number, client in enumerate(clients)))
        over, answered = asyncio.Event(), asyncio.Event()
        asking = [asyncio.create_task(_keep_asking(client, number, over, answered)) for number, client in enumerate(clients)]
        n_kills = await _keep_killing(stage, clients, answered)
        over.set()
        tallies = await asyncio.gather(*asking)
        alive = sum(client.process.returncode is None for client in clients)
        n_zombies = processes.zombies([client.process.pid for client in clients])
    await asyncio.to_thread(processes.wait_gone, stage.home, _BACK_S)
    sockets = [path for path in stage.home.rglob("*") if path.is_socket()]
    asked, empty, without = (sum(tally[at] for tally in tallies) for at in range(3))
    return Part(
        "kills",
        f"{len(clients)} servers asked {asked} times while their engine process was killed {n_kills} times.",
        figures=(
            at_most("asks without a reply", float(without), 0.0),
            Figure("asks answered empty", float(empty)),
            at_most("kills that no new process followed", float(stage.plan.kills - n_kills), 0.0),
            at_most("servers that died", float(len(clients) - alive), 0.0),
            at_most("zombies", float(n_zombies), 0.0),
            at_most("processes left behind", float(len(processes.of_home(stage.home))), 0.0),
            at_most("sockets left behind", float(len(sockets)), 0.0),
        ),
    )


@asynccontextmanager
async def _server(stage: Stage, number: int) -> AsyncIterator[Client]:
    """A started server with a document of its own."""
    local = msgspec.to_builtins(msgspec.structs.replace(stage.settings, model=str(stage.model), runtime="native", linger_seconds=0))
    options: dict[str, Any] = {
        "engine": "local",
        "local": local,
        "debounce": {"mode": "off"},
        "completion": {"deadlineMs": int(_DEADLINE_S * 1e3), "maxTokens": 8, "multiline": "never"},
        "logLevel": "error",
    }
    async with start(_SERVER, env=os.environ | {"MONKEYCODE_HOME": str(stage.home)}, stderr=asyncio.subprocess.DEVNULL) as client:
        await client.initialize(options, root_uri="file:///w")
        client.open(_uri(number), "python", engine_text.code(engine_text.library(), number, 100))
        yield client


async def _ask(client: Client, number: int, at: int) -> bool:
    """Ask at a place where nobody has asked; whether it was answered with text."""
    line = f"result_{number}_{at} = value("
    client.insert(_uri(number), at + 1, 0, 0, line + "\n")
    async with asyncio.timeout(2 * _DEADLINE_S):
        result = await client.ask(_uri(number), 0, len(line), invoked=True)[1]
    return bool(result and result["items"])


async def _keep_asking(client: Client, number: int, over: asyncio.Event, answered: asyncio.Event) -> tuple[int, int, int]:
    """Asks, those answered empty, and those without a reply.  `answered` is set by each text that comes."""
    asked = empty = without = 0
    while not over.is_set():
        asked += 1
        began = time.monotonic()
        try:
            if await _ask(client, number, asked):
                answered.set()
            else:
                empty += 1
        except (TimeoutError, ClientError):
            without += 1
        # A person types no faster, and while no process may be started the answers come at once.
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), max(0.0, 0.2 - (time.monotonic() - began)))
    return asked, empty, without


async def _keep_killing(stage: Stage, clients: list[Client], answered: asyncio.Event) -> int:
    """Kill the engine process again and again at random moments; how often one was there.

    Every other time it has answered somebody before; the other times it may still be loading.
    """
    chance = random.Random(_SEED)  # noqa: S311 - the same moments on every run
    for number in range(stage.plan.kills):
        stage.say(f"kill {number + 1} of {stage.plan.kills}")
        until = time.monotonic() + _BACK_S
        while not _hosts(stage.home, clients):
            if time.monotonic() > until:
                return number
            await asyncio.sleep(_POLL_S)
        answered.clear()
        if number % 2:
            with suppress(TimeoutError):
                await asyncio.wait_for(answered.wait(), _BACK_S)
        await asyncio.sleep(chance.uniform(*_PAUSE_S))
        for pid in _hosts(stage.home, clients):
            processes.kill(pid)
    return stage.plan.kills


def _hosts(home: Path, clients: list[Client]) -> list[int]:
    """The processes of this run that are no servers."""
    servers = {client.process.pid for client in clients}
    return [pid for pid in processes.of_home(home) if pid not in servers]


def _uri(number: int) -> str:
    return f"file:///w/window_{number}.py"
