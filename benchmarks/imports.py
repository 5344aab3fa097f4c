"""What `import hubbub.client` costs an app, beside `import requests`."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.ratios import show

ROUNDS = 15
WANTED = 2.0
"""Times of the other, at most."""
OURS, THEIRS = "import hubbub.client", "import requests"


def seconds(statement: str) -> float:
    """Time a fresh interpreter that runs one statement."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - begin


def measure() -> dict[str, float]:
    """Seconds of the fastest round of each; the time of an interpreter that does nothing is taken off."""
    statements = ["pass", THEIRS, OURS]
    best = dict.fromkeys(statements, float("inf"))
    for _ in range(ROUNDS):
        for statement in statements:
            best[statement] = min(best[statement], seconds(statement))
    return {statement: best[statement] - best["pass"] for statement in statements[1:]}


def main() -> None:
    """Print the table."""
    show("Importing, in a fresh interpreter", THEIRS, measure(), {OURS: WANTED})
