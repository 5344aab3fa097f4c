"""Many that commit, seal, write and purge at once: nothing is lost, nothing is doubled, nothing comes back."""

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

import pytest
from sqlalchemy import event, func, select, update

from collector.archive_places import faults, sealed_file
from collector.archived import archiver_of, archiving, commit, in_files, seal_all, states, verify_archive
from collector.oracle import REGISTRY, Oracle
from collector.postgres import Postgres
from hubbub.collector.archive import keeping
from hubbub.collector.archive.keeping import Archiver, write_sealed
from hubbub.collector.archive.place import Place
from hubbub.collector.errors import ArchiveError, StoreUnavailableError
from hubbub.collector.store import Store
from hubbub.collector.store.backend import writing
from hubbub.collector.store.files import sealed
from hubbub.collector.store.schema import archive_file, archive_part


def test_sealing_and_writing_while_batches_are_committed_loses_nothing_and_doubles_nothing(
    ready: Store, folder: Place
) -> None:
    oracle = Oracle()
    archivers = [archiver_of(ready, folder.address) for _ in range(2)]
    ended = threading.Event()
    rounds: list[Archiver] = []

    def write(archiver: Archiver) -> None:
        with archiving(ready, archiver) as shard:
            while (len(rounds) < 12 or len(folder.files()) <= 4) and not ended.wait(0.005):
                commit(shard, oracle, 1)

    def keep(archiver: Archiver) -> None:
        while not ended.wait(0.005):  # SQLite is not fair: who never pauses may keep others waiting for too long
            seal_all(ready)
            archiver.work(first=True)
            rounds.append(archiver)

    with ThreadPoolExecutor(4) as pool:
        keepers = [pool.submit(keep, archiver) for archiver in archivers]
        writers = [pool.submit(write, archiver) for archiver in archivers]
        try:
            for writer in writers:
                writer.result(60)
        finally:
            ended.set()
        for keeper in keepers:
            keeper.result(60)
    assert verify_archive(ready, folder, oracle).total() == oracle.acknowledged
    seal_all(ready)
    archivers[0].work()
    assert in_files(ready, folder).total() == oracle.acknowledged
    assert len(folder.files()) > 4
    assert faults(ready, folder) == []


@pytest.mark.parametrize("anew", [True, False])
def test_on_postgresql_nobody_seals_a_file_that_a_commit_is_adding_to(
    postgres: Postgres, folder: Place, anew: bool
) -> None:
    store = Store(postgres.database(uuid.uuid4().hex))
    store.prepare(REGISTRY)
    archiver, oracle, tried = archiver_of(store, folder.address), Oracle(), []

    def seal_at_once() -> None:
        with writing(store.engine) as other:
            other.exec_driver_sql("SET LOCAL lock_timeout = '20ms'")
            other.execute(update(archive_file).values(state="sealed"))

    def try_to_seal(_: object) -> None:
        with pytest.raises(StoreUnavailableError, match="lock timeout"):
            seal_at_once()
        tried.append(True)

    with archiving(store, archiver) as shard:
        commit(shard, oracle, 1)
        if anew:
            shard.keep(archiver.parts())  # it knows of no file, and finds the open one
        event.listen(shard._connection, "commit", try_to_seal)
        commit(shard, oracle, 1)
    assert tried
    store.close()


def hold_up(monkeypatch: pytest.MonkeyPatch, name: str, meanwhile: Callable[[], object]) -> None:
    """Have something happen just before the next call of a step of writing a file, and only then."""
    step = getattr(keeping, name)

    def held_up(*arguments: object) -> object:
        monkeypatch.setattr(keeping, name, step)
        meanwhile()
        return step(*arguments)

    monkeypatch.setattr(keeping, name, held_up)


@pytest.mark.parametrize("step", ["content", "write_file", "mark_written", "drop_parts"])
def test_two_that_write_the_same_file_do_no_harm(
    ready: Store, place: Place, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them does all of it while the other stands before any step, and then goes on as if nothing had been."""
    oracle = Oracle()
    sealed_file(ready, place, oracle)
    [kept] = sealed(ready.engine)
    hold_up(monkeypatch, step, lambda: write_sealed(ready.engine, place, kept))
    write_sealed(ready.engine, place, kept)
    assert states(ready) == {"written": 1}
    assert in_files(ready, place) == verify_archive(ready, place, oracle)
    assert faults(ready, place) == []


@pytest.mark.parametrize("step", ["content", "write_file", "mark_written", "drop_parts"])
def test_a_file_that_is_purged_while_it_is_written_does_not_come_back(
    ready: Store, folder: Place, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = Oracle()
    archiver = sealed_file(ready, folder, oracle)
    [kept] = sealed(ready.engine)
    hold_up(monkeypatch, step, lambda: archiver.purge(date.max))
    write_sealed(ready.engine, folder, kept)
    archiver.purge(date.max)
    assert (folder.files(), states(ready)) == ([], {})
    with ready.engine.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(archive_part)) == 0


def test_a_file_that_is_written_while_it_is_purged_is_purged_the_next_time(
    ready: Store, folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    archiver = sealed_file(ready, folder, Oracle())
    [kept] = sealed(ready.engine)
    hold_up(monkeypatch, "forget", lambda: write_sealed(ready.engine, folder, kept))
    assert archiver.purge(date.max) == 0
    assert states(ready) == {"written": 1}
    assert archiver.purge(date.max) == 1
    assert (folder.files(), states(ready)) == ([], {})


def test_files_are_deleted_before_they_are_struck_off(
    ready: Store, folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = Oracle()
    archiver = archiver_of(ready, folder.address)
    with archiving(ready, archiver) as shard:
        commit(shard, oracle, 3, reports=4)
    seal_all(ready)
    archiver.work()

    def fail(*_: object) -> None:
        raise ArchiveError("out of order")

    with monkeypatch.context() as broken:
        broken.setattr(Place, "delete", fail)
        with pytest.raises(ArchiveError):
            archiver.purge(date.max)
    assert states(ready) == {"written": 4}
    assert archiver.purge(oracle.latest - timedelta(days=1)) == 2
    assert len(folder.files()) == 2
