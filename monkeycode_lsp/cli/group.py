"""A command group that knows its commands by name and one line each, and imports one only when it is run."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import IO, Any

import click
import msgspec
from click.shell_completion import CompletionItem

from monkeycode_lsp.errors import MonkeyCodeError


class Lazy(msgspec.Struct, frozen=True):
    """Where a command is, and what `--help` says of it."""

    place: str
    """`module:attribute`"""
    summary: str

    def load(self) -> click.Command:
        module, _, attribute = self.place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command


class Failure(click.ClickException):
    """An error of ours, shown as a sentence and its remedy instead of a traceback."""

    def __init__(self, error: MonkeyCodeError) -> None:
        super().__init__(error.message)
        self.remedy = error.remedy

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"Error: {self.message}", file=file, err=file is None)
        if self.remedy:
            click.echo(self.remedy, file=file, err=file is None)


class Group(click.Group):
    """See the module."""

    def __init__(self, *args: Any, lazy: Mapping[str, Lazy], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        lazy = self._lazy.get(cmd_name)
        return lazy.load() if lazy else None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MonkeyCodeError as exc:
            raise Failure(exc) from exc
        except BrokenPipeError:
            raise  # who reads our output has seen enough
        except OSError as exc:
            where = f"{exc.filename}: " if exc.filename else ""
            raise Failure(MonkeyCodeError(f"{where}{exc.strerror or exc}.")) from exc

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.summary) for name, lazy in self._lazy.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=lazy.summary) for name, lazy in self._lazy.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)
