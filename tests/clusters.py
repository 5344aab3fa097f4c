"""Dask clusters for tests: a scheduler and its workers, each a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cluster:
    address: str
    scheduler: int
    """Its process."""
    workers: list[int]


@contextmanager
def cluster(workers: int, *folders: Path) -> Iterator[Cluster]:
    """Start one; its workers import from some folders first, and from those of the tests."""
    command = [sys.executable, "-W", "ignore", "-m"]
    path = os.pathsep.join(map(str, [*folders, Path(__file__).parent]))
    environment = os.environ | {"PYTHONPATH": path}
    scheduler = subprocess.Popen(
        [*command, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert scheduler.stderr is not None
    address = next(line.split()[-1] for line in scheduler.stderr if "Scheduler at" in line)
    started: list[subprocess.Popen[str]] = [
        subprocess.Popen(
            [*command, "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"],
            env=environment,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(workers)
    ]
    try:
        yield Cluster(address, scheduler.pid, [process.pid for process in started])
    finally:
        for process in [*started, scheduler]:
            process.kill()
            process.wait()
        scheduler.stderr.close()
