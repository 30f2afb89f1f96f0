"""What a debounce costs and keeps on recorded typing, each key by itself.

`python -m monkeycode_lsp.bench.pause_figures TRACE…`

Every keystroke counts, whatever it was.  With an engine that needs L:
- a *chance* is a key after which the user pauses for at least L; all other keys are *needless* to ask for;
- an ask is sent when the pause outlasts the wait, and *seen* when the pause outlasts the wait and L together;
- *kept* = seen / chances;  *suppressed* = 1 - (sent and not seen) / needless, so an ask that comes too late to
  be seen counts against it like one that was not needed at all.
Recall, adoption and cursor moves are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec

from monkeycode_lsp.bench.replay.gap import GapText
from monkeycode_lsp.bench.replay.load import TraceError, load
from monkeycode_lsp.bench.replay.trace import Trace
from monkeycode_lsp.config import Debounce
from monkeycode_lsp.debounce import Rhythm, delay_ms
from monkeycode_lsp.domain import Ask, Snapshot, Window
from monkeycode_lsp.pause.model import Model, shipped

ENGINE_MS = 250.0
_PREFIX_CHARACTERS, _SUFFIX_CHARACTERS = 2_000, 100
_FIXED_MS = (0, 75, 150, 200, 250, 350)
_THRESHOLDS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
_NOWHERE = Snapshot(uri="", language="", version=0, lines=("",), line=0, column=0)


class Moment(msgspec.Struct, frozen=True):
    """One keystroke, as the server sees it, and how long the user paused after it."""

    since_ms: float
    """Since the key before; 0 for the first."""
    inserted: str
    window: Window
    gap_ms: float


class Figures(msgspec.Struct, frozen=True):
    """Counts of keys."""

    n: int
    chances: int
    sent: int
    needless_sent: int
    seen: int
    auc: float
    """How well the predicted chance ranks the keys; 0.5: not at all."""

    @property
    def kept(self) -> float:
        return self.seen / max(1, self.chances)

    @property
    def suppressed(self) -> float:
        return 1 - (self.sent - self.seen) / max(1, self.n - self.chances)

    @property
    def needless_suppressed(self) -> float:
        """Only asks after keys that were no chance; one that comes too late after a long pause is not counted."""
        return 1 - self.needless_sent / max(1, self.n - self.chances)

    def __str__(self) -> str:
        return (
            f"suppressed {self.suppressed:6.1%}  kept {self.kept:6.1%}  asks per key {self.sent / max(1, self.n):.2f}  "
            f"(of needless keys alone {self.needless_suppressed:6.1%})  AUC {self.auc:.3f}"
        )


def moments(trace: Trace) -> Iterator[Moment]:
    """All keys but the last, after which nothing is known."""
    text = GapText(trace.start)
    before_s = trace.keys[0].at_s if trace.keys else 0.0
    for key, following in zip(trace.keys[:-1], trace.keys[1:], strict=True):
        for patch in key.patches:
            text.apply(patch)
        window = Window(text.before(_PREFIX_CHARACTERS), text.after(_SUFFIX_CHARACTERS), trace.language, trace.name)
        yield Moment(1e3 * (key.at_s - before_s), key.patches[-1].inserted, window, 1e3 * (following.at_s - key.at_s))
        before_s = key.at_s


def measure(
    typed: Sequence[Moment],
    settings: Debounce = Debounce(),  # noqa: B008 - frozen
    *,
    model: Model | None = None,
    engine_ms: float = ENGINE_MS,
    editor_ms: float = 0.0,
) -> Figures:
    """Plays the keys through the debounce as the server runs it, what it learns on the way included.

    `editor_ms`: the editor's own wait before it asks; keys that come sooner are not asked for.
    """
    rhythm = Rhythm(engine_ms=engine_ms, model=model or shipped())
    sent = needless = seen = 0
    chances: list[float] = []
    outcomes: list[bool] = []
    for moment in typed:
        rhythm = rhythm.with_key(moment.since_ms, moment.inserted)
        outcomes.append(moment.gap_ms >= engine_ms)
        if moment.gap_ms <= editor_ms:
            chances.append(0.0)
            continue
        ask = Ask(_NOWHERE, since_edit_ms=editor_ms, inserted=moment.inserted)
        waits = editor_ms + delay_ms(ask, moment.window, rhythm, settings)
        rhythm = rhythm.with_asked(ask, moment.window)
        chances.append(rhythm.expected.chance if rhythm.expected else 0.0)
        if moment.gap_ms > waits:
            sent += 1
            needless += not outcomes[-1]
            seen += moment.gap_ms >= waits + engine_ms
    return Figures(len(outcomes), sum(outcomes), sent, needless, seen, ranked(chances, outcomes))


def ranked(values: Sequence[float], outcomes: Sequence[bool]) -> float:
    """Area under the ROC curve: how often a key that was a chance has the larger value."""
    order = sorted(zip(values, outcomes, strict=True))
    n_true = sum(outcomes)
    pairs = n_true * (len(outcomes) - n_true)
    if not pairs:
        return 0.5
    above, n_false, index = 0.0, 0, 0
    while index < len(order):
        end = index
        while end < len(order) and order[end][0] == order[index][0]:
            end += 1
        true = sum(outcome for _, outcome in order[index:end])
        false = end - index - true
        above += true * (n_false + false / 2)  # equal values count half
        n_false += false
        index = end
    return above / pairs


def table(typed: Sequence[Moment], model: Model, *, engine_ms: float, max_ms: int) -> Iterator[str]:
    """Fixed waits, the model as it is, and what other thresholds would give."""
    for wait_ms in _FIXED_MS:
        yield f"fixed {wait_ms:3d} ms      {measure(typed, Debounce(mode='fixed', max_ms=wait_ms), model=model, engine_ms=engine_ms)}"
    settings = Debounce(max_ms=max_ms)
    yield f"adaptive          {measure(typed, settings, model=model, engine_ms=engine_ms)}"
    for threshold in _THRESHOLDS:
        other = msgspec.structs.replace(model, threshold=threshold)
        yield f"  threshold {threshold:.2f}  {measure(typed, settings, model=other, engine_ms=engine_ms)}"


@click.command()
@click.argument("traces", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--model", "file", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Coefficients other than the package's."
)
@click.option("--engine-ms", default=ENGINE_MS, show_default=True, help="What the engine needs.")
@click.option("--max-ms", default=Debounce().max_ms, show_default=True, help="Longest wait of the adaptive debounce.")
@click.option("--seed", default=0, show_default=True, help="Of the spacing inside a second, for traces without finer times.")
def main(traces: tuple[Path, ...], file: Path | None, engine_ms: float, max_ms: int, seed: int) -> None:
    """What each debounce suppresses and keeps on the traces."""
    model = msgspec.json.decode(file.read_bytes(), type=Model) if file else shipped()
    for path in traces:
        try:
            trace = load(path, seed=seed)
        except TraceError as exc:
            raise click.ClickException(str(exc)) from exc
        click.echo(f"{trace.name}: {len(trace.keys)} keys, engine {engine_ms:.0f} ms")
        for line in table(list(moments(trace)), model, engine_ms=engine_ms, max_ms=max_ms):
            click.echo(f"  {line}")


if __name__ == "__main__":
    main()
