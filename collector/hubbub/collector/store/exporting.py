"""Giving tallies away: as CSV, as JSON or as Parquet, of one moment, a few at a time."""

from __future__ import annotations

import csv
from itertools import groupby, islice
from typing import IO, TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
from sqlalchemy import select

from hubbub.collector.errors import StoreError
from hubbub.collector.store.copying import reading
from hubbub.collector.store.migrations import check_version
from hubbub.collector.store.schema import tally
from hubbub.collector.store.shard import COUNTS
from hubbub.collector.tally import CellFilter, CohortCounts, TallyDocument
from hubbub.shared.planning import DEFAULT_MIN_COHORT_REPORTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date
    from pathlib import Path

    from hubbub.collector.store import Store
    from hubbub.collector.tally import Withheld

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


class Exported(NamedTuple):
    """The size of an export."""

    rows: int
    """Rows, or in JSON cohorts, that were written."""
    withheld: Withheld


def export(
    store: Store,
    format_: str,
    path: Path,
    metric: str | None = None,
    min_cohort_reports: int = DEFAULT_MIN_COHORT_REPORTS,
) -> Exported:
    """Write the tallies of a store, or of one metric, to a file.

    Args:
        store: The store.
        format_: One of `FORMATS`.
        path: The file to write.
        metric: The name of the only metric to export.
        min_cohort_reports: Reports that a row needs; rows with fewer reports are withheld.

    Returns:
        How many rows were written, and how many were withheld.

    Raises:
        StoreError: The file cannot be written, or the format needs a package that is not installed.

    """
    found, cells = rows(store, metric), CellFilter(min_cohort_reports)
    try:
        if format_ == "parquet":
            written = _parquet(found, cells, path)
        else:
            with path.open("w", encoding="utf-8", newline="") as file:
                written = (_csv if format_ == "csv" else _json)(found, cells, file)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}") from None
    return Exported(written, cells.withheld)


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


def _csv(found: Iterator[Row], cells: CellFilter, file: IO[str]) -> int:
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    written = 0
    for row in found:
        if cells.passes(row.n):
            writer.writerow([*row[:-1], " ".join(map(str, row.counts))])
            written += 1
    return written


def _json(found: Iterator[Row], cells: CellFilter, file: IO[str]) -> int:
    """Write a list of tallies, one for each metric, version and period, also if all its cells are withheld."""
    written, separator = 0, "\n"
    file.write("[")
    for (name, version, period), cohorts in groupby(found, lambda row: row[:3]):
        in_period = CellFilter(cells.min_cohort_reports)
        counted = [CohortCounts(row.cohort, row.n, row.counts) for row in cohorts if in_period.passes(row.n)]
        cells.add(in_period.withheld)
        document = TallyDocument(name, version, period, period, counted, in_period.withheld)
        file.write(separator + msgspec.json.encode(document).decode())
        separator = ",\n"
        written += len(counted)
    file.write("\n]\n")
    return written


def _parquet(found: Iterator[Row], cells: CellFilter, path: Path) -> int:
    try:
        import pyarrow as pa  # noqa: PLC0415  (an extra that most collectors do without)
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        raise StoreError('--format parquet needs pyarrow: pip install "hubbub[cluster]"') from None
    types = (pa.string(), pa.int32(), pa.date32(), pa.int32(), pa.int64(), pa.list_(pa.int64()))
    schema = pa.schema(list(zip(COLUMNS, types, strict=True)))
    written = 0
    with parquet.ParquetWriter(path, schema) as writer:
        passed = (row for row in found if cells.passes(row.n))
        while part := list(islice(passed, STEP)):
            writer.write_batch(pa.RecordBatch.from_pylist([row._asdict() for row in part], schema))
            written += len(part)
    return written
