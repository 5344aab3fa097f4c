"""Counting runs by way of stacks: cut into blocks, which are laid beside others of about their size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.count.adders import add_three
from hubbub.collector.count.scratch import scratch
from hubbub.collector.count.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from hubbub.collector.count.runs import Runs

BLOCK_BYTES = 288 << 10
"""A block is at most so large: a third of it is what an operation of numpy is best at."""

ADDED_BYTES = 32 << 10
"""From here on, a block is not copied into the stack: the first adders take it from where it is."""

STACK_BYTES = 24 << 20
"""Blocks of a stack have together at most so much: its many operations are then little beside their work."""

NEAR_BYTES = 2 << 20
"""But the first adders, which have most of the work, take so much at a time: it stays in the nearer cache."""


def add_blocks(counts: NDArray[np.int64], packed: NDArray[np.uint8], runs: Runs) -> None:
    """Add runs to the counts of their cohorts."""
    width = packed.shape[1]
    for cohorts, starts, stops in _alike(*_cut(runs, max(BLOCK_BYTES // width, 1)), max(STACK_BYTES // width, 1)):
        largest = int(stops[0] - starts[0])
        lay = _lay_added if largest * width >= ADDED_BYTES else _lay_copied
        stack = lay(packed, starts.tolist(), stops.tolist(), largest)
        np.add.at(counts, cohorts, stack.count_ones(counts.shape[1]))


def _cut(runs: Runs, most: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Cut runs into even blocks of at most so many reports: the cohort, start and stop of each, largest first."""
    pieces = -(-runs.sizes // most)
    which = np.repeat(np.arange(len(pieces)), pieces)
    place = np.arange(len(which)) - np.repeat(pieces.cumsum() - pieces, pieces)
    borders = [runs.starts[which] + runs.sizes[which] * at // pieces[which] for at in (place, place + 1)]
    order = np.argsort(borders[0] - borders[1], kind="stable")
    return runs.cohorts[which[order]], borders[0][order], borders[1][order]


def _alike(
    cohorts: NDArray[np.intp], starts: NDArray[np.intp], stops: NDArray[np.intp], most: int
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]]:
    """Take blocks that fit into a stack together, and none much smaller than the others: that would be mostly zeros."""
    sizes = stops - starts
    begin = 0
    while begin < len(sizes):
        largest = int(sizes[begin])
        end = min(begin + max(most // largest, 1), int(np.searchsorted(-sizes, -(largest * 3 // 4), "right")))
        some = slice(begin, max(end, begin + 1))
        yield cohorts[some], starts[some], stops[some]
        begin = some.stop


def _lay_copied(packed: NDArray[np.uint8], starts: list[int], stops: list[int], largest: int) -> Stack:
    stack = Stack.new([0], len(starts), largest, packed.shape[1])
    for number, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        stack.lay(0, slice(number, number + 1), np.ascontiguousarray(packed[start:stop]).reshape(1, -1))
    return stack


def _lay_added(packed: NDArray[np.uint8], starts: list[int], stops: list[int], largest: int) -> Stack:
    """Lay what is left of blocks after the first adders: some blocks at a time, which stay in the near cache."""
    width = packed.shape[1]
    reports = largest // 3 + 2
    step = max(NEAR_BYTES // (2 * reports * width), 1)
    levels, digits = _add_thirds(packed, starts[:step], stops[:step], reports).fold()
    stack = Stack.new(levels, len(starts), digits[0].shape[1] // width, width, turn=1)
    stack.lay_all(slice(0, step), digits)
    for at in range(step, len(starts), step):
        some = slice(at, at + step)
        _, digits = _add_thirds(packed, starts[some], stops[some], reports).fold()
        stack.lay_all(some, digits)
    return stack


def _add_thirds(packed: NDArray[np.uint8], starts: list[int], stops: list[int], reports: int) -> Stack:
    """Add the thirds of each block; what is left over is laid behind the sums."""
    width = packed.shape[1]
    stack, layers = Stack.of_whole_runs([1, 0], len(starts), reports, width)
    memory = scratch("spare", layers.shape[2])
    for carry, total, start, stop in zip(*layers, starts, stops, strict=True):
        third = (stop - start) // 3 * width
        block = np.ascontiguousarray(packed[start:stop]).reshape(-1)
        rest = block[3 * third :]
        first, second, last = block[: 3 * third].reshape(3, third)
        add_three(first, second, last, carry[:third], memory[:third], total[:third])
        carry[third:] = 0
        total[third : third + len(rest)] = rest
        total[third + len(rest) :] = 0
    return stack
