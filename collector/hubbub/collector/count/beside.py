"""Counting many runs at once: laid into a stack, each beside others of about its size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.count.runs import Runs
from hubbub.collector.count.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

STACK_BYTES = 24 << 20
"""Runs of a stack have together at most so much: its many operations are then little beside their work."""


def add_beside(counts: NDArray[np.int64], packed: NDArray[np.uint8], runs: Runs) -> None:
    """Add runs to the counts of their cohorts."""
    width = packed.shape[1]
    for some in _alike(runs, max(STACK_BYTES // width, 1)):
        stack = Stack.new([0], len(some.cohorts), int(some.sizes[0]), width)
        for number, (start, stop) in enumerate(zip(some.starts.tolist(), some.stops.tolist(), strict=True)):
            run = np.ascontiguousarray(packed[start:stop])
            stack.lay(0, slice(number, number + 1), run.reshape(1, -1))
        counts[some.cohorts] += stack.count_ones(counts.shape[1])


def _alike(runs: Runs, most: int) -> Iterator[Runs]:
    """Take runs that fit into a stack together, and none much smaller than the others: that would be mostly zeros."""
    order = np.argsort(-runs.sizes, kind="stable")
    runs = Runs(*(each[order] for each in runs))
    sizes = runs.sizes
    begin = 0
    while begin < len(sizes):
        largest = int(sizes[begin])
        end = min(begin + max(most // largest, 1), int(np.searchsorted(-sizes, -(largest * 3 // 4), "right")))
        yield Runs(*(each[begin:end] for each in runs))
        begin = end
