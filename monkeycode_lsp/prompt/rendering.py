"""Window + snippets + family → prompt.  Stable from the left, so that a KV cache of the last prompt can be reused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from monkeycode_lsp.domain import Control, Plain, Priority, Prompt, Sampling, Segment, Snippet, Window
from monkeycode_lsp.prompt import language
from monkeycode_lsp.prompt.family import Family, Markers

_HOLE = re.compile(r"\{([^{}]+)\}")


def render(
    window: Window,
    snippets: Sequence[Snippet],
    family: Family | None,
    *,
    max_tokens: int,
    sampling: Sampling = Sampling(),  # noqa: B008 - frozen
    session: str = "",
    draft: str = "",
    priority: Priority = Priority.INTERACTIVE,
) -> Prompt:
    """Render for `family`; None: the model cannot fill in, it sees what stands before the cursor and no more."""
    segments = _joined(_segments(window, snippets, family) if family else (Plain(window.prefix),))
    return Prompt(
        segments=segments,
        prefix=window.prefix,
        suffix=window.suffix,
        stop=family.stop if family else (),
        max_tokens=max_tokens,
        sampling=sampling,
        draft=draft,
        priority=priority,
        session=session,
        fim=family is not None,
    )


def _segments(window: Window, snippets: Sequence[Snippet], family: Family) -> Iterator[Segment]:
    controls = _controls(family.markers)
    here = {
        "path": window.path,
        "language": language.title(window.language),
        "suffix": window.suffix,
    }
    files = tuple(_files(window, snippets, family, controls)) if snippets else ()
    before, _, after = family.template.partition("{prefix}")
    yield from _filled(family.lead, controls, {})
    if not family.files.inside:
        yield from files
    yield from _filled(before, controls, here)
    if family.files.inside:
        yield from files
    yield Plain(window.prefix)
    yield from _filled(after, controls, here)


def _files(window: Window, snippets: Sequence[Snippet], family: Family, controls: Mapping[str, str]) -> Iterator[Segment]:
    layout = family.files
    if window.repository or "{repository}" not in layout.head:
        yield from _filled(layout.head, controls, {"repository": window.repository})
    for snippet in snippets:
        other = {
            "path": snippet.path,
            "comment": language.comment(window.language, snippet.path),
            "text": snippet.text.rstrip("\n"),
        }
        yield from _filled(layout.each, controls, other)
    yield from _filled(layout.current, controls, {"path": window.path, "comment": language.comment(window.language, window.path)})


def _controls(markers: Markers) -> dict[str, str]:
    """The holes of a template that are control tokens."""
    return {
        "PRE": markers.prefix,
        "SUF": markers.suffix,
        "MID": markers.middle,
        "REPO": markers.repository,
        "SEP": markers.separator,
    }


def _filled(template: str, controls: Mapping[str, str], texts: Mapping[str, str]) -> Iterator[Segment]:
    for index, piece in enumerate(_HOLE.split(template)):
        if index % 2 == 0:
            yield Plain(piece)
        elif piece in texts:
            yield Plain(texts[piece])
        else:
            yield Control(controls.get(piece, piece))


def _joined(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Without empty segments, and no two plain ones side by side: text that is split is tokenized differently."""
    joined: list[Segment] = []
    for segment in segments:
        if not segment.text:
            continue
        last = joined[-1] if joined else None
        if isinstance(segment, Plain) and isinstance(last, Plain):
            joined[-1] = Plain(last.text + segment.text)
        else:
            joined.append(segment)
    return tuple(joined)
