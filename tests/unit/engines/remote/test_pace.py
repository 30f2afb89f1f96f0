"""How fast an endpoint answers, by a clock that the answers themselves set forward."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from monkeycode_lsp.domain import Chunk, Finish, Prompt, Usage
from monkeycode_lsp.engines.remote.examination import pace


class Timed:
    """Says its pieces at their times.  Each answer is a list of (seconds since the piece before, text)."""

    def __init__(self, *answers: Sequence[tuple[float, str]], usages: Sequence[Usage | None] = (None, None)) -> None:
        self.now = 0.0
        self.asked: list[Prompt] = []
        self._answers = answers
        self._usages = usages

    def clock(self) -> float:
        return self.now

    async def stream(self, asked: Prompt) -> AsyncGenerator[Chunk, None]:
        number = len(self.asked)
        self.asked.append(asked)
        for seconds, text in self._answers[number]:
            self.now += seconds
            yield Chunk(text)
        yield Chunk("", finish=Finish.STOP, usage=self._usages[number])


async def measured(timed: Timed, **how: Any) -> pace.Pace:
    return await pace.measure(timed, None, **{"context_tokens": None, **how}, clock=timed.clock)


def steady(first_s: float, n: int = 21, each_s: float = 0.02) -> list[tuple[float, str]]:
    return [(first_s, "a"), *[(each_s, "b")] * (n - 1)]


async def test_the_first_text_is_timed_twice_and_the_rest_gives_the_speed() -> None:
    found = await measured(Timed(steady(1.2), steady(0.1)))
    assert (found.first_ms, found.warm_first_ms) == (pytest.approx(1200), pytest.approx(100))
    assert found.tokens_per_second == pytest.approx(50)
    assert found.delivery == "stream"


async def test_what_the_server_counts_wins_over_counting_pieces() -> None:
    usage = Usage(generated=42)
    found = await measured(Timed(steady(1.2), steady(0.1), usages=(usage, usage)))
    assert found.tokens_per_second == pytest.approx(100)


async def test_a_short_answer_gives_no_speed() -> None:
    assert (await measured(Timed(steady(0.3, 3), steady(0.3, 3)))).tokens_per_second is None


async def test_an_empty_answer_is_timed_to_its_end() -> None:
    found = await measured(Timed([(0.4, "")], [(0.2, "")]))
    assert found.tokens_per_second is None
    assert found.delivery == "stream"


async def test_the_second_prompt_has_one_letter_more_and_the_first_one_begins_as_none_before() -> None:
    timed, other = Timed(steady(1), steady(1)), Timed(steady(1), steady(1))
    await measured(timed)
    await measured(other)
    cold, warm = timed.asked
    assert warm.prefix == cold.prefix + "r"
    assert warm.suffix == cold.suffix
    assert 2_000 < len(cold.prefix + cold.suffix) < 4_000
    assert cold.prefix[:20] != other.asked[0].prefix[:20]
    assert cold.suffix[:20] != other.asked[0].suffix[:20]  # it comes first in the order spm


async def test_a_small_window_is_not_overflowed() -> None:
    timed = Timed(steady(1), steady(1))
    await measured(timed, context_tokens=512)
    assert len(timed.asked[0].prefix + timed.asked[0].suffix) < 312 * 3.5


@pytest.mark.parametrize(("reused", "reuses"), [(900, True), (0, False)])
async def test_reuse_that_is_reported_is_believed_whatever_the_times(reused: int, reuses: Any) -> None:
    usages = (Usage(reused=0, read=1000), Usage(reused=reused, read=1000 - reused))
    found = await measured(Timed(steady(0.5), steady(0.5), usages=usages))
    assert (found.prompt_tokens, found.reused_tokens, found.reuses) == (1000, reused, reuses)


@pytest.mark.parametrize(("cold_s", "warm_s", "reuses"), [(1.0, 0.2, True), (1.0, 0.9, False), (0.05, 0.05, None)])
async def test_reuse_that_is_not_reported_is_told_by_the_times_where_they_tell_anything(
    cold_s: float,
    warm_s: float,
    reuses: Any,
) -> None:
    found = await measured(Timed(steady(cold_s), steady(warm_s)))
    assert found.reuses is reuses
    assert found.reused_tokens is None


async def test_many_pieces_at_one_instant_after_a_long_silence_were_held_back() -> None:
    found = await measured(Timed(steady(1.0, 32, 0.0001), steady(0.7, 32, 0.0001)))
    assert found.delivery == "held back"
    assert found.tokens_per_second is None
    assert found.reuses is None


@pytest.mark.parametrize(
    ("cold", "warm"),
    [
        (steady(0.02, 32, 0.0001), steady(0.02, 32, 0.0001)),  # so fast a server that nothing can be told
        (steady(1.0, 32, 0.0001), steady(0.7, 32, 0.02)),  # once is chance
        (steady(1.0, 32, 0.0005), steady(0.7, 32, 0.0005)),  # a very fast one
        (steady(1.0, 4, 0.0001), steady(0.7, 4, 0.0001)),  # a few tokens come together easily
    ],
)
async def test_fast_answers_and_short_ones_are_not_suspected(cold: list[tuple[float, str]], warm: list[tuple[float, str]]) -> None:
    assert (await measured(Timed(cold, warm))).delivery == "stream"


async def test_one_piece_is_told_by_its_length_or_by_what_the_server_counts() -> None:
    assert (await measured(Timed([(1.0, "x" * 80)], [(1.0, "x" * 80)]))).delivery == "one piece"
    usage = Usage(generated=20)
    assert (await measured(Timed([(1.0, "x")], [(1.0, "x")], usages=(usage, usage)))).delivery == "one piece"
    assert (await measured(Timed([(1.0, "x")], [(1.0, "x")]))).delivery == "stream"
