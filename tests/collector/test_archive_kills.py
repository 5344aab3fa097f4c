"""Kill -9 of collectors that keep an archive: after each, archive and tally agree, and a repair leaves no fault."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from collector.archive_child import STEPS
from collector.archived import in_parts, states, verify_archive
from collector.oracle import METRIC, REGISTRY, Oracle
from collector.senders import sending
from collector.served import serving
from hubbub.collector.archive.checking import find_archive_faults, repair
from hubbub.collector.archive.place import Place
from hubbub.collector.store import Store

pytestmark = pytest.mark.unmeasured

NAMED = [step for step in STEPS if step != "random"]
LATEST_SECONDS = 0.08
"""Some files long, so that a kill falls on any moment of one."""

FAR_SECONDS = 1.0
"""The same where a file is sent to a bucket; the first of a process waits until it has met the server."""

DEAD_SECONDS = 30
"""PostgreSQL notices that somebody has gone as soon as it has done what he asked for."""

ALLOWED = ("is sealed, and not written yet; --repair writes it", "is being written; --repair deletes it")
"""What a check may find after a kill."""


class Children:
    """Collectors that are killed, one after the other."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def kill_one(self, step: str, seconds: float) -> None:
        """Let one work until it has killed itself at a step, or until so long after its first commits."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{step}\n")
        self._process.stdin.flush()
        told = self._read()
        if step == "random":
            assert told[0] == "begun"
            time.sleep(seconds)  # the moment of the kill
            os.kill(int(told[1]), signal.SIGKILL)
        while told[0] == "begun":
            told = self._read()
        assert told == ["ended", str(-signal.SIGKILL)], f"{step}: {told}"

    def _read(self) -> list[str]:
        assert self._process.stdout is not None
        return self._process.stdout.readline().split()


@contextmanager
def children(store: str, place: Place, folder: Path) -> Iterator[Children]:
    command = [sys.executable, "-m", "collector.archive_child", store, place.address]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, text=True
        )
        try:
            yield Children(process)
        finally:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            process.wait(30)
            process.stdout.close()


def wait_for_the_dead(store: Store) -> None:
    """Wait until PostgreSQL has noticed: a commit that was sent before a kill may be done after it.

    Parts, files and tally are not read in one moment, so that it must not fall between.
    """
    if store.engine.dialect.name != "postgresql":
        return
    store.close()  # what is left in the pool would be taken for the dead
    others = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    deadline = time.monotonic() + DEAD_SECONDS
    while True:
        with store.engine.connect() as connection:
            if not connection.execute(others).scalar():
                return
        assert time.monotonic() < deadline
        time.sleep(0.001)  # there is no event to wait for


def kill(address: str, place: Place, folder: Path, kills: int) -> None:
    """Kill at every named step in turn and, as often, at random; verify after each, and repair after some."""
    with closing(Store(address)) as store:
        store.prepare(REGISTRY)
        _kill(store, place, folder, kills)


def _kill(store: Store, place: Place, folder: Path, kills: int) -> None:
    chance = random.Random(kills)
    latest = LATEST_SECONDS if place.local else FAR_SECONDS
    seen: set[str] = set()
    with children(store.engine.url.render_as_string(hide_password=False), place, folder) as killed:
        for number in range(kills):
            step = "random" if number % 2 else NAMED[number // 2 % len(NAMED)]
            killed.kill_one(step, chance.uniform(0, latest))
            wait_for_the_dead(store)
            verify_archive(store, place)
            told = list(find_archive_faults(store, place))
            assert all(each.endswith(ALLOWED) for each in told), told
            seen.update(each.rpartition("; ")[2] for each in told)
            if number % 4 == 0:
                list(repair(store, place))
                assert list(find_archive_faults(store, place)) == []
                assert "sealed" not in states(store)
                assert not place.unfinished()
                verify_archive(store, place)
    list(repair(store, place))
    assert list(find_archive_faults(store, place)) == []
    assert states(store)["written"] >= kills // 4
    assert len(place.files()) == states(store)["written"]
    assert in_parts(store).total() < store.tally(METRIC).reports
    assert seen or kills < 2 * len(NAMED)


def test_a_few_kills_at_every_step_leave_archive_and_tally_agreeing(tmp_path: Path) -> None:
    kill(f"sqlite:///{tmp_path}/hubbub.db", Place(str(tmp_path / "archive")), tmp_path, 2 * len(NAMED))


@pytest.mark.slow
def test_kills_of_collectors_that_write_to_a_bucket_leave_archive_and_tally_agreeing(
    tmp_path: Path, bucket: str
) -> None:
    kill(f"sqlite:///{tmp_path}/hubbub.db", Place(f"{bucket}/{tmp_path.name}"), tmp_path, 2 * len(NAMED))


@pytest.mark.slow
def test_a_hundred_kills_leave_archive_and_tally_agreeing(tmp_path: Path, address: str) -> None:
    kill(address, Place(str(tmp_path / "archive")), tmp_path, 100)


@pytest.mark.slow
@pytest.mark.parametrize("far", [False, True], ids=["folder", "bucket"])
def test_a_served_archive_is_exact_under_load_with_kills(tmp_path: Path, bucket: str, far: bool) -> None:
    """The whole of it: two processes, batches over HTTP, files of the smallest size that an operator may choose."""
    chance = random.Random(1)
    address = f"sqlite:///{tmp_path}/hubbub.db"
    place = Place(f"{bucket}/{tmp_path.name}" if far else str(tmp_path / "archive"))
    oracle, store = Oracle(), Store(address)
    settings = {"workers": 2, "archive": place.address, "archive_reports": 1000}
    with serving(tmp_path, address, **settings) as served, sending(oracle, served.url) as senders:
        for _ in range(6):
            senders.wait_for(acknowledged=chance.randint(300, 900))
            served.kill()
            verify_archive(store, place)
            senders.wait_for(cut=1)
            served.start()
        senders.wait_for(acknowledged=1)
        senders.finish_and_verify(served)
        assert served.stop() == 0
    list(repair(store, place))
    assert list(find_archive_faults(store, place)) == []
    assert verify_archive(store, place, oracle).total() == oracle.acknowledged
    assert len(place.files()) >= 3
    store.close()
