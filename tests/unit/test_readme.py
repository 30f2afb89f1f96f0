"""What the README says is what the product says."""

import os
import re
from pathlib import Path

import pytest

from monkeycode_lsp.cli import COMMANDS, editors, reference

README = Path(__file__).parents[2] / "README.md"
BEGIN, END = "<!-- settings:begin -->\n", "<!-- settings:end -->"


@pytest.fixture
def text():
    return README.read_text(encoding="utf-8")


def test_the_settings_table_is_the_one_of_the_settings(text):
    """`UPDATE_README=1 pytest tests/unit/test_readme.py` writes it anew."""
    head, rest = text.split(BEGIN)
    shown, tail = rest.split(END)
    if os.environ.get("UPDATE_README"):
        README.write_text(head + BEGIN + reference.table() + END + tail, encoding="utf-8")
    else:
        assert shown == reference.table()


@pytest.mark.parametrize("editor", editors.EDITORS, ids=lambda editor: editor.name)
def test_the_lines_to_paste_are_the_ones_that_the_commands_print(text, editor):
    assert f"```{editor.language}\n{editor.lines}```" in text


def test_every_command_is_named(text):
    named = set(re.findall(r"^\| `monkeycode (\w+)", text, flags=re.MULTILINE))
    assert named == set(COMMANDS)


def test_both_commands_of_the_first_screen_are_there(text):
    first_screen = text.split("## In your editor")[0]
    assert "pip install '.[prebuilt]' && monkeycode try --yes\n" in first_screen
    assert "pip install '.[prebuilt,test]' && pytest\n" in first_screen
