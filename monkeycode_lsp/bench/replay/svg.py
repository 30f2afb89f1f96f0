"""A picture of how soon text was there: for each system the share of the keystrokes over milliseconds (pure).

The picture needs nothing beside itself, and can be read on light and on dark ground.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

import msgspec

WIDTH, HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 100, 56
_LEAST_MS = 1.0
"""The left end; what is sooner stands there."""
_STEP_SHARE = 0.2
_MOST_POINTS = 400
_STROKES = (("#d97706", ""), ("#6b8ff0", "8 5"), ("#3aa76d", "2 4"), ("#c06bd6", "12 4 2 4"))
"""Colours that have contrast enough on white and on black; the dashes tell lines apart for who cannot tell colours."""
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#333}.title{font-size:15px;font-weight:600}.about{font-size:11px}.grid{stroke:#8884;stroke-width:1}"
    ".line{fill:none;stroke-width:2.2;stroke-linejoin:round}@media(prefers-color-scheme:dark){text{fill:#ddd}}"
)


class Line(msgspec.Struct, frozen=True):
    """One system."""

    name: str
    waits_ms: Sequence[float]
    """From key to text; ascending, each as often as the others."""
    share: float
    """Of the keystrokes that got text at all."""


def draw(title: str, about: str, lines: Sequence[Line]) -> str:
    """The picture as a whole file; the lines of `about` stand below the title."""
    most_ms = _round_up(max((line.waits_ms[-1] for line in lines if line.waits_ms), default=1000.0))
    most_share = _most_share(lines)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<text class="title" x="{_LEFT}" y="24">{escape(title)}</text>',
        *(f'<text class="about" x="{_LEFT}" y="{42 + 14 * row}">{escape(words)}</text>' for row, words in enumerate(about.splitlines())),
        *_axes(most_ms, most_share),
    ]
    for number, line in enumerate(lines):
        colour, dashes = _STROKES[number % len(_STROKES)]
        dash = f' stroke-dasharray="{dashes}"' if dashes else ""
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in _points(line, most_ms, most_share))
        x = _LEFT + number * (WIDTH - _LEFT - _RIGHT) / max(1, len(lines))
        drawn += [
            f'<polyline class="line" stroke="{colour}"{dash} points="{points}"/>',
            f'<path class="line" stroke="{colour}"{dash} d="M{x:.0f} 78h32"/><text x="{x + 40:.0f}" y="82">{escape(line.name)}</text>',
        ]
    return "\n".join([*drawn, "</svg>", ""])


def _axes(most_ms: float, most_share: float) -> Iterator[str]:
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    for ms in _ticks(most_ms):
        x = _x(ms, most_ms)
        label = f"≤ {ms:g} ms" if ms == _LEAST_MS else f"{ms:g}"
        yield f'<path class="grid" d="M{x:.1f} {_TOP}V{bottom}"/><text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{label}</text>'
    for share in (step * _STEP_SHARE for step in range(round(most_share / _STEP_SHARE) + 1)):
        y = _y(share, most_share)
        yield f'<path class="grid" d="M{_LEFT} {y:.1f}H{right}"/><text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>'
    yield f'<text x="{(_LEFT + right) / 2:.0f}" y="{HEIGHT - 14}" text-anchor="middle">milliseconds from the key to its text</text>'
    middle = (_TOP + bottom) / 2
    yield f'<text transform="translate(16 {middle:.0f}) rotate(-90)" text-anchor="middle">share of all keystrokes</text>'


def _points(line: Line, most_ms: float, most_share: float) -> Iterator[tuple[float, float]]:
    n_waits = len(line.waits_ms)
    yield _LEFT, _y(0.0, most_share)
    last = 0.0
    for rank in sorted({math.ceil(n_waits * point / _MOST_POINTS) for point in range(1, _MOST_POINTS + 1)} - {0}):
        x = _x(line.waits_ms[rank - 1], most_ms)
        yield x, _y(last, most_share)
        last = line.share * rank / n_waits
        yield x, _y(last, most_share)
    yield WIDTH - _RIGHT, _y(last, most_share)


def _x(ms: float, most_ms: float) -> float:
    along = math.log(max(ms, _LEAST_MS) / _LEAST_MS) / math.log(most_ms / _LEAST_MS)
    return _LEFT + along * (WIDTH - _LEFT - _RIGHT)


def _y(share: float, most_share: float) -> float:
    return HEIGHT - _BOTTOM - share / most_share * (HEIGHT - _TOP - _BOTTOM)


def _most_share(lines: Sequence[Line]) -> float:
    """The upper end: the next tick."""
    highest = max((line.share for line in lines), default=0.0)
    return max(1, math.ceil(highest / _STEP_SHARE)) * _STEP_SHARE


def _round_up(ms: float) -> float:
    return next(tick for tick in _steps() if tick >= max(ms, 10.0))


def _ticks(most_ms: float) -> Iterator[float]:
    for tick in _steps():
        if tick > most_ms:
            return
        yield tick


def _steps() -> Iterator[float]:
    power = _LEAST_MS
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10
