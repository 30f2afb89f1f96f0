from __future__ import annotations

import pytest

from monkeycode_lsp.engines.local import fit

GIB = 1024**3
SHAPE = fit.Shape(file_bytes=8 * GIB, n_layers=31, n_vocabulary=32_000, n_heads=32, kv_numbers=2_048)
USE = fit.Use(slots=4, context_tokens=4_096, batch_tokens=128, n_outputs=64, kv_number_bytes=2.0)
"""10 GiB for 32 layers with the caches: 320 MiB each, less what rounding takes."""


def layers(*free_gib, split=(), **use):
    return fit.layers(
        SHAPE,
        fit.Use(**{name: use.get(name, getattr(USE, name)) for name in USE.__struct_fields__}),
        free=[int(n * GIB) for n in free_gib],
        split=split,
    )


def test_all_layers_and_the_output_go_to_a_large_gpu():
    assert layers(24) == 32


@pytest.mark.parametrize(("free_gib", "expected"), [(0.0001, 0), (0.5, 0), (1.0, 1), (3.0, 7), (6.0, 17), (10.0, 30)])
def test_a_small_gpu_takes_what_has_room(free_gib, expected):
    assert layers(free_gib) == expected


def test_where_nothing_is_known_all_layers_are_tried():
    assert layers() == 32
    assert layers(0) == 32
    assert layers(1, 0) == 32


def test_several_gpus_add_up():
    assert layers(3, 6) == layers(3) + layers(6)
    assert layers(8, 8) == 32


def test_shares_that_the_user_chose_are_limited_by_the_fullest_gpu():
    assert layers(3, 24, split=(1, 1)) == 15
    assert layers(3, 24, split=(1, 3)) == 31
    assert layers(3, 24, split=(0, 1)) == 32
    assert layers(3, 24, split=(1,)) == layers(3)
    assert layers(3, 6, split=(0, 0)) == layers(3, 6)


def test_smaller_caches_leave_room_for_layers():
    assert layers(6, slots=1) > layers(6)
    assert layers(6, context_tokens=1_024) > layers(6)
    assert layers(6, kv_number_bytes=1.0625) > layers(6)
