"""`monkeycode config`: the settings as they are, what they may be, and where they are read from."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from monkeycode_lsp import config as tree
from monkeycode_lsp import settings
from monkeycode_lsp.cli import place, terminal
from monkeycode_lsp.cli import schema as schemas

_HIDDEN = "•••"
_PASSWORD = re.compile(r"(?<=://)[^/@\s]*@")
_QUERY = re.compile(r"(?<=[?&])([^=&\s]+)=[^&\s]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@click.group()
def config() -> None:
    """Show the settings, their schema and their files."""


@config.command()
@click.option("--json", "as_json", is_flag=True, help="The whole tree as JSON.")
@click.option("--all", "everything", is_flag=True, help="Those too that are at their default.")
def show(*, as_json: bool, everything: bool) -> None:
    """The settings that hold in this folder.  What an editor sends comes on top.  Keys are not shown."""
    resolved, problems = settings.load(workspace=place.settings_folder(Path.cwd()))
    plain = masked(msgspec.to_builtins(resolved))
    for problem in problems:
        click.echo(f"Setting {problem}", err=True)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode())
        return
    defaults = dict(leaves(masked(msgspec.to_builtins(tree.Config()))))
    origins = _origins()
    table = terminal.table("setting", "value", "from", whole="setting")
    for path, value in leaves(plain):
        is_default = path in defaults and defaults[path] == value
        if everything or not is_default:
            table.add_row(path, terminal.plain(_text(value)), "default" if is_default else _origin(path, origins))
    out = terminal.console()
    if table.row_count:
        out.print(table)
    else:
        out.print("Everything is at its default; `monkeycode config show --all` shows it.", markup=False)


@config.command()
def schema() -> None:
    """The JSON Schema of all settings, with what they mean."""
    click.echo(msgspec.json.format(msgspec.json.encode(schemas.describe()), indent=2).decode())


@config.command("path")
def show_path() -> None:
    """The files that settings are read from."""
    for what, file in _files().items():
        click.echo(f"{what}: {file}" + ("" if file.is_file() else " (does not exist)"))


def masked(value: Any, key: str = "") -> Any:
    """`value` without keys, passwords and headers."""
    if isinstance(value, Mapping):
        return {name: (dict.fromkeys(item, _HIDDEN) if name == "headers" else masked(item, name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item, key) for item in value]
    if isinstance(value, str):
        if key == "apiKey" and value:
            return _HIDDEN
        return _QUERY.sub(rf"\1={_HIDDEN}", _PASSWORD.sub(f"{_HIDDEN}@", value)) if "://" in value else value
    return value


def leaves(node: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """`("completion.maxTokens", 96)` and so on."""
    for key, value in node.items():
        if isinstance(value, Mapping):
            yield from leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _files() -> dict[str, Path]:
    return {"user": settings.user_file(), "workspace": place.settings_folder(Path.cwd()) / settings.WORKSPACE_FILE}


def _origins() -> list[tuple[str, set[str]]]:
    """Where a setting may come from and which paths are there, the strongest first."""
    workspace, _ = tree.without_workspace_secrets(_read(_files()["workspace"]))
    return [
        ("", {path for path, _ in leaves(tree.from_environment(os.environ))}),
        (str(_files()["workspace"]), {path for path, _ in leaves(workspace)}),
        (str(_files()["user"]), {path for path, _ in leaves(_read(_files()["user"]))}),
    ]


def _origin(path: str, origins: list[tuple[str, set[str]]]) -> str:
    for name, paths in origins:
        if any(path == there or path.startswith(f"{there}.") for there in paths):
            return name or "MONKEYCODE_" + _HUMP.sub("_", path).replace(".", "_").upper()
    return ""


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # `settings.load` has said so


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value else msgspec.json.encode(value).decode()
