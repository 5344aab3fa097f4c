"""What all tests of the client need."""

from collections.abc import Iterator

import pytest

from client.clients import MONDAY
from hubbub.client.consent import VARIABLES
from hubbub.client.testing import FrozenClock, InMemoryCollector


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(MONDAY)


@pytest.fixture
def collector() -> Iterator[InMemoryCollector]:
    with InMemoryCollector() as running:
        yield running


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever whoever runs the tests thinks of telemetry."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
