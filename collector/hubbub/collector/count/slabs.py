"""Counting one long run, with carry-save adders over slabs of reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.count.columns import Columns, add_three

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLAB_BYTES = 64 << 10
"""Added in one operation of numpy: far more than a call costs, and about eight of them stay in the cache."""

LONG_BYTES = 3 << 20
"""From here on a run is added slab by slab: what is left to do at its end is then little beside it."""


def add_long_run(counts: NDArray[np.int64], reports: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Add reports of one cohort to its counts, except for some at the end, which are given back."""
    width = reports.shape[1]
    height = SLAB_BYTES // width
    sums = _Sums(height * width)
    slabs = len(reports) // height // 2 * 2
    for start in range(0, slabs * height, 2 * height):
        pair = np.ascontiguousarray(reports[start : start + 2 * height]).reshape(2, -1)
        sums.add(pair[0], pair[1])
    digits = [(level, slab.reshape(height, width)) for level, slab in sums.digits()]
    by_level = np.zeros((digits[-1][0] + 1, len(counts)), np.int64)
    columns = Columns(by_level, width, len(digits) * height, len(digits))
    for level, slab in digits:
        columns.add(level, slab)
    columns.finish()
    counts += (by_level << np.arange(len(by_level))[:, None]).sum(axis=0)
    return reports[slabs * height :]


class _Sums:
    """The sum of slabs, as binary digits that are slabs themselves: one of each weight, and perhaps one that waits.

    It has as many weights as it needs, so that nothing can overflow.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._totals = [np.zeros(size, np.uint8)]
        self._waiting: list[NDArray[np.uint8] | None] = [None]
        self._free = [np.empty(size, np.uint8) for _ in range(2)]

    def add(self, first: NDArray[np.uint8], second: NDArray[np.uint8]) -> None:
        """Add two slabs, which are left as they are."""
        carry, half, both = self._take(), self._take(), self._take()
        add_three(first, second, self._totals[0], carry, half, both)
        self._free += [half, both]
        level = 1
        while (waiting := self._put(level, carry)) is not None:
            lower, carry = carry, self._take()
            add_three(waiting, lower, self._totals[level], carry, waiting, lower)
            self._free += [waiting, lower]
            level += 1

    def digits(self) -> list[tuple[int, NDArray[np.uint8]]]:
        """Give all slabs, each with the level that it is at: it weighs two to that power."""
        found = [(level, total) for level, total in enumerate(self._totals)]
        return sorted(
            found + [(level, slab) for level, slab in enumerate(self._waiting) if slab is not None],
            key=lambda it: it[0],
        )

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
        return self._free.pop() if self._free else np.empty(self._size, np.uint8)
