"""What would make this machine's suggestions quicker or better, in plain words.  Pure: a rule per concern over facts.

A rule speaks only where it knows: speeds that were measured while the machine was busy choose no model, and
converting is proposed only where a gain was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from monkeycode_lsp import config
from monkeycode_lsp.engines.local.abilities import Abilities
from monkeycode_lsp.engines.local.measure import Speed
from monkeycode_lsp.models import precision, recommend
from monkeycode_lsp.models.catalogue import Entry
from monkeycode_lsp.models.gguf import Header
from monkeycode_lsp.models.hardware import Gpu, Hardware

WINDOW_S = 2.0
"""What may be read of a new document before its first suggestion; the window shrinks to it by itself."""
INSTALL = "monkeycode engine install"
REBUILD = f"{INSTALL} --rebuild"

_READ_PER_S = 256.0
"""A window of 512 tokens in two seconds."""
_GENERATED_PER_S = 16.0
"""A line in a second."""
_CERTAIN = 1.3
"""A larger model is proposed only where the estimate is that far above what is needed."""
_TOO_SLOW = 0.4
"""A smaller one where it is that far below."""
_BUSY = 0.25
"""Share of the cores that may be at work for something else while speeds are believed."""
_CPU_CHUNK_S, _GPU_CHUNK_S = 1.0, 0.1
_ROOM = 3.0
"""A window that is read that many times within two seconds can be larger."""
_PREFIX_SHARE = 0.8
_LEAST_WINDOW, _LARGEST_WINDOW = 160, 6000
_GPU_SHARE = 0.85
_LAYER_BYTES = 400_000_000
"""Of a GPU, for working buffers and a KV cache."""
_BY_API = {"cuda": "CUDA", "metal": "Metal", "rocm": "ROCm", "sycl": "SYCL", "vulkan": "Vulkan"}
_MANAGED_LACKS = (
    "it verifies no drafts, reads nothing ahead while you are idle, does not complete a token that the cursor cuts in two, "
    "and keeps no KV state over a restart"
)


class Facts(msgspec.Struct, frozen=True):
    """What is known of the machine, the engine and the model; what is not known is None."""

    hardware: Hardware
    settings: config.Config = config.Config()
    kind: str = "native"
    """native or managed"""
    abilities: Abilities | None = None
    speed: Speed | None = None
    header: Header | None = None
    """Of the model's file."""
    entry: Entry | None = None
    """The model in the catalogue."""
    catalogue: Sequence[Entry] = ()

    @property
    def on_gpu(self) -> Gpu | None:
        """The GPU that the build can use and the settings allow."""
        if self.abilities is None or self.settings.local.gpu_layers == 0:
            return None
        usable = [gpu for gpu in self.hardware.gpus if _BY_API[gpu.api] in self.abilities.backends]
        return max(usable, key=lambda gpu: gpu.memory_bytes or 0, default=None)

    @property
    def is_calm(self) -> bool:
        """Whether the speeds are those of an otherwise idle machine, as far as is known."""
        return self.speed is not None and (self.speed.busy_cores or 0.0) <= _BUSY * self.hardware.cores


class Advice(msgspec.Struct, frozen=True):
    """One thing to do, or to know."""

    subject: str
    words: str
    remedy: str = ""
    """A command or a setting; empty: nothing needs to be done."""
    is_loss: bool = False
    """Whether something that is here lies idle, so that the user should know."""


def advise(facts: Facts) -> tuple[Advice, ...]:
    """Everything that is worth saying, the weightiest first."""
    return tuple(
        advice
        for rule in (_busy, _backend, _processor, _layers, _model, _convert, _budget, _chunk, _threads, _managed)
        for advice in rule(facts)
    )


def layers_that_fit(header: Header, memory_bytes: int) -> int:
    """Layers of a model, its output layer counted in, that a GPU of this memory holds beside its buffers."""
    n_layers = (header.n_layers or 0) + 1
    room = memory_bytes * _GPU_SHARE - _LAYER_BYTES
    return max(0, min(n_layers, int(room / (header.bytes / n_layers))))


def _busy(facts: Facts) -> Iterator[Advice]:
    if facts.speed is not None and not facts.is_calm:
        yield Advice(
            "other work",
            f"{facts.speed.busy_cores:.1f} of {facts.hardware.cores} cores were at work for something else, so these figures are too low",
            "Run `monkeycode doctor` again when the machine is idle.",
        )


def _backend(facts: Facts) -> Iterator[Advice]:
    """A GPU that the build cannot use, or could use better."""
    if facts.abilities is None or not facts.hardware.gpus:
        return
    usable = [gpu for gpu in facts.hardware.gpus if _BY_API[gpu.api] in facts.abilities.backends]
    lacking = list(dict.fromkeys(_BY_API[gpu.api] for gpu in facts.hardware.gpus if gpu not in usable))
    name = facts.hardware.gpus[0].name or "A GPU"
    if facts.settings.local.gpu_layers == 0:
        if usable:
            yield Advice("GPU", f"local.gpuLayers is 0, so {usable[0].name or 'the GPU'} is not used", "Set local.gpuLayers to -1.")
    elif not usable:
        build = "the prebuilt engine" if facts.kind == "managed" else "the present build"
        words = f"{name} is here, and {build} cannot use it: it was made without {' and '.join(lacking)}"
        yield Advice("GPU", words, _rebuild(facts), is_loss=True)
    elif lacking and all(gpu.api == "vulkan" for gpu in usable):
        yield Advice("GPU", f"{name} is used through Vulkan; {' or '.join(lacking)} is the quicker way", _rebuild(facts))


def _processor(facts: Facts) -> Iterator[Advice]:
    """A build that does less than the processor can."""
    if facts.abilities is None or facts.on_gpu is not None or facts.kind == "managed":
        return
    if unused := _unused(facts):
        words = f"the build does not use this processor's {' and '.join(unused)}"
        yield Advice("processor", words, _rebuild(facts), is_loss=True)
    elif "BLAS" in facts.abilities.backends:
        words = "the build reads prompts through a BLAS library, which was slower than without where we measured"
        yield Advice("processor", words, _rebuild(facts))


def _unused(facts: Facts) -> list[str]:
    """Features of the processor that the build leaves aside; none where it does not say what it uses."""
    if facts.abilities is None:
        return []
    present = facts.abilities.features
    return [name for name in ("AMX", "AVX512", "AVX2") if name.lower() in facts.hardware.features and name not in present]


def _layers(facts: Facts) -> Iterator[Advice]:
    gpu, header = facts.on_gpu, facts.header
    if gpu is None or header is None or not gpu.memory_bytes or not header.n_layers:
        return
    fitting, every = layers_that_fit(header, gpu.memory_bytes), header.n_layers + 1
    wanted = facts.settings.local.gpu_layers
    if fitting < every and not 0 < wanted <= fitting:
        yield Advice(
            "GPU layers",
            f"about {fitting} of the model's {every} layers fit {gpu.name or 'the GPU'} ({_gb(gpu.memory_bytes)}); the rest is computed by the processor",
            "A smaller model, or local.kvType = q8_0 and fewer local.slots, make room.",
        )
    elif fitting >= every and 0 < wanted < every:
        yield Advice(
            "GPU layers", f"local.gpuLayers is {wanted}, and all {every} layers fit {gpu.name or 'the GPU'}", "Set local.gpuLayers to -1."
        )


def _model(facts: Facts) -> Iterator[Advice]:
    """A larger model where this one is quick, a smaller one where it is slow."""
    speed, entry = facts.speed, facts.entry
    if speed is None or entry is None or not facts.is_calm or speed.generated_per_s is None:
        return
    others = [other for other in facts.catalogue if not other.restricted and other.quantization == "Q4_K_M" and _has_room(facts, other)]
    larger = [other for other in others if other.parameters > entry.parameters and _margin(speed, entry, other) >= _CERTAIN]
    smaller = [other for other in others if other.parameters < entry.parameters]
    if larger:
        best = max(larger, key=lambda other: other.parameters)
        yield Advice("another model", f"this machine is quick enough for {best.title}, which knows more than {entry.title}", _pull(best))
    elif smaller and _margin(speed, entry, entry) < _TOO_SLOW:
        quick = [other for other in smaller if _margin(speed, entry, other) >= 1]
        best = max(quick or smaller[:1], key=lambda other: other.parameters)
        yield Advice("another model", f"{entry.title} is too slow to answer while you type here; {best.title} is quicker", _pull(best))


def _margin(speed: Speed, entry: Entry, other: Entry) -> float:
    """How far `other` would be above the speeds that are needed, by its size.

    Reading costs a computation for each weight, generating moves each weight's bytes.
    """
    read = speed.read_per_s * entry.parameters / other.parameters
    generated = (speed.generated_per_s or 0.0) * entry.about_bytes / other.about_bytes
    return min(read / _READ_PER_S, generated / _GENERATED_PER_S)


def _has_room(facts: Facts, entry: Entry) -> bool:
    gpu = facts.on_gpu
    if gpu is not None and gpu.memory_bytes:
        return recommend.needed_bytes(entry) <= gpu.memory_bytes * _GPU_SHARE
    memory = facts.hardware.memory_bytes
    return memory is None or recommend.needed_bytes(entry) <= memory * recommend.MEMORY_SHARE


def _convert(facts: Facts) -> Iterator[Advice]:
    """AMX computes Q8_0 and not Q5_0, which small models in Q4_K_M consist of."""
    header, abilities = facts.header, facts.abilities
    if header is None or abilities is None or facts.on_gpu is not None or facts.kind != "native" or "AMX" not in abilities.features:
        return
    share = precision.slow_share(header)
    if "amx" in facts.hardware.features and share > 0.5:  # noqa: PLR2004 - most of it
        yield Advice(
            "precision",
            f"{share:.0%} of this file's weights are of types that AMX does not speed up; in Q8_0 such a model read prompts three times "
            "faster on a processor with AMX, at a third more memory",
            f"`monkeycode model convert {facts.entry.id if facts.entry else 'FILE'} --to q8_0`",
        )


def _budget(facts: Facts) -> Iterator[Advice]:
    """The window that is read in two seconds."""
    if facts.speed is None or not facts.is_calm:
        return
    context = facts.settings.context
    wanted = context.prefix_tokens + context.suffix_tokens
    readable = int(facts.speed.read_per_s * WINDOW_S)
    most = int(facts.settings.local.context_tokens * _PREFIX_SHARE) - facts.settings.completion.max_tokens
    if readable < wanted:
        words = f"a new document's window of {wanted} tokens takes {wanted / facts.speed.read_per_s:.0f} s to read; in {WINDOW_S:g} s it is {readable}, to which it shrinks by itself"
        yield Advice("window", words, _window(max(_LEAST_WINDOW, readable), "settles it"))
    elif readable > _ROOM * wanted and min(readable / _ROOM, most) > wanted:
        words = f"{readable} tokens are read in {WINDOW_S:g} s, so the model can be shown more than {wanted}"
        yield Advice("window", words, _window(min(int(readable / _ROOM), most, _LARGEST_WINDOW), "shows it more"))


def _window(tokens: int, what: str) -> str:
    prefix = int(tokens * _PREFIX_SHARE) // 32 * 32
    return f"context.prefixTokens = {prefix}, context.suffixTokens = {max(32, (tokens - prefix) // 32 * 32)} {what}."


def _chunk(facts: Facts) -> Iterator[Advice]:
    """How many tokens are read in one go: on a GPU what an urgent ask waits for, on a processor what a cancel may lose."""
    if facts.speed is None or not facts.is_calm or facts.kind != "native":
        return
    present = facts.settings.local.batch_tokens
    seconds = present / facts.speed.read_per_s
    if facts.on_gpu is not None and seconds < _GPU_CHUNK_S / 2:
        best = min(2048, _power_of_2(facts.speed.read_per_s * _GPU_CHUNK_S))
        if best >= 2 * present:
            words = f"a chunk of {present} tokens takes {seconds * 1e3:.0f} ms on the GPU; larger ones are read faster and delay nobody"
            yield Advice("chunk", words, f"Set local.batchTokens to {best}.")
    elif seconds > _CPU_CHUNK_S:
        best = max(32, _power_of_2(facts.speed.read_per_s * _CPU_CHUNK_S))
        if best < present:
            words = f"a chunk of {present} tokens takes {seconds:.1f} s to read, and what is cancelled within one is lost"
            yield Advice("chunk", words, f"Set local.batchTokens to {best}.")


def _threads(facts: Facts) -> Iterator[Advice]:
    threads, cores = facts.settings.local.threads, facts.hardware.cores
    if threads > cores:
        words = f"local.threads is {threads}, and there are {cores} cores: more threads than cores wait for each other"
        yield Advice("threads", words, "Set local.threads to 0.", is_loss=True)
    elif 0 < threads < cores and facts.on_gpu is None:
        yield Advice("threads", f"local.threads is {threads} of {cores} cores; the others are left to other programs")


def _managed(facts: Facts) -> Iterator[Advice]:
    if facts.kind == "managed":
        unused = _unused(facts)
        leaves = f"; it is built for every processor and leaves this one's {' and '.join(unused)} unused" if unused else ""
        yield Advice("prebuilt engine", f"against the full engine {_MANAGED_LACKS}{leaves}", f"The full engine: `{INSTALL}`")


def _rebuild(facts: Facts) -> str:
    return f"`{INSTALL if facts.kind == 'managed' else REBUILD}`"


def _pull(entry: Entry) -> str:
    return f'`monkeycode model pull {entry.id}`, then local.model = "{entry.id}"'


def _power_of_2(value: float) -> int:
    """The largest power of two that is not above it."""
    return 1 << max(0, int(value).bit_length() - 1)


def _gb(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB"
