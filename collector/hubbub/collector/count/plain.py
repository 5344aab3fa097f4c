"""Counting a few reports: one byte for each bit, then a sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.count.runs import starts_of_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

AT_ONCE = 1 << 21
"""Bits unpacked at a time: each takes a byte, and they should stay in the cache."""


def count_plain(packed: NDArray[np.uint8], bits: int) -> NDArray[np.int64]:
    """Count reports without cohorts, all of them at once."""
    ones = np.unpackbits(packed, axis=1, count=bits, bitorder="little")
    total: NDArray[np.int64] = np.add.reduce(ones, axis=0, dtype=np.int64)
    return total


def count_plain_by_cohort(
    packed: NDArray[np.uint8], bits: int, cohorts: NDArray[np.integer]
) -> tuple[NDArray[np.integer], NDArray[np.int64]]:
    """Count reports in the order of their cohorts: which cohorts there are, and a row for each."""
    starts = starts_of_runs(cohorts)
    ones = np.unpackbits(packed, axis=1, count=bits, bitorder="little")
    return cohorts[starts], np.add.reduceat(ones, starts, axis=0, dtype=np.int64)


def add_plain(counts: NDArray[np.int64], packed: NDArray[np.uint8], cohorts: NDArray[np.integer]) -> None:
    """Add reports, in the order of their cohorts, to the counts of these."""
    bits = counts.shape[1]
    step = max(1, AT_ONCE // bits)
    for start in range(0, len(packed), step):
        some = slice(start, start + step)
        present, counted = count_plain_by_cohort(packed[some], bits, cohorts[some])
        counts[present] += counted
