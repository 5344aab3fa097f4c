"""Stores for tests, as fixtures."""

import uuid
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from collector.oracle import METRIC, REGISTRY, Oracle
from collector.postgres import Postgres
from hubbub.collector import Tally
from hubbub.collector.acceptance import Acceptance, Judged
from hubbub.collector.store import Store
from hubbub.shared import decode_batch


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server for the whole run."""
    server = Postgres()
    yield server
    server.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/hubbub.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.database(f"t{uuid.uuid4().hex}")


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    """An empty store, of each kind in turn."""
    opened = Store(address)
    yield opened
    opened.close()


@pytest.fixture
def ready(store: Store) -> Store:
    store.prepare(REGISTRY)
    return store


def judged(body: bytes) -> Judged:
    return Acceptance(REGISTRY).judge(decode_batch(body))


def verify(store: Store, oracle: Oracle) -> None:
    oracle.verify({period: store.tally(METRIC, period, period) for period in oracle.periods()})


DAY = date(2026, 11, 16)


def counted(seed: int, day: date | None = DAY) -> Tally:
    """A small tally that could be."""
    rng = np.random.default_rng(seed)
    tally = Tally.empty(METRIC, day, day)
    tally.n[:] = rng.integers(0, 3, size=tally.n.shape)
    tally.counts[:] = rng.integers(0, tally.n[:, None] + 1, size=tally.counts.shape)
    return tally
