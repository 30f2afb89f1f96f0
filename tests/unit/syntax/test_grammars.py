"""Parsing: the same tree however the text is handed over, a limit of time, and nothing of the text kept."""

import gc
import random
import time
import tracemalloc

import pytest

from monkeycode_lsp.syntax import grammars

SOURCES = {
    "python": "class A:\n    def f(self, ä):\n        return {'x': [1, 2, ä]}\n\n\n",
    "typescript": "export class A<T> {\n  f(ä: string) { return `x${ä}`; }\n}\n\n",
    "ruby": "class A\n  def f(x)\n    puts <<~E\n      a #{x}\n    E\n  end\nend\n\n",
    "cpp": 'template <class T> struct A { const char *f() { return R"(ä)"; } };\n\n',
}


@pytest.mark.parametrize("language", SOURCES)
def test_a_text_that_is_handed_over_in_pieces_gives_the_tree_of_the_whole(language):
    pytest.importorskip("tree_sitter")
    import tree_sitter  # noqa: PLC0415 - it may not be there

    known = grammars.grammar(language)
    if known is None:
        pytest.skip(f"no grammar for {language}")
    text = SOURCES[language] * (400_000 // len(SOURCES[language]))
    whole = tree_sitter.Parser(known).parse(text.encode())
    found = grammars.parse(text, language, within_ms=60_000)
    assert str(found.root_node) == str(whole.root_node)
    assert [child.byte_range for child in found.root_node.children] == [child.byte_range for child in whole.root_node.children]


def test_nothing_of_a_text_is_kept_when_its_tree_has_gone():
    """The library keeps what a function gives it to read; a server parses at every ask."""
    text = SOURCES["python"] * 1_000
    assert grammars.parse(text, "python", within_ms=60_000) is not None
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(20):
            grammars.parse(text, "python", within_ms=60_000)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < len(text) * 3
    finally:
        tracemalloc.stop()


def test_words_without_any_structure_are_given_up_in_time_and_the_next_text_is_parsed():
    draw = random.Random(1)  # noqa: S311 - the same words every time
    text = " ".join(draw.choices(["lorem", "if", "(", "{", "}", "=", "<", ",", "'", "1"], k=100_000))
    started = time.thread_time()
    assert grammars.parse(text, "javascript", within_ms=20) is None
    assert time.thread_time() - started < 1
    assert str(grammars.parse("x", "javascript").root_node) == "(program (expression_statement (identifier)))"


@pytest.mark.parametrize("language", ["", "unheard-of", "plaintext"])
def test_a_language_without_a_grammar_has_no_tree(language):
    assert grammars.parse("x = 1\n", language) is None
