"""`hubbub store check`, `backup`, `restore` and `export`, on stores of both kinds."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from collector.oracle import METRIC, REGISTRY, Oracle
from hubbub.collector.acceptance import Acceptance
from hubbub.collector.store import Store
from hubbub.collector.store.backend import writing
from hubbub.shared import decode_batch


def hubbub(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line as an operator would."""
    command = [sys.executable, "-c", "from hubbub.shared.command_line import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment or None)


@pytest.fixture
def oracle(store: Store) -> Iterator[Oracle]:
    """A store with some batches in it."""
    store.prepare(REGISTRY)
    shard = store.shard(REGISTRY)
    filled = Oracle()
    for _ in range(5):
        body, slots = filled.batch()
        shard.commit([Acceptance(REGISTRY).judge(decode_batch(body))])
        filled.acknowledge(slots)
    shard.close()
    yield filled
    store.close()


def test_a_backup_is_checked_and_restored(oracle: Oracle, address: str, tmp_path: Path) -> None:
    assert hubbub("store", "check", "--store", address).stdout == "no faults\n"
    backup, copy = tmp_path / "backup.db", f"sqlite:///{tmp_path}/copy.db"
    told = hubbub("backup", str(backup), "--store", address)
    assert told.stdout == f"{backup}: 10 rows\n"  # 5 ids, 3 tallies, a metric and the horizon
    told = hubbub("restore", str(backup), "--store", copy)
    assert told.stdout == f"{copy}: 10 rows\n"
    kept = Store(copy)
    oracle.verify({period: kept.tally(METRIC, period, period) for period in oracle.periods()})
    kept.close()
    again = hubbub("restore", str(backup), "--store", copy)
    assert (again.returncode, again.stderr) == (
        1,
        f"Error: {copy}: is not empty; allowed: a store with nothing in it\n",
    )


def test_damage_is_told_and_gives_exit_code_1(oracle: Oracle, store: Store, address: str) -> None:
    with writing(store.engine) as connection:
        connection.execute(text("UPDATE tally SET n = 0 WHERE cohort = 0"))
    told = hubbub("store", "check", "--store", address)
    assert told.returncode == 1
    assert told.stdout.endswith("3 faults\n")
    assert "tally of oracle version 1" in told.stdout
    told = hubbub("store", "check", "--store", address, "--json")
    assert (told.returncode, len(json.loads(told.stdout))) == (1, 3)


def test_the_store_may_be_named_by_the_environment(oracle: Oracle, address: str, tmp_path: Path) -> None:
    out = str(tmp_path / "out.json")
    told = hubbub("export", "--format", "json", "--out", out, HUBBUB_STORE=address, HUBBUB_MIN_COHORT_REPORTS="1")
    assert told.stdout == f"{out}: 3 rows\n"
    assert len(json.loads((tmp_path / "out.json").read_text())) == 3


@pytest.mark.parametrize(
    "arguments",
    [("store", "check"), ("backup", "out.db"), ("export", "--format", "csv", "--out", "out.csv")],
)
def test_a_store_that_is_not_there_is_not_made(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    told = hubbub(*arguments, "--store", f"sqlite:///{tmp_path}/none.db")
    assert (told.returncode, told.stderr) == (1, f"Error: store: {tmp_path}/none.db is not there\n")
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_does_not_answer_is_told_in_one_line() -> None:
    told = hubbub("store", "check", "--store", "postgresql://hubbub@127.0.0.1:1/hubbub")
    assert told.returncode == 1
    assert told.stderr.startswith("Error: store: connection failed")
    assert len(told.stderr.splitlines()) == 1
