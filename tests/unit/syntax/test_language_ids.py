"""What editors call languages, and what they are called here."""

import pytest

from monkeycode_lsp.documents import Documents
from monkeycode_lsp.index import languages
from monkeycode_lsp.symbols.shapes import SHAPES
from monkeycode_lsp.syntax import grammars, language_ids


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("sh", "shellscript"), ("zsh", "shellscript"), ("bash", "shellscript"), ("bash-ts", "shellscript"), ("cs", "csharp"), ("c-sharp", "csharp"),
        ("csharp-ts-mode", "csharp"), ("c++", "cpp"), ("js", "javascript"), ("jsx", "javascriptreact"), ("javascript.jsx", "javascriptreact"),
        ("ts", "typescript"), ("tsx", "typescriptreact"), ("tsx-ts", "typescriptreact"), ("typescript", "typescript"), ("py", "python"),
        ("Python", "python"), ("rb", "ruby"), ("yml", "yaml"), ("objc", "objective-c"), ("make", "makefile"), ("gitcommit", "git-commit"),
        ("", ""), ("brainfuck", "brainfuck"), ("cpp", "cpp"),
    ],
)  # fmt: skip
def test_one_language_has_one_identifier(said, meant):
    assert language_ids.canonical(said) == meant
    documents = Documents()
    documents.open("file:///w/a", said, 1, "x")
    assert documents.snapshot("file:///w/a", 0, 0).language == meant


def test_what_is_known_by_its_identifier_keeps_it():
    known = (set(grammars.LANGUAGES) | set(SHAPES) | set(languages._ENDINGS)) - {"bash"}  # an alias in those tables
    assert {language: language_ids.canonical(language) for language in known} == {language: language for language in known}
