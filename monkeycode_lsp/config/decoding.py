"""What users wrote → settings.  Pure: files are read by the caller.

A value that cannot be used is reported by its path and left at the value it had before; the rest of the tree is used.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec

from monkeycode_lsp.config.tree import Config

S = TypeVar("S", bound=msgspec.Struct)
_SPELLINGS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}

FROM_WORKSPACE_NEVER = frozenset({"engine", "local", "remote", "template", "cache", "lookAhead", "scripted", "privacy", "logLevel"})
"""What a file inside a workspace may not set: it decides where text goes or what is paid for, and the workspace may be someone else's."""


def fields(struct: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """Wire name → field."""
    return {field.encode_name: field for field in msgspec.structs.fields(struct)}


def decode(tree: Mapping[str, Any], base: Config | None = None) -> tuple[Config, list[str]]:
    """Lay `tree` over `base`; what cannot be used is left as it was and said in words."""
    problems: list[str] = []
    config = _decode(tree, base or Config(), (), problems)
    return config, problems


def _decode(tree: Mapping[str, Any], base: S, path: tuple[str, ...], problems: list[str]) -> S:
    known = fields(type(base))
    changes: dict[str, Any] = {}
    for key, value in tree.items():
        where = ".".join((*path, str(key)))
        field = known.get(key)
        if field is None:
            problems.append(f"{where}: there is no such setting{_meant(str(key), known, path)}")
            continue
        current = getattr(base, field.name)
        if isinstance(current, msgspec.Struct) and not isinstance(field.type, type):
            current = None  # a union such as `template`: converted whole
        if isinstance(current, msgspec.Struct):
            if isinstance(value, Mapping):
                changes[field.name] = _decode(value, current, (*path, key), problems)
            elif value is not None:  # editors send null for "not set"
                problems.append(f"{where}: expected a group of settings.")
            continue
        if value is not None and (decoded := _value(value, field.type, where, problems)) is not msgspec.UNSET:
            changes[field.name] = decoded
    return msgspec.structs.replace(base, **changes) if changes else base


def _value(value: Any, kind: Any, where: str, problems: list[str]) -> Any:
    """One setting; unset: it cannot be used."""
    struct = _listed(kind)
    try:
        if struct is not None:
            return _decode_list(value, struct, where, problems)
        return msgspec.convert(_choice(value, kind), kind, strict=not isinstance(value, str))
    except msgspec.ValidationError as exc:
        problems.append(f"{where}: {_no_choice(value, kind) or _readable(exc)}")
    except UnicodeError:  # bytes of the environment that are no text
        problems.append(f"{where}: it is not text.")
    return msgspec.UNSET


def _meant(key: str, known: Mapping[str, Any], path: tuple[str, ...]) -> str:
    """`api_key` and `APIKEY` are near `apiKey`, whatever a comparison of letters says."""
    alike = {name.lower(): name for name in known}
    near = difflib.get_close_matches(key.lower().replace("_", "").replace("-", ""), alike, n=1)
    return f"; did you mean {'.'.join((*path, alike[near[0]]))}?" if near else "."


def _listed(kind: Any) -> type[msgspec.Struct] | None:
    """Of what groups the list is that is wanted; None: none is."""
    of = get_args(kind)[0] if get_origin(kind) is tuple and get_args(kind) else None
    return of if isinstance(of, type) and issubclass(of, msgspec.Struct) else None


def _decode_list(value: Any, struct: type[S], where: str, problems: list[str]) -> tuple[S, ...]:
    """Groups, each decoded by itself.  One alone needs no list, and one that is only a text is its first setting."""
    main = next(iter(fields(struct)))
    if isinstance(value, str):
        if value[:1] in ("[", "{"):
            problems.append(f"{where}: it is no JSON list.")
            return ()
        value = [word for word in re.split(r"[,\s]+", value) if word]
    groups = [value] if isinstance(value, Mapping) else value if isinstance(value, Sequence) else [value]
    found: list[S] = []
    for number, group in enumerate(groups, 1):
        path = f"{where} (number {number})" if len(groups) > 1 else where
        tree = {main: group} if isinstance(group, str) else group
        if not isinstance(tree, Mapping):
            problems.append(f"{path}: expected a group of settings with at least `{main}`.")
            continue
        decoded = _decode(tree, struct(), (path,), problems)
        if getattr(decoded, fields(struct)[main].name):
            found.append(decoded)
        elif main not in tree:  # empty is how many write "none"
            problems.append(f"{path}: it has no `{main}`.")
    return tuple(found)


def _choice(value: Any, kind: Any) -> Any:
    """One of several words, however it is capitalized."""
    if not isinstance(value, str) or get_origin(kind) is not Literal:
        return value
    return next((word for word in get_args(kind) if str(word).lower() == value.strip().lower()), value)


def _no_choice(value: Any, kind: Any) -> str:
    """Where one of several words is wanted: which ones."""
    if get_origin(kind) is not Literal:
        return ""
    words = [str(word) for word in get_args(kind)]
    near = difflib.get_close_matches(str(value), words, n=1)
    return f"{value!r} is none of {', '.join(words)}" + (f"; did you mean {near[0]}?" if near else ".")


_KINDS = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "text", "array": "a list", "object": "a group"}


def _readable(exc: msgspec.ValidationError) -> str:
    text = str(exc).replace(" - at `$", " at `").replace("`", "")
    text = re.sub(r"\b(bool|int|float|str|array|object)\b", lambda kind: _KINDS[kind.group()], text)
    return f"{text[:1].lower()}{text[1:]}." if text else "cannot be used."


def merge(*trees: Mapping[str, Any]) -> dict[str, Any]:
    """Deep merge of plain trees; later ones win."""
    merged: dict[str, Any] = {}
    for tree in trees:
        for key, value in tree.items():
            old = merged.get(key)
            merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return merged


def without_workspace_secrets(tree: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Drop what a workspace file may not decide; tell what was dropped."""
    kept = {key: value for key, value in tree.items() if key not in FROM_WORKSPACE_NEVER}
    dropped = [
        f"{key}: a workspace's own file may not set this; put it into your user settings." for key in tree if key in FROM_WORKSPACE_NEVER
    ]
    return kept, dropped


def from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """`MONKEYCODE_LOCAL_GPU_LAYERS=0` → `{"local": {"gpuLayers": "0"}}`.

    A list is JSON or words with commas between them; yes and no have many spellings.
    """
    tree: dict[str, Any] = {}
    for names, wire_path, kind in _leaves(Config):
        text = environ.get("MONKEYCODE_" + "_".join(names).upper())
        if not text:
            continue  # empty is how many shells say "not set"
        node = tree
        for key in wire_path[:-1]:
            node = node.setdefault(key, {})
        node[wire_path[-1]] = _from_text(text, kind)
    return tree


def _from_text(text: str, kind: Any) -> Any:
    if kind is bool:
        return _SPELLINGS.get(text.strip().lower(), text)
    if text[:1] in ("[", "{"):
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return text
    if kind == tuple[str, ...]:
        return [word.strip() for word in text.split(",") if word.strip()]
    return text


def _leaves(struct: type[msgspec.Struct]) -> Iterable[tuple[tuple[str, ...], tuple[str, ...], Any]]:
    """Python names, wire names and type of every single setting."""
    for field in msgspec.structs.fields(struct):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            for names, wire, kind in _leaves(field.type):
                yield (field.name, *names), (field.encode_name, *wire), kind
        else:
            yield (field.name,), (field.encode_name,), field.type
