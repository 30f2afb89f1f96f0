"""Secrets give way to placeholders of the same length, and come back in the answer."""

import string

from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.context import shapes
from monkeycode_lsp.context.redaction import Redactor, at_cursor, has_secret

REDACTOR = Redactor(b"key of a session")
RANDOM = "kV9mQ2xW7bN5tR8pL1cZ4fH6jG0sYqE3"
LINE = f'api_key = "{RANDOM}"\n'
ALL = "\n".join("".join(shape.example) for shape in shapes.shipped())


def test_text_without_secrets_stays_as_it_is():
    redaction = REDACTOR.redact("def f():\n", "\n    pass", ["x = 1"])
    assert (redaction.before, redaction.after, redaction.others, redaction.found) == ("def f():\n", "\n    pass", ("x = 1",), False)
    assert redaction.restore("hidden_ zq", whole=False) == "hidden_ zq"


def test_no_secret_is_left_and_no_column_moves():
    redaction = REDACTOR.redact(ALL, "", [ALL])
    assert redaction.found
    secrets = [ALL[first:last] for first, last in shapes.find(ALL)]
    assert not any(secret in redaction.before for secret in secrets)
    assert [len(line) for line in redaction.before.split("\n")] == [len(line) for line in ALL.split("\n")]
    assert redaction.others == (redaction.before,)


def test_placeholders_do_not_look_like_secrets():
    redaction = REDACTOR.redact(ALL, "")
    again = REDACTOR.redact(redaction.before, "")
    left = [hidden.secret for hidden in again.hidden]
    assert not [secret for secret in left if "hidden_" in secret]


def test_the_same_secret_has_the_same_placeholder_everywhere_and_always():
    one = REDACTOR.redact(LINE, f'connect("{RANDOM}")', [f"# {RANDOM}"])
    two = REDACTOR.redact("", "", ["x", LINE])
    assert len(one.hidden) == 1
    assert one.hidden == two.hidden
    assert RANDOM not in one.before + one.after + one.others[0]


def test_another_session_has_other_placeholders():
    assert REDACTOR.redact(LINE, "").before != Redactor(b"another").redact(LINE, "").before


def test_what_the_model_copies_is_restored():
    redaction = REDACTOR.redact(LINE, "")
    hidden = redaction.before.split('"')[1]
    assert redaction.restore(f'x = "{hidden}"', whole=True) == f'x = "{RANDOM}"'


def test_a_placeholder_that_the_model_shortens_or_that_is_cut_off_is_restored_whole():
    redaction = REDACTOR.redact(LINE, "")
    hidden = redaction.before.split('"')[1]
    assert redaction.restore(f'x = "{hidden[:17]}"\n', whole=True) == f'x = "{RANDOM}"\n'
    assert redaction.restore(f"x = {hidden[:20]}", whole=True) == f"x = {RANDOM}"


def test_a_placeholder_that_the_model_ends_in_its_own_way_is_restored_and_nothing_of_it_is_left():
    redaction = REDACTOR.redact(LINE, "")
    hidden = redaction.before.split('"')[1]
    assert redaction.restore(f'x = "{hidden[:17]}_oak_pine_quartz"\n', whole=True) == f'x = "{RANDOM}"\n'
    assert redaction.restore(f'x = "{hidden}suffix"\n', whole=True) == f'x = "{RANDOM}suffix"\n'


def test_words_of_the_filling_without_their_sign_are_never_seen():
    redaction = REDACTOR.redact(LINE, "")
    for said in ("amber_birch_cedar", "x_oak_pine", "hidden_qqqqqq_amber_birch"):
        for n in range(len(said) + 1):
            assert not any(word in redaction.restore(f'a = "{said[:n]}', whole=False) for word in ("amber", "oak", "hidden_qq"))
        assert redaction.restore(f'a = "{said}"', whole=True).rstrip("x_") == 'a = "'
    assert redaction.restore("amber + birch", whole=True) == "amber + birch"
    assert REDACTOR.redact(LINE, "amber_birch = 1").restore("amber_birch", whole=True) == "amber_birch"


def test_where_the_cursor_touches_a_secret_nothing_that_the_model_says_is_taken():
    for before, after in [(LINE[:-2], LINE[-2:]), (LINE[:20], LINE[20:]), (LINE[:-2], "\n"), (f'connect(token="{RANDOM}', ', user="x")\n')]:
        redaction = REDACTOR.redact(before, after)
        assert (redaction.at_cursor, at_cursor(before, after)) == (True, True)
        assert redaction.restore('birch_cedar"', whole=False) == redaction.restore('birch_cedar"', whole=True) == ""
        assert RANDOM not in redaction.before + redaction.after
    for before, after in [(LINE[:-1], "\n"), (LINE, ""), ("x = ", f"\n{LINE}"), ('token = "', '"\n'), (f'{LINE}x = "', '"\n')]:
        assert (REDACTOR.redact(before, after).at_cursor, at_cursor(before, after)) == (False, False)
    assert at_cursor(f'{LINE}connect("{RANDOM}', '")')  # nothing but the other line says so


def test_of_a_stream_no_half_placeholder_is_seen_and_what_was_seen_stays():
    redaction = REDACTOR.redact(ALL, "")
    answer = f"head {redaction.before}\ntail"
    seen = ""
    for n in range(len(answer) + 1):
        now = redaction.restore(answer[:n], whole=False)
        assert now.startswith(seen)
        assert not any(placeholder.sign[:6] in now for placeholder in redaction.hidden)
        seen = now
    assert redaction.restore(answer, whole=True) == f"head {ALL}\ntail"


def test_a_word_that_only_begins_like_a_placeholder_is_held_back_until_the_end():
    redaction = REDACTOR.redact(LINE, "")
    assert redaction.restore("is_hid", whole=False) == "is_"
    assert redaction.restore("is_hid", whole=True) == "is_hid"
    assert redaction.restore("is_hide", whole=False) == "is_hide"


def test_a_secret_that_the_cursor_stands_in_is_hidden_on_both_sides():
    for at in range(len(LINE) + 1):
        redaction = REDACTOR.redact(LINE[:at], LINE[at:])
        assert (len(redaction.before), len(redaction.after)) == (at, len(LINE) - at)
        assert not any(RANDOM[n : n + 8] in redaction.before + redaction.after for n in range(len(RANDOM) - 8))


def test_the_two_halves_of_a_secret_around_the_cursor_are_two_and_each_is_hidden_elsewhere_too():
    at = LINE.index(RANDOM) + 20
    before, after = LINE[:at], LINE[at:]
    redaction = REDACTOR.redact(before, after)
    assert {hidden.secret for hidden in redaction.hidden} == {RANDOM[:20], RANDOM[20:]}
    assert redaction.before.endswith(next(hidden.text for hidden in redaction.hidden if hidden.secret == RANDOM[:20]))


def test_a_text_that_holds_a_placeholder_already_gets_another_one():
    hidden = REDACTOR.redact(LINE, "").hidden[0]
    redaction = REDACTOR.redact(LINE, f"# {hidden.text}\n")
    assert redaction.hidden[0].sign != hidden.sign
    assert redaction.restore(redaction.after, whole=True) == f"# {hidden.text}\n"


def test_short_passwords_are_hidden_at_their_length():
    redaction = REDACTOR.redact("amqp://a:b3c@h amqp://a:b3cd5@h", "")
    assert "b3c" not in redaction.before
    assert len(redaction.before) == len("amqp://a:b3c@h amqp://a:b3cd5@h")
    assert [hidden.secret for hidden in redaction.hidden] == ["b3cd5"]


def test_more_short_secrets_than_there_are_placeholders_are_all_hidden():
    text = "\n".join(f"amqp://a:{n:04}x@h amqp://a:p{n:03}@h" for n in range(1, 500))
    redaction = REDACTOR.redact(text, "")
    assert not any(f":p{n:03}@" in redaction.before or f":{n:04}x@" in redaction.before for n in range(1, 500))
    signs = [hidden.sign for hidden in redaction.hidden]
    assert len(set(signs)) == len(signs)
    assert not [one for one in signs for other in signs if one != other and one.startswith(other)]


def test_nothing_that_is_printed_shows_a_secret():
    assert RANDOM not in repr(REDACTOR.redact("", "", [LINE]).hidden)


def test_whether_a_place_holds_a_secret_can_be_asked_alone():
    assert has_secret(LINE[:20], LINE[20:])
    assert not has_secret("x = 1", "")


PIECES = st.lists(
    st.one_of(
        st.sampled_from(["".join(shape.example) for shape in shapes.shipped()]),
        st.sampled_from(["\n", " ", '"', "password = ", "hidden_", "zq", "hidden_amber", "\ud800", "-----BEGIN PRIVATE " + "KEY-----\n"]),
        st.text(string.ascii_letters + "=:/@\n'\"", max_size=12),
    ),
    max_size=12,
).map("".join)


@given(PIECES, PIECES, PIECES)
def test_any_text_keeps_its_shape_and_can_be_restored(before, after, other):
    redaction = REDACTOR.redact(before, after, [other])
    for text, shown in ((before, redaction.before), (after, redaction.after), (other, redaction.others[0])):
        assert [len(line) for line in shown.split("\n")] == [len(line) for line in text.split("\n")]
    short = any(last - first < 4 for text in (before + after, other) for first, last in shapes.find(text))
    if not short and after == "" and not redaction.at_cursor:
        assert redaction.restore(redaction.before, whole=True) == before
