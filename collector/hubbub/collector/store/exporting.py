"""Giving tallies away: as CSV, as JSON or as Parquet, of one moment, a few at a time."""

from __future__ import annotations

import csv
from itertools import groupby
from typing import IO, TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from sqlalchemy import select

from hubbub.collector.errors import StoreError
from hubbub.collector.store.copying import reading
from hubbub.collector.store.migrations import check_version
from hubbub.collector.store.schema import tally
from hubbub.collector.store.shard import COUNTS
from hubbub.collector.tally import CohortCounts, TallyDocument

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date
    from pathlib import Path

    from hubbub.collector.store import Store

FORMATS = ("csv", "json", "parquet")
COLUMNS = ("metric", "version", "period", "cohort", "n", "counts")
STEP = 1000


class Row(NamedTuple):
    """What is known of one cohort in one period, added up over shards."""

    metric: str
    version: int
    period: date
    cohort: int
    n: int
    counts: list[int]


def export(store: Store, format_: str, path: Path, metric: str | None = None) -> int:
    """Write the tallies of a store, or of one metric, to a file, and tell how many rows that were."""
    try:
        if format_ == "parquet":
            return _parquet(rows(store, metric), path)
        with path.open("w", encoding="utf-8", newline="") as file:
            return (_csv if format_ == "csv" else _json)(rows(store, metric), file)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from None


def rows(store: Store, metric: str | None = None) -> Iterator[Row]:
    """Read tallies in order, adding up the shards."""
    key = (tally.c.metric, tally.c.version, tally.c.period, tally.c.cohort)
    query = select(*key, tally.c.n, tally.c.counts).order_by(*key, tally.c.shard)
    if metric is not None:
        query = query.where(tally.c.metric == metric)
    with reading(store.engine) as connection:
        check_version(connection)
        found = connection.execute(query.execution_options(yield_per=STEP))
        for (name, version, period, cohort), shards in groupby(found, lambda row: row[:4]):
            kept = list(shards)
            counts = np.sum([np.frombuffer(row.counts, COUNTS) for row in kept], axis=0)
            yield Row(name, version, period, cohort, sum(row.n for row in kept), counts.tolist())


def _csv(found: Iterator[Row], file: IO[str]) -> int:
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    written = 0
    for row in found:
        writer.writerow([*row[:-1], " ".join(map(str, row.counts))])
        written += 1
    return written


def _json(found: Iterator[Row], file: IO[str]) -> int:
    """Write a list of tallies, one for each metric, version and period."""
    written = 0
    file.write("[")
    for (name, version, period), cohorts in groupby(found, lambda row: row[:3]):
        counted = [CohortCounts(row.cohort, row.n, row.counts) for row in cohorts]
        document = TallyDocument(name, version, period, period, counted)
        file.write((",\n" if written else "\n") + msgspec.json.encode(document).decode())
        written += len(counted)
    file.write("\n]\n")
    return written


def _parquet(found: Iterator[Row], path: Path) -> int:
    try:
        import pyarrow as pa  # noqa: PLC0415  (an extra that most collectors do without)
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        raise StoreError('--format parquet needs pyarrow: pip install "hubbub[cluster]"') from None
    types = (pa.string(), pa.int32(), pa.date32(), pa.int32(), pa.int64(), pa.list_(pa.int64()))
    schema = pa.schema(list(zip(COLUMNS, types, strict=True)))
    written = 0
    with parquet.ParquetWriter(path, schema) as writer:
        while part := [row for row, _ in zip(found, range(STEP), strict=False)]:
            writer.write_batch(pa.RecordBatch.from_pylist([row._asdict() for row in part], schema))
            written += len(part)
    return written
