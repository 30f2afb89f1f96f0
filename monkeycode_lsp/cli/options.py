"""Options that several commands share, and the settings that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, get_args, get_type_hints

import click
import msgspec

from monkeycode_lsp import config

F = TypeVar("F", bound=Callable[..., Any])

ENGINES: tuple[str, ...] = get_args(get_type_hints(config.Config)["engine"])
LOG_LEVELS: tuple[str, ...] = get_args(get_type_hints(config.Config)["log_level"])


class Chosen(msgspec.Struct, frozen=True):
    """What the user said about the engine on the command line."""

    engine: str | None = None
    url: str = ""
    model: str = ""
    api_key_env: str = ""
    settings: tuple[str, ...] = ()
    """Each `path=value`."""


def known_models(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """For a shell: the names of the catalogue."""
    from monkeycode_lsp.models import catalogue  # noqa: PLC0415 - only when a shell asks

    return [entry.id for entry in catalogue.entries() if entry.id.startswith(incomplete)]


def models_here(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """For a shell: the names of the models that are here."""
    from monkeycode_lsp.models import resolve  # noqa: PLC0415 - only when a shell asks

    return [found.name for found in resolve.installed() if found.name.startswith(incomplete)]


def setting_paths(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """For a shell: `completion.maxTokens=` and so on."""
    return [f"{path}=" for path in _paths(config.Config, "") if path.startswith(incomplete)]


def _paths(struct: type[msgspec.Struct], above: str) -> Iterator[str]:
    for name, field in config.fields(struct).items():
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from _paths(field.type, f"{above}{name}.")
        else:
            yield f"{above}{name}"


def setting_option(command: F) -> F:
    """`--setting PATH=VALUE`, any number of times."""
    return click.option(
        "--setting", "settings", multiple=True, metavar="PATH=VALUE", shell_complete=setting_paths,
        help="A setting for this run, such as completion.maxTokens=48; can be repeated. See `monkeycode config show`.",
    )(command)  # fmt: skip


def engine_option(command: F) -> F:
    """`--engine KIND`."""
    return click.option("--engine", type=click.Choice(ENGINES), help="Which engine answers; without it, what the settings say.")(command)


def engine_options(command: F) -> F:
    """Everything that chooses an engine; the values make a `Chosen`."""
    options = (
        engine_option,
        click.option("--url", default="", metavar="URL", help="An endpoint that completes code, such as http://127.0.0.1:8000."),
        click.option(
            "--model",
            default="",
            metavar="NAME|PATH",
            shell_complete=known_models,
            help="A model of the catalogue, a GGUF file, or a model of the endpoint.",
        ),
        click.option("--api-key-env", default="", metavar="NAME", help="The environment variable that holds the endpoint's key."),
        setting_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


def overrides(chosen: Chosen) -> dict[str, Any]:
    """The tree of settings that `chosen` stands for.  Raises `click.UsageError` for what cannot be meant."""
    tree: dict[str, Any] = {}
    if chosen.url:
        if chosen.engine not in {None, "auto", "remote"}:
            raise click.UsageError(f"--url is for a remote engine, and --engine says {chosen.engine}.")
        endpoint = {"url": chosen.url, "model": chosen.model, "apiKeyEnv": chosen.api_key_env}
        tree = {"engine": "remote", "remote": {"endpoints": [endpoint]}}
    elif chosen.api_key_env:
        raise click.UsageError("--api-key-env belongs to --url.")
    elif chosen.model and chosen.engine == "remote":
        raise click.UsageError("With a remote engine --model belongs to --url.")
    elif chosen.model:
        tree = {"engine": chosen.engine or "local", "local": {"model": chosen.model}}
    elif chosen.engine:
        tree = {"engine": chosen.engine}
    return config.merge(tree, settings_tree(chosen.settings))


def settings_tree(pairs: Sequence[str]) -> dict[str, Any]:
    """`("completion.maxTokens=48",)` → `{"completion": {"maxTokens": "48"}}`; lists and groups are JSON."""
    tree: dict[str, Any] = {}
    for pair in pairs:
        path, equals, text = pair.partition("=")
        if not equals or not path.strip():
            raise click.UsageError(f"--setting wants PATH=VALUE, such as completion.maxTokens=48, and not {pair!r}.")
        value: Any = text
        if text[:1] in "[{" and text:
            try:
                value = msgspec.json.decode(text)
            except msgspec.DecodeError as exc:
                raise click.UsageError(f"--setting {path}: the value is not JSON ({exc}).") from exc
        for key in reversed(path.strip().split(".")):
            value = {key: value}
        tree = config.merge(tree, value)
    _, problems = config.decode(tree)
    if problems:
        raise click.UsageError("--setting " + "\n".join(problems))
    return tree
