"""What an archive and its store hold together, read by hand and held against the tally and the oracle."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date

import numpy as np
from sqlalchemy import select

from collector.oracle import BITS, METRIC, REGISTRY, Oracle
from collector.stores import judged
from hubbub.collector.archive.file import read_reports
from hubbub.collector.archive.keeping import Archiver
from hubbub.collector.archive.place import Place
from hubbub.collector.monitoring import Monitoring
from hubbub.collector.store import Store
from hubbub.collector.store.copying import reading
from hubbub.collector.store.schema import archive_file, archive_part
from hubbub.collector.store.shard import Shard

ONE = tuple[date, int, bytes]
"""Period, cohort and bits of a report."""

WIDTH = BITS // 8


def in_parts(store: Store) -> Counter[ONE]:
    """The reports that wait in the store for a file that is not written."""
    query = select(archive_file.c.period, archive_part.c.n, archive_part.c.reports).join(
        archive_file, archive_file.c.name == archive_part.c.file
    )
    found: Counter[ONE] = Counter()
    with reading(store.engine) as connection:
        for period, n, reports in connection.execute(query.where(archive_file.c.state != "written")):
            rows = [reports[start : start + 2 + WIDTH] for start in range(0, len(reports), 2 + WIDTH)]
            assert len(rows) == n
            assert rows == sorted(rows), "the order of arrival is left"
            found.update((period, int.from_bytes(row[:2], "big"), bytes(row[2:])) for row in rows)
    return found


def in_files(store: Store, place: Place) -> Counter[ONE]:
    """The reports in files that the store calls written."""
    with reading(store.engine) as connection:
        written = connection.execute(select(archive_file).where(archive_file.c.state == "written")).all()
    found: Counter[ONE] = Counter()
    for row in written:
        name = f"metric={row.metric}/version={row.version}/period={row.period}/{row.name}.parquet"
        cohorts, packed = read_reports(place, name)
        assert len(cohorts) == row.reports
        found.update((row.period, int(cohort), bits.tobytes()) for cohort, bits in zip(cohorts, packed, strict=True))
    return found


def verify_archive(store: Store, place: Place, oracle: Oracle | None = None) -> Counter[ONE]:
    """Files and parts are what the tally was counted from, exactly, and what the oracle knows of it."""
    found = in_parts(store) + in_files(store, place)
    days = {period for period, _, _ in found} | set(oracle.periods() if oracle else [])
    by_period = {}
    for day in days:
        tally = by_period[day] = store.tally(METRIC, day, day)
        n, counts = np.zeros_like(tally.n), np.zeros_like(tally.counts)
        for (period, cohort, bits), times in found.items():
            if period == day:
                n[cohort] += times
                counts[cohort] += times * np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
        assert (n == tally.n).all()
        assert (counts == tally.counts).all()
    assert store.tally(METRIC).reports == found.total()
    if oracle is not None:
        oracle.verify(by_period)
    return found


def archiver_of(store: Store, address: object, reports: int = 10**6, oldest: date = date.min) -> Archiver:
    """Somebody who keeps an archive, but whose thread is not started."""
    return Archiver(store, REGISTRY, Monitoring(), str(address), oldest=lambda: oldest, reports=reports)


@contextmanager
def archiving(store: Store, archiver: Archiver) -> Iterator[Shard]:
    """A writer that keeps an archive."""
    shard = store.shard(REGISTRY)
    shard.keep(archiver.parts())
    try:
        yield shard
    finally:
        shard.close()


def commit(shard: Shard, oracle: Oracle, batches: int, reports: int = 2) -> None:
    """Commit some batches at once."""
    made = [oracle.batch(reports) for _ in range(batches)]
    assert all(shard.commit([judged(body) for body, _ in made]))
    for _, slots in made:
        oracle.acknowledge(slots)


def states(store: Store) -> Counter[str]:
    """How many files there are in each state."""
    with reading(store.engine) as connection:
        return Counter(connection.scalars(select(archive_file.c.state)))


def seal_all(store: Store) -> None:
    """Seal whatever is open."""
    from hubbub.collector.store.files import seal_due

    seal_due(store.engine, 1, lambda _: True)
