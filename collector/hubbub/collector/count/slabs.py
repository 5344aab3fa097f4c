"""Counting one long run, with carry-save adders over slabs of reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.count.adders import add_three
from hubbub.collector.count.scratch import scratch
from hubbub.collector.count.stack import Stack

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLAB_BYTES = 64 << 10
"""Added in one operation of numpy: far more than a call costs, and about eight of them stay in the cache."""

LONG_BYTES = 32 << 20
"""From here on a run is added like that: what is left to do at its end is then little beside it."""


def add_long_run(counts: NDArray[np.int64], reports: NDArray[np.uint8]) -> int:
    """Add reports of one cohort to its counts, except for some at the end; tell how many were added."""
    width = int(reports.shape[1])
    height = SLAB_BYTES // width
    sums = _Sums(height * width)
    slabs = len(reports) // height // 2 * 2
    for start in range(0, slabs * height, 2 * height):
        pair = np.ascontiguousarray(reports[start : start + 2 * height]).reshape(2, -1)
        sums.add(pair[0], pair[1])
    digits = sums.digits()
    stack = Stack.new([level for level, _ in digits], 1, height, width)
    for layer, (_, slab) in enumerate(digits):
        stack.lay(layer, slice(None), slab.reshape(1, -1))
    counts += stack.count_ones(len(counts))[0]
    return slabs * height


class _Sums:
    """The sum of slabs, as binary digits that are slabs themselves: one of each weight, and perhaps one that waits.

    It has as many weights as it needs, so that nothing can overflow.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._made = 0
        self._totals = [self._take()]
        self._totals[0][:] = 0
        self._waiting: list[NDArray[np.uint8] | None] = [None]
        self._spare = self._take()
        self._free: list[NDArray[np.uint8]] = []

    def add(self, first: NDArray[np.uint8], second: NDArray[np.uint8]) -> None:
        """Add two slabs, which are left as they are."""
        carry = self._free.pop() if self._free else self._take()
        add_three(first, second, self._totals[0], carry, self._spare, self._totals[0])
        level = 1
        while (waiting := self._put(level, carry)) is not None:
            total = self._totals[level]
            add_three(waiting, carry, total, waiting, carry, total)
            self._free.append(carry)
            carry = waiting
            level += 1

    def digits(self) -> list[tuple[int, NDArray[np.uint8]]]:
        """Give all slabs, each with its level: one of level i weighs 2^i."""
        waiting = [(level, slab) for level, slab in enumerate(self._waiting) if slab is not None]
        return [*enumerate(self._totals), *waiting]

    def _put(self, level: int, slab: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
        """Leave a slab at a level; or, if one waits there already, give that one, and both have to be added."""
        if level == len(self._totals):
            self._totals.append(slab)
            self._waiting.append(None)
            return None
        waiting, self._waiting[level] = self._waiting[level], None
        if waiting is None:
            self._waiting[level] = slab
        return waiting

    def _take(self) -> NDArray[np.uint8]:
        self._made += 1
        return scratch(f"slab {self._made}", self._size)
