from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.domain import Control, Plain, Priority, Sampling
from monkeycode_lsp.engines.local import wire
from monkeycode_lsp.prompt import Markers

text = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
number = st.integers(0, 2**40)
segments = st.lists(st.builds(Control, text) | st.builds(Plain, text), max_size=5).map(tuple)
from_client = st.one_of(
    st.builds(wire.Hello, st.integers(0, 9), text, st.sampled_from(["ask", "control"])),
    st.builds(wire.Ping, number),
    st.sampled_from([wire.Retire(), wire.Shutdown(), wire.Look()]),
    st.builds(
        wire.Generate,
        number,
        segments,
        max_tokens=number,
        sampling=st.builds(Sampling, temperature=st.floats(0, 2)),
        heal=text,
        stop=st.lists(text, max_size=3).map(tuple),
        draft=text,
        priority=st.sampled_from(Priority),
        session=text,
    ),
    st.builds(wire.Cancel, number),
    st.builds(wire.Count, number, st.lists(text, max_size=3).map(tuple)),
)
build = st.builds(wire.Build, text, text, st.lists(text, max_size=3).map(tuple), st.booleans())
from_worker = st.one_of(
    st.builds(wire.Starting, build),
    st.builds(wire.Ready, text, text, number, st.builds(Markers, text), st.booleans(), st.booleans(), number, number, text),
    st.builds(wire.LoadFailed, st.sampled_from(["runtime", "model", "memory", "internal"]), text),
    st.builds(wire.Delta, number, text, number, st.floats(-100, 0)),
    st.builds(wire.Done, number, st.sampled_from(["stop", "length", "cancelled"]), number, number, number),
    st.builds(wire.Welcome, number),
    st.builds(wire.Serving, text, text),
    st.builds(wire.Pong, number),
    st.builds(wire.Counted, number, st.lists(number, max_size=3).map(tuple)),
    st.just(wire.Leaving()),
    st.builds(wire.Status, number, text, st.floats(0, 2e9), number, number, st.builds(wire.Totals, number, number)),
    st.builds(wire.Failed, number, st.sampled_from(["overflow", "busy", "decode"]), text, st.none() | number),
)


def fed(frames, data, cuts):
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [message for start, end in itertools.pairwise(edges) for message in frames.feed(data[start:end])]


@given(st.lists(from_client, max_size=6), st.lists(st.integers(0, 10_000), max_size=12))
def test_what_a_client_says_arrives_whole_however_it_is_cut(messages, cuts):
    data = b"".join(map(wire.encode, messages))
    assert fed(wire.frames_from_client(), data, cuts) == messages


@given(st.lists(from_worker, max_size=6), st.lists(st.integers(0, 10_000), max_size=12))
def test_what_a_worker_says_arrives_whole_however_it_is_cut(messages, cuts):
    data = b"".join(map(wire.encode, messages))
    assert fed(wire.frames_from_worker(), data, cuts) == messages


@given(st.binary(min_size=5, max_size=200))
def test_noise_is_a_frame_error_or_waits_for_more_and_nothing_else(noise):
    frames = wire.frames_from_client()
    try:
        messages = frames.feed(noise)
    except wire.FrameError:
        return
    assert all(isinstance(message, wire.FromClient) for message in messages)


def test_an_announced_frame_over_the_limit_is_refused_before_it_comes():
    frames = wire.frames_from_client()
    with pytest.raises(wire.FrameError, match="limit"):
        frames.feed((wire.MAX_FRAME_BYTES + 1).to_bytes(4, "big"))


def test_a_message_over_the_limit_is_not_sent():
    with pytest.raises(wire.FrameError, match="limit"):
        wire.encode(wire.Generate(1, (Plain("x" * wire.MAX_FRAME_BYTES),)))


def test_what_only_a_worker_says_is_refused_from_a_client():
    with pytest.raises(wire.FrameError, match="know"):
        wire.frames_from_client().feed(wire.encode(wire.Delta(1, "x", 1, 0.0)))


@pytest.mark.parametrize("more", [{"heal": "\udc80"}, {"sampling": Sampling(seed=2**70)}])
def test_what_no_frame_can_hold_is_a_frame_error(more):
    with pytest.raises(wire.FrameError):
        wire.encode(wire.Generate(1, (), **more))
