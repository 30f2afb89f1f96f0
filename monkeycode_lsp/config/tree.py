"""All settings: one tree of frozen structs.  On the wire their names are camelCase."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Milliseconds = Annotated[int, Meta(ge=0, le=600_000)]
Seconds = Annotated[int, Meta(ge=0)]


class Local(msgspec.Struct, frozen=True, rename="camel"):
    """The engine on this machine."""

    model: str = ""
    """A catalogue name or the path of a GGUF file; empty: the recommended one that is here."""
    mirror: str = ""
    """Address of a mirror of the model hub, for downloads; `HF_ENDPOINT` does the same."""
    gpu_layers: Annotated[int, Meta(ge=-1)] = -1
    """Layers on the GPU; -1: all that fit."""
    main_gpu: Count = 0
    """Above 0: that GPU alone, unless `tensorSplit` says otherwise; 0: all of them."""
    tensor_split: tuple[Annotated[float, Meta(ge=0)], ...] = ()
    """Shares of the model for several GPUs, such as `[3, 1]`; empty: by their free memory."""
    context_tokens: Annotated[int, Meta(ge=256)] = 4096
    """The model's window, for each slot: prompt and answer."""
    batch_tokens: Annotated[int, Meta(ge=16, le=4096)] = 128
    """Most prompt tokens read in one go: what an urgent ask waits for, where a GPU cannot be interrupted."""
    threads: Annotated[int, Meta(ge=0, le=1024)] = 0
    """0: the number of physical cores; never more than the processors that the engine may use."""
    nice: Annotated[int, Meta(ge=0, le=19)] = 5
    """How far the engine steps back behind other programs, such as the editor; 0: not at all."""
    affinity: str = ""
    """On Linux: processors that the engine may use, such as `0-3,8`; empty: all."""
    flash_attention: bool = True
    """Used where a GPU computes it; on a CPU it slows generation down and stays off, unless the KV cache is quantized."""
    kv_type: Literal["f16", "q8_0"] = "f16"
    """Numbers of the KV cache; q8_0 halves its memory, and costs small models some of their quality."""
    mmap: bool = True
    """Map the file instead of reading it into memory."""
    mlock: bool = False
    """Keep the model from being swapped out."""
    lora: tuple[str, ...] = ()
    """Adapter files (GGUF); `file=0.5` applies one at half of its strength."""
    slots: Annotated[int, Meta(ge=1, le=64)] = 4
    """Generations at the same time, each with a KV cache of `contextTokens`."""
    drafts: Literal["auto", "off"] = "auto"
    """auto: text that the model will probably say is verified in one batch, where that pays on this machine."""
    draft_model: str = ""
    """A smaller model of the same family that proposes tokens: a catalogue name or a path; empty: none."""
    state_megabytes: Count = 256
    """Memory for the KV states of documents that lost their slot; switching back to one is then warm."""
    keep_states: bool = False
    """Keep those states on disk when the engine leaves.  They hold the text that the model has read."""
    runtime: Literal["auto", "native", "managed"] = "auto"
    """native: llama-cpp-python in a process of ours; managed: a prebuilt llama-server."""
    idle_minutes: Annotated[int, Meta(ge=0, le=525_600)] = 15
    """The engine process leaves after so long without an ask; 0: never."""
    linger_seconds: Annotated[int, Meta(ge=0, le=86_400)] = 30
    """The engine process stays so long after its last window was closed: the next one is warm."""


class Endpoint(msgspec.Struct, frozen=True, rename="camel"):
    """One server that completes code."""

    url: str = ""
    """With or without `/v1`; a trailing slash does not matter."""
    api: Literal["auto", "openai", "llama-server", "ollama", "vllm", "sglang", "tensorrt-llm", "mistral", "deepseek", "chat"] = "auto"
    model: str = ""
    """Its name at the server; empty: the first code model that the server lists or has loaded."""
    api_key: str = ""
    """Sent as `Authorization: Bearer`; better kept in a variable, see `apiKeyEnv`."""
    api_key_env: str = ""
    """Name of the environment variable that holds the key."""
    api_keyring: str = ""
    """`service/user` of the system's keyring, where the key is (`pip install keyring`)."""
    weight: Annotated[float, Meta(gt=0, le=1_000_000)] = 1
    """Share of the work among several endpoints."""
    metered: Literal["auto", "yes", "no"] = "auto"
    """Whether each request costs money, so that none is sent twice. auto: at addresses that are not of your own network."""
    ca_file: str | tuple[str, ...] = ""
    """Certificates of your own authority: one file or several."""
    client_cert: str = ""
    """PEM file with your own certificate, for servers that ask who you are."""
    client_key: str = ""
    """PEM file with its key, unless it is in the same file."""
    headers: dict[str, str] = {}
    """Sent with every request."""

    def __repr__(self) -> str:  # the rest may hold keys
        return f"<endpoint {self.url.rpartition('@')[2]} {self.model}>"


class Remote(msgspec.Struct, frozen=True, rename="camel"):
    """Engines behind an address."""

    endpoints: tuple[Endpoint, ...] = ()
    """The servers to ask. Those that serve the same model share the work; others stand in when it is gone."""
    timeout_ms: Milliseconds = 10_000
    """Longest wait for the first byte of an answer."""
    stall_ms: Milliseconds = 3_000
    """Longest pause inside a stream."""
    retries: Annotated[int, Meta(ge=0, le=10)] = 2
    """Quiet tries after a failure that came before any answer: at another endpoint, or when a busy one has had its rest."""
    concurrency: Positive = 5
    """Requests at the same time at each endpoint; more wait, the most urgent and shortest first."""
    hedge: Literal["auto", "on", "off"] = "auto"
    """Ask a second endpoint when the first is slower than it nearly always is. auto: not where it costs money."""
    http2: bool = False
    """Speak HTTP/2 where the server does."""


class Template(msgspec.Struct, frozen=True, rename="camel"):
    """A prompt format of the user's own."""

    prefix: str
    suffix: str
    middle: str
    order: Literal["psm", "spm"] = "psm"
    stop: tuple[str, ...] = ()


class Debounce(msgspec.Struct, frozen=True, rename="camel"):
    """How long an automatic ask waits for the next key."""

    mode: Literal["adaptive", "fixed", "off"] = "adaptive"
    """adaptive: until you are likely to pause, by your rhythm and what you type; fixed: always `maxMs`; off: no wait."""
    min_ms: Milliseconds = 0
    """Adaptive: the least wait after a key."""
    max_ms: Milliseconds = 300
    """Longest wait after a key; what your editor waits by itself counts."""


class LookAhead(msgspec.Struct, frozen=True, rename="camel"):
    """What is worked out before anybody asks for it."""

    mode: Literal["auto", "on", "off"] = "auto"
    """The next suggestion is worked out while you read one, as if you had taken it. auto: by the compiled engine, and not on battery; on: by every engine, also on battery, and at endpoints, which may cost money; off: never."""
    share: Annotated[float, Meta(ge=0, le=1)] = 0.3
    """Most of the engine's time that this may take, from 0 (none) to 1 (all of it)."""
    read: bool = True
    """Let the compiled engine read a document when you open it, and the place where your cursor rests: the answer is quicker then."""


class Completion(msgspec.Struct, frozen=True, rename="camel"):
    """What is asked for and where."""

    max_tokens: Annotated[int, Meta(ge=1, le=4096)] = 96
    """Longest answer."""
    multiline: Literal["auto", "always", "never"] = "auto"
    """auto: several lines in an empty place or after an opener, else one statement."""
    candidates: Annotated[int, Meta(ge=1, le=10)] = 1
    """Different suggestions to choose from when you ask by key; more take longer."""
    silence: Literal["auto", "off"] = "auto"
    """auto: a suggestion that the model itself holds for unlikely is not shown while you type, the less so the more you take such ones; off: all are shown."""
    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.0
    """0: the likeliest answer, always the same."""
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """At a temperature: only the likeliest tokens that make up this share are drawn."""
    min_p: Annotated[float, Meta(ge=0, le=1)] = 0.05
    """At a temperature: tokens less likely than this share of the likeliest one are not drawn."""
    repeat_penalty: Annotated[float, Meta(ge=1, le=2)] = 1.0
    """More than 1: what the answer has said already becomes less likely."""
    deadline_ms: Annotated[int, Meta(ge=50, le=600_000)] = 3_000
    """An ask is answered by then, with what there is."""
    in_comments: bool = True
    """Suggest in comments while typing."""
    disabled_languages: tuple[str, ...] = ()
    """Language ids that are left alone."""
    disabled_globs: tuple[str, ...] = ()
    """Files that are left alone, in the manner of .gitignore."""


class Context(msgspec.Struct, frozen=True, rename="camel"):
    """How much the model is shown."""

    prefix_tokens: Annotated[int, Meta(ge=16)] = 1024
    """Of the text before the cursor."""
    suffix_tokens: Count = 256
    """Of the text after the cursor."""
    snippet_tokens: Count = 512
    """Of what helps from other places: definitions of names that you use, similar code of files that you had open, your last edits; 0: none of it."""
    budget_ms: Milliseconds = 100
    """Longest time to gather that; what is not found by then is left out."""
    index: bool = True
    """Keep an index of the definitions in your workspace, in the background."""
    max_document_bytes: Positive = 8_388_608
    """Larger documents are not served."""


class Cache(msgspec.Struct, frozen=True, rename="camel"):
    """Recall: suggestions worth using again."""

    enabled: bool = True
    """Show at once what is known already. Off: each suggestion is made anew, and no next one is worked out."""
    directory: str = ""
    """Folder on this machine's disk for suggestions; empty: the one that `monkeycode cache` shows."""
    memory_ttl_seconds: Seconds = 300
    """How long a suggestion is good in the memory of its window."""
    memory_bytes: Positive = 16_777_216
    """How much memory they may take in each window."""
    disk_ttl_seconds: Seconds = 604_800
    """How long one is good on disk, for all your windows; 0: nothing is kept there."""
    disk_bytes: Positive = 268_435_456
    """About how much of the disk they may take; the oldest go first."""
    shared_url: str = ""
    """A Redis or Valkey that a team shares, such as `rediss://:password@host:6379/0`; empty: none."""
    shared_ttl_seconds: Seconds = 3_600
    """How long they are good there; 0: nothing is kept there."""
    showings: Annotated[int, Meta(ge=0, le=1000)] = 3
    """A suggestion that was shown so often at one place, and never taken, is not shown there again; 0: it is."""


class Privacy(msgspec.Struct, frozen=True, rename="camel"):
    """What never leaves."""

    secret_files: tuple[str, ...] = ()
    """File-name globs that are never served, beside the built-in ones."""
    redact_secrets: bool = True
    """Keys, tokens and passwords inside the text are replaced before a model sees them, and put back in its answer."""
    ignore_files: tuple[str, ...] = (".gitignore", ".monkeycodeignore")
    """Files of a workspace whose patterns name what is not quoted as context; `.monkeycodeignore` says besides what is never served, or only by this machine."""


class Scripted(msgspec.Struct, frozen=True, rename="camel"):
    """The engine that says what it is told: for trying an editor without a model."""

    text: str = "hello from monkeycode"
    """Said for every ask, unless `script` answers."""
    script: str = ""
    """Path of a JSON file: a list of answers, used in turn.  See `engines/scripted.py`."""
    delay_ms: Milliseconds = 0
    """Wait before it is said."""


class Config(msgspec.Struct, frozen=True, rename="camel"):
    """The whole tree.  The name of every field is the same word in the editor, in files and here."""

    enabled: bool = True
    """Whether anything is suggested at all."""
    engine: Literal["auto", "local", "remote", "scripted", "off"] = "auto"
    """auto: the endpoints if any are set, with the local engine in their place while none can be reached, if its model is here; else the local engine."""
    local: Local = Local()
    remote: Remote = Remote()
    template: str | Template = "auto"
    """auto, the name of a family, or a format of your own."""
    debounce: Debounce = Debounce()
    look_ahead: LookAhead = LookAhead()
    completion: Completion = Completion()
    context: Context = Context()
    cache: Cache = Cache()
    privacy: Privacy = Privacy()
    scripted: Scripted = Scripted()
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """What is written to standard error; document text never is."""
