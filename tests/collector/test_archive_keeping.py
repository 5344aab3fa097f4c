"""Keeping an archive: what is counted is in the archive, once, and nothing else; and when a file is full, or due."""

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import event

from collector.archive_places import faults
from collector.archived import archiver_of, archiving, commit, in_files, in_parts, seal_all, states, verify_archive
from collector.oracle import METRIC, REGISTRY, Oracle
from collector.stores import judged
from hubbub.collector.archive import keeping
from hubbub.collector.archive.file import read_reports
from hubbub.collector.archive.place import Place
from hubbub.collector.errors import StoreRefusedError
from hubbub.collector.store import Store, migrations
from hubbub.collector.store import parts as parts_module
from hubbub.collector.store.backend import writing
from hubbub.collector.store.files import seal
from hubbub.collector.store.migrations import MIGRATIONS
from hubbub.collector.store.schema import archive_file


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
