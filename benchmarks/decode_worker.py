"""Decode strings in a process of its own, and tell what it took: started by `benchmarks.decoding`."""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.collector import Tally, decode
from hubbub.collector.decode.design import bloom_design
from hubbub.shared import Registry
from hubbub.shared.encode import Bloom
from hubbub.simulations import simulate_tally

if TYPE_CHECKING:
    from collections.abc import Mapping

SEED = 20140905


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """CPU seconds of the fastest round, the memory at its highest, what was found, and how far off the shares are.

    The error is the root mean square one of all strings that are held, over all seeds: each draws devices and noise
    anew, and names the strings anew, so that other bits are theirs.
    """
    metric = Registry.parse(job["registry"])["m"]
    best: dict[str, Any] = {"seconds": float("inf")}
    peak, squares = 0, []
    for seed in range(job["seeds"]):
        candidates, truth = _population(job, seed)
        tally = simulate_tally(metric, truth, SEED + seed)
        for _ in range(job["rounds"]):
            taken = _decode(job["registry"], tally, candidates, truth)
            peak = peak or _peak()
            squares.append(taken.pop("square"))
            best = min(best, taken, key=lambda each: float(each["seconds"]))
    assert isinstance(metric.encoding, Bloom)
    begin = time.process_time()
    bloom_design(metric.encoding, candidates)
    design = time.process_time() - begin
    read, searched, rest = best.pop("marks")
    parts = {"list": read, "design": design, "search": max(searched - design, 0.0), "rest": rest}
    error = float(np.sqrt(np.mean(squares)))
    return best | {"peak": peak, "error": error, "parts": parts, "numpy": np.__version__}


def _population(job: dict[str, Any], seed: int) -> tuple[list[str], dict[str | bool | float, int]]:
    """The candidates, and how many devices hold each of the first of them.

    They are as common as words: the second half as often as the first, the third a third as often.
    """
    ranks = np.arange(1, job["strings"] + 1)
    held = np.random.default_rng(SEED + seed).multinomial(job["reports"], 1 / ranks / (1 / ranks).sum())
    end = f"{seed}.example" if seed else "example"
    candidates = [f"site-{number}.{end}" for number in range(1, job["candidates"] + 1)]
    return candidates, {name: int(number) for name, number in zip(candidates, held, strict=False)}


def _peak() -> int:
    """Bytes of memory at their highest. On Linux ru_maxrss begins with what the starting process held: not ours."""
    status = Path("/proc/self/status")
    if status.exists():
        [kibibytes] = re.findall(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE)
        return int(kibibytes) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _decode(
    registry: str, tally: Tally, candidates: list[str], truth: Mapping[str | bool | float, int]
) -> dict[str, Any]:
    metric = Registry.parse(registry)["m"]
    marks: list[tuple[str, float]] = []
    begin = time.process_time()
    estimates = decode(
        metric, tally, candidates=candidates, progress=lambda told: marks.append((told, time.process_time()))
    )
    end = time.process_time()
    hashing = next(when for told, when in marks if told.startswith("hashing"))
    every = next(when for told, when in marks if told.startswith("estimating"))
    shares = {name: row.share or 0.0 for row in estimates.rows for name in (row.value, *row.also)}
    true = {str(name): number / tally.reports for name, number in truth.items()}
    return {
        "seconds": end - begin,
        "marks": (hashing - begin, every - hashing, end - every),
        "found": len(estimates.detected),
        "absent": sum(row.value not in truth for row in estimates.detected),
        "first": shares[candidates[0]],
        "first_true": true[candidates[0]],
        "square": float(np.mean([(shares[name] - share) ** 2 for name, share in true.items()])),
        "rounds": sum(told.endswith("found") for told, _ in marks),
    }


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
