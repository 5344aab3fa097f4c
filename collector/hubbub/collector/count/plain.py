"""Counting a few reports: one byte for each bit, then a sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.count.runs import sort_by_cohort, starts_of_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.collector.count.runs import Runs

AT_ONCE = 1 << 21
"""Bits unpacked at a time: each takes a byte, and they should stay in the cache."""


def count_plain(packed: NDArray[np.uint8], bits: int) -> NDArray[np.int64]:
    """Count reports without cohorts, all of them at once."""
    ones = np.unpackbits(packed, axis=1, count=bits, bitorder="little")
    total: NDArray[np.int64] = np.add.reduce(ones, axis=0, dtype=np.int64)
    return total


def count_few(packed: NDArray[np.uint8], bits: int, cohorts: NDArray[np.integer], groups: int) -> NDArray[np.int64]:
    """Count reports of cohorts in any order, all at once: what a commit has."""
    counts = np.zeros((groups, bits), np.int64)
    order, theirs = sort_by_cohort(cohorts, groups)
    starts = starts_of_runs(theirs)
    ones = np.unpackbits(packed[order], axis=1, count=bits, bitorder="little")
    if len(starts) == groups:
        np.add.reduceat(ones, starts, axis=0, dtype=np.int64, out=counts)
    else:
        counts[theirs[starts]] = np.add.reduceat(ones, starts, axis=0, dtype=np.int64)
    return counts


def add_plain(counts: NDArray[np.int64], packed: NDArray[np.uint8], runs: Runs) -> None:
    """Add all reports, which lie in runs, to the counts of their cohorts."""
    bits = counts.shape[1]
    step = max(1, AT_ONCE // bits)
    for start in range(0, len(packed), step):
        first = int(np.searchsorted(runs.stops, start, "right"))
        last = int(np.searchsorted(runs.starts, start + step, "left"))
        ones = np.unpackbits(packed[start : start + step], axis=1, count=bits, bitorder="little")
        begins = np.maximum(runs.starts[first:last] - start, 0)
        counts[runs.cohorts[first:last]] += np.add.reduceat(ones, begins, axis=0, dtype=np.int64)
