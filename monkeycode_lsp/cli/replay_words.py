"""What `monkeycode replay` says in sentences: how it was replayed, what came of it, and what its words mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from monkeycode_lsp.bench.replay.report import Report, Setup
    from monkeycode_lsp.bench.replay.score import Rates

LEGEND = {
    "requests": "questions to the backend",
    "aborted": "of these: stopped before the answer came",
    "useful work": "of these: the text was shown in time",
    "fresh": "a text on the screen before the next key",
    "without the backend": "share of all asks whose text was known already",
    "typed-through": "what is left of a text that you are typing",
    "not typed next": "of texts from memory: something else was typed",
    "adopted": "taken from a request that an earlier key began",
    "stale": "a text that came too late, after the next key",
    "wrong hits": "texts that contradict what was typed; must be 0",
    "drafts offered / confirmed": "guesses sent along / that the answer began with",
    "chances kept": "of pauses long enough to answer: a text came",
    "needless requests suppressed": "of other keys: no request was made in vain",
    "text after ms, p50/p90/p99": "from the key on; p90: nine in ten were sooner",
    "reply after ms, no backend": "from the ask on, for texts known already",
}
"""For users; each line fits a narrow terminal."""
_SOON_MS = 1.0
_CUT_S = 600.0
"""A shorter recording holds no pause that was cut when it was read."""


def legend(words: tuple[str, ...] = tuple(LEGEND)) -> str:
    """What they mean, a line each."""
    width = max(map(len, words), default=0)
    return "\n".join(f"{word:<{width}}  {LEGEND[word]}" for word in words)


def how(setup: Setup) -> str:
    """One line about how it was replayed."""
    if setup.engine == "configured":
        behind = "your own engine"
    else:
        behind = f"a backend that takes {setup.latency_ms:g} ms and is right at {_percent(setup.q)} of the places"
    played = "real servers in real time" if setup.mode == "real time" else "simulated, so that computing takes no time"
    part = f" from key {setup.first_key:,} on" if setup.first_key else ""
    return f"{setup.trace}: {_keys(setup.keys)}{part}, {_typing(setup)}; {played}, with {behind}"


def _typing(setup: Setup) -> str:
    by = "synthetic" if setup.synthetic else "recorded"
    cut = ", long pauses cut short" if setup.mode == "real time" or setup.seconds >= _CUT_S else ""
    faster = f", {setup.speed:g} times as fast" if setup.speed != 1 else ""
    return f"{lasting(setup.seconds)} of {by} typing{cut}{faster}"


def summary(report: Report, ours: Rates, plain: Rates | None) -> str:
    """The result for somebody who reads no table.  `plain`: of the server that asks at every key, if it took part."""
    beside = f" (a plain server: {_percent(plain.fresh_per_key)})" if plain else ""
    than = f" instead of {_requests(plain)}" if plain else ""
    result = f"Of {_keys(ours.keys)}, {_percent(ours.fresh_per_key)} had a text on the screen before the next key{beside}"
    said = [f"{result}, with {_requests(ours)} requests for 100 keys{than}."]
    if ours.p50_ms is not None and ours.p90_ms is not None:
        said.append(f"Half of the texts were there {_within(ours.p50_ms)}, nine in ten {_within(ours.p90_ms)}.")
    if ours.wrong_hits:
        said.append(f"{ours.wrong_hits} contradicted what had been typed, and that must not be.")
    if report.setup.engine == "oracle":
        said.append(
            f"A text need not be the right one: the backend that is played here is right at {_percent(report.setup.q)} of the places."
        )
    return "\n".join(said)


def takes(seconds: float, n_systems: int) -> str:
    """Before a replay in real time, of so many seconds for each system."""
    if n_systems == 1:
        return f"This takes about {lasting(seconds)}."
    return f"This takes about {lasting(seconds * n_systems)}: {n_systems} systems, one after another, {lasting(seconds)} each."


def recording(file: Path, goes_to: Path) -> str:
    """For somebody who starts a recording by hand."""
    other = f"{file} exists already: {goes_to.name} is written instead.\n" if goes_to != file.absolute() else ""
    command = f"{{ 'monkeycode', 'replay', '--record', '{file.absolute()}' }}"
    return (
        f"{other}This waits for an editor: put this command there in place of `monkeycode-lsp`, "
        f"in Neovim for example `cmd = {command}`. Ctrl-C ends it."
    )


def lasting(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 3 * length:
            return f"{seconds / length:.0f} {unit}"
    return "1 second" if round(seconds) == 1 else f"{seconds:.0f} seconds"


def _keys(n: int) -> str:
    return "1 key" if n == 1 else f"{n:,} keys"


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0.0):.0f} %"


def _requests(rates: Rates) -> str:
    return f"{100 * ((rates.requests_per_key or 0.0) + (rates.background_per_key or 0.0)):.0f}"


def _within(ms: float) -> str:
    return "at once" if ms < _SOON_MS else f"within {ms:.0f} ms"
