"""Stores of both kinds: committing, adding up, letting go, copying and checking."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, timedelta
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import insert, inspect, select, update

from collector.oracle import METRIC, REGISTRY, Oracle
from collector.postgres import Postgres
from collector.stores import judged, verify
from hubbub.client.state import State
from hubbub.collector.acceptance import Acceptance
from hubbub.collector.errors import StoreAddressError, StoreRefusedError, StoreUnavailableError
from hubbub.collector.store import Store
from hubbub.collector.store import shard as shard_module
from hubbub.collector.store.backend import BUSY_SECONDS, writing
from hubbub.collector.store.candidates import get_chunks, get_revision, put_chunks
from hubbub.collector.store.migrations import MIGRATIONS
from hubbub.collector.store.retention import purge_batches, purge_tallies
from hubbub.collector.store.schema import horizon, metadata, migration, tally
from hubbub.shared import Registry
from shared.registries import EXAMPLE, example


def test_a_batch_is_counted_once_however_often_it_comes(ready: Store) -> None:
    oracle = Oracle()
    bodies = [oracle.batch() for _ in range(5)]
    shard = ready.shard(REGISTRY)
    assert shard.commit([judged(body) for body, _ in bodies[:3]]) == [True, True, True]
    # Old and new together, and one twice in the same commit:
    again = [judged(bodies[index][0]) for index in (3, 0, 4, 4, 2)]
    assert shard.commit(again) == [True, False, True, False, False]
    for _, slots in bodies:
        oracle.acknowledge(slots)
    verify(ready, oracle)
    shard.close()


def test_it_tells_over_how_many_periods_reports_are_spread(ready: Store) -> None:
    oracle = Oracle()
    assert ready.periods(METRIC) == 0
    shard = ready.shard(REGISTRY)
    shard.commit([judged(oracle.batch()[0]) for _ in range(5)])
    shard.close()
    with ready.engine.connect() as connection:
        days = sorted(set(connection.scalars(select(tally.c.period))))
    assert ready.periods(METRIC) == len(days) > 1
    assert ready.periods(METRIC, days[0], days[0]) == 1
    assert ready.periods(replace(METRIC, every="once")) == 1


def test_a_metric_that_means_something_else_is_refused(ready: Store) -> None:
    ready.check(METRIC)
    ready.check(replace(METRIC, version=77))  # nothing is known about it
    with pytest.raises(StoreRefusedError, match="has another meaning"):
        ready.check(replace(METRIC, lifetime_values=77))


def test_a_shard_that_is_opened_again_goes_on_where_it_was(ready: Store) -> None:
    oracle = Oracle()
    for _ in range(3):
        shard = ready.shard(REGISTRY)
        body, slots = oracle.batch()
        shard.commit([judged(body)])
        oracle.acknowledge(slots)
        shard.close()
    verify(ready, oracle)
    with ready.engine.connect() as connection:
        assert connection.scalars(select(tally.c.shard).distinct()).all() == [0]


def test_several_writers_do_not_disturb_each_other(ready: Store) -> None:
    """Each has a shard of its own on PostgreSQL; on SQLite they take turns. All get some batches of the others, too."""
    oracle = Oracle()
    bodies = [oracle.batch() for _ in range(60)]

    def write(number: int) -> list[bool]:
        shard = ready.shard(REGISTRY)
        mine = [judged(body) for body, _ in bodies[number * 10 : number * 10 + 30]]
        new = [each for start in range(0, 30, 3) for each in shard.commit(mine[start : start + 3])]
        shard.close()
        return new

    with ThreadPoolExecutor(4) as pool:
        new = [sum(each) for each in pool.map(write, range(4))]
    assert sum(new) == 60
    for _, slots in bodies:
        oracle.acknowledge(slots)
    verify(ready, oracle)
    assert ready.tally(METRIC).reports == 180


def test_shards_on_postgresql_are_taken_by_one_at_a_time(postgres: Postgres) -> None:
    store = Store(postgres.database(uuid.uuid4().hex))
    store.prepare(REGISTRY)
    first, second = store.shard(REGISTRY), store.shard(REGISTRY)
    assert (first._shard, second._shard) == (0, 1)
    first.close()
    third = store.shard(REGISTRY)
    assert third._shard == 0
    for each in (second, third, store):
        each.close()


def test_rows_that_were_forgotten_are_read_again(ready: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_module, "MAX_CACHE_BYTES", 0)
    oracle = Oracle()
    shard = ready.shard(REGISTRY)
    for _ in range(4):
        body, slots = oracle.batch()
        shard.commit([judged(body)])
        oracle.acknowledge(slots)
    verify(ready, oracle)
    shard.close()


def test_counts_have_64_bits(ready: Store) -> None:
    with writing(ready.engine) as connection:
        row = {"metric": "oracle", "version": 1, "period": date(2026, 11, 16), "cohort": 0, "shard": 7}
        counts = np.full(METRIC.size, 1 << 40, "<i8").tobytes()
        connection.execute(insert(tally).values(**row, n=1 << 41, counts=counts))
        connection.execute(insert(tally).values(**row | {"shard": 8}, n=1 << 41, counts=counts))
    total = ready.tally(METRIC)
    assert (int(total.n[0]), int(total.counts[0, 5])) == (1 << 42, 1 << 41)
    [held] = ready.held()
    assert (held.reports, held.first, held.last) == (1 << 42, date(2026, 11, 16), date(2026, 11, 16))


def test_a_tally_covers_the_periods_that_were_asked_for(ready: Store) -> None:
    shard = ready.shard(REGISTRY)
    oracle = Oracle()
    body, _ = oracle.batch(reports=5)
    shard.commit([judged(body)])
    shard.close()
    latest = oracle.latest
    assert ready.tally(METRIC).reports == 5
    assert (ready.tally(METRIC).start, ready.tally(METRIC).end) == (latest - timedelta(days=4), latest)
    middle = ready.tally(METRIC, latest - timedelta(days=3), latest - timedelta(days=2))
    assert (middle.reports, middle.start) == (2, latest - timedelta(days=3))
    assert ready.tally(METRIC, latest + timedelta(days=1)).reports == 0


def test_ids_are_purged_only_when_their_period_is_refused(ready: Store) -> None:
    oracle = Oracle()
    shard = ready.shard(REGISTRY)
    old, _ = oracle.batch(reports=1)
    both, _ = oracle.batch(reports=4)
    shard.commit([judged(old), judged(both)])
    latest = oracle.latest
    assert purge_batches(ready.engine, latest) == 0
    with ready.engine.connect() as connection:
        assert connection.scalar(select(horizon.c.day)) == date(1, 1, 1)
    # A day later both are refused, and may be forgotten: each speaks of the latest day, and of none after it.
    assert purge_batches(ready.engine, latest + timedelta(days=1), step=1) == 2
    again = [judged(old), judged(both)]
    assert shard.commit(again) == [False, False]
    assert [[each.reason for each in one.rejected] for one in again] == [["too_old"], ["too_old"] * 4]
    assert ready.tally(METRIC).reports == 5
    shard.close()


def test_a_batch_that_is_half_too_old_is_still_known(ready: Store) -> None:
    """The horizon has passed its first period but not its last: counted once all the same."""
    oracle = Oracle()
    shard = ready.shard(REGISTRY)
    first, _ = oracle.batch(reports=1)
    both, _ = oracle.batch(reports=2)
    shard.commit([judged(both)])
    with writing(ready.engine) as connection:
        connection.execute(update(horizon).values(day=oracle.latest))
    again = judged(both)
    assert shard.commit([again, judged(first)]) == [False, True]
    assert [each.reason for each in again.rejected] == ["too_old"]
    assert ready.tally(METRIC).reports == 3
    shard.close()


def test_a_clock_that_is_years_ahead_does_not_close_the_store_for_years(ready: Store) -> None:
    oracle = Oracle()
    shard = ready.shard(REGISTRY)
    body, _ = oracle.batch(reports=1)
    shard.commit([judged(body)])
    purge_batches(ready.engine, oracle.latest + timedelta(days=4000))
    with ready.engine.connect() as connection:
        assert connection.scalar(select(horizon.c.day)) == oracle.latest + timedelta(days=1)
    shard.close()


def test_tallies_are_purged_in_small_steps(ready: Store) -> None:
    oracle = Oracle()
    shard = ready.shard(REGISTRY)
    shard.commit([judged(oracle.batch(reports=10)[0]) for _ in range(3)])
    assert purge_tallies(ready.engine, oracle.latest - timedelta(days=4), step=2) == 5
    assert ready.tally(METRIC).start == oracle.latest - timedelta(days=4)
    # The shard knew the rows that are gone, and must not write them back.
    shard.commit([judged(oracle.batch(reports=1)[0])])
    assert ready.tally(METRIC).start == oracle.latest - timedelta(days=4)
    shard.close()


def test_the_tables_are_those_that_queries_see(ready: Store) -> None:
    found = inspect(ready.engine)
    assert set(found.get_table_names()) == set(metadata.tables)
    for name, table in metadata.tables.items():
        columns = {column["name"]: column["nullable"] for column in found.get_columns(name)}
        assert columns == {column.name: column.nullable for column in table.columns}
        assert found.get_pk_constraint(name)["constrained_columns"] == [column.name for column in table.primary_key]


def test_the_state_of_a_client_does_not_become_a_store(tmp_path: Path) -> None:
    file = tmp_path / "device.db"
    with State(file).transaction():
        pass
    with pytest.raises(StoreRefusedError, match="the state of a client; allowed: a new file"):
        Store(f"sqlite:///{file}").prepare(REGISTRY)
    with State(file).transaction() as connection:
        tables = {name for [name] in connection.execute("SELECT name FROM sqlite_schema")}
    assert "tally" not in tables


def test_migrations_that_were_released_never_change() -> None:
    digests = {number: sha256(script.encode()).hexdigest()[:16] for number, script in MIGRATIONS.items()}
    assert digests == {1: "ba811d62ee22d5e8", 2: "39a3593b294f4130"}


def test_preparing_twice_changes_nothing(ready: Store) -> None:
    ready.prepare(REGISTRY)
    with ready.engine.connect() as connection:
        assert connection.scalars(select(migration.c.number)).all() == [1, 2]


def test_replicas_may_prepare_at_the_same_moment(address: str) -> None:
    def prepare(_: int) -> None:
        store = Store(address)
        store.prepare(REGISTRY)
        store.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(prepare, range(4)))


def test_a_store_of_a_newer_version_is_refused(ready: Store) -> None:
    with writing(ready.engine) as connection:
        connection.execute(insert(migration).values(number=99))
    with pytest.raises(StoreRefusedError, match=r"newer hubbub \(migration 99\)"):
        ready.prepare(REGISTRY)


def test_a_metric_that_changed_its_meaning_is_refused(ready: Store) -> None:
    changed = Registry.parse(EXAMPLE)
    ready.prepare(changed)
    other = Registry.parse(EXAMPLE.replace("bits = 128", "bits = 256", 1))
    with pytest.raises(StoreRefusedError, match='metric "homepage": version 1 has another meaning') as caught:
        ready.prepare(other)
    assert "a version above 1" in str(caught.value)
    # Nothing was changed by the attempt, and with another version all is well.
    ready.prepare(changed)
    ready.prepare(Registry.parse(EXAMPLE.replace("bits = 128", "bits = 256\nversion = 2", 1)))


@pytest.mark.parametrize(
    "address",
    ["", "nonsense", "mysql://somewhere/something", "sqlite://", "sqlite:///:memory:", "sqlite:///a.db?mode=ro"],
)
def test_an_address_that_names_no_store_is_refused(address: str) -> None:
    with pytest.raises(StoreAddressError, match=r"allowed: sqlite:///FILE or postgresql://"):
        Store(address)


def test_the_password_is_not_shown() -> None:
    store = Store("postgresql://somebody:terribly-secret@127.0.0.1:1/nothing")
    assert store.address == "postgresql+psycopg://somebody:***@127.0.0.1:1/nothing"
    with pytest.raises(StoreUnavailableError) as caught:
        store.ping()
    assert "secret" not in str(caught.value)


def test_what_a_file_is_not_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"this is no database, and not empty either" * 30)
    with pytest.raises(StoreUnavailableError, match="file is not a database"):
        Store(f"sqlite:///{tmp_path}/x.db").prepare(REGISTRY)


def test_candidates_are_replaced_and_their_revision_grows(ready: Store) -> None:
    assert get_revision(ready.engine, "homepage") is None
    assert get_chunks(ready.engine, "homepage") is None
    assert put_chunks(ready.engine, "homepage", [b"one", b"two"], 2) == 1
    assert get_chunks(ready.engine, "homepage") == ((1, 2), [b"one", b"two"])
    assert put_chunks(ready.engine, "homepage", [b"three"], 1) == 2
    assert get_chunks(ready.engine, "homepage") == ((2, 1), [b"three"])
    put_chunks(ready.engine, "homepage", [], 0)
    assert get_revision(ready.engine, "homepage") is None
    assert put_chunks(ready.engine, "homepage", [b"four"], 1) == 4
    assert get_revision(ready.engine, "homepage") == (4, 1)


def test_all_kinds_of_metrics_are_stored(store: Store) -> None:
    from hubbub.client import privatize
    from hubbub.collector import Tally
    from hubbub.shared import Batch, Secret
    from shared.registries import VALUES

    registry = example()
    store.prepare(registry)
    shard = store.shard(registry)
    day = date(2026, 11, 16)
    devices = [Secret.generate() for _ in range(30)]
    sent = {name: [privatize(registry[name], VALUES[name], secret, day=day) for secret in devices] for name in registry}
    acceptance = Acceptance(registry, clock=lambda: day)
    for number in range(30):
        reports = tuple(sent[name][number] for name in registry)
        shard.commit([acceptance.judge(Batch(f"{number:032x}", reports))])
    for name in registry:
        assert store.tally(registry[name]) == Tally.of(registry[name], sent[name])
    shard.close()


@pytest.mark.parametrize("missing", ["batch", "tally"])
def test_of_a_commit_that_fails_nothing_is_kept(ready: Store, missing: str) -> None:
    """Not the ids either, which are stored before the tallies: whoever sends them again is counted."""
    oracle = Oracle()
    body, slots = oracle.batch()
    shard = ready.shard(REGISTRY)
    with writing(ready.engine) as connection:
        connection.exec_driver_sql(f"ALTER TABLE {missing} RENAME TO elsewhere")
    with pytest.raises(StoreUnavailableError, match=rf"^store: .*{missing}.*$"):
        shard.commit([judged(body)])
    shard.close()
    with writing(ready.engine) as connection:
        connection.exec_driver_sql(f"ALTER TABLE elsewhere RENAME TO {missing}")
    verify(ready, oracle)
    shard = ready.shard(REGISTRY)
    assert shard.commit([judged(body)]) == [True]
    oracle.acknowledge(slots)
    verify(ready, oracle)
    shard.close()


def test_a_writer_waits_for_another(tmp_path: Path) -> None:
    """Also after its first commit, and whoever reads by the same connections after it waits too."""
    store = Store(f"sqlite:///{tmp_path}/hubbub.db")
    store.prepare(REGISTRY)
    oracle = Oracle()
    shard = store.shard(REGISTRY)
    for _ in range(2):
        body, slots = oracle.batch()
        with ThreadPoolExecutor(1) as pool, writing(store.engine):
            committed = pool.submit(shard.commit, [judged(body)])
            with pytest.raises(TimeoutError):
                committed.result(0.1)
        assert committed.result() == [True]
        oracle.acknowledge(slots)
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() == 1000 * BUSY_SECONDS
    verify(store, oracle)
    shard.close()
    store.close()


def test_a_file_that_is_moved_away_is_not_written_to_any_more(tmp_path: Path) -> None:
    """SQLite itself would not notice; what it acknowledged would be in a file without a name."""
    address = f"sqlite:///{tmp_path}/hubbub.db"
    store = Store(address)
    store.prepare(REGISTRY)
    oracle = Oracle()
    shard = store.shard(REGISTRY)
    body, slots = oracle.batch()
    shard.commit([judged(body)])
    oracle.acknowledge(slots)
    for suffix in ("", "-wal", "-shm"):
        (tmp_path / f"hubbub.db{suffix}").rename(tmp_path / f"moved.db{suffix}")
    with pytest.raises(StoreUnavailableError, match="moved or deleted"):
        shard.commit([judged(oracle.batch()[0])])
    shard.close()
    store.close()
    moved, fresh = Store(f"sqlite:///{tmp_path}/moved.db"), Store(address)
    verify(moved, oracle)
    fresh.prepare(REGISTRY)
    shard = fresh.shard(REGISTRY)
    assert shard.commit([judged(body)]) == [True]
    for each in (shard, moved, fresh):
        each.close()
