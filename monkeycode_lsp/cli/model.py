"""`monkeycode model`: the models that are known, and those that are here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from monkeycode_lsp import folders, settings
from monkeycode_lsp.cli import fetch, options, place, terminal
from monkeycode_lsp.engines.local import convert as conversion
from monkeycode_lsp.engines.local import hardware as processor
from monkeycode_lsp.models import catalogue, gguf, hardware, precision, recommend, resolve
from monkeycode_lsp.models.catalogue import Entry
from monkeycode_lsp.models.precision import PRECISIONS

if TYPE_CHECKING:
    from monkeycode_lsp.models.resolve import Installed

_SHORT = {
    "q2": "q2_k",
    "q3": "q3_k_m",
    "q4": "q4_k_m",
    "q4_k": "q4_k_m",
    "q5": "q5_k_m",
    "q5_k": "q5_k_m",
    "q6": "q6_k",
    "q8": "q8_0",
    "fp16": "f16",
}
"""How people call precisions for short."""
_json_option = click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")


@click.group()
def model() -> None:
    """List, fetch, check, convert and remove models.

    A NAME may be short: `0.5b`, `qwen2.5-coder:1.5b`, `7b q8`.
    """


@model.command("list")
@_json_option
def list_models(*, as_json: bool) -> None:
    """All models of the catalogue, and those that are here."""
    installed = resolve.installed()
    here = {found.name: found for found in installed}
    others = [found for found in installed if found.entry is None]
    if as_json:
        rows = [_row(entry, here.get(entry.id)) for entry in catalogue.entries()]
        _print_json([*rows, *({"id": found.name, "bytes": found.bytes, "path": str(found.path)} for found in others)])
        return
    table = terminal.table("name", "", "size", "file", "licence", "here", whole="name")
    for entry in catalogue.entries():
        about = "" if entry.bytes else "~"
        table.add_row(
            entry.id,
            "default" if entry == catalogue.default() else "",
            entry.size,
            f"{about}{terminal.size(entry.about_bytes)}",
            entry.licence,
            _where(here.get(entry.id)),
        )
    for found in others:
        table.add_row(terminal.plain(found.name), "", "", terminal.size(found.bytes), "", _where(found))
    terminal.console().print(table)


@model.command()
@click.argument("name", required=False, shell_complete=options.known_models)
@click.option("--mirror", default="", metavar="URL", help="A mirror of the hub; the setting local.mirror and HF_ENDPOINT do the same.")
def pull(*, name: str | None, mirror: str) -> None:
    """Fetch a model; without NAME the default one.  Interrupted, it goes on from there the next time."""
    fetch.fetch(catalogue.find(name) if name else catalogue.default(), terminal.console(), mirror=mirror or settings.load()[0].local.mirror)


@model.command()
@click.argument("name", required=False, default="", shell_complete=options.models_here)
def path(*, name: str) -> None:
    """Print the path of a model's file.

    Without NAME it is that of the one that is used in this folder.
    """
    if name:
        click.echo(resolve.resolve(name, called="The argument"))
    else:
        click.echo(resolve.resolve(settings.load(workspace=place.settings_folder(Path.cwd()))[0].local.model))


@model.command()
@click.argument("name", shell_complete=options.models_here)
@click.option("--yes", is_flag=True, help="Without a question.")
def remove(*, name: str, yes: bool) -> None:
    """Delete a model that was fetched.  Files of other programs stay."""
    there = resolve.removable(name)
    if not (yes or click.confirm(f"Remove {', '.join(path.name for path in there.paths) or name} ({terminal.size(there.bytes)})?")):
        return
    removed = resolve.remove(name)
    for gone in removed.paths:
        click.echo(f"Removed {gone}")
    click.echo(f"{terminal.size(removed.bytes)} are free again.")
    if removed.left is not None:
        click.echo(f"{removed.left} belongs to another program and stays.")


@model.command()
@click.argument("source", metavar="SOURCE", shell_complete=options.models_here)
@click.argument("more", nargs=-1, metavar="")
@click.option("--to", "wanted", type=click.Choice(list(PRECISIONS)), default="q8_0", show_default=True, help="The precision of the result.")
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Where it goes; without it, among our models.")
@click.option("--force", is_flag=True, help="Also where it costs quality.")
def convert(*, source: str, more: tuple[str, ...], wanted: str, output: Path | None, force: bool) -> None:
    """Write a model that is here in another precision.

    SOURCE is a NAME or a file.  The result can be faster, and is never better than its source:
    what was rounded away stays away.
    """
    _refuse_words(source, more)
    work = conversion.plan(resolve.resolve(source, called="SOURCE"), wanted, output=output, force=force)
    out = terminal.console()
    out.print(f"From {work.source} ({_precision(work.header)}, {terminal.size(work.header.bytes)}) to {wanted.upper()}.", markup=False)
    if precision.regains_nothing(work.header, wanted):
        out.print("The source has fewer bits: the result can be faster on some processors, not better.", markup=False)
    with terminal.progress(out) as progress:
        # How large it gets is an estimate, which is worth a bar and not a figure.
        told = out.is_terminal
        size = conversion.run(
            work,
            threads=processor.physical_cores(),
            progress=lambda done, total: progress("Writing", done, total if told else None),
        )
        progress("Writing", size, size if told else None)
    out.print(f"{work.target} ({terminal.size(size)})", style="bold", markup=False, soft_wrap=True)
    lines = f"[local]\nmodel = {msgspec.json.encode(_as_setting(work.target)).decode()}"  # such text is the same in TOML
    out.print(f"To use it, put this into {settings.user_file()}:\n\n{lines}", markup=False, soft_wrap=True)


def _refuse_words(source: str, more: Sequence[str]) -> None:
    """Raises `click.UsageError` where a precision stands in the place of a model, or anything after it."""
    for word in (source, *more):
        name = word.lower().replace("-", "_")
        if name in _SHORT or name in PRECISIONS:
            raise click.UsageError(f"{word} is a precision.  Did you mean `--to {_SHORT.get(name, name)}`?")
    if more:
        raise click.UsageError(f"One model at a time: {' '.join(more)} is too much.")


def _precision(header: gguf.Header) -> str:
    kept = precision.main_type(header)
    return f"{header.file_type}, mostly {kept}" if kept and kept != header.file_type else header.file_type or kept


def _as_setting(path: Path) -> str:
    """The file's name where that is enough to find it."""
    return path.name if path.parent == folders.models() else str(path.absolute())


@model.command("recommend")
@_json_option
def recommend_model(*, as_json: bool) -> None:
    """Name the model that suits this machine, and the reason."""
    found = recommend.recommend(hardware.probe())
    if as_json:
        _print_json({"id": found.entry.id, "reason": found.reason, "fits": found.fits})
        return
    out = terminal.console()
    out.print(f"{found.entry.title} ({terminal.size(found.entry.about_bytes)})", style="bold", markup=False)
    out.print(found.reason, markup=False)
    if any(model.entry == found.entry for model in resolve.installed()):
        out.print("It is here.")
    else:
        out.print(f"Fetch it: monkeycode model pull {found.entry.id}", markup=False)


@model.command()
@click.argument("name", required=False, shell_complete=options.models_here)
@click.pass_context
def verify(ctx: click.Context, *, name: str | None) -> None:
    """Compare a model's file with what was published.

    Without NAME all files that are here.
    """
    targets: list[str | Path] = [name] if name else [found.path for found in resolve.installed()]
    out = terminal.console()
    if not targets:
        out.print("No model is here. Fetch one: monkeycode model pull", markup=False)
    ok = True
    for target in targets:
        with terminal.progress(out, step_percent=100) as progress:
            verdict = resolve.verify(target, progress=lambda done, total, progress=progress: progress("Reading", done, total))  # type: ignore[misc]  # a lambda's default has no type
        out.print(verdict.message, style="green" if verdict.ok else "red", markup=False)
        ok = ok and verdict.ok
    ctx.exit(0 if ok else 1)


def _row(entry: Entry, found: Installed | None) -> dict[str, Any]:
    return {
        "id": entry.id, "title": entry.title, "family": entry.family, "parameters": entry.parameters, "quantization": entry.quantization,
        "licence": entry.licence, "repository": entry.repository, "file": entry.file, "bytes": entry.bytes, "sha256": entry.sha256,
        "path": str(found.path) if found else None, "checked": found.checked if found else None,
    }  # fmt: skip


def _where(found: Installed | None) -> str:
    if found is None:
        return "-"
    words = ["yes" if found.checked or found.entry is None else "yes, not checked", *(["another program's file"] if found.in_place else [])]
    return ", ".join(words)


def _print_json(value: Any) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
