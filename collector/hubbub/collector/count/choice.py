"""Which way of counting fits how many reports. Every way gives the same counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.count.blocks import add_blocks
from hubbub.collector.count.plain import add_plain, count_few
from hubbub.collector.count.slabs import LONG_BYTES, add_long_run
from hubbub.collector.count.together import bring_together

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.collector.count.runs import Runs

FEW_BYTES = 32 << 10
"""Up to here, all reports together are counted by unpacking them."""

SHORT_RUN, SHORT_BYTES = 16, 1024
"""Runs with less of one of them are counted by unpacking them, too: laying a run into a stack has its price."""

PART_BYTES = 8 << 20
"""Reports of mixed cohorts are sorted in parts: a part that stays in the cache is sorted in half the time."""

PART_RUN = 1024
"""But a part has so many reports for each cohort at least."""


def count_sorted(counts: NDArray[np.int64], packed: NDArray[np.uint8], runs: Runs) -> None:
    """Count reports that lie in runs. All counts are 0 before."""
    if packed.nbytes <= FEW_BYTES:
        add_plain(counts, packed, runs)
        return
    short = runs.sizes < max(SHORT_RUN, SHORT_BYTES // packed.shape[1])
    if short.any():
        these = np.repeat(short, runs.sizes)
        add_plain(counts, packed[these], runs.chosen(short).together())
        runs = runs.chosen(~short)
    starts = runs.starts.copy()
    for number in np.flatnonzero(runs.sizes * packed.shape[1] >= LONG_BYTES):
        run = packed[runs.starts[number] : runs.stops[number]]
        starts[number] += add_long_run(counts[runs.cohorts[number]], run)
    add_blocks(counts, packed, runs._replace(starts=starts))


def count_mixed(counts: NDArray[np.int64], packed: NDArray[np.uint8], cohorts: NDArray[np.integer]) -> None:
    """Count reports of cohorts in any order, at least one. All counts are 0 before."""
    if packed.nbytes <= FEW_BYTES:
        count_few(counts, packed, cohorts)
        return
    step = max(PART_BYTES // packed.shape[1], PART_RUN * len(counts))
    for start in range(0, len(packed), step):
        some = slice(start, start + step)
        count_sorted(counts, *bring_together(packed[some], cohorts[some], len(counts)))
