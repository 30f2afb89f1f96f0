from __future__ import annotations

import pytest

from tests.unit.models import samples
from tests.unit.models.hub_server import HubServer


@pytest.fixture
def hub_server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with HubServer(samples.CONTENT) as server:
        yield server


@pytest.fixture
def heard():
    """A progress callback that keeps what it is told."""
    return Heard()


class Heard:
    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int | None]] = []

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        self.calls.append((stage, done, total))

    @property
    def stages(self) -> list[str]:
        return list(dict.fromkeys(stage for stage, _, _ in self.calls))
