from __future__ import annotations

import os

from monkeycode_lsp.engines.local import hardware


def test_there_are_at_least_one_and_at_most_all_cores():
    assert 1 <= hardware.physical_cores() <= (os.cpu_count() or 1)


def test_the_processor_has_a_name_that_stays():
    assert hardware.processor()
    assert hardware.processor() == hardware.processor()


def test_no_more_cores_are_busy_than_there_are():
    busy = hardware.busy_cores(0.05)
    assert busy is None or 0 <= busy <= (os.cpu_count() or 1) + 2  # the system counts in steps of 10 ms
