"""The machine's package client, as the user is told to use it."""

from __future__ import annotations

import shlex
import sys

from monkeycode_lsp.models import package_client


def test_the_line_names_the_interpreter_in_use():
    line = package_client.install_line("prebuilt", pip=lambda: True, windows=False)
    assert line == f"{shlex.quote(sys.executable)} -m pip install 'monkeycode-lsp[prebuilt]'"


def test_without_pip_it_is_uv_for_the_same_interpreter():
    line = package_client.install_line("ws", pip=lambda: False, which=lambda _name: "/bin/uv", windows=False)
    assert line == f"/bin/uv pip install --python {shlex.quote(sys.executable)} 'monkeycode-lsp[ws]'"


def test_on_windows_quotes_are_double():
    assert package_client.install_line("ws", pip=lambda: True, windows=True).endswith('-m pip install "monkeycode-lsp[ws]"')
