"""Durable ingest for `make bench`: rates beside servers that store nothing, and what a batch costs as a store fills.

`python -m benchmarks collector` and `replicas` measure more of it, and longer.
"""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import load
from benchmarks.collector import (
    BARE,
    DISK,
    FLASK,
    ONE,
    OURS,
    POSTGRES,
    RIVALS,
    WANTED,
    committed,
    counter,
    postgres_here,
    serve,
)
from benchmarks.findings import Findings, Row, Table, number
from benchmarks.parts import several
from benchmarks.servers import HUBBUB, HUBBUB_ONE, RIVAL, cpu_of, running
from benchmarks.sized import QUICK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from benchmarks.load import Answered
    from benchmarks.servers import Server

CONCURRENCY = 64
ROUNDS, SECONDS = (1, 1) if QUICK else (4, 3)
REPORTS = 10
"""Reports in a batch when its cost is measured: a device that speaks of ten metrics once a day."""

SIZES = (500, 2_000) if QUICK else (3_000, 10_000, 30_000, 100_000)
SINGLE_SIZES = (500, 2_000) if QUICK else (10_000, 50_000)
"""Batches of one report: a device that is always on, and sends each report when it is due."""

SERVERS = {
    OURS: "`hubbub serve`, SQLite, every batch on disk before it is acknowledged",
    POSTGRES: "the same on PostgreSQL",
    ONE: "the same on SQLite, a commit for each batch",
}
LONG_SECONDS = 900
ACCEPTED = 'hubbub_batches_total{outcome="accepted"}'
NO_WRK = "durable ingest: not measured, because wrk is not installed; it is a package of Debian"
NO_POSTGRES = "PostgreSQL: not measured; neither HUBBUB_BENCH_POSTGRES nor the PostgreSQL of the tests is there"


class Held(NamedTuple):
    """What a store holds."""

    ids: int
    bytes_of_ids: int
    total: int


class Store(NamedTuple):
    """A place for batches, and how to ask what it takes."""

    name: str
    address: str
    held: Callable[[], Held]
    cpu: Callable[[], float]
    """Processor seconds of the database; none where the collector is all there is."""
    written: Callable[[Server], float]
    """Bytes that were written to the disk: PostgreSQL's log, or all that a collector with SQLite has written."""


def measure() -> Findings:
    """Rates, and growth; a line for each tool that is not there."""
    if load.WRK is None:
        return Findings(missing=[NO_WRK])
    with tempfile.TemporaryDirectory(dir=DISK if DISK.is_dir() else None) as name, postgres_here() as postgres:
        folder = Path(name)
        (folder / "metrics.toml").write_text(load.METRIC)
        best = _best(folder, postgres)
        together = several.measure(folder, postgres) if postgres is not None else Findings()
        tables = [_servers(best)]
        figures = dict(together.figures)
        for reports, sizes in ((REPORTS, SIZES), (1, SINGLE_SIZES)):
            (folder / "metrics.toml").write_text(load.metrics(reports))
            stores = [_sqlite(folder / f"growth-{reports}.db")]
            if postgres is not None:
                stores.append(_postgres(postgres))
            for store in stores:
                table, found = _growth(folder, store, reports, sizes)
                tables.append(table)
                figures |= found
    missing = [] if postgres is not None else [NO_POSTGRES]
    rows = _rows({name: each.rate for name, each in best.items()}) + together.rows
    return Findings(rows, tables, figures, missing)


def _best(folder: Path, postgres: str | None) -> dict[str, Answered]:
    """Batches of one report, the best round of each; all servers take turns."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(each) for each in _contestants(folder, postgres)]
        best: dict[str, Answered] = {}
        for _ in range(ROUNDS):
            for server in servers:
                answered = load.end(load.begin(server.url, CONCURRENCY, SECONDS))
                best[server.name] = max(answered, best.get(server.name, answered), key=lambda each: each.rate)
    return best


def _servers(best: dict[str, Answered]) -> Table:
    """All of them, in multiples of what an operator would write in an hour."""
    flask = best[_rival(FLASK, CONCURRENCY)].rate
    names = {name: words for name, words in SERVERS.items() if name in best}
    names |= {name: name for name in best if name not in names}
    rows = [
        [words, number(best[name].rate), number(best[name].rate / flask)]
        + [number(1e3 * each) for each in (best[name].p50, best[name].p99)]
        for name, words in names.items()
    ]
    title = (
        f"Batches of one report, {CONCURRENCY} at a time, by wrk; the best of {ROUNDS} rounds of {SECONDS} s, servers "
        f"taking turns. *x Flask* is beside a Flask route with {CONCURRENCY} threads on the same server, which parses "
        "the JSON and keeps nothing:"
    )
    return Table("ingest", title, ["server", "batches/s", "x Flask", "p50 ms", "p99 ms"], rows)


def _contestants(folder: Path, postgres: str | None) -> Iterator[AbstractContextManager[Server]]:
    yield serve(OURS, HUBBUB, folder, f"sqlite:///{folder}/rates.db")
    if postgres is not None:
        yield serve(POSTGRES, HUBBUB, folder, postgres)
    yield serve(ONE, HUBBUB_ONE, folder, f"sqlite:///{folder}/one.db")
    for label, name in RIVALS.items():
        # With a thread for each request, as an operator would have it; on few cores a single one is often faster.
        for threads in (CONCURRENCY, 1):
            arguments = [*RIVAL, name, "{port}", str(threads)]
            yield running(_rival(label, threads), folder, arguments, "/v1/batches")


def _rival(label: str, threads: int) -> str:
    words = {FLASK: "Flask that parses JSON and stores nothing", BARE: "bare WSGI that stores nothing"}[label]
    return f"{words}, {threads} thread{'s' if threads > 1 else ''}"


def _rows(rates: dict[str, float]) -> list[Row]:
    what = f"durable ingest, %s, {CONCURRENCY} at a time, batches/s"
    rows = []
    for ours, store in ((OURS, "SQLite"), (POSTGRES, "PostgreSQL")):
        for label in RIVALS:
            for threads in (CONCURRENCY, 1):
                rival = _rival(label, threads)
                wanted = WANTED[CONCURRENCY] if (ours, label, threads) == (OURS, FLASK, CONCURRENCY) else None
                fault = "" if ours in rates else "not measured: no PostgreSQL"
                rows.append(
                    Row(what % store, "collector", rival, rates.get(ours), rates[rival], wanted=wanted, fault=fault)
                )
    return rows


def _growth(folder: Path, store: Store, reports: int, sizes: tuple[int, ...]) -> tuple[Table, dict[str, float]]:
    """Fill a store, and look at it at each size: does a batch cost more when there are many?"""
    rows, last = [], {}
    with serve(OURS, HUBBUB, folder, store.address) as server:
        before = store.held()
        for size in sizes:
            begin, cpu, database = committed(server)[0], server.cpu(), store.cpu()
            written = store.written(server)
            started = time.perf_counter()
            with _loading(server, reports):
                while (reached := counter(server, ACCEPTED) - begin) < size:
                    time.sleep(0.05)
                seconds = time.perf_counter() - started
            added = committed(server)[0] - begin
            held = store.held()
            last = {
                "rate": reached / seconds,
                "collector_cpu": (server.cpu() - cpu) / added,
                "database_cpu": (store.cpu() - database) / added,
                "written": (store.written(server) - written) / added,
                "id_bytes": (held.bytes_of_ids - before.bytes_of_ids) / (held.ids - before.ids),
            }
            cost = [f"{1e6 * last[part]:,.0f}" if last[part] else "-" for part in ("collector_cpu", "database_cpu")]
            taken = [
                f"{last['written']:,.0f}",
                f"{last['id_bytes']:.0f}",
                f"{held.total / 1e6:,.1f}",
                f"{server.resident() / 2**20:,.0f}",
            ]
            rows.append([f"{added:,}", f"{last['rate']:,.0f}", *cost, *taken])
    each = f"{reports} reports each, of {reports} metrics" if reports > 1 else "one report each, of one metric"
    title = (
        f"Batches ingested, {store.name}: {each} of 128 bits and 64 cohorts, {CONCURRENCY} batches at a time. Each "
        "line comes on top of those above it."
    )
    header = ["batches added", "a second", "collector, CPU µs a batch", "database, CPU µs a batch"]
    header += ["bytes written a batch", "bytes a batch id", "store, MB", "collector, MiB"]
    end = "" if reports == REPORTS else f"_{reports}"
    figures = {f"{store.name.lower()}_{key}{end}": value for key, value in last.items()}
    return Table("growth", title, header, rows), figures


@contextlib.contextmanager
def _loading(server: Server, reports: int) -> Iterator[None]:
    """Send batches all the while."""
    wrk = load.begin(server.url, CONCURRENCY, LONG_SECONDS, reports)
    try:
        yield
    finally:
        wrk.send_signal(signal.SIGINT)
        load.end(wrk)


def _sqlite(path: Path) -> Store:
    def held() -> Held:
        with contextlib.closing(sqlite3.connect(path, timeout=30)) as connection:
            [[ids]] = connection.execute("SELECT count(*) FROM batch")
            try:
                [[size]] = connection.execute("SELECT coalesce(sum(pgsize), 0) FROM dbstat WHERE name = 'batch'")
            except sqlite3.OperationalError:  # built without it: then all of the file is taken to be ids
                size = path.stat().st_size
        return Held(ids, size, sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*")))

    return Store("SQLite", f"sqlite:///{path}", held, lambda: 0.0, lambda server: server.written())


def _postgres(address: str) -> Store:
    import psycopg  # noqa: PLC0415  (not everywhere)

    def held() -> Held:
        with psycopg.connect(address) as connection:
            told = connection.execute(
                "SELECT (SELECT count(*) FROM batch), pg_total_relation_size('batch'),"
                " pg_database_size(current_database())"
            ).fetchone()
        assert told is not None
        return Held(*told)

    def cpu() -> float:
        """Of the server and all that it has started; of one on another machine nothing is known."""
        with psycopg.connect(address) as connection:
            if connection.info.hostaddr not in {"127.0.0.1", "::1", ""}:
                return 0.0
            process = Path(f"/proc/{connection.info.backend_pid}")
            parent = _parent(process)
            children = [each for each in Path("/proc").iterdir() if each.name.isdecimal() and _parent(each) == parent]
            return cpu_of(Path(f"/proc/{parent}")) + sum(map(cpu_of, children))

    def written(_: Server) -> float:
        with psycopg.connect(address) as connection:
            told = connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float").fetchone()
        assert told is not None
        return float(told[0])

    return Store("PostgreSQL", address, held, cpu, written)


def _parent(process: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    return -1
