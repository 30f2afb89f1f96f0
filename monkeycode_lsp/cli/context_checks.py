"""What `monkeycode doctor` says of the quality of suggestions: what the model can be told, what is private, and whether it says how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from monkeycode_lsp import config
from monkeycode_lsp.cli import cache, indexes, place
from monkeycode_lsp.cli.endpoint_report import EndpointReport
from monkeycode_lsp.cli.finding import Finding, State
from monkeycode_lsp.context.ignores import IgnoreFile
from monkeycode_lsp.context.policy import in_words
from monkeycode_lsp.engines import choose
from monkeycode_lsp.engines.remote import dialects
from monkeycode_lsp.index import kept
from monkeycode_lsp.models import package_client
from monkeycode_lsp.privacy import reading
from monkeycode_lsp.syntax import grammars

_ALL = "so everything is shown"
_SINCE = {"vllm": "vllm (from 0.14 on)"}
_ALIKE = frozenset({"bash", "javascriptreact", "typescriptreact"})
"""Other names of languages that are told."""


def look(settings: config.Config, folder: Path) -> list[Finding]:
    """Grammars, the index and the ignore files of a folder.  Blocking."""
    return [check_grammars(), check_index(settings.context, folder), check_ignore_files(settings.privacy, folder)]


def check_grammars() -> Finding:
    """Of which languages the structure is understood."""
    told = sorted(grammars.LANGUAGES - _ALIKE)
    here = [language for language in told if grammars.grammar(language) is not None]
    missing = [language for language in told if language not in here]
    found = f"for {', '.join(here)}" if here else "none"
    if not missing:
        return Finding("grammars", State.OK, found)
    found += f"; none for {', '.join(missing)}: there brackets and indents are all that is checked, and no definitions are found"
    return Finding("grammars", State.NOTE if here else State.WARNING, found, package_client.install_line("languages"))


def check_index(settings: config.Context, folder: Path) -> Finding:
    """What is known of the other files of the workspace that a folder lies in."""
    if not settings.index:
        return Finding("index", State.NOTE, f"off: {indexes.OFF}")
    workspace = place.workspace(folder / "any")
    database = indexes.database(workspace)
    if not database.is_file():
        return Finding("index", State.NOTE, f"none of {workspace} yet: it is made when an editor opens that folder")
    found = kept.look(database)
    if found is None:
        words = f"that of {workspace} cannot be read ({database}): it is damaged, just being made, or of another version"
        return Finding("index", State.WARNING, words, "Open that folder in your editor: it is made anew there.")
    amount = f"{_number(found.files, 'file')}, {_number(found.symbols, 'definition')}, {cache.size(kept.n_bytes(database))}"
    return Finding("index", State.OK, f"of {workspace}: {amount}; in {database}")


def check_ignore_files(settings: config.Privacy, folder: Path) -> Finding:
    """Those that count for files of one folder."""
    subject = "ignore files"
    try:
        found = reading.look(folder / "any", place.workspace(folder / "any"), settings.ignore_files, {}).files
    except (OSError, ValueError) as exc:
        return Finding(subject, State.BROKEN, f"cannot be read: {exc}", "Make this folder readable: until then nothing in it is served.")
    broken = [f"{path}: {in_words(read.file)}" for path, read in found.items() if read.file.fault is not None]
    if broken:
        return Finding(subject, State.BROKEN, "\n".join(broken), "Mend it: until then nothing below its folder is served.")
    if not found:
        return Finding(subject, State.NOTE, "none here: a file .monkeycodeignore says what no model sees")
    return Finding(subject, State.OK, "\n".join(f"{path}: {_patterns(read.file)}" for path, read in found.items()))


def _patterns(file: IgnoreFile) -> str:
    kind = "no model sees them, or only one on this machine" if file.is_private else "not quoted in other files"
    return f"{_number(len(file.rules), 'pattern')} ({kind})"


def _number(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def check_silence(kind: choose.Kind, settings: config.Config, runtime: str, endpoints: Sequence[EndpointReport]) -> list[Finding]:
    """Whether the engine says how sure it is, so that what is unlikely can be kept quiet.  `runtime`: the kind of the local one."""
    if settings.completion.silence == "off":
        return [Finding("silence", State.NOTE, f"off: `completion.silence`, {_ALL}")]
    if kind == "local" and runtime:
        return [_silence("the compiled engine" if runtime == "native" else "the prebuilt engine", tells=runtime == "native")]
    apis = list(dict.fromkeys(endpoint.api for endpoint in endpoints if endpoint.api)) if kind == "remote" else []
    return [_silence_of(apis)] if apis else []


def _silence_of(apis: Sequence[str]) -> Finding:
    told = [dialects.by_name(api) for api in apis]
    mute = [dialect.name for dialect in told if not dialect.confidence]
    return _silence(" and ".join(mute or (_SINCE.get(api, api) for api in apis)), tells=not mute)


def _silence(who: str, *, tells: bool) -> Finding:
    if tells:
        return Finding("silence", State.OK, f"{who}: what the model itself holds for unlikely is not shown while you type")
    return Finding("silence", State.NOTE, f"{who}: how sure the model is, is not told, {_ALL}")
