"""Keeping an archive: what is accepted is in the archive, once, whoever seals, writes, fails, purges or restores."""

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from pathlib import Path

import pytest
from flask import Flask
from sqlalchemy import event, func, select, update

from collector.apps import collector_of, post, running
from collector.archived import (
    archiver_of,
    archiving,
    commit,
    in_files,
    in_parts,
    seal_all,
    states,
    verify_archive,
)
from collector.oracle import METRIC, REGISTRY, Oracle
from collector.postgres import Postgres
from collector.stores import counted, judged
from hubbub.collector.archive import keeping
from hubbub.collector.archive.checking import find_archive_faults, repair
from hubbub.collector.archive.file import read_reports
from hubbub.collector.archive.keeping import Archiver, write_sealed
from hubbub.collector.archive.place import Place
from hubbub.collector.errors import ArchiveError, StoreRefusedError, StoreUnavailableError
from hubbub.collector.store import Store, migrations
from hubbub.collector.store import parts as parts_module
from hubbub.collector.store.backend import writing
from hubbub.collector.store.copying import back_up, copy
from hubbub.collector.store.files import seal, sealed
from hubbub.collector.store.migrations import MIGRATIONS
from hubbub.collector.store.schema import archive_file, archive_part, tally
from told import Run, run_here


@pytest.fixture(params=["folder", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty place, of each kind in turn."""
    if request.param == "folder":
        yield Place(str(tmp_path / "archive"))
        return
    found = Place(f"memory://{tmp_path.name}")
    yield found
    for listed in found.files() + found.unfinished():
        found.delete(listed.name)


@pytest.fixture
def folder(tmp_path: Path) -> Place:
    return Place(str(tmp_path / "archive"))


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return run_here("store", capsys, monkeypatch)


def faults(store: Store, place: Place) -> list[str]:
    return list(find_archive_faults(store, place))


def test_what_is_counted_waits_in_the_store_and_then_is_in_a_file(ready: Store, place: Place) -> None:
    oracle = Oracle()
    archiver = archiver_of(ready, place.address)
    with archiving(ready, archiver) as shard:
        for _ in range(5):
            commit(shard, oracle, 4)
        again = judged(oracle.batch(2)[0])
        assert shard.commit([again, judged(oracle.batch(1)[0])]) == [True, True]
        assert shard.commit([again]) == [False]
    assert verify_archive(ready, place).total() == 43
    assert states(ready) == {"open": 2}  # one for each period, however many commits there were
    assert place.files() == []
    archiver.work(due=True)
    assert place.files() == [], "so small a file would tell which reports came together"
    seal_all(ready)
    assert in_parts(ready).total() == 43
    archiver.work()
    assert len(place.files()) == 2
    assert states(ready) == {"written": 2}
    assert in_parts(ready).total() == 0
    verify_archive(ready, place)
    for listed in place.files():
        cohorts, packed = read_reports(place, listed.name)
        rows = [(int(cohort), bits.tobytes()) for cohort, bits in zip(cohorts, packed, strict=True)]
        assert rows == sorted(rows)
    assert faults(ready, place) == []


def test_nothing_is_kept_of_what_was_not_counted(ready: Store, folder: Place) -> None:
    """A commit that fails at its end leaves neither a tally nor a part."""
    archiver = archiver_of(ready, folder.address)
    oracle = Oracle()
    with archiving(ready, archiver) as shard:
        commit(shard, oracle, 3)

        def fail(_: object) -> None:
            raise KeyboardInterrupt

        event.listen(shard._connection, "commit", fail)
        with pytest.raises(KeyboardInterrupt):
            shard.commit([judged(oracle.batch()[0])])
    assert verify_archive(ready, folder, oracle).total() == 6


def test_what_cannot_be_kept_is_not_counted(ready: Store, folder: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = Oracle()
    with archiving(ready, archiver_of(ready, folder.address)) as shard:
        commit(shard, oracle, 3)
        monkeypatch.delattr(parts_module, "put_parts")
        with pytest.raises(NameError):
            shard.commit([judged(oracle.batch()[0])])
    assert verify_archive(ready, folder, oracle).total() == 6


def test_without_an_archive_nothing_about_one_is_executed(ready: Store) -> None:
    told: list[str] = []
    event.listen(ready.engine, "before_cursor_execute", lambda *about: told.append(about[2]))
    shard = ready.shard(REGISTRY)
    commit(shard, Oracle(), 3)
    shard.close()
    assert told
    assert not [statement for statement in told if "archive" in statement]


def test_a_writer_that_begins_anew_goes_on_with_the_file_of_the_one_before(ready: Store, folder: Place) -> None:
    """Or every restart would leave a small file behind."""
    oracle = Oracle()
    full: list[str] = []
    archiver = archiver_of(ready, folder.address, reports=10)
    archiver.seal = full.append  # type: ignore[assignment, method-assign]
    for batches in (4, 4):
        with archiving(ready, archiver) as shard:
            commit(shard, oracle, batches, reports=1)
    assert states(ready) == {"open": 1}
    assert full == []
    with archiving(ready, archiver) as shard:
        commit(shard, oracle, 2, reports=1)
        assert len(full) == 1, "it knew how much was there"
        seal(ready.engine, full[0])
        commit(shard, oracle, 1, reports=1)
    assert states(ready) == {"open": 1, "sealed": 1}
    verify_archive(ready, folder, oracle)


@pytest.mark.parametrize("limit", ["MOST_PARTS", "MOST_BYTES"])
def test_a_file_is_full_by_parts_and_by_bytes_too(
    ready: Store, folder: Place, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_module, limit, {"MOST_PARTS": 3, "MOST_BYTES": 3 * 18}[limit])
    full: list[str] = []
    archiver = archiver_of(ready, folder.address)
    archiver.seal = full.append  # type: ignore[assignment, method-assign]
    oracle = Oracle()
    with archiving(ready, archiver) as shard:
        for expected in (0, 0, 1):
            commit(shard, oracle, 1, reports=1)
            assert len(full) == expected


def test_sealing_and_writing_while_batches_are_committed_loses_nothing_and_doubles_nothing(
    ready: Store, folder: Place
) -> None:
    oracle = Oracle()
    archivers = [archiver_of(ready, folder.address) for _ in range(2)]
    ended = threading.Event()
    rounds: list[Archiver] = []

    def write(archiver: Archiver) -> None:
        with archiving(ready, archiver) as shard:
            while len(rounds) < 12 and not ended.wait(0.005):
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


def sealed_file(store: Store, place: Place, oracle: Oracle, batches: int = 5) -> Archiver:
    archiver = archiver_of(store, place.address)
    with archiving(store, archiver) as shard:
        commit(shard, oracle, batches, reports=1)
    seal_all(store)
    return archiver


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


def test_time_seals_large_files_and_those_of_periods_that_are_over(ready: Store, folder: Place) -> None:
    oracle = Oracle()
    archiver = archiver_of(ready, folder.address, oldest=oracle.latest)
    with archiving(ready, archiver) as shard:
        commit(shard, oracle, keeping.LEAST_REPORTS - 1, reports=1)
        commit(shard, oracle, 1, reports=2)  # the second is of yesterday, which is over
        commit(shard, oracle, 1, reports=1)
    with writing(ready.engine) as connection:  # a weekly metric of the same period is not
        kept = {"name": "w", "metric": "weekly", "version": 1, "period": oracle.latest - timedelta(days=1)}
        connection.execute(archive_file.insert().values(**kept, state="open", reports=0))
    archiver.work(due=True)
    assert states(ready) == {"written": 2, "open": 1}
    assert in_files(ready, folder).total() == keeping.LEAST_REPORTS + 2


def wait_until(condition: Callable[[], bool]) -> None:
    """Ask until something is so, which another thread does."""
    for _ in range(6000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError


def send(app: Flask, oracle: Oracle, batches: int) -> None:
    client = app.test_client()
    for _ in range(batches):
        body, slots = oracle.batch(1)
        assert post(client, body).status_code == 200
        oracle.acknowledge(slots)


def value(app: Flask, name: str) -> float:
    shown = collector_of(app).monitoring.show().decode()
    [line] = [line for line in shown.splitlines() if line.startswith(f"{name} ")]
    return float(line.split()[1])


def test_a_collector_keeps_its_archive_by_itself(
    address: str, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "LOOK_SECONDS", 0.05)
    oracle = Oracle()
    settings = {"store": address, "archive": place.address, "archive_reports": 10}
    with running(tmp_path, REGISTRY, **settings) as app:
        send(app, oracle, 25)
        wait_until(lambda: value(app, "hubbub_archive_files_total") >= 1)
        wait_until(lambda: value(app, "hubbub_archive_parts") < 10)
    store = Store(address)
    assert verify_archive(store, place, oracle).total() == 25
    assert faults(store, place) == []
    store.close()


@pytest.mark.parametrize("where", ["under a file", "read-only"])
def test_a_place_that_fails_holds_nobody_up_and_is_caught_up_with(
    address: str, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keeping, "LOOK_SECONDS", 0.05)
    oracle = Oracle()
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, and no folder")
    # Nobody can make a folder in /proc, not even root, for whom no folder is read-only.
    blocked.unlink() if where == "read-only" else None
    blocked.symlink_to("/proc/1/fdinfo") if where == "read-only" else None
    with running(tmp_path, REGISTRY, store=address, archive=str(blocked / "archive"), archive_reports=5) as app:
        send(app, oracle, 12)
        wait_until(lambda: value(app, "hubbub_archive_errors_total") >= 2)
        wait_until(lambda: value(app, "hubbub_archive_parts") == 12)
        assert value(app, "hubbub_archive_files_total") == 0
        send(app, oracle, 1)
        blocked.unlink()
        wait_until(lambda: value(app, "hubbub_archive_files_total") >= 1)
        wait_until(lambda: value(app, "hubbub_archive_parts") < 5)
    assert "trying again later, reports wait in the store" in caplog.text
    store = Store(address)
    assert verify_archive(store, Place(str(blocked / "archive")), oracle).total() == 13
    store.close()


def test_whatever_a_file_system_raises_the_archiver_goes_on(
    tmp_path: Path, folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "LOOK_SECONDS", 0.05)
    write, failures = Place.write, iter([RuntimeError("strange"), KeyError("stranger")])

    def fail(place: Place, name: str, content: bytes) -> None:
        for failure in failures:
            raise failure
        write(place, name, content)

    monkeypatch.setattr(Place, "write", fail)
    with running(tmp_path, REGISTRY, archive=folder.address, archive_reports=5) as app:
        send(app, Oracle(), 5)
        wait_until(lambda: value(app, "hubbub_archive_files_total") == 1)
        assert value(app, "hubbub_archive_errors_total") == 2


def test_a_collector_purges_its_archive_with_its_tallies(address: str, folder: Place, tmp_path: Path) -> None:
    oracle = Oracle()
    options = {"store": address, "archive": folder.address, "archive_reports": 1, "keep_days": 30}
    with running(tmp_path, REGISTRY, **options) as app:
        send(app, oracle, 1)
        wait_until(lambda: len(folder.files()) == 1)
        collector = collector_of(app)
        collector.purge()
        assert len(folder.files()) == 1
        collector.acceptance.clock = lambda: oracle.latest + timedelta(days=31)
        collector.purge()
        assert folder.files() == []
        assert collector.store.tally(METRIC).reports == 0


def test_what_waits_is_purged_also_where_the_archive_was_turned_off(
    address: str, folder: Place, tmp_path: Path
) -> None:
    oracle = Oracle()
    with running(tmp_path, REGISTRY, store=address, archive=folder.address) as app:
        send(app, oracle, 3)
    with running(tmp_path, REGISTRY, store=address, keep_days=30) as app:
        collector = collector_of(app)
        collector.purge()
        assert in_parts(collector.store).total() == 3
        collector.acceptance.clock = lambda: oracle.latest + timedelta(days=31)
        collector.purge()
        assert in_parts(collector.store).total() == 0


def test_a_store_of_the_first_schema_is_migrated_while_an_old_collector_goes_on(
    store: Store, folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = Oracle()
    with monkeypatch.context() as old:
        old.setattr(migrations, "MIGRATIONS", {1: MIGRATIONS[1]})
        store.prepare(REGISTRY)
        before = store.shard(REGISTRY)
        commit(before, oracle, 2, reports=1)
    store.prepare(REGISTRY)
    archiver = archiver_of(store, folder.address)
    with archiving(store, archiver) as shard:
        commit(shard, oracle, 3, reports=1)
        commit(before, oracle, 4, reports=1)
        commit(shard, oracle, 5, reports=1)
    before.close()
    assert store.tally(METRIC).reports == 14
    assert in_parts(store).total() == 8
    with monkeypatch.context() as old:  # but if it has to connect again
        old.setattr(migrations, "MIGRATIONS", {1: MIGRATIONS[1]})
        with pytest.raises(StoreRefusedError, match=r"a newer hubbub \(migration 2\)"):
            store.prepare(REGISTRY)


def test_parts_lie_in_no_order_of_arrival(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/hubbub.db")
    store.prepare(REGISTRY)
    with store.engine.connect() as connection:
        [made] = connection.exec_driver_sql("SELECT sql FROM sqlite_schema WHERE name = 'archive_part'").scalars()
    assert "WITHOUT ROWID" in made
    store.close()


def written_archive(store: Store, place: Place) -> Oracle:
    """An archive with a file and a part."""
    oracle = Oracle()
    archiver = sealed_file(store, place, oracle, batches=20)
    archiver.work()
    with archiving(store, archiver) as shard:
        commit(shard, oracle, 3, reports=1)
    return oracle


def test_damage_to_an_archive_is_named(ready: Store, folder: Place, tmp_path: Path) -> None:
    written_archive(ready, folder)
    assert faults(ready, folder) == []
    [listed] = folder.files()
    path = tmp_path / "archive" / listed.name
    whole = path.read_bytes()
    lost = "it cannot be made again from this store"

    path.write_bytes(whole[:-100])
    told = faults(ready, folder)
    assert told[0].startswith(f"{path}: cannot be read")
    assert told[0].endswith(lost)
    assert "cohort 0: 3 reports in the archive, 23 in the tally; 20 bits were set another number" in told[1]
    assert "a file is gone" in told[1]

    path.unlink()
    assert faults(ready, folder)[0].endswith(lost)
    assert str(path) in faults(ready, folder)[0]

    path.write_bytes(whole)
    strange = path.with_name("0123456789abcdef.parquet")
    strange.write_bytes(whole)
    (left := path.with_name(f"{path.name}.abc.part")).write_bytes(b"half")
    assert faults(ready, folder) == [
        f"{strange}: this store does not know it; it is not counted",
        f"{left}: was never finished, or is being written; --repair deletes it",
    ]
    assert list(repair(ready, folder)) == [f"{left}: was never finished, and is deleted"]
    assert len(faults(ready, folder)) == 1


def test_another_content_of_a_file_is_named_though_the_file_is_sound(
    ready: Store, folder: Place, tmp_path: Path
) -> None:
    oracle = written_archive(ready, folder)
    other = Store(f"sqlite:///{tmp_path}/other.db")
    other.prepare(REGISTRY)
    elsewhere = Place(str(tmp_path / "elsewhere"))
    sealed_file(other, elsewhere, oracle, batches=20).work()
    other.close()
    [listed], [foreign] = folder.files(), elsewhere.files()
    folder.write(listed.name, elsewhere.read(foreign.name))
    told = faults(ready, folder)
    assert "is not the file that was written: its content is another" in told[0]
    with writing(ready.engine) as connection:
        connection.execute(update(archive_file).where(archive_file.c.state == "written").values(reports=21))
    assert "is not the file that was written: its head is another" in faults(ready, folder)[0]


def test_a_sealed_file_is_named_and_written_by_a_repair(ready: Store, folder: Place) -> None:
    oracle = Oracle()
    sealed_file(ready, folder, oracle)
    [told] = faults(ready, folder)
    assert told.endswith("is sealed, and not written yet; --repair writes it")
    [done] = repair(ready, folder)
    assert done.endswith(": written")
    assert faults(ready, folder) == []
    assert in_files(ready, folder).total() == 5


def test_a_lost_file_is_made_again_while_its_parts_are_there(
    ready: Store, folder: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    sealed_file(ready, folder, Oracle())
    [kept] = sealed(ready.engine)
    with monkeypatch.context() as killed:
        killed.setattr(keeping, "drop_parts", lambda *_: None)
        write_sealed(ready.engine, folder, kept)
    [listed] = folder.files()
    folder.delete(listed.name)
    assert faults(ready, folder)[0].endswith("--repair writes it again")
    done = list(repair(ready, folder))
    assert [each.rpartition(": ")[2] for each in done] == [
        "written again",
        "its parts were not needed any more, and are deleted",
    ]
    assert faults(ready, folder) == []
    assert in_files(ready, folder).total() == 5


@pytest.mark.parametrize("waits", [True, False])
def test_what_only_the_tally_or_only_the_archive_has_is_named(ready: Store, folder: Place, waits: bool) -> None:
    written_archive(ready, folder)
    with writing(ready.engine) as connection:
        if waits:
            row = connection.execute(select(archive_part)).one()
            wrong = {"n": row.n - 1, "reports": row.reports[18:]}
            connection.execute(update(archive_part).values(**wrong))
        else:
            connection.execute(tally.delete())
    [told] = faults(ready, folder)
    assert ("22 reports in the archive, 23 in the tally" if waits else "23 reports in the archive, 0 in") in told
    assert ("the archive was turned on later" if waits else "restored from an older backup") in told


def test_tallies_that_were_added_otherwise_are_named_and_said_where_from(ready: Store, folder: Place) -> None:
    written_archive(ready, folder)
    added = counted(1)
    ready.add([added])
    told = faults(ready, folder)
    assert len(told) == (added.n > 0).sum()
    assert all("tallies were added otherwise" in each for each in told)


def test_an_older_backup_does_not_know_later_files(ready: Store, folder: Place, tmp_path: Path) -> None:
    oracle = Oracle()
    archiver = archiver_of(ready, folder.address)
    with archiving(ready, archiver) as shard:
        commit(shard, oracle, 5, reports=1)
        back_up(ready, tmp_path / "backup.db")
        seal_all(ready)
        archiver.work()
        commit(shard, oracle, 5, reports=1)
        seal_all(ready)
        archiver.work()
    kept, fresh = Store(f"sqlite:///{tmp_path}/backup.db"), Store(f"sqlite:///{tmp_path}/fresh.db")
    copy(kept, fresh)
    assert in_parts(fresh).total() == 5
    told = faults(fresh, folder)
    assert sorted(each.rpartition(": ")[2] for each in told) == [
        "is of a later time than this store, and will be replaced",
        "this store does not know it; it is not counted",
    ]
    # The one that the store had open is replaced when it is written, and then says what the store says.
    seal_all(fresh)
    archiver_of(fresh, folder.address).work()
    assert in_files(fresh, folder).total() == 5
    assert len(faults(fresh, folder)) == 1
    for each in (kept, fresh):
        each.close()


def test_the_command_checks_and_repairs(tmp_path: Path, folder: Place, check: Run) -> None:
    address = f"sqlite:///{tmp_path}/hubbub.db"
    store = Store(address)
    store.prepare(REGISTRY)
    where = ("check", "--store", address, "--archive", folder.address)
    assert check(*where).code == 0
    sealed_file(store, folder, Oracle())
    told = check(*where)
    assert (told.code, told.out.splitlines()[-1]) == (1, "1 faults")
    told = check(*where, "--repair")
    assert (told.code, told.out) == (0, "no faults\n")
    assert told.err.startswith("repaired: ")
    assert check(*where, "--json").out == "[]\n"
    assert "there is no archive" in check("check", "--store", address, "--archive", tmp_path / "none").err
    assert "with --archive ADDRESS" in check("check", "--store", address, "--repair").err
    store.close()
