"""Durable ingest, beside servers that store nothing: `python -m benchmarks collector`.

HUBBUB_BENCH_QUICK=1 measures for a shorter time. HUBBUB_BENCH_POSTGRES is the address of a database that may be
filled; without it the PostgreSQL of the tests is started, if it is installed.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import requests

from benchmarks import load
from benchmarks.servers import HUBBUB, HUBBUB_ONE, RIVAL, Server, running

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from benchmarks.load import Answered

QUICK = bool(os.environ.get("HUBBUB_BENCH_QUICK"))
CONCURRENCY = (1, 16, 64)
ROUNDS, SECONDS = (2, 1) if QUICK else (5, 3)
MEMORY_AFTER = (10_000, 100_000 if QUICK else 1_000_000)
WANTED = {64: 2.0}
"""By concurrency: batches a second, in multiples of (a)."""

WANTED_MEMORY = 1.2
DISK = Path("/var/tmp")
"""For files that outlive a restart; /tmp is often in memory, where syncing is free."""

OURS, ONE, POSTGRES = "hubbub serve", "(c) hubbub, a commit for each batch", "hubbub serve, PostgreSQL"
FLASK, BARE = "(a) Flask that parses JSON", "(b) bare WSGI"
RIVALS = {FLASK: "flask", BARE: "bare"}


def main() -> None:
    """Print the tables."""
    if load.WRK is None:
        print("\nDurable ingest: not measured, because wrk is not installed; it is a package of Debian")
        return
    with tempfile.TemporaryDirectory(dir=DISK if DISK.is_dir() else None) as name, postgres_here() as postgres:
        folder = Path(name)
        (folder / "metrics.toml").write_text(load.METRIC)
        print(f"\n4 KiB written and synced: {_synced(folder) * 1e3:.2f} ms at the median")
        if postgres is None:
            print("PostgreSQL is not measured: neither HUBBUB_BENCH_POSTGRES nor the PostgreSQL of the tests is there")
        for concurrency in CONCURRENCY:
            with contextlib.ExitStack() as stack:
                servers = [stack.enter_context(each) for each in _contestants(folder, concurrency, postgres)]
                _show(concurrency, _take_turns(servers, concurrency))
        _memory(folder)


def _contestants(folder: Path, concurrency: int, postgres: str | None) -> Iterator[AbstractContextManager[Server]]:
    yield serve(OURS, HUBBUB, folder, f"sqlite:///{folder}/ours-{concurrency}.db")
    for label, name in RIVALS.items():
        # With a thread for each request first, as an operator would have it; on few cores a single one is often faster.
        for threads in sorted({concurrency, 1}, reverse=True):
            shown = label if threads == concurrency else f"{label}, 1 thread"
            yield running(shown, folder, [*RIVAL, name, "{port}", str(threads)], "/v1/batches")
    yield serve(ONE, HUBBUB_ONE, folder, f"sqlite:///{folder}/one-{concurrency}.db")
    if postgres is not None:
        yield serve(POSTGRES, HUBBUB, folder, postgres)


def serve(name: str, arguments: list[str], folder: Path, store: str) -> AbstractContextManager[Server]:
    return running(name, folder, arguments, "/readyz", store=store, registry=folder / "metrics.toml")


def _take_turns(servers: list[Server], concurrency: int) -> dict[str, list[Answered]]:
    found: dict[str, list[Answered]] = {server.name: [] for server in servers}
    for _ in range(ROUNDS):
        for server in servers:
            ours = server.name in {OURS, ONE, POSTGRES}
            before = committed(server) if ours else (0, 0)
            answered = load.end(load.begin(server.url, concurrency, SECONDS))
            if ours:
                _check(server.name, answered.requests, concurrency, before, committed(server))
            found[server.name].append(answered)
    return found


def _check(name: str, acknowledged: int, concurrency: int, before: tuple[int, int], after: tuple[int, int]) -> None:
    """Make sure that what was acknowledged is what was committed."""
    batches, commits = after[0] - before[0], after[1] - before[1]
    # Those on their way when wrk left may be committed too: nobody was there to be told.
    if not acknowledged <= batches <= acknowledged + concurrency:
        raise RuntimeError(f"{name}: {acknowledged} batches were acknowledged, {batches} were committed")
    if name == ONE and commits != batches:
        raise RuntimeError(f"{name}: {batches} batches were committed by {commits} commits")


def committed(server: Server) -> tuple[int, int]:
    """Ask how many new batches were committed, and by how many commits, until it stays the same."""
    before = (-1, -1)
    while (now := (counter(server, 'hubbub_batches_total{outcome="accepted"}'), _commits(server))) != before:
        before = now
        time.sleep(0.2)
    return now


def _commits(server: Server) -> int:
    return counter(server, "hubbub_commit_batches_count")


def counter(server: Server, name: str) -> int:
    """Read one of the numbers that a collector tells about itself."""
    told = requests.get(f"{server.url}/metrics", timeout=30).text
    found = re.search(rf"^{re.escape(name)} (\S+)$", told, re.MULTILINE)
    return int(float(found[1])) if found else 0


def _show(concurrency: int, found: Mapping[str, list[Answered]]) -> None:
    """Print the best round of each, as the one least disturbed, and the median of all to tell how noisy it was."""
    best = {name: max(rounds, key=lambda each: each.rate) for name, rounds in found.items()}
    print(f"\nBatches acknowledged, {concurrency} at a time; the best of {ROUNDS} rounds of {SECONDS} s")
    print(f"  {'':38}{'a second':>10}{'median':>9}{'p50 ms':>9}{'p99 ms':>9}{'x (a)':>8}{'x (b)':>8}{'wanted':>9}")
    for name, each in best.items():
        usual = median(one.rate for one in found[name])
        ratios = "".join(f"{each.rate / best[other].rate:8.2f}" for other in (FLASK, BARE))
        wanted = f">= {WANTED[concurrency]:g} (a)" if name == OURS and concurrency in WANTED else ""
        times = f"{each.p50 * 1e3:9.2f}{each.p99 * 1e3:9.2f}"
        print(f"  {name:38}{each.rate:10,.0f}{usual:9,.0f}{times}{ratios}{wanted:>9}".rstrip())


def _memory(folder: Path) -> None:
    """What a collector holds after few batches, and after many."""
    print("\nMemory of hubbub serve, all of its processes")
    sizes: list[int] = []
    with serve(OURS, HUBBUB, folder, f"sqlite:///{folder}/memory.db") as server:
        for batches in MEMORY_AFTER:
            wrk = load.begin(server.url, max(CONCURRENCY), 3600)
            while counter(server, 'hubbub_batches_total{outcome="accepted"}') < batches:
                time.sleep(0.1)
            wrk.send_signal(signal.SIGINT)
            load.end(wrk)
            accepted, _ = committed(server)
            sizes.append(server.resident())
            print(f"  after {accepted:9,} batches: {sizes[-1] / 2**20:6.1f} MiB")
    print(f"  ratio {sizes[-1] / sizes[0]:.2f}, wanted <= {WANTED_MEMORY:g}")


def _synced(folder: Path) -> float:
    """Seconds that this disk takes to keep a page."""
    times = []
    with (folder / "synced").open("wb", buffering=0) as file:
        for _ in range(200):
            begin = time.perf_counter()
            file.write(b"\0" * 4096)
            os.fdatasync(file)
            times.append(time.perf_counter() - begin)
    return median(times)


@contextlib.contextmanager
def postgres_here() -> Iterator[str | None]:
    """Give the address of a database, if there is any."""
    if given := os.environ.get("HUBBUB_BENCH_POSTGRES"):
        yield given
        return
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    try:
        from collector.postgres import Postgres  # noqa: PLC0415  (a part of the tests, and not always installed)

        server = Postgres()
    except (ImportError, AssertionError):
        yield None
        return
    try:
        yield server.url
    finally:
        server.stop()
