"""The picture of a replay."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from monkeycode_lsp.bench.replay.svg import HEIGHT, WIDTH, Line, draw

NAME = "{http://www.w3.org/2000/svg}"


def parts(svg, name):
    return ET.fromstring(svg).findall(f".//{NAME}{name}")  # noqa: S314 - our own text


def points(svg, number=0):
    return [tuple(map(float, pair.split(","))) for pair in parts(svg, "polyline")[number].get("points").split()]


def test_there_is_one_line_for_each_system_and_its_name_beside_it():
    svg = draw("Title", "About", [Line("ours", [1.0, 250.0], 0.5), Line("theirs", [250.0, 450.0], 0.3)])
    assert len(parts(svg, "polyline")) == 2
    words = [text.text for text in parts(svg, "text")]
    assert {"Title", "About", "ours", "theirs", "milliseconds from the key to its text", "share of all keystrokes"} <= set(words)


def test_names_cannot_become_markup():
    svg = draw("a < b & c", "<b>", [Line("<script>", [1.0], 1.0)])
    assert not parts(svg, "script")
    assert "<script>" in [text.text for text in parts(svg, "text")]


def test_a_line_rises_from_nothing_to_its_share_and_stays_inside():
    svg = draw("t", "a", [Line("ours", [float(ms) for ms in range(1, 1001)], 0.8)])
    xs, ys = zip(*points(svg), strict=True)
    assert list(xs) == sorted(xs)
    assert list(ys) == sorted(ys, reverse=True)  # up is less
    assert 0 <= min(xs) <= max(xs) <= WIDTH
    assert 0 <= min(ys) <= max(ys) <= HEIGHT
    half = draw("t", "a", [Line("ours", [1.0], 0.4), Line("theirs", [1.0], 0.8)])
    bottom = points(half)[0][1]
    assert bottom - points(half, 1)[-1][1] == pytest.approx(2 * (bottom - points(half)[-1][1]), abs=0.3)


@pytest.mark.parametrize(("share", "last"), [(0.0, "20%"), (0.42, "60%"), (0.6, "60%"), (1.0, "100%")])
def test_the_shares_go_by_twenties_and_the_first_time_says_what_stands_there(share, last):
    words = [text.text for text in parts(draw("t", "a", [Line("ours", [1.0, 100.0], share)]), "text")]
    shares = [word for word in words if word.endswith("%")]
    assert shares == ["0%", "20%", "40%", "60%", "80%", "100%"][: shares.index(last) + 1]
    assert "≤ 1 ms" in words


def test_what_is_there_at_once_stands_at_the_left_end():
    svg = draw("t", "a", [Line("ours", [0.0, 0.0, 100.0], 1.0)])
    assert points(svg)[1][0] == points(svg)[0][0]


@pytest.mark.parametrize("lines", [[], [Line("nothing", [], 0.0)], [Line("one", [0.0], 0.01)]])
def test_little_or_nothing_is_a_picture_too(lines):
    assert len(parts(draw("t", "a", lines), "polyline")) == len(lines)


def test_it_needs_nothing_beside_itself_and_follows_the_ground():
    svg = draw("t", "a", [Line("ours", [1.0], 1.0)])
    assert "href" not in svg
    assert "url(" not in svg
    assert "prefers-color-scheme:dark" in svg
