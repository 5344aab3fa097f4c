"""Whoever needs the file for itself waits for others, and asks as often as anybody else."""

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubbub.shared.sqlite import execute_patiently, use_write_ahead_log


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[list[sqlite3.Connection]]:
    connections = [sqlite3.connect(tmp_path / "new.db", isolation_level=None, timeout=0) for _ in range(2)]
    yield connections
    for connection in connections:
        connection.close()


@pytest.mark.parametrize("statement", ["PRAGMA journal_mode = WAL", "BEGIN IMMEDIATE"])
def test_another_that_writes_is_waited_for(
    pair: list[sqlite3.Connection], statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes, waits = pair
    writes.execute("BEGIN IMMEDIATE")
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            writes.execute("COMMIT")

    monkeypatch.setattr(time, "sleep", pause)
    execute_patiently(waits, statement, 60)
    assert len(waited) == 3
    assert len(set(waited)) == 1  # nobody is put off for having waited long


def test_the_log_is_switched_to(pair: list[sqlite3.Connection]) -> None:
    for connection in pair:
        use_write_ahead_log(connection, 60)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_not_for_ever(pair: list[sqlite3.Connection]) -> None:
    writes, switches = pair
    writes.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        use_write_ahead_log(switches, 0.02)


def test_and_not_for_anything_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other.db").write_bytes(b"not a database" * 1000)
    connection = sqlite3.connect(tmp_path / "other.db")
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waits for what will not change"))
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        use_write_ahead_log(connection, 60)
    connection.close()
