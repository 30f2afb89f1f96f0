"""Does the machine run on its battery?"""

from __future__ import annotations

import sys

import pytest

from monkeycode_lsp.power import is_battery_report, on_battery

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux's folder of power supplies")


def supplies(folder, **kinds):
    """Power supplies by name, each with its files."""
    for name, files in kinds.items():
        (folder / name).mkdir()
        for file, text in files.items():
            (folder / name / file).write_text(text + "\n")
    return folder


MAINS = {"type": "Mains", "online": "1"}
UNPLUGGED = {"type": "Mains", "online": "0"}
DRAINING = {"type": "Battery", "status": "Discharging"}
CHARGING = {"type": "Battery", "status": "Charging"}
MOUSE = {"type": "Battery", "scope": "Device", "status": "Discharging"}


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ({"AC": UNPLUGGED, "BAT0": DRAINING}, True),
        ({"BAT0": DRAINING}, True),
        ({"BAT0": CHARGING, "BAT1": DRAINING}, True),
        ({"AC": MAINS, "BAT0": CHARGING}, False),
        ({"AC": MAINS, "BAT0": DRAINING}, False),  # a weak charger
        ({"BAT0": DRAINING, "ucsi": {"type": "USB", "online": "1"}}, False),
        ({"BAT0": DRAINING, "ucsi": {"type": "USB", "online": "0"}}, True),
        ({"BAT0": {"type": "Battery", "status": "Full"}}, False),
        ({"BAT0": {"type": "Battery", "status": "Unknown"}}, False),
        ({"AC": UNPLUGGED}, False),
        ({"hid": MOUSE}, False),
        ({"AC": MAINS, "hid": MOUSE}, False),
        ({"odd": {}}, False),
        ({}, False),
    ],
)
def test_the_supplies_tell(tmp_path, kinds, expected):
    assert on_battery(supplies(tmp_path, **kinds)) is expected


def test_what_cannot_be_found_out_is_mains(tmp_path):
    assert on_battery(tmp_path / "nothing") is False
    (tmp_path / "file").write_bytes(b"\xff")
    assert on_battery(tmp_path / "file") is False
    (tmp_path / "odd" / "type").mkdir(parents=True)
    (tmp_path / "binary").mkdir()
    (tmp_path / "binary" / "type").write_bytes(b"\xff" * 100_000)
    assert on_battery(tmp_path) is False


def test_this_machine_can_be_asked():
    assert on_battery() in (True, False)


def test_what_macos_says():
    assert is_battery_report(
        "Now drawing from 'Battery Power'\n -InternalBattery-0 (id=1)\t80%; discharging; 3:21 remaining present: true\n"
    )
    assert not is_battery_report("Now drawing from 'AC Power'\n -InternalBattery-0 (id=1)\t80%; charging; present: true\n")
    assert not is_battery_report("")
