"""How far a long run is."""

from __future__ import annotations

from monkeycode_lsp.bench.quality.progress import Progress


def test_it_says_a_line_at_the_beginning_and_then_now_and_then():
    now, said = [0.0], []
    progress = Progress(said.append, clock=lambda: now[0], every_s=10)
    progress("gold", 0, 100)
    for done in range(1, 61):
        now[0] += 1
        progress("gold", done, 100)
    progress("infilling", 0, 5)
    assert said[0] == "gold: 100 to do"
    assert said[1] == "gold: 10 of 100, 90 s left"
    assert len(said) == 1 + 6 + 1
    assert said[-1] == "infilling: 5 to do"


def test_long_times_are_minutes():
    now, said = [0.0], []
    progress = Progress(said.append, clock=lambda: now[0], every_s=10)
    progress("gold", 0, 100)
    now[0] = 60
    progress("gold", 1, 100)
    assert said[1] == "gold: 1 of 100, 99 min left"
