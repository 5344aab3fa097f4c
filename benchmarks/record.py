"""What `Client.record` costs an app: beside the disk alone, and whether or not the collector answers."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.client import REGISTRY
from benchmarks.ratios import fastest, show
from hubbub.client import Client, privatize
from hubbub.client.testing import FrozenClock, InMemoryCollector
from hubbub.shared import Registry, Secret

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS = 400
ROUNDS = 5
EXITS = 5


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        _durable(Path(folder))
        _answering(Path(folder))
        _memory(Path(folder))
        _exit(Path(folder))


def _client(path: Path, collector: str | None, clock: FrozenClock | None = None) -> Client:
    options = {} if clock is None else {"clock": clock}
    return Client(collector, registry=Registry.parse(REGISTRY), state=path, enabled=True, **options)  # type: ignore[arg-type]


def _durable(folder: Path) -> None:
    """A record is a report and a durable transaction: how much of it is the disk?"""
    client = _client(folder / "record.db", None)
    bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
    bare.execute("PRAGMA journal_mode = WAL")
    bare.execute("PRAGMA synchronous = FULL")
    bare.execute("CREATE TABLE row (key INTEGER PRIMARY KEY, n INTEGER, bits BLOB)")
    bare.execute("INSERT INTO row VALUES (1, 0, x'00')")
    metric, secret = Registry.parse(REGISTRY)["solved"], Secret.generate()

    def transaction() -> None:
        bare.execute("BEGIN IMMEDIATE")
        bare.execute("UPDATE row SET n = n + 1, bits = x'00112233445566778899aabbccddeeff' WHERE key = 1")
        bare.execute("COMMIT")

    contestants: dict[str, Callable[[], object]] = {
        "durable update of one row": transaction,
        "record a string": lambda: client.record("solved", "example.org"),
        "privatize alone": lambda: privatize(metric, "example.org", secret),
    }
    best = fastest(contestants, rounds=ROUNDS, calls=CALLS)
    show("Recording, durable when it returns", "durable update of one row", best)
    print(f"  {1 / best['record a string']:,.0f} calls of record a second")


def _answering(folder: Path) -> None:
    """The 99th percentile of record, with a collector that answers and with one that never does."""
    found = {}
    with InMemoryCollector() as good, socket.create_server(("127.0.0.1", 0)) as silent:
        addresses = {"collector up": good.url, "collector silent": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        for name, address in addresses.items():
            clock = FrozenClock(datetime(2026, 11, 16, tzinfo=UTC))
            client = _client(folder / f"{name}.db", address, clock)
            client.record("flag", True)
            clock.advance(days=2)  # so that there is something to send
            client.record("flag", True)
            time.sleep(0.5)
            times = []
            for _ in range(5 * CALLS):
                begin = time.perf_counter()
                client.record("solved", "example.org")
                times.append(time.perf_counter() - begin)
            found[name] = sorted(times)[len(times) * 99 // 100]
            client.close(0)
    show("The 99th percentile of record", "collector up", found)


PROGRAM = """
import sys
{work}
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS")))
"""
USE = """
from hubbub.client import Client
client = Client("http://127.0.0.1:1", registry=sys.argv[1], state=sys.argv[2], enabled=True)
client.record("flag", True)
"""


def _memory(folder: Path) -> None:
    (folder / "metrics.toml").write_text(REGISTRY)
    sizes = []
    for work in ("", USE):
        command = [sys.executable, "-c", PROGRAM.format(work=work), str(folder / "metrics.toml"), str(folder / "m.db")]
        sizes.append(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    print(f"\nMemory: a bare interpreter {sizes[0] / 1024:.1f} MiB, with an idle client {sizes[1] / 1024:.1f} MiB")


ENDING = """
import sys, time
from datetime import UTC, datetime
from hubbub.client import Client
from hubbub.client.testing import FrozenClock
import requests
clock = FrozenClock(datetime(2026, 11, 16, tzinfo=UTC))
if sys.argv[3]:
    client = Client(sys.argv[3], registry=sys.argv[1], state=sys.argv[2], enabled=True, clock=clock)
    client.record("flag", True)
    clock.advance(days=2)
    client.record("flag", True)
time.sleep(0.3)
print(time.time(), flush=True)
"""


def _exit(folder: Path) -> None:
    """How long a process takes to end after its last line, with uploads that cannot succeed."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        places = {
            "no client": "",
            "connection refused": "http://127.0.0.1:1",
            "no answer": f"http://127.0.0.1:{silent.getsockname()[1]}",
        }
        best = {}
        for name, address in places.items():
            times = []
            for number in range(EXITS):
                state = folder / f"exit-{name}-{number}.db"
                command = [sys.executable, "-c", ENDING, str(folder / "metrics.toml"), str(state), address]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                times.append(time.time() - float(done.stdout))
            best[name] = min(times)
    show("Ending the process, after its last line", "no client", best)
