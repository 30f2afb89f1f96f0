"""What was proved of a model at an address: kept, found again, and applied."""

from __future__ import annotations

import stat
import sys
import time
from pathlib import Path

import msgspec
import pytest

from monkeycode_lsp import prompt
from monkeycode_lsp.config import Endpoint as Settings
from monkeycode_lsp.engines.remote import proofs
from monkeycode_lsp.engines.remote.endpoint import Endpoint
from monkeycode_lsp.engines.remote.proofs import Proof
from monkeycode_lsp.engines.remote.stream.reading import Limits
from tests.unit.engines.remote import asking, model_server

BASE, MODEL = "http://10.0.0.7:8000", "org/Qwen2.5-Coder-7B"
QWEN = prompt.by_name("qwen2.5-coder")
CODESTRAL = prompt.by_name("codestral")


def kept(home: Path) -> Path:
    return home / "state" / "endpoint-proofs.json"


def proof(order: str | None = "spm", *, family: str = QWEN.name, days_ago: float = 0) -> Proof:
    return Proof(family, order, time.time() - days_ago * 86_400)


def test_without_a_proof_a_family_is_as_the_table_has_it() -> None:
    assert proofs.apply(QWEN, BASE, MODEL) is QWEN
    assert proofs.apply(None, BASE, MODEL) is None


def test_a_proof_turns_the_order_and_a_newer_one_turns_it_back() -> None:
    proofs.remember({(BASE, MODEL): proof("spm")})
    turned = proofs.apply(QWEN, BASE, MODEL)
    assert turned == msgspec.structs.replace(QWEN, order="spm")
    assert turned.template.startswith("{SUF}")
    proofs.remember({(BASE, MODEL): proof("psm")})
    assert proofs.apply(QWEN, BASE, MODEL) is QWEN


def test_markers_that_are_no_use_are_given_no_more() -> None:
    proofs.remember({(BASE, MODEL): proof(None)})
    assert proofs.apply(QWEN, BASE, MODEL) is None


@pytest.mark.parametrize(("base", "model"), [("http://10.0.0.8:8000", MODEL), (BASE, "other"), (BASE + MODEL, "")])
def test_a_proof_holds_for_its_model_at_its_address_only(base: str, model: str) -> None:
    proofs.remember({(BASE, MODEL): proof("spm")})
    assert proofs.apply(QWEN, base, model) is QWEN


def test_a_proof_of_another_family_proves_nothing() -> None:
    proofs.remember({(BASE, MODEL): proof("spm", family="starcoder2")})
    assert proofs.apply(QWEN, BASE, MODEL) is QWEN


@pytest.mark.parametrize("days_ago", [91, -1])
def test_a_proof_grows_old_and_does_not_come_from_the_future(days_ago: float) -> None:
    proofs.remember({(BASE, MODEL): proof("spm", days_ago=days_ago)})
    assert proofs.apply(QWEN, BASE, MODEL) is QWEN


def test_a_template_of_its_own_has_one_order_only() -> None:
    assert proofs.orders(CODESTRAL) == ("spm",)
    assert proofs.orders(QWEN) == ("psm", "spm")
    proofs.remember({(BASE, MODEL): proof("psm", family=CODESTRAL.name)})
    assert proofs.apply(CODESTRAL, BASE, MODEL) is CODESTRAL


def test_the_file_is_private_and_tells_neither_address_nor_name(home: Path) -> None:
    proofs.remember({(BASE, MODEL): proof()})
    content = kept(home).read_bytes()
    for secret in (b"10.0.0.7", b"Coder-7B"):
        assert secret not in content
    if sys.platform != "win32":
        assert stat.S_IMODE(kept(home).stat().st_mode) == 0o600
        assert stat.S_IMODE(kept(home).parent.stat().st_mode) == 0o700
    assert [path.name for path in kept(home).parent.iterdir()] == ["endpoint-proofs.json"]


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"[1]", b'{"a": 1}', b'{"a": {"family": "x", "order": "mps", "at": 1}}', b"[" * 9_000]
)
def test_a_broken_file_is_an_empty_one_and_is_mended(home: Path, content: bytes) -> None:
    kept(home).parent.mkdir(parents=True)
    kept(home).write_bytes(content)
    assert proofs.apply(QWEN, BASE, MODEL) is QWEN
    proofs.remember({(BASE, MODEL): proof("spm")})
    assert proofs.apply(QWEN, BASE, MODEL).order == "spm"


def test_the_file_does_not_grow_without_end_and_keeps_the_newest(home: Path) -> None:
    for start in range(0, 600, 100):
        proofs.remember({(BASE, f"model {number}"): proof("spm") for number in range(start, start + 100)})
    assert len(msgspec.json.decode(kept(home).read_bytes())) == 256
    assert kept(home).stat().st_size < 65_536
    assert proofs.apply(QWEN, BASE, "model 599").order == "spm"
    assert proofs.apply(QWEN, BASE, "model 0").order == "psm"


def test_two_models_have_a_proof_each() -> None:
    proofs.remember({(BASE, MODEL): proof("spm")})
    proofs.remember({(BASE, "other"): proof(None)})
    assert proofs.apply(QWEN, BASE, MODEL).order == "spm"
    assert proofs.apply(QWEN, BASE, "other") is None


def test_a_file_in_place_of_the_folder_costs_the_proof_only(home: Path) -> None:
    home.mkdir()
    kept(home).parent.write_text("in the way", encoding="utf-8")
    proofs.remember({(BASE, MODEL): proof("spm")})
    assert proofs.apply(QWEN, BASE, MODEL) is QWEN


async def test_an_endpoint_asks_as_it_was_proved() -> None:
    async with model_server.server() as server:
        proofs.remember({(server.url, model_server.QWEN): proof("spm")})
        async with asking.engine(server.url, model=model_server.QWEN) as engine:
            assert (await engine.ready()).family.order == "spm"
        limits = Limits(first_s=10, stall_s=10)
        made = Endpoint(Settings(url=server.url), limits=limits, notify=print, environ={}, proved=proofs.unproved)
        try:
            assert (await made.ready()).family.order == "psm"
        finally:
            await made.aclose()
