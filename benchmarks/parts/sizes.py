"""Bytes: on the wire, in the archive, and of a row of a tally in either database: a part of `make bench`."""

from __future__ import annotations

import contextlib
import gzip
import sqlite3
import tempfile
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import requests

from benchmarks import load
from benchmarks.collector import postgres_here
from benchmarks.findings import Findings, Table
from benchmarks.parts.ingest import NO_POSTGRES, REPORTS
from benchmarks.sized import QUICK
from hubbub.collector.store.store import Store
from hubbub.shared import Batch, Registry, Report, encode_batch
from hubbub.shared.wire import JSON, MSGPACK, new_batch_id
from hubbub.simulations import simulate_tally

if TYPE_CHECKING:
    from hubbub.collector import Tally
    from hubbub.shared import Metric

SEED = 1
BATCHES = 200
ARCHIVED = 100_000 if QUICK else 1_000_000
DAYS = 5 if QUICK else 30


def measure() -> Findings:
    """All sizes; what has no tool is left out, and said."""
    figures: dict[str, float] = {}
    missing = []
    wire, table = _wire()
    figures |= wire
    try:
        figures["archive_bytes"] = _archived()
    except ImportError as error:
        missing.append(f"archive: not measured; {error}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tally.db"
        rows = _fill(f"sqlite:///{path}")
        figures["sqlite_tally_bytes"] = _sqlite_bytes(path) / rows
    with postgres_here() as postgres:
        if postgres is None:
            missing.append(NO_POSTGRES)
        else:
            _fill(postgres)
            figures["postgresql_tally_bytes"] = _postgres_bytes(postgres)
    return Findings(tables=[table], figures=figures, missing=missing)


def _reports(number: int) -> list[Report]:
    """Reports of one device, of so many metrics; the bits are noise."""
    rng = np.random.default_rng()
    today, cohort = datetime.now(UTC).date(), int(rng.integers(64))
    names = list(Registry.parse(load.metrics(number)))
    return [Report(name, 1, today, cohort, rng.bytes(16)) for name in names]


def _wire() -> tuple[dict[str, float], Table]:
    """Bytes a report, in batches of one report and of ten; the head is what our own client sends."""
    figures: dict[str, float] = {}
    rows = []
    for number in (1, REPORTS):
        batches = [Batch(new_batch_id(), tuple(_reports(number))) for _ in range(BATCHES)]
        for name, media_type in (("JSON", JSON), ("msgpack", MSGPACK)):
            bodies = [encode_batch(batch, media_type) for batch in batches]
            packed = [gzip.compress(body, mtime=0) for body in bodies]
            head = _head(media_type, len(packed[0]))
            plain, short = (sum(map(len, each)) / BATCHES for each in (bodies, packed))
            figures |= {f"wire_{name.lower()}_{number}": (min(plain, short) + head) / number}
            rows.append([f"{number}", name, *(f"{each / number:.0f}" for each in (plain, short, head))])
    header = ["reports in a batch", "", "body, bytes a report", "gzip", "head of the request, bytes a report"]
    return figures, Table("growth", "Bytes on the wire, 128 bits a report, without TLS and TCP:", header, rows)


def _head(media_type: str, length: int) -> int:
    """Bytes of a request before its body."""
    headers = {"Content-Type": media_type, "Accept": JSON, "Content-Encoding": "gzip", "Content-Length": str(length)}
    request = requests.Request("POST", "https://telemetry.example.org/v1/batches", headers=headers)
    with requests.Session() as session:
        sent = session.prepare_request(request).headers
    lines = [f"{name}: {value!s}" for name, value in sent.items()]
    return len("\r\n".join(["POST /v1/batches HTTP/1.1", "Host: telemetry.example.org", *lines, "", ""]))


def _archived() -> float:
    """Bytes of a file, a report."""
    from hubbub.collector.archive.file import FileHead, new_name, write_file  # noqa: PLC0415
    from hubbub.collector.archive.place import Place  # noqa: PLC0415

    rng = np.random.default_rng(SEED)
    metric = Registry.parse(load.METRIC)["homepage"]
    cohorts = rng.integers(0, metric.encoding.cohorts, ARCHIVED).astype(np.uint32)
    packed = rng.integers(0, 256, (ARCHIVED, metric.width), np.uint8)
    head = FileHead.of(metric, datetime.now(UTC).date(), ARCHIVED)
    with tempfile.TemporaryDirectory() as folder:
        return write_file(Place(folder), new_name(head), head, cohorts, packed) / ARCHIVED


def _fill(address: str) -> int:
    """Put tallies of some days into a store, and tell how many rows that is."""
    registry = Registry.parse(load.metrics(REPORTS))
    store = Store(address)
    store.prepare(registry)
    rows = 0
    first = date(2026, 1, 1)
    for day in range(DAYS):
        tallies = [_tally(metric, first + timedelta(day)) for metric in registry.values()]
        store.add(tallies)
        rows += sum(int(np.count_nonzero(tally.n)) for tally in tallies)
    store.close()
    return rows


def _tally(metric: Metric, day: date) -> Tally:
    return replace(simulate_tally(metric, {"example.org": 100_000}, day.toordinal()), start=day, end=day)


def _sqlite_bytes(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


def _postgres_bytes(address: str) -> float:
    import psycopg  # noqa: PLC0415

    with psycopg.connect(address) as connection:
        query = "SELECT pg_total_relation_size('tally')::float / count(*) FROM tally"
        told = connection.execute(query).fetchone()
    assert told is not None
    return float(told[0])
