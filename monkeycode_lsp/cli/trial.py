"""`monkeycode try`: the real server, three languages, and how fast it was."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.live import Live

from monkeycode_lsp import config, settings
from monkeycode_lsp.cli import answering, editors, endpoint_lines, options, place, terminal, watch
from monkeycode_lsp.cli.options import Chosen
from monkeycode_lsp.cli.samples import SAMPLES, Sample
from monkeycode_lsp.cli.watch import Seen
from monkeycode_lsp.client import Client
from monkeycode_lsp.errors import EngineError

_SLOW = "Still reading; this machine is busy or slow …"


@click.command("try")
@options.engine_options
@click.option("--yes", is_flag=True, help="Download the model without a question.")
def trial(*, yes: bool, **chosen: Any) -> None:
    """See suggestions arrive in Python, TypeScript and Go, from the real server.

    On first use the model is downloaded.  With --url an endpoint answers instead.
    """
    out = terminal.console()
    tree = options.overrides(Chosen(**chosen))
    workspace = place.settings_folder(Path.cwd())
    resolved, problems = settings.load(tree, workspace)
    for problem in problems:
        click.echo(f"Setting {problem}", err=True)
    out.print(answering.prepare(resolved, out, yes=yes, again="monkeycode try --yes", typed_url=bool(chosen["url"])), markup=False)
    asyncio.run(_show_all(tree, workspace, out, typed_url=bool(chosen["url"])))
    for line in _to_keep(tree, workspace):
        out.print(line, markup=False, soft_wrap=True)
    out.print("To have this in your editor:\n", style="bold")
    for editor in editors.here():
        out.print(editors.text(editor), markup=False, soft_wrap=True)


def _to_keep(tree: Mapping[str, Any], workspace: Path) -> Iterator[str]:
    """What an editor has to be told of an endpoint that was named on the command line: nothing of this run is kept."""
    lines = endpoint_lines.of(tree)
    if not lines:
        return
    otherwise, _ = settings.load({}, workspace)
    if otherwise.engine not in {"auto", "remote"}:
        lines = ('engine = "auto"', *lines)
    yield f"For every editor, put this into {settings.user_file()}:\n"
    yield "\n".join(lines) + "\n"


async def _show_all(tree: dict[str, Any], workspace: Path, out: Console, *, typed_url: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="monkeycode-try-") as folder:
        # What becomes of these asks is kept apart: they are ours and not the user's.
        serve = (*watch.SERVE, "--state", str(Path(folder) / "state"))
        async with watch.server(_for_trial(tree, folder), Path(folder) / "log", command=serve, root_uri=workspace.as_uri()) as server:
            seen: list[Seen] = []
            for sample in SAMPLES:
                seen.append(await _show(server, sample, f"{Path(folder).as_uri()}/{sample.file}", out))
                if seen[-1].failed and not any(one.text for one in seen):
                    break  # nor would the others
            notices = watch.messages(server)
    answered = any(one.text for one in seen)
    reason = "" if answered else seen[-1].reason
    answering.tell(notices, besides=reason, typed_url=typed_url)
    if not answered:
        error = EngineError(f"No suggestion came. {reason}", remedy="`monkeycode doctor` looks for the cause.")
        raise answering.in_options(error) if typed_url else error


def _for_trial(tree: dict[str, Any], folder: str) -> dict[str, Any]:
    """The settings of the trial's server: what arrives is shown early, and nothing is recalled from an earlier run."""
    ours = {"completion": {"deadlineMs": watch.DEADLINE_MS}, "cache": {"enabled": True, "directory": folder, "sharedUrl": ""}}
    return config.merge(tree, ours)


async def _show(server: Client, sample: Sample, uri: str, out: Console) -> Seen:
    out.print(sample.title, style="bold", markup=False)
    with _growing(sample, out) as grown:
        seen = await watch.suggestion(server, sample, uri, grown, lambda: out.print(_SLOW, markup=False))
    if seen.failed:
        return seen
    out.print(_picture(sample, seen.text, out), soft_wrap=True)
    out.print(figures(seen), style="green" if seen.text else "yellow", markup=False)
    out.print()
    return seen


@contextmanager
def _growing(sample: Sample, out: Console) -> Iterator[Callable[[str], None]]:
    """A picture that is drawn anew with each longer text, and gone at the end; elsewhere than on a terminal nothing."""
    if not out.is_terminal:
        yield lambda _text: None
        return
    with Live(_picture(sample, "", out), console=out, transient=True, auto_refresh=False) as live:
        yield lambda text: live.update(_picture(sample, text, out), refresh=True)


def _picture(sample: Sample, text: str, out: Console) -> Any:
    return terminal.ghost(sample.before, text, sample.after, sample.language, colours=out.is_terminal)


def figures(seen: Seen) -> str:
    """One line about speed, or why nothing came."""
    if not seen.text:
        return f"No suggestion: {seen.reason}"
    parts = [f"first text after {_ms(seen.first_ms)}", f"whole after {_ms(seen.total_ms)}"]
    if seen.n_tokens is not None:
        speed = f", {seen.tokens_per_second:.1f} tokens/s" if seen.tokens_per_second is not None else ""
        parts.append(f"{seen.n_tokens} tokens{speed}")
    if seen.again_ms is not None:
        parts.append(f"asked again, recalled in {_ms(seen.again_ms)}")
    return " · ".join(parts)


def _ms(ms: float) -> str:
    if ms >= 1000:  # noqa: PLR2004 - a second
        return f"{ms / 1e3:.1f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms"  # noqa: PLR2004 - below, a tenth matters
