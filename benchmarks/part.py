"""One part of `make bench`, in a process of its own: `python -m benchmarks.part NAME` prints what it found, as JSON.

A part that fails, hangs or takes all memory then costs the page one line, and no more.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec

from benchmarks import servers, writing
from benchmarks.findings import Findings
from benchmarks.peer_environment import ONE_THREAD, last_words

if TYPE_CHECKING:
    from typing import Any

SECONDS = 900
"""After so long a part is given up."""

PARTS = {
    "clients": "client",
    "counts": "counting",
    "decodes": "decoding",
    "means": "mean",
    "ingest": "durable ingest",
    "populations": "simulation",
    "archives": "archive",
    "promises": "what the peers do not do",
    "sizes": "bytes",
}
"""The modules of `parts`, in the order of the page, and what they are about."""


def run(name: str) -> Findings:
    """Start a part, wait for it, and take what it found, or why it found nothing."""
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.part", name],
        cwd=writing.ROOT,
        env=os.environ | ONE_THREAD,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            told, errors = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.terminate()  # and not killed: it has servers to stop
            process.communicate()
            return _failed(name, f"it took more than {SECONDS} s")
    if process.returncode:
        return _failed(name, last_words(errors, process.returncode))
    return msgspec.json.decode(told.splitlines()[-1], type=Findings)


def _failed(name: str, why: str) -> Findings:
    return Findings(missing=[f"{PARTS[name]}: not measured, because the benchmark failed: {why}"])


def measure(name: str) -> Findings:
    """Measure a part in this process."""
    module: Any = importlib.import_module(f"benchmarks.parts.{name}")
    found: Findings = module.measure()
    return found


if __name__ == "__main__":
    servers.end_when_told()
    print(msgspec.json.encode(measure(sys.argv[1])).decode())
