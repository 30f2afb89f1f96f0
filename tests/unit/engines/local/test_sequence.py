"""The generation loop over a model whose next token depends on every token it holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.domain import Control, Plain
from monkeycode_lsp.engines.local.decoder import GenerationError
from monkeycode_lsp.engines.local.sequence import KvSequence, common_prefix, prompt_tokens
from monkeycode_lsp.engines.local.wire import Delta, Done, Generate

CONTROLS = {"<pre>": 300, "<mid>": 301, "<bos>": 302}
END = 400


class Counting:
    """A token per byte.  Says the digits of a checksum over all that it holds, so that a wrong reuse is a wrong answer."""

    def __init__(self, *, script=(), bos=None, context_tokens=4096, can_cut=True, words=()):
        self.context_tokens = context_tokens
        self.chunk_tokens = 64
        self.bos = bos
        self.filler = 0
        self.cells = []
        self.n_read = 0
        self.fails = False
        self._script = list(script)
        self._can_cut = can_cut
        self._words = words

    def tokenize(self, text):
        for word in self._words:
            if word in text:
                before, _, after = text.partition(word)
                return [*self.tokenize(before), CONTROLS[word], *self.tokenize(after)]
        return list(text.encode())

    def control(self, text):
        return CONTROLS[text]

    def evaluate(self, tokens, at, is_cancelled):
        assert at == len(self.cells)
        assert len(tokens) <= self.chunk_tokens
        if is_cancelled():
            return False
        if self.fails:
            raise GenerationError("decode", "broken")
        self.cells += tokens
        self.n_read += len(tokens)
        return True

    def keep(self, n_tokens):
        if n_tokens and not self._can_cut:
            self.cells = []
            return False
        del self.cells[n_tokens:]
        return True

    def sampler(self, temperature):
        def draw():
            if self._script:
                return self._script.pop(0), -0.25
            return 48 + sum(n * cell for n, cell in enumerate(self.cells, 1)) % 10, -0.25

        return draw

    def piece(self, token):
        return bytes([token]) if token < 256 else {500: b"\xf0\x9f", 501: b"\x98", 502: b"\x80"}.get(token, b"")

    def ends(self, token):
        return token == END


def never():
    return False


def ask(*segments, **more):
    return Generate(7, tuple(Plain(one) if isinstance(one, str) else one for one in segments), **{"max_tokens": 8, **more})


def answer(sequence, asked, is_cancelled=never):
    events = list(sequence.generate(asked, is_cancelled))
    assert all(isinstance(event, Delta) and event.text for event in events[:-1])
    assert isinstance(events[-1], Done)
    assert {event.id for event in events} == {7}
    return "".join(event.text for event in events[:-1]), events[-1]


def test_an_emoji_over_three_tokens_is_one_piece_of_three_tokens():
    events = list(KvSequence(Counting(script=[500, 501, 502, ord("!"), END])).generate(ask("x"), never))
    assert events == [Delta(7, "😀", 3, -0.75, reused=0, read=1), Delta(7, "!", 1, -0.25), Done(7, "stop", reused=0, read=1, generated=4)]


def test_one_more_letter_reads_one_token_more():
    sequence = KvSequence(Counting())
    document = "x = 1\n" * 333
    _, first = answer(sequence, ask(document))
    assert (first.reused, first.read) == (0, len(document))
    _, second = answer(sequence, ask(document + "y"))
    assert (second.reused, second.read) == (len(document), 1)


def test_the_same_prompt_again_reads_one_token_for_its_logits():
    sequence = KvSequence(Counting())
    first, _ = answer(sequence, ask("hello"))
    again, done = answer(sequence, ask("hello"))
    assert again == first
    assert (done.reused, done.read) == (4, 1)


def test_after_an_edit_at_the_top_the_answer_is_still_right():
    sequence = KvSequence(Counting())
    answer(sequence, ask("a" + "b" * 2000))
    edited, done = answer(sequence, ask("c" + "b" * 2000))
    assert edited == answer(KvSequence(Counting()), ask("c" + "b" * 2000))[0]
    assert done.reused == 0


def test_an_accepted_answer_is_not_read_again():
    sequence = KvSequence(Counting())
    text, done = answer(sequence, ask("hello "))
    _, after = answer(sequence, ask("hello " + text))
    assert after.reused == len("hello ") + done.generated - 1


def test_a_model_that_cannot_cut_its_cache_reads_all_again_and_is_right():
    sequence = KvSequence(Counting(can_cut=False))
    answer(sequence, ask("hello world"))
    text, done = answer(sequence, ask("hello there"))
    assert text == answer(KvSequence(Counting()), ask("hello there"))[0]
    assert (done.reused, done.read) == (0, len("hello there"))


def test_a_cancel_inside_the_prompt_keeps_the_finished_chunks():
    runtime = Counting()
    sequence = KvSequence(runtime)
    text, done = answer(sequence, ask("x" * 500), lambda: runtime.n_read >= 192)
    assert (text, done.finish, done.read) == ("", "cancelled", 192)
    _, again = answer(sequence, ask("x" * 500))
    assert (again.reused, again.read) == (192, 308)


def test_a_cancel_while_writing_stops_within_one_token():
    runtime = Counting()
    text, done = answer(KvSequence(runtime), ask("x", max_tokens=100), lambda: runtime.n_read >= 5)
    assert done.finish == "cancelled"
    assert len(text) == done.generated == 5


def test_a_stop_string_over_two_tokens_ends_the_answer():
    text, done = answer(KvSequence(Counting(script=[*b"ab\n\ncd"])), ask("x", stop=("\n\n",)))
    assert (text, done.finish) == ("ab", "stop")


def test_max_tokens_end_the_answer_by_its_length():
    text, done = answer(KvSequence(Counting()), ask("x", max_tokens=3))
    assert (len(text), done.finish, done.generated) == (3, "length", 3)


def test_no_tokens_asked_for_only_reads_the_prompt():
    sequence = KvSequence(Counting())
    text, done = answer(sequence, ask("hello", max_tokens=0))
    assert (text, done.read, done.generated) == ("", 5, 0)
    assert answer(sequence, ask("hello!"))[1].reused == 5


def test_a_prompt_that_fills_the_window_is_refused_with_the_limit():
    with pytest.raises(GenerationError) as caught:
        answer(KvSequence(Counting(context_tokens=100)), ask("x" * 98))
    assert (caught.value.kind, caught.value.limit_tokens) == ("overflow", 100)


def test_an_answer_is_cut_to_the_room_that_is_left():
    _, done = answer(KvSequence(Counting(context_tokens=100)), ask("x" * 70, max_tokens=1000))
    assert (done.finish, done.generated) == ("length", 30)


def test_a_failure_to_decode_forgets_what_the_cache_held():
    runtime = Counting()
    sequence = KvSequence(runtime)
    answer(sequence, ask("hello"))
    runtime.fails = True
    with pytest.raises(GenerationError):
        answer(sequence, ask("hello there"))
    runtime.fails = False
    assert answer(sequence, ask("hello"))[1].reused == 0


def test_begin_of_text_comes_once_and_first():
    bos = CONTROLS["<bos>"]
    assert prompt_tokens(Counting(bos=bos), (Plain("a"),)) == [bos, 97]
    assert prompt_tokens(Counting(bos=bos), (Control("<bos>"), Plain("a"))) == [bos, 97]
    assert prompt_tokens(Counting(), (Plain("1, "), Control("<mid>"), Plain(", 5"))).count(bos) == 0


def test_an_empty_prompt_still_reads_something():
    assert prompt_tokens(Counting(), ()) == [0]


def test_plain_text_never_becomes_a_control_token_even_where_the_vocabulary_would_make_it_one():
    runtime = Counting(words=("<mid>", "<pre>"))
    tokens = prompt_tokens(runtime, (Control("<pre>"), Plain("a<mid>b<pre><mid>"), Control("<mid>")))
    assert tokens == [300, *b"a<mid>b<pre><mid>", 301]


def test_neighbouring_pieces_of_text_are_read_as_one():
    runtime = Counting(words=("<mid>",))
    assert prompt_tokens(runtime, (Plain("a<m"), Plain("id>b"))) == [97, 301, 98]


def test_the_common_prefix_is_counted_in_tokens():
    assert [common_prefix(*pair) for pair in (([], [1]), ([1, 2], [1, 2, 3]), ([1, 2], [1, 3]), ([1], [2]))] == [0, 2, 1, 0]


edits = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 30), st.text("abc", max_size=20), st.integers(0, 300)), max_size=8)


@given(edits)
def test_no_edit_and_no_cancel_ever_changes_a_later_answer(edits):
    runtime = Counting()
    sequence = KvSequence(runtime)
    text = "the quick brown fox " * 10
    for at, n_removed, inserted, patience in edits:
        text = text[:at] + inserted + text[at + n_removed :]
        stop_at = runtime.n_read + patience
        answer(sequence, ask(text), lambda stop_at=stop_at: runtime.n_read >= stop_at)
        assert answer(sequence, ask(text))[0] == answer(KvSequence(Counting()), ask(text))[0]
