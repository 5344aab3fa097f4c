"""Which way of counting fits how many reports. Every way gives the same counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from bitarray import bitarray

from hubbub.collector.count.beside import add_beside
from hubbub.collector.count.plain import add_plain
from hubbub.collector.count.slabs import LONG_BYTES, add_long_run
from hubbub.collector.count.stack import count_digits
from hubbub.collector.count.sums import SLAB_BYTES, Sums
from hubbub.collector.count.together import bring_together

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.collector.count.runs import Runs

FEW_BYTES = 32 << 10
"""Up to here, all reports together are counted by unpacking them."""

SHORT_RUN, SHORT_BYTES = 16, 1024
"""Runs with less of one of them are counted by unpacking them, too: laying a run into a stack has its price."""

SUMMED_BYTES, SUMMED_TOGETHER = 96 << 10, 2 << 20
"""A cohort gets sums, which stay for later runs, with the run that makes it so much, of so much in all: by then, to add
all its runs beside others has cost what it costs to settle sums."""

AT_ONCE = 64
"""Sums that are settled together: as many as make the operations large, and the memory not."""

MOST_SUMS = 1024
"""Sums of more cohorts do not stay: they would take more memory than they are worth."""

PART_BYTES = 8 << 20
"""Reports of mixed cohorts are sorted in parts: a part that stays in the cache is sorted in half the time."""

PART_RUN = 1024
"""But a part has so many reports for each cohort at least."""


class Adder:
    """Adds reports to counts as they come, with numpy and bitarray. Some are in sums first, until it is settled."""

    def __init__(self, counts: NDArray[np.int64], width: int) -> None:
        """Add to these counts, a row for each cohort; a report has so many bytes."""
        self._counts = counts
        self._width = width
        self._height = max(SLAB_BYTES // width, 1)
        self._sums: dict[int, Sums] = {}
        self._summed = np.zeros(len(counts), np.bool_)  # which cohorts have sums
        self._seen = np.zeros(len(counts), np.int64)  # bytes of each cohort, until it had sums

    def add_sorted(self, packed: NDArray[np.uint8], runs: Runs) -> None:
        """Add reports that lie in runs."""
        if self._summed[runs.cohorts].all():
            self._add_to_sums(packed, runs)
        elif packed.nbytes <= FEW_BYTES:
            add_plain(self._counts, packed, runs)
        else:
            self._add_by_size(packed, runs)

    def add_mixed(self, packed: NDArray[np.uint8], cohorts: NDArray[np.integer]) -> None:
        """Add reports of cohorts in any order, at least one."""
        step = max(PART_BYTES // self._width, PART_RUN * len(self._counts))
        for start in range(0, len(packed), step):
            some = slice(start, start + step)
            self.add_sorted(*bring_together(packed[some], cohorts[some], len(self._counts)))

    def settle(self) -> None:
        """Add all that is in sums to the counts."""
        cohorts = list(self._sums)
        for start in range(0, len(cohorts), AT_ONCE):
            some = cohorts[start : start + AT_ONCE]
            ones = count_digits([self._sums[cohort].digits() for cohort in some], self._height, self._width)
            self._counts[some] += ones[:, : self._counts.shape[1]]
        self._sums.clear()
        self._summed[:] = False
        self._seen[:] = 0

    def _add_by_size(self, packed: NDArray[np.uint8], runs: Runs) -> None:
        """Add runs in the way that fits the size of each, unless its cohort has sums."""
        new = ~self._summed[runs.cohorts]
        short = new & (runs.sizes < max(SHORT_RUN, SHORT_BYTES // self._width))
        if short.any():
            these = np.repeat(short, runs.sizes)
            add_plain(self._counts, packed[these], runs.chosen(short).together())
        self._seen[runs.cohorts] += runs.sizes * self._width
        starts = runs.starts.copy()
        for number in np.flatnonzero(new & (runs.sizes * self._width >= LONG_BYTES)):
            run = packed[runs.starts[number] : runs.stops[number]]
            starts[number] += add_long_run(self._counts[runs.cohorts[number]], run)
        runs = runs._replace(starts=starts)
        summed = ~short & (self._seen[runs.cohorts] >= SUMMED_BYTES) & (self._seen.sum() >= SUMMED_TOGETHER)
        self._add_to_sums(packed, runs.chosen(summed))
        add_beside(self._counts, packed, runs.chosen(~summed & ~short))
        if len(self._sums) > MOST_SUMS:
            self.settle()

    def _add_to_sums(self, packed: NDArray[np.uint8], runs: Runs) -> None:
        reports, bits = bitarray(buffer=np.ascontiguousarray(packed).reshape(-1).data), self._width * 8
        self._summed[runs.cohorts] = True
        for cohort, start, stop in zip(*(each.tolist() for each in runs), strict=True):
            if cohort not in self._sums:
                self._sums[cohort] = Sums(self._height * bits)
            self._sums[cohort].add(reports, start * bits, stop * bits)
