"""Which family a model belongs to: by the user's word, else by its vocabulary, else by its name.

A vocabulary is proof, a name is a guess: where both are known, the name only tells apart
families whose markers are spelt alike.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

import msgspec

from monkeycode_lsp.config import Template
from monkeycode_lsp.errors import ConfigError
from monkeycode_lsp.prompt.families import FAMILIES
from monkeycode_lsp.prompt.family import Family, Files, Markers

_OTHERS = re.compile(r"[\s_:,@]+")


def by_name(model_name: str) -> Family | None:
    """By a model's name, path or tag: `org/Name-7B-GGUF:Q4_K_M`, `qwen2.5-coder:7b`, `/models/deepseek-coder.Q4.gguf`."""
    name = _normal(model_name)
    return next((family for family in FAMILIES if family.names and re.search(family.names, name)), None)


def _normal(model_name: str) -> str:
    # Folders say nothing about the model: a folder `starcoder` may hold anything.
    last = re.split(r"[/\\]", model_name.strip().rstrip("/\\"))[-1]
    return _OTHERS.sub("-", last.lower())


def by_vocabulary(markers: Markers, *, architecture: str, name: str) -> Family | None:
    """By the fill-in-the-middle tokens that the vocabulary holds; None: it has none, or not all that are needed."""
    if not (markers.prefix and markers.suffix):
        return None
    alike = [family for family in FAMILIES if _spelt_alike(family.markers, markers)]
    if not alike:
        return _generic(markers) if markers.middle else None
    normal = _normal(name)
    named = [family for family in alike if family.names and re.search(family.names, normal)]
    built = [family for family in alike if architecture and architecture in family.architectures]
    files = [family for family in alike if markers.separator and markers.separator == family.markers.separator]
    chosen = next(iter([*named, *built, *files]), None)
    if chosen is None:
        chosen = alike[0] if len(alike) == 1 else _generic(markers)
    return msgspec.structs.replace(chosen, markers=_filled(chosen.markers, markers))


def _spelt_alike(known: Markers, found: Markers) -> bool:
    return known.prefix == found.prefix and known.suffix == found.suffix and known.middle in {"", found.middle}


def _filled(known: Markers, found: Markers) -> Markers:
    """What we know of the family, and the vocabulary's word where that is silent."""
    return Markers(
        prefix=known.prefix,
        suffix=known.suffix,
        middle=known.middle,
        pad=known.pad or found.pad,
        repository=known.repository or found.repository,
        separator=known.separator or found.separator,
    )


def _generic(markers: Markers) -> Family:
    """A family that we do not know, asked in the order that most were taught."""
    files = Files(each="{comment}\n{text}\n", inside=True)
    if markers.separator:
        head = "{REPO}{repository}\n" if markers.repository else ""
        files = Files(head=head, each="{SEP}{path}\n{text}\n", current="{SEP}{path}\n")
    texts = msgspec.structs.astuple(markers)
    return Family(name="generic", markers=markers, files=files, stop=tuple(text for text in texts if text))


def markers_in(has: Callable[[str], bool]) -> Markers:
    """The markers of the first spelling that a vocabulary has; `has` tells whether a text is one of its control tokens."""
    for known in dict.fromkeys(family.markers for family in FAMILIES):
        needed = [text for text in (known.prefix, known.suffix, known.middle) if text]
        if all(has(text) for text in needed):
            return Markers(
                prefix=known.prefix,
                suffix=known.suffix,
                middle=known.middle,
                pad=_first(has, [family.markers.pad for family in FAMILIES]),
                repository=_first(has, [family.markers.repository for family in FAMILIES]),
                separator=_first(has, [family.markers.separator for family in FAMILIES]),
            )
    return Markers()


def _first(has: Callable[[str], bool], texts: list[str]) -> str:
    return next((text for text in texts if text and has(text)), "")


def by_setting(setting: str | Template, detected: Family | None) -> Family | None:
    """What the user asks for in `template`; `auto` leaves it to what was detected."""
    if isinstance(setting, Template):
        return _custom(setting)
    wanted = setting.strip().lower()
    if wanted in {"", "auto"}:
        return detected
    if detected is not None and detected.name == wanted:
        return detected
    by_own_name = {family.name: family for family in reversed(FAMILIES)}
    if wanted in by_own_name:
        return by_own_name[wanted]
    near = difflib.get_close_matches(wanted, by_own_name, n=3, cutoff=0.4) or sorted(by_own_name)
    raise ConfigError(
        f"template: there is no model family {setting!r}.",
        remedy=f"Near names: {', '.join(near)}; `auto` finds the family by the model.",
    )


def _custom(template: Template) -> Family:
    prefix, suffix, middle = (
        _hole(text, name) for text, name in ((template.prefix, "PRE"), (template.suffix, "SUF"), (template.middle, "MID"))
    )
    fim = f"{prefix}{{prefix}}{suffix}{{suffix}}{middle}" if template.order == "psm" else f"{suffix}{{suffix}}{prefix}{{prefix}}{middle}"
    markers = Markers(prefix=template.prefix.strip(), suffix=template.suffix.strip(), middle=template.middle.strip())
    texts = (markers.prefix, markers.suffix, markers.middle)
    stop = tuple(dict.fromkeys([*template.stop, *(text for text in texts if text)]))
    return Family(name="custom", markers=markers, order=template.order, fim=fim, stop=stop)


def _hole(text: str, name: str) -> str:
    """Blanks around a marker are ordinary text: `<PRE> ` is the token `<PRE>` and a space."""
    if not text.strip():
        return text
    start = len(text) - len(text.lstrip())
    end = len(text.rstrip())
    return f"{text[:start]}{{{name}}}{text[end:]}"
