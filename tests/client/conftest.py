"""What all tests of the client need."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from client.clients import MONDAY, with_reports
from client.scripted import Scripted
from hubbub.client import Client
from hubbub.client.consent import VARIABLES
from hubbub.client.testing import FrozenClock


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(MONDAY)


@pytest.fixture
def collector() -> Iterator[Scripted]:
    """A collector that behaves until its script tells it not to."""
    with Scripted() as running:
        yield running


@pytest.fixture
def client(tmp_path: Path, clock: FrozenClock, collector: Scripted) -> Client:
    return with_reports(collector.url, tmp_path, clock)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever whoever runs the tests thinks of telemetry."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
