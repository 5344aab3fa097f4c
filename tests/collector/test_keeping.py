"""Keeping a store: backups, exports, and looking for damage."""

import csv
import json
import sqlite3
import uuid
import zlib
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select, text, update

from collector.oracle import METRIC, REGISTRY, Oracle
from collector.postgres import Postgres
from collector.stores import judged, verify
from hubbub.collector.errors import StoreError, StoreRefusedError
from hubbub.collector.store import Store
from hubbub.collector.store.backend import writing
from hubbub.collector.store.candidates import get_chunks, put_chunks
from hubbub.collector.store.checking import find_faults
from hubbub.collector.store.copying import back_up, copy
from hubbub.collector.store.exporting import FORMATS, export
from hubbub.collector.store.schema import batch, candidate_chunk, metadata, migration, tally


def filled(store: Store) -> Oracle:
    """Put something into every table."""
    oracle = Oracle()
    shard = store.shard(REGISTRY)
    for _ in range(20):
        body, slots = oracle.batch()
        shard.commit([judged(body)])
        oracle.acknowledge(slots)
    shard.close()
    put_chunks(store.engine, "oracle", [zlib.compress(b'["a"]')], 1)
    return oracle


def test_a_backup_holds_everything(ready: Store, tmp_path: Path) -> None:
    oracle = filled(ready)
    path = tmp_path / "backup.db"
    rows = back_up(ready, path)
    kept = Store(f"sqlite:///{path}")
    verify(kept, oracle)
    assert get_chunks(kept.engine, "oracle") == get_chunks(ready.engine, "oracle")
    assert list(find_faults(kept)) == []
    with ready.engine.connect() as connection:
        tables = [table for table in metadata.tables.values() if table is not migration]
        assert rows == sum(connection.scalar(select(func.count()).select_from(table)) or 0 for table in tables)
    kept.close()
    with pytest.raises(StoreError, match="is there already"):
        back_up(ready, path)
    assert [each.name for each in tmp_path.glob("*backup*")] == ["backup.db"]


def test_a_backup_is_of_one_moment_while_batches_are_committed(ready: Store, tmp_path: Path) -> None:
    """Ids and counts in a backup agree, whatever is being written meanwhile."""
    oracle = Oracle()
    bodies = [oracle.batch() for _ in range(200)]

    def write() -> None:
        shard = ready.shard(REGISTRY)
        for body, _ in bodies:
            shard.commit([judged(body)])
        shard.close()

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        for number in range(4):
            back_up(ready, tmp_path / f"{number}.db")
        writer.result()
    for number in range(4):
        kept = Store(f"sqlite:///{tmp_path}/{number}.db")
        with kept.engine.connect() as connection:
            ids = connection.scalar(select(func.count()).select_from(batch))
        assert kept.tally(METRIC).reports == 3 * (ids or 0)
        kept.close()


def test_a_backup_can_be_put_back_into_an_empty_store_only(ready: Store, tmp_path: Path) -> None:
    oracle = filled(ready)
    back_up(ready, tmp_path / "backup.db")
    kept, fresh = Store(f"sqlite:///{tmp_path}/backup.db"), Store(f"sqlite:///{tmp_path}/fresh.db")
    copy(kept, fresh)
    verify(fresh, oracle)
    shard = fresh.shard(REGISTRY)
    body, slots = oracle.batch()
    assert shard.commit([judged(body)]) == [True]
    oracle.acknowledge(slots)
    verify(fresh, oracle)
    shard.close()
    with pytest.raises(StoreRefusedError, match="is not empty"):
        copy(kept, fresh)
    for each in (kept, fresh):
        each.close()


def test_a_backup_goes_back_into_postgresql(ready: Store, tmp_path: Path, postgres: Postgres) -> None:
    oracle = filled(ready)
    back_up(ready, tmp_path / "backup.db")
    kept, other = Store(f"sqlite:///{tmp_path}/backup.db"), Store(postgres.database(uuid.uuid4().hex))
    copy(kept, other)
    verify(other, oracle)
    for each in (kept, other):
        each.close()


@pytest.mark.parametrize("form", FORMATS)
def test_an_export_holds_every_tally(ready: Store, tmp_path: Path, form: str) -> None:
    filled(ready)
    path = tmp_path / "out"
    written = export(ready, form, path, min_cohort_reports=1).rows
    found: dict[tuple[str, int], list[int]] = {}
    if form == "csv":
        with path.open() as file:
            for row in csv.DictReader(file):
                found[row["period"], int(row["cohort"])] = [int(each) for each in row["counts"].split()]
    elif form == "json":
        for document in json.loads(path.read_text()):
            assert document["start"] == document["end"]
            for cohort in document["cohorts"]:
                found[document["start"], cohort["cohort"]] = cohort["counts"]
    else:
        from pyarrow import parquet

        for row in parquet.read_table(path).to_pylist():
            found[row["period"].isoformat(), row["cohort"]] = row["counts"]
    assert written == len(found)
    for (period, cohort), counts in found.items():
        day = date.fromisoformat(period)
        assert counts == ready.tally(METRIC, day, day).counts[cohort].tolist()
    assert sum(sum(counts) for counts in found.values()) == 60
    assert export(ready, form, tmp_path / "none", metric="another").rows == 0


def test_an_export_that_cannot_be_written_says_so(ready: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        export(ready, "csv", tmp_path / "no" / "such" / "folder.csv")


def test_a_sound_store_has_no_faults(ready: Store) -> None:
    filled(ready)
    assert list(find_faults(ready)) == []


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (update(tally).where(tally.c.cohort == 0).values(n=0), "more often than there are reports"),
        (update(tally).where(tally.c.cohort == 0).values(counts=b"12345678"), "has 8 bytes of counts, and not 1024"),
        (update(tally).where(tally.c.cohort == 0).values(cohort=600), "only 512 cohorts"),
        (update(tally).where(tally.c.cohort == 0).values(version=9), "its metric is not known"),
        (insert(batch).values(id=b"short", period=date(2026, 11, 16)), "1 ids do not have 16 bytes"),
        (update(candidate_chunk).values(strings=b"damaged"), "candidates of oracle: cannot be read"),
        (text("UPDATE candidate_list SET strings = 5"), "1 are there, and not 5"),
        (text("DELETE FROM horizon"), "horizon: does not have just one row"),
    ],
)
def test_damage_is_found(ready: Store, damage: object, told: str) -> None:
    filled(ready)
    with writing(ready.engine) as connection:
        connection.execute(damage)  # type: ignore[call-overload]
    assert any(told in fault for fault in list(find_faults(ready)))


def test_damage_to_the_file_is_found(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/hubbub.db")
    store.prepare(REGISTRY)
    filled(store)
    store.close()
    declared, checked = "shard INTEGER NOT NULL", "shard INTEGER NOT NULL CHECK (shard > 5)"
    with sqlite3.connect(tmp_path / "hubbub.db") as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ?, ?)", (declared, checked))
    connection.close()
    assert any(fault.startswith("database: ") for fault in list(find_faults(store)))
    store.close()


def test_what_is_not_ours_is_not_looked_at(tmp_path: Path) -> None:
    other = Store(f"sqlite:///{tmp_path}/other.db")
    with pytest.raises(StoreRefusedError, match="nothing of hubbub"):
        list(find_faults(other))
    other.close()
