from __future__ import annotations

import json
from pathlib import Path

import msgspec

from monkeycode_lsp.engines.local import hardware
from monkeycode_lsp.engines.local.decoder import Options
from monkeycode_lsp.engines.local.managed import command as managed_command

PLAIN = Options(model=Path("/m.gguf"), slots=3, context_tokens=1000, threads=5)


def arguments(n_layers=24, **more):
    wanted = managed_command.server(msgspec.structs.replace(PLAIN, **more), n_layers=n_layers)
    return " ".join(managed_command.command(wanted, "program"))


def test_a_program_gets_every_setting_that_it_knows():
    assert arguments() == (
        "program --model /m.gguf --host 127.0.0.1 --port 0 --ctx-size 3000 --parallel 3 --batch-size 128 --ubatch-size 128 "
        "--threads 5 --threads-http 32 --flash-attn auto"
    )
    more = arguments(
        main_gpu=1, mmap=False, mlock=True, extra_buffers=False, kv_type="q8_0", batch_tokens=64, lora=(("/a", 1.0), ("/b", 0.5))
    )
    assert more.endswith(
        "--batch-size 64 --ubatch-size 64 --threads 5 --threads-http 32 --main-gpu 1 --split-mode none "
        "--cache-type-k q8_0 --cache-type-v q8_0 --lora /a --lora-scaled /b:0.5 --no-repack --no-mmap --mlock --flash-attn on"
    )
    assert "--tensor-split 3.0,1.0" in arguments(tensor_split=(3.0, 1.0), main_gpu=1)
    assert "--split-mode" not in arguments(tensor_split=(3.0, 1.0), main_gpu=1)


def test_a_batch_is_short_enough_for_a_cancel_and_has_a_row_for_every_slot():
    assert "--batch-size 128 " in arguments(batch_tokens=2048)
    assert "--batch-size 20 " in arguments(batch_tokens=16, slots=20)


def test_every_ask_of_many_windows_can_wait_and_the_server_still_say_that_it_is_well():
    assert "--threads-http 64 " in arguments(slots=16)


def test_threads_follow_the_physical_cores():
    assert f"--threads {hardware.physical_cores()} " in arguments(threads=0)


def test_fewer_layers_after_a_crash_are_counted_from_the_models_own():
    assert "--n-gpu-layers" not in arguments()
    assert "--n-gpu-layers 12 " in arguments(gpu_share=0.5)
    assert "--n-gpu-layers 5 " in arguments(gpu_layers=10, gpu_share=0.5)
    assert "--n-gpu-layers 12 " in arguments(gpu_layers=99, gpu_share=0.5)
    assert "--n-gpu-layers 0 " in arguments(gpu_share=0.5, n_layers=0)
    assert arguments(gpu_layers=0).endswith("--n-gpu-layers 0 --flash-attn off")


def test_the_package_gets_the_same_in_one_word_and_no_key():
    wanted = managed_command.server(PLAIN, n_layers=24)
    *start, options = managed_command.command(wanted, "")
    assert start[-2:] == [managed_command.SERVER, "serve"]
    assert msgspec.convert(json.loads(options), managed_command.Server) == wanted
    assert "key" not in options


def test_variables_that_would_overrule_us_are_left_out():
    assert managed_command.environment({"LLAMA_ARG_HOST": "example.com", "PATH": "/bin"}) == {"PATH": "/bin"}
