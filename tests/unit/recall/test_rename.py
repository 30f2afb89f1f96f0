"""Other names for the same text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monkeycode_lsp.recall import rename
from monkeycode_lsp.recall.shape import KEYWORDS, LONGEST, lexed

USER = [("user", "page"), ("users", "pages")]


@pytest.mark.parametrize(
    ("pairs", "text", "expected"),
    [
        (USER, "user.users(users[user])", "page.pages(pages[page])"),
        (USER, "get_user(user_id, USER_LIMIT, UserView, myUsers)", "get_page(page_id, PAGE_LIMIT, PageView, myPages)"),
        (USER, "'user' + \"users\" + `user` + user", "'user' + \"users\" + `user` + page"),
        (USER, '"""The user\n\nof users"""\nuser', '"""The user\n\nof users"""\npage'),
        (USER, "superuser reuser u", "superuser reuser u"),
        ([("get_user", "get_page")], "user = get_user(user_id)", "page = get_page(page_id)"),
        ([("a", "b")], "a_1 = a + an", "a_1 = b + an"),
        ([("a", "b"), ("b", "a")], "a - b", "b - a"),
        ([("a_user", "a_page"), ("b_user", "b_node")], "user = a_user", "user = a_page"),
        ([("i", "j")], "if i in it: in_i = 1", "if j in it: in_i = 1"),
        ([("HTTPServer", "HTTPClient")], "make_http_server(HTTP_SERVER)", "make_http_client(HTTP_CLIENT)"),
    ],
)
def test_whole_names_and_their_words_are_renamed(pairs, text, expected):
    assert rename.renamed(text, rename.between(pairs)) == expected


@pytest.mark.parametrize("pairs", [[("a", "b"), ("a", "c")], [("a", "c"), ("b", "c")], [("a", "a"), ("b", "a")]])
def test_names_must_be_one_to_one(pairs):
    assert rename.between(pairs) is None


def test_two_names_never_become_one():
    assert rename.renamed("user + page", rename.between(USER)) is None


names = st.from_regex(r"[a-z]{1,3}(_[a-z]{1,3})?", fullmatch=True).filter(lambda name: name not in KEYWORDS)
strings = st.from_regex(r'"[a-z_ ]{0,8}"|\'[a-z_ ]{0,8}\'', fullmatch=True)
keywords = st.sampled_from(sorted(KEYWORDS))
code = st.lists(names | strings | keywords | st.sampled_from(["\n", "(", ")", " = ", ".", "1"]), max_size=20).map(" ".join)


@given(st.dictionaries(names, names, max_size=4), code)
def test_renaming_changes_no_string_no_keyword_and_no_shape(pairs, text):
    renaming = rename.between(pairs.items())
    changed = rename.renamed(text, renaming) if renaming is not None else None
    if changed is None:
        return
    assert re.findall(r"\"[^\"]*\"|'[^']*'", changed) == re.findall(r"\"[^\"]*\"|'[^']*'", text)
    for old, new in zip(text.split("\n"), changed.split("\n"), strict=True):
        one, other = lexed(old), lexed(new)
        assert (one is None) == (other is None)
        if one is not None:
            assert [word for word in one.shape if word in KEYWORDS] == [word for word in other.shape if word in KEYWORDS]
            assert len(set(one.names)) == len(set(other.names)) or one.shape != other.shape


def test_lines_have_the_shape_of_their_tokens():
    one = lexed("    for user in users[1:]:  ")
    assert (one.indent, one.names, one.text) == ("    ", ("user", "users"), "for user in users[1:]:")
    assert one.key == lexed("for a in b[20:]:").key
    assert one.key != lexed("for a in b(20):").key
    assert lexed("x = 'it is'").shape == lexed('y = "other"').shape
    assert lexed("") is lexed("   \t") is lexed("x" * (LONGEST + 1)) is None
