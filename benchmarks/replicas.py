"""Throughput of 1, 2 and 3 collectors on one PostgreSQL: `python -m benchmarks replicas`.

Each replica has a wrk of its own, and all together have as many batches under way whether there are few replicas or
many. There is no balancer between, which would be measured too. All of it shares one machine: what replicas add shows
only where there are cores for them, so the processor time that 1,000 batches take is told as well, of each part.
HUBBUB_BENCH_QUICK=1 measures for a shorter time; HUBBUB_BENCH_POSTGRES is the address of a database that may be filled.
"""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks import load, writing
from benchmarks.collector import DISK, committed, postgres_here, serve
from benchmarks.servers import HUBBUB, Server, cpu_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

QUICK = bool(os.environ.get("HUBBUB_BENCH_QUICK"))
REPLICAS = (1, 2, 3)
CONCURRENCY = 60
"""Batches at a time, over all replicas."""

ROUNDS, SECONDS = (2, 1) if QUICK else (6, 4)
PAGE = "docs/replicas.md"


@dataclass(frozen=True)
class Measured:
    """One round with a number of replicas."""

    rate: float
    """Batches a second that were acknowledged, by all together."""
    p50: float
    p99: float
    """Seconds, of the slowest replica."""
    in_commit: float
    """Batches in a commit."""
    collectors: float
    database: float
    sender: float
    """Seconds of processor time for 1,000 batches."""


def main() -> None:
    """Print the table."""
    write = writing.wanted()
    if load.WRK is None:
        print("\nReplicas: not measured, because wrk is not installed; it is a package of Debian")
        return
    with tempfile.TemporaryDirectory(dir=DISK if DISK.is_dir() else None) as name, postgres_here() as address:
        if address is None:
            print("\nReplicas: not measured; neither HUBBUB_BENCH_POSTGRES nor the PostgreSQL of the tests is there")
            return
        busy = os.getloadavg()[0]
        text = tell(measure(Path(name), address), busy)
    print(f"\n{text}")
    if write:
        writing.write_section(PAGE, "replicas", text)


def measure(folder: Path, address: str) -> dict[int, list[Measured]]:
    """Let 1, 2 and 3 replicas take turns, round after round; those whose turn it is not have nothing to do."""
    (folder / "metrics.toml").write_text(load.METRIC)
    database = postmaster(address)
    found: dict[int, list[Measured]] = {number: [] for number in REPLICAS}
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(serve(f"replica {n}", HUBBUB, folder, address)) for n in REPLICAS]
        for number in REPLICAS:
            _load(servers[:number], 1)  # until all of them are warm
        for _ in range(ROUNDS):
            for number in REPLICAS:
                found[number].append(_measure(servers[:number], database))
    return found


def _measure(servers: Sequence[Server], database: int) -> Measured:
    batches, commits = _committed(servers)
    before = _spent(servers, database)
    answered = _load(servers, SECONDS)
    after = _spent(servers, database)
    acknowledged = sum(each.requests for each in answered)
    now_batches, now_commits = _committed(servers)
    batches, commits = now_batches - batches, now_commits - commits
    # Those on their way when wrk left may be committed too: nobody was there to be told.
    if not acknowledged <= batches <= acknowledged + CONCURRENCY:
        raise RuntimeError(f"{acknowledged} batches were acknowledged, {batches} were committed")
    spent = [1000 * (now - then) / acknowledged for now, then in zip(after, before, strict=True)]
    return Measured(
        sum(each.rate for each in answered),
        max(each.p50 for each in answered),
        max(each.p99 for each in answered),
        batches / commits,
        *spent,
    )


def _load(servers: Sequence[Server], seconds: float) -> list[load.Answered]:
    begun = [load.begin(server.url, CONCURRENCY // len(servers), seconds) for server in servers]
    return [load.end(wrk) for wrk in begun]


def _committed(servers: Sequence[Server]) -> tuple[int, int]:
    told = [committed(server) for server in servers]
    return sum(batches for batches, _ in told), sum(commits for _, commits in told)


def _spent(servers: Sequence[Server], database: int) -> tuple[float, float, float]:
    """Seconds of processor time so far: of the collectors, of PostgreSQL, of all that has sent."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = [Path(f"/proc/{database}"), *_children(database)]
    senders = children.ru_utime + children.ru_stime
    return sum(server.cpu() for server in servers), sum(cpu_of(process) for process in own), senders


def postmaster(address: str) -> int:
    """Find the process of a PostgreSQL on this machine: it is the parent of the one that serves us."""
    import psycopg  # noqa: PLC0415  (not always installed)

    with psycopg.connect(address) as connection:
        return _parent(Path(f"/proc/{connection.info.backend_pid}"))


def _children(parent: int) -> list[Path]:
    return [each for each in Path("/proc").iterdir() if each.name.isdecimal() and _parent(each) == parent]


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def tell(found: Mapping[int, Sequence[Measured]], busy: float) -> str:
    """Spell what was measured: medians over the rounds, and ratios within each round."""
    rows = []
    for number, rounds in found.items():
        ratios = [mine.rate / one.rate for mine, one in zip(rounds, found[1], strict=True)]
        each = {name: median(getattr(one, name) for one in rounds) for name in Measured.__annotations__}
        rows.append(
            [
                str(number),
                f"{each['rate']:,.0f}",
                f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
                f"{1e3 * each['p50']:.1f}",
                f"{1e3 * each['p99']:.1f}",
                f"{each['in_commit']:.1f}",
                *(f"{each[part]:.3f}" for part in ("collectors", "database", "sender")),
            ]
        )
    header = ["replicas", "batches a second", "x one", "p50 ms", "p99 ms", "batches in a commit"]
    spent = ["CPU s of collectors", "of PostgreSQL", "of the sender"]
    return (
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores; the load average was "
        f"{busy:.1f} before it began.\nBatches of one report, {CONCURRENCY} at a time over all replicas, by wrk; "
        f"{ROUNDS} rounds of {SECONDS} s for each number, in turn.\nReplicas, PostgreSQL and wrk share the cores; "
        "where others use them too,\nmore processes also get more of them. Medians over the rounds; ratios within each "
        "round, with their range; CPU seconds\nare for 1,000 batches:\n\n"
        f"{writing.table([*header, *spent], rows)}"
    )
