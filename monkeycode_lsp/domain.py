"""The values that flow through the pipeline.  All of them are frozen; none of them knows LSP.

Offsets and columns are code points.  Text inside these values uses LF as its only line end;
the document's own line end is `Snapshot.eol`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Literal

import msgspec


class Trigger(enum.Enum):
    """Why the editor asks."""

    AUTOMATIC = "automatic"
    """The user typed or moved."""
    INVOKED = "invoked"
    """The user pressed a key for it: no debounce, rules of taste are off."""


class Selected(msgspec.Struct, frozen=True):
    """The entry that the editor's pop-up list has selected, to be extended and not contradicted."""

    text: str
    line: int
    start: int
    """Code-point column on `line` where the entry's text would be put."""
    end: int
    """Code-point column on `line` up to which it would replace what is there."""


class Snapshot(msgspec.Struct, frozen=True):
    """One immutable view of a document, taken before the first await."""

    uri: str
    language: str
    version: int
    lines: Sequence[str]
    """Lines with their terminators; the last one has none.  Shared with the document, never changed."""
    line: int
    column: int
    """Cursor, clamped into the text; `column` counts code points."""
    eol: str = "\n"
    """The document's prevailing line end."""
    workspace: str = ""
    """URI of the workspace folder that holds the document; empty if none does."""
    cells_before: tuple[str, ...] = ()
    """Text of the notebook's cells above this one (markdown as comments), nearest last."""
    cells_after: tuple[str, ...] = ()
    """Text of the notebook's cells below this one, nearest first."""
    n_bytes: int = 0
    """Approximate size of the document's text."""

    @property
    def line_before(self) -> str:
        """The cursor's line up to the cursor."""
        return self.lines[self.line][: self.column]

    @property
    def line_after(self) -> str:
        """The cursor's line after the cursor, without its terminator."""
        return self.lines[self.line][self.column :].rstrip("\r\n")


class Ask(msgspec.Struct, frozen=True):
    """One request of the editor for a completion."""

    snapshot: Snapshot
    trigger: Trigger = Trigger.AUTOMATIC
    selected: Selected | None = None
    since_edit_ms: float | None = None
    """What the editor has already waited since the last edit; None if nothing was edited."""
    inserted: str = ""
    """What the last edit put in, LF only; empty if it only took away."""
    stays_here: bool = False
    """Whether the document's text must not leave this machine."""
    accepted: bool = False
    """Whether the last edit put in the suggestion that was shown."""


class Window(msgspec.Struct, frozen=True):
    """The text before and after the cursor that fits the budget.  LF only."""

    prefix: str
    suffix: str
    language: str
    path: str
    """The document's path relative to its workspace, `/` separated; never an absolute path."""
    repository: str = ""
    """The workspace folder's name."""
    whole_prefix: bool = True
    """Whether `prefix` starts at the document's start."""
    whole_suffix: bool = True

    @property
    def line_before(self) -> str:
        return self.prefix[self.prefix.rfind("\n") + 1 :]

    @property
    def line_after(self) -> str:
        end = self.suffix.find("\n")
        return self.suffix if end < 0 else self.suffix[:end]


class Snippet(msgspec.Struct, frozen=True):
    """A piece of another place that helps."""

    path: str
    """Relative, `/` separated."""
    text: str
    kind: Literal["definition", "similar", "edit", "own"] = "similar"
    """own: of the document itself, outside the window: its imports, what encloses the cursor."""
    score: float = 0.0
    """What it is worth, to compare snippets with; higher is better."""


class Control(msgspec.Struct, frozen=True, tag="c"):
    """A control token of the model, by the text that its vocabulary gives it."""

    text: str


class Plain(msgspec.Struct, frozen=True, tag="p"):
    """Ordinary text.  It can never become a control token, whatever it says."""

    text: str


Segment = Control | Plain


class Priority(enum.IntEnum):
    """Who waits for a generation; lower runs first."""

    INTERACTIVE = 0
    LOOK_AHEAD = 1
    WARM_UP = 2
    BATCH = 3


class Sampling(msgspec.Struct, frozen=True):
    """How the next token is chosen."""

    temperature: float = 0.0
    """0: always the likeliest."""
    top_p: float = 1.0
    """At a temperature: only the likeliest tokens that make up this share are drawn."""
    min_p: float = 0.05
    """At a temperature: tokens less likely than this share of the likeliest one are not drawn."""
    repeat_penalty: float = 1.0
    """Above 1: what the answer has said already becomes less likely."""
    seed: int | None = None
    """Of the draws at a temperature; None: another one each time."""


class Prompt(msgspec.Struct, frozen=True):
    """What an engine is asked: rendered for one model family, plus the plain halves for engines that insert by themselves."""

    segments: tuple[Segment, ...]
    prefix: str
    suffix: str
    stop: tuple[str, ...] = ()
    """Strings that end the answer (control tokens of the family as text); the engine never returns them."""
    max_tokens: int = 96
    sampling: Sampling = Sampling()
    grammar: str = ""
    """GBNF that the answer must obey, where the engine can; empty: none."""
    heal: str = ""
    """The cut-off beginning of a token, not part of `segments`: the answer begins with it, and it is not given back."""
    draft: str = ""
    """Text that the model will probably say; the engine may verify it in one batch.  A hint: what is said is still the model's own choice."""
    priority: Priority = Priority.INTERACTIVE
    session: str = ""
    """A stable key of the document, so that one slot or one endpoint keeps its KV cache."""
    fim: bool = True
    """False when the model has no insert tokens and `segments` is the prefix only."""
    model: str = ""
    """Fingerprint of the model that it was rendered for: an engine with several never gives it to another; empty: any."""
    stays_here: bool = False
    """Whether it holds text that must not leave this machine: an engine asks no other one, and refuses if it has none here."""


class Finish(enum.Enum):
    """How a generation ended."""

    STOP = "stop"
    """The model said it was done, or a stop string came."""
    LENGTH = "length"
    """`max_tokens` was reached."""


class Usage(msgspec.Struct, frozen=True):
    """Prompt tokens taken from the KV cache and read anew, and tokens generated.  None: the engine does not say."""

    reused: int | None = None
    read: int | None = None
    """Where `reused` is not known, it may be in here."""
    generated: int | None = None
    whole: int | None = None
    """All of the prompt that is ours, where that is not the sum of the first two."""

    @property
    def prompt_tokens(self) -> int | None:
        """What the prompt takes, wherever its tokens came from."""
        if self.whole is not None or self.reused is None or self.read is None:
            return self.whole
        return self.reused + self.read


class Chunk(msgspec.Struct, frozen=True):
    """One piece of a stream.  Exactly the last chunk of a whole answer has `finish`."""

    text: str
    logprob: float | None = None
    """Sum of the log-probabilities of this chunk's tokens (natural log)."""
    n_tokens: int = 0
    finish: Finish | None = None
    usage: Usage | None = None


class Origin(enum.Enum):
    """Where a suggestion came from."""

    ENGINE = "engine"
    ADOPTED = "adopted"
    TYPED_THROUGH = "typed-through"
    MEMORY = "memory"
    DISK = "disk"
    SHARED = "shared"


class Suggestion(msgspec.Struct, frozen=True):
    """Cleaned text to insert at the cursor.  LF only."""

    text: str
    origin: Origin = Origin.ENGINE
    confidence: float | None = None
    """Mean token log-probability; None where the engine does not give it."""
    id: int = 0
    """Number of the ask that showed it; the accept command sends it back."""


class Scope(msgspec.Struct, frozen=True):
    """What else must be the same, beside the place."""

    engine: str
    """Fingerprint of engine and model."""
    settings: str
    """Fingerprint of every setting that could change an answer."""
    workspace: str
    """The workspace folder's URI."""

    @property
    def own(self) -> str:
        """On this machine."""
        return f"{self.engine}\0{self.settings}\0{self.workspace}"

    def among(self, identity: str) -> str:
        """In a team, whose machines have the workspace at other paths."""
        return f"{self.engine}\0{self.settings}\0{identity}"


class OutcomeKind(enum.Enum):
    """The one way in which an ask ended."""

    SHOWN = "shown"
    GATED = "gated"
    EMPTY = "empty"
    QUIET = "quiet"
    """There was something, and it was better not to show it."""
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Fate(enum.Enum):
    """What became of a suggestion that was shown."""

    OPEN = "open"
    """It is not known yet, or never will be: the editor was closed."""
    ACCEPTED = "accepted"
    """All of it at once."""
    TYPED = "typed"
    """The user typed all of it."""
    PARTIAL = "partial"
    """A part of it was taken or typed."""
    REJECTED = "rejected"
    """The user said no, or took it back."""
    IGNORED = "ignored"
    """The user did something else."""
    BRIEF = "brief"
    """It was gone before anybody could have read it."""
    CONTINUED = "continued"
    """It is the rest of what an earlier ask showed, which has the fate."""


class Outcome(msgspec.Struct, frozen=True):
    """How an ask ended, why, and where its time went.  Holds no source text."""

    id: int
    at: float
    """Unix time in seconds when the ask arrived."""
    kind: OutcomeKind
    reason: str
    """One sentence for the user: the rule, filter, error or origin."""
    language: str = ""
    place: str = ""
    """File name, line and column (1-based) for people: `app.py:12:5`."""
    trigger: str = ""
    origin: str = ""
    stages_ms: dict[str, float] = {}
    total_ms: float = 0.0
    first_ms: float | None = None
    """From the engine's start to its first text; None: it was not asked or said nothing."""
    n_prefix: int = 0
    n_suffix: int = 0
    n_shown: int = 0
    """Characters of the suggestion shown."""
    reused_tokens: int | None = None
    read_tokens: int | None = None
    generated_tokens: int | None = None
    accepted: bool = False
    model: str = ""
    """Its name."""
    confidence: float | None = None
    """Mean log-probability of the tokens of what was shown or kept quiet."""
    odds: float | None = None
    """The chance that it was given to be what is wanted (see `silence`)."""
    fate: str = ""
    """One of `Fate`; empty: nothing was shown."""
    n_taken: int = 0
    """Characters of it that the user took or typed."""
    kept: dict[str, float] = {}
    """The share of what was taken that was still there after so many seconds."""
