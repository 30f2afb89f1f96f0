"""Facts of machines, engines and models, and what they are advised."""

from __future__ import annotations

import msgspec
import pytest

from monkeycode_lsp import config
from monkeycode_lsp.engines.local import abilities, advice
from monkeycode_lsp.engines.local.advice import Facts
from monkeycode_lsp.engines.local.measure import Speed
from monkeycode_lsp.models import catalogue, gguf
from monkeycode_lsp.models.hardware import Gpu, Hardware

GB = 10**9
AVX512 = abilities.read("CPU : AVX2 = 1 | AVX512 = 1")
AMX = abilities.read("CPU : AVX2 = 1 | AVX512 = 1 | AMX_INT8 = 1")
CUDA = abilities.read("CUDA : ARCHS = 890 | CPU : AVX2 = 1 | AVX512 = 1")
VULKAN = abilities.read("CPU : AVX2 = 1 | AVX512 = 1", ("Vulkan0",))
BLAS = abilities.read("CPU : AVX2 = 1 | AVX512 = 1", ("BLAS",))
PORTABLE = abilities.read("CPU : AVX2 = 1")
CARD = Gpu("cuda", "Card", 24 * GB)
THROUGH_VULKAN = Gpu("vulkan", "Card")


def machine(cores=8, gpus=(), memory_gb=32, features=("avx2", "avx512")):
    return Hardware("linux", "x86_64", "", cores, memory_gb * GB, frozenset(features), gpus)


def model(n_layers=24, n_bytes=491_400_064, **elements):
    return gguf.Header(3, "qwen2", "", "", "Q4_K_M", "", 32768, n_layers, "gpt2/qwen2", {}, 1, n_bytes, "model", elements)


def speed(read, generated=60.0, busy=0.0):
    return Speed(256, float(read), generated, busy)


def settings(**local):
    return config.Config(local=config.Local(**local))


def check(subject=None, **facts):
    """What is said, or what is said of one subject."""
    told = advice.advise(Facts(**{"hardware": machine(), "abilities": AVX512, "catalogue": catalogue.entries(), **facts}))
    return [tip for tip in told if subject is None or tip.subject == subject]


def one(subject, **facts):
    (tip,) = check(subject, **facts)
    return tip


def test_a_machine_whose_engine_suits_it_is_told_nothing():
    assert check(speed=speed(900), header=model(Q4_K=1), entry=catalogue.find("1.5b"), hardware=machine(memory_gb=4)) == []


def test_without_any_fact_nothing_is_said():
    assert check(abilities=None) == []


@pytest.mark.parametrize(
    ("built", "gpus", "kind", "words", "remedy"),
    [
        (AVX512, (CARD,), "native", "Card is here, and the present build cannot use it: it was made without CUDA", advice.REBUILD),
        (AVX512, (CARD, THROUGH_VULKAN), "native", "without CUDA and Vulkan", advice.REBUILD),
        (AVX512, (Gpu("rocm", "Radeon"),), "managed", "the prebuilt engine cannot use it: it was made without ROCm", advice.INSTALL),
        (AVX512, (Gpu("metal", "M3"),), "native", "without Metal", advice.REBUILD),
        (AVX512, (Gpu("sycl", ""),), "native", "A GPU is here", advice.REBUILD),
    ],
)
def test_a_gpu_that_the_build_cannot_use_is_named_with_the_command(built, gpus, kind, words, remedy):
    tip = one("GPU", abilities=built, hardware=machine(gpus=gpus), kind=kind)
    assert words in tip.words
    assert tip.remedy == f"`{remedy}`"
    assert tip.is_loss


def test_a_gpu_that_is_used_in_the_slower_way_is_told():
    tip = one("GPU", abilities=VULKAN, hardware=machine(gpus=(CARD, THROUGH_VULKAN)))
    assert tip.words == "Card is used through Vulkan; CUDA is the quicker way"
    assert not tip.is_loss


def test_a_gpu_that_the_build_can_use_is_fine_without_its_other_interfaces():
    assert check("GPU", abilities=CUDA, hardware=machine(gpus=(CARD, THROUGH_VULKAN))) == []


def test_a_gpu_that_is_switched_off_is_told_where_it_could_be_used():
    off = settings(gpu_layers=0)
    assert "gpuLayers is 0" in one("GPU", abilities=CUDA, hardware=machine(gpus=(CARD,)), settings=off).words
    assert check("GPU", abilities=AVX512, hardware=machine(gpus=(CARD,)), settings=off) == []


@pytest.mark.parametrize(
    ("built", "features", "words"),
    [
        (PORTABLE, ("avx2", "avx512"), "does not use this processor's AVX512"),
        (AVX512, ("avx2", "avx512", "amx"), "does not use this processor's AMX"),
        (PORTABLE, ("avx2", "avx512", "amx"), "AMX and AVX512"),
        (BLAS, ("avx2", "avx512"), "BLAS"),
    ],
)
def test_a_build_that_does_less_than_the_processor_is_rebuilt(built, features, words):
    tip = one("processor", abilities=built, hardware=machine(features=features))
    assert words in tip.words
    assert tip.remedy == f"`{advice.REBUILD}`"


def test_the_processor_does_not_matter_where_a_gpu_computes():
    assert check("processor", abilities=CUDA, hardware=machine(gpus=(CARD,), features=("avx2", "avx512", "amx"))) == []


@pytest.mark.parametrize(("memory_gb", "layers"), [(80, 29), (6, 29), (4, 18), (1, 2), (0, 0)])
def test_as_many_layers_as_fit_beside_the_buffers(memory_gb, layers):
    assert advice.layers_that_fit(model(n_layers=28, n_bytes=int(4.7 * GB)), memory_gb * GB) == layers


@pytest.mark.parametrize(
    ("memory_gb", "wanted", "words"),
    [(4, -1, "about 18 of the model's 29 layers fit Card"), (4, 40, "about 18"), (24, 10, "gpuLayers is 10, and all 29 layers fit")],
)
def test_layers_and_memory_that_do_not_suit_each_other_are_told(memory_gb, wanted, words):
    gpus = (msgspec.structs.replace(CARD, memory_bytes=memory_gb * GB),)
    large = model(n_layers=28, n_bytes=int(4.7 * GB))
    assert words in one("GPU layers", abilities=CUDA, hardware=machine(gpus=gpus), header=large, settings=settings(gpu_layers=wanted)).words


@pytest.mark.parametrize(("memory_gb", "wanted"), [(4, 10), (24, -1), (24, 29), (24, 99)])
def test_layers_that_fit_are_left_alone(memory_gb, wanted):
    gpus = (msgspec.structs.replace(CARD, memory_bytes=memory_gb * GB),)
    large = model(n_layers=28, n_bytes=int(4.7 * GB))
    assert check("GPU layers", abilities=CUDA, hardware=machine(gpus=gpus), header=large, settings=settings(gpu_layers=wanted)) == []


@pytest.mark.parametrize(
    ("here", "read", "generated", "advised"),
    [
        ("0.5b", 320, 60, None),
        ("0.5b", 1100, 80, "1.5b"),
        ("0.5b", 1100, 25, None),
        ("0.5b", 8000, 400, "7b"),
        ("1.5b", 60, 6, "0.5b"),
        ("1.5b", 110, 20, None),
        ("7b", 20, 2, "0.5b"),
        ("7b", 95, 9, "1.5b"),
        ("0.5b", 20, 3, None),
    ],
)
def test_the_model_follows_the_measured_speed(here, read, generated, advised):
    told = check("another model", speed=speed(read, generated), entry=catalogue.find(here), header=model(Q4_K=1))
    names = [] if advised is None else [catalogue.find(advised).id]
    assert [tip.remedy for tip in told] == [f'`monkeycode model pull {name}`, then local.model = "{name}"' for name in names]


def test_a_larger_model_needs_its_memory_too():
    quick = {"speed": speed(8000, 400), "entry": catalogue.find("0.5b")}
    assert "1.5B" in one("another model", hardware=machine(memory_gb=4), **quick).words
    assert check("another model", hardware=machine(memory_gb=2), **quick) == []
    small_card = machine(gpus=(msgspec.structs.replace(CARD, memory_bytes=3 * GB),))
    assert "1.5B" in one("another model", hardware=small_card, abilities=CUDA, **quick).words


def test_no_restricted_model_is_advised():
    told = check("another model", speed=speed(100_000, 9_000), entry=catalogue.find("0.5b"))
    restricted = [entry.id for entry in catalogue.entries() if entry.restricted]
    assert restricted
    assert not any(name in tip.remedy for tip in told for name in restricted)


def test_speeds_of_a_busy_machine_choose_nothing():
    told = check(speed=speed(20, 2, busy=4.0), entry=catalogue.find("7b"))
    assert [tip.subject for tip in told] == ["other work"]
    assert "4.0 of 8 cores were at work" in told[0].words


def test_where_the_system_does_not_say_how_busy_it_is_the_speeds_are_believed():
    assert check("another model", speed=speed(20, 2, busy=None), entry=catalogue.find("7b"))


def test_converting_is_advised_only_where_a_gain_was_measured():
    mostly_q5_0 = model(Q5_0=62, Q8_0=22, Q4_K=16)
    with_amx = machine(features=("avx2", "avx512", "amx"))
    entry = catalogue.find("0.5b")
    tip = one("precision", header=mostly_q5_0, abilities=AMX, hardware=with_amx, entry=entry)
    assert "62%" in tip.words
    assert tip.remedy == f"`monkeycode model convert {entry.id} --to q8_0`"
    assert check("precision", header=mostly_q5_0, abilities=AVX512, entry=entry) == []
    assert check("precision", header=mostly_q5_0, abilities=AMX, hardware=with_amx, entry=entry, kind="managed") == []
    assert check("precision", header=model(Q8_0=100), abilities=AMX, hardware=with_amx, entry=entry) == []


@pytest.mark.parametrize(
    ("read", "words", "remedy"),
    [
        (320, "1280 tokens takes 4 s to read; in 2 s it is 640", "context.prefixTokens = 512, context.suffixTokens = 128 settles it."),
        (50, "takes 26 s", "context.prefixTokens = 128, context.suffixTokens = 32 settles it."),
        (3000, "6000 tokens are read in 2 s", "context.prefixTokens = 1600, context.suffixTokens = 384 shows it more."),
        (50_000, "100000 tokens", "context.prefixTokens = 2528, context.suffixTokens = 640 shows it more."),
    ],
)
def test_the_window_is_what_is_read_in_two_seconds(read, words, remedy):
    tip = one("window", speed=speed(read))
    assert words in tip.words
    assert tip.remedy == remedy


@pytest.mark.parametrize("read", [640, 1000, 1900])
def test_a_window_that_suits_the_speed_is_left_alone(read):
    assert check("window", speed=speed(read)) == []


@pytest.mark.parametrize(
    ("built", "read", "tokens", "advised"),
    [
        (AVX512, 320, 128, None),
        (AVX512, 100, 128, 64),
        (AVX512, 20, 128, 32),
        (AVX512, 320, 2048, 256),
        (AVX512, 20, 32, None),
        (CUDA, 20_000, 128, 1024),
        (CUDA, 90_000, 128, 2048),
        (CUDA, 20_000, 2048, None),
        (CUDA, 2_000, 128, None),
    ],
)
def test_the_chunk_follows_the_speed(built, read, tokens, advised):
    hardware = machine(gpus=(CARD,)) if built is CUDA else machine()
    told = check("chunk", abilities=built, hardware=hardware, speed=speed(read), settings=settings(batch_tokens=tokens))
    assert [tip.remedy for tip in told] == ([] if advised is None else [f"Set local.batchTokens to {advised}."])


@pytest.mark.parametrize(("threads", "words", "is_loss"), [(16, "more threads than cores", True), (4, "4 of 8 cores", False)])
def test_threads_that_do_not_suit_the_cores_are_told(threads, words, is_loss):
    tip = one("threads", settings=settings(threads=threads))
    assert words in tip.words
    assert tip.is_loss is is_loss


@pytest.mark.parametrize("threads", [0, 8])
def test_threads_that_suit_the_cores_are_left_alone(threads):
    assert check("threads", settings=settings(threads=threads)) == []


def test_the_prebuilt_engine_says_what_it_lacks():
    tip = one("prebuilt engine", kind="managed", abilities=PORTABLE)
    for words in ("no drafts", "ahead while you are idle", "cuts in two", "leaves this one's AVX512 unused"):
        assert words in tip.words
    assert advice.INSTALL in tip.remedy
    assert check("processor", kind="managed", abilities=PORTABLE) == []
