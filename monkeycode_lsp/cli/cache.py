"""`monkeycode cache`: what is kept of earlier suggestions and of workspaces, where, and how to be rid of it."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec
from rich.text import Text

from monkeycode_lsp import config, settings
from monkeycode_lsp.cli import indexes, place, stored, terminal
from monkeycode_lsp.errors import StorageError
from monkeycode_lsp.recall import disk

_COLUMN = 10
_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
_STILL_KNOWN = "Open editors still know what they had in memory: their command monkeycode.forget ends that, or a restart."


class Shown(msgspec.Struct, frozen=True, rename="camel"):
    """What `--json` prints."""

    disk: stored.OnDisk
    ttl_seconds: int
    most_bytes: int
    team: stored.Team | None
    index: indexes.OnDisk


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
@click.pass_context
def cache(ctx: click.Context, *, as_json: bool) -> None:
    """Show where suggestions are kept for later, how many, and whether that is in order; and what the index of workspaces takes.

    Exit code 1: it is not, and suggestions come without it.
    """
    if ctx.invoked_subcommand:
        if as_json:
            raise click.UsageError("--json goes with `monkeycode cache` alone.")
        return
    chosen = _settings()
    on_disk, team, index = stored.on_disk(chosen.cache), stored.team(chosen.cache), indexes.on_disk(chosen.context)
    if as_json:
        shown = Shown(on_disk, chosen.cache.disk_ttl_seconds, chosen.cache.disk_bytes, team, index)
        click.echo(msgspec.json.format(msgspec.json.encode(shown), indent=2).decode())
    else:
        _tell([*_disk_rows(on_disk, chosen.cache), *_team_rows(team, chosen.cache), ("index", _index(index))])
    ctx.exit(1 if on_disk.trouble or (team is not None and team.trouble) else 0)


@cache.command()
@click.option("--yes", is_flag=True, help="Without a question.")
def clear(*, yes: bool) -> None:
    """Remove what is kept on this machine's disk: suggestions, and the index of workspaces.

    Editors may be open; the index of a workspace that one has open is left.  The team's cache is left as it is.
    """
    chosen = _settings()
    folder, kept, index = disk.folder(chosen.cache.directory), stored.on_disk(chosen.cache), indexes.on_disk(chosen.context)
    has_suggestions = bool(kept.bytes or (kept.trouble and folder.exists()))
    if not has_suggestions and not index.workspaces:
        click.echo(f"Nothing is kept in {folder}.")
        return
    parts = []
    if has_suggestions:
        what = f"{_number(kept.suggestions)} ({size(kept.bytes)})" if kept.suggestions else "what is kept"
        parts.append(f"{what} from {folder}")
    if index.workspaces:
        parts.append(f"the index of {_workspaces(index.workspaces)} ({size(index.bytes)}) from {index.folder}")
    if not (yes or _agreed(f"Remove {' and '.join(parts)}?")):
        return
    if has_suggestions:
        n_bytes = _remove(folder)
        click.echo(f"Removed {_number(kept.suggestions) if kept.suggestions else 'what was kept'}; {size(n_bytes)} are free again.")
        click.echo(_STILL_KNOWN)
    if index.workspaces:
        _remove_index(Path(index.folder))


def amount(found: stored.OnDisk) -> str:
    """How many, how large and how old."""
    if not found.suggestions:
        return "nothing" + (f" ({size(found.bytes)})" if found.bytes else "")
    parts = [_number(found.suggestions), size(found.bytes)]
    if found.expired:
        parts.insert(1, f"{found.expired} of them out of date")
    if found.oldest_seconds is not None and found.newest_seconds is not None:
        newest, oldest = span(found.newest_seconds), span(found.oldest_seconds)
        parts.append(f"{oldest} old" if newest == oldest else f"{newest} to {oldest} old")
    return ", ".join(parts)


def team_found(found: stored.Team) -> str:
    """Where it is, and whether it answers or why not."""
    if found.trouble:
        return f"{found.address} {found.trouble}".strip()
    return f"{found.address} answers in {found.answer_ms:.1f} ms" if found.answer_ms is not None else f"{found.address}, off: {found.off}"


def size(n_bytes: int) -> str:
    """For people, small ones too."""
    if n_bytes < 1_000:  # noqa: PLR2004 - a kilobyte
        return f"{n_bytes} bytes"
    return f"{n_bytes / 1e3:.0f} kB" if n_bytes < 1_000_000 else terminal.size(n_bytes)  # noqa: PLR2004 - a megabyte


def span(seconds: float, *, exact: bool = False) -> str:
    """`6 days`: cut off to whole units, the largest that fits or, `exact`, the largest that loses nothing."""
    whole = int(seconds)
    unit, length = next((one for one in _UNITS if whole >= one[1] and not (exact and whole % one[1])), _UNITS[-1])
    n = whole // length
    return f"{n} {unit}{'' if n == 1 else 's'}"


def _disk_rows(found: stored.OnDisk, chosen: config.Cache) -> list[tuple[str, str]]:
    limits = f"{span(chosen.disk_ttl_seconds, exact=True)} (cache.diskTtlSeconds), {size(chosen.disk_bytes)} (cache.diskBytes)"
    state = _with_remedy(found.trouble, found.remedy) if found.trouble else f"off: {found.off}" if found.off else "in order"
    return [("folder", found.folder), ("kept", amount(found)), ("limits", limits), ("state", state)]


def _team_rows(found: stored.Team | None, chosen: config.Cache) -> list[tuple[str, str]]:
    if found is None:
        return [("team", "none (cache.sharedUrl)")]
    words = _with_remedy(team_found(found), found.remedy)
    if found.answer_ms is not None:
        words += f"; kept there for {span(chosen.shared_ttl_seconds, exact=True)} (cache.sharedTtlSeconds)"
    return [("team", words)]


def _with_remedy(found: str, remedy: str) -> str:
    return f"{found}\n→ {remedy}" if remedy else found


def _index(found: indexes.OnDisk) -> str:
    kept = f"{_workspaces(found.workspaces)}, {size(found.bytes)}; in {found.folder}" if found.workspaces else "nothing"
    return f"{kept}; off: {found.off}" if found.off else kept


def _settings() -> config.Config:
    resolved, problems = settings.load(workspace=place.settings_folder(Path.cwd()))
    for problem in problems:
        click.echo(f"Setting {problem}", err=True)
    return resolved


def _number(n: int) -> str:
    return f"{n} suggestion{'' if n == 1 else 's'}"


def _workspaces(n: int) -> str:
    return f"{n} workspace{'' if n == 1 else 's'}"


def _agreed(question: str) -> bool:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise StorageError("Nothing was removed: nobody is here to agree.", remedy="Run it with --yes.")
    return click.confirm(question)


def _remove(folder: Path) -> int:
    """The bytes that are free again.  Raises `StorageError`."""
    try:
        from monkeycode_lsp.recall import disk_care  # noqa: PLC0415 - a Python may be without SQLite
    except ImportError as exc:
        raise StorageError(f"This Python cannot read what is kept ({exc}).", remedy="Install it with SQLite.") from exc
    try:
        return disk_care.clear(folder)
    except disk_care.TROUBLES as exc:
        what, remedy = stored.words(exc, folder)
        raise StorageError(f"Nothing was removed. {what}", remedy=remedy) from exc


def _remove_index(folder: Path) -> None:
    """Raises `StorageError`."""
    from monkeycode_lsp.index import kept  # noqa: PLC0415 - as above

    try:
        cleared = kept.clear(folder)
    except OSError as exc:
        raise StorageError(f"The index in {folder} cannot be removed: {exc.strerror or exc}.", remedy="Make it writable.") from exc
    if cleared.workspaces:
        click.echo(f"Removed the index of {_workspaces(cleared.workspaces)}; {size(cleared.bytes)} are free again.")
    if cleared.held:
        click.echo(f"Left the index of {_workspaces(cleared.held)} that editors have open: close them, and run this again.")


def _tell(rows: list[tuple[str, str]]) -> None:
    out = terminal.console()
    for name, words in rows:
        lines = Text(words).wrap(out, out.width - _COLUMN)
        for line in lines:
            line.rstrip()
        for head, line in zip([name, *[""] * (len(lines) - 1)], lines, strict=True):
            out.print(Text.assemble((f"{head:<{_COLUMN}}", "bold"), line))
