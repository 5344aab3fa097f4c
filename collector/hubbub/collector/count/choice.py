"""Which way of counting fits how many reports. Every way gives the same counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.count.columns import HEIGHT, Columns
from hubbub.collector.count.plain import add_plain, count_plain_by_cohort
from hubbub.collector.count.runs import sort_by_cohort, starts_of_runs
from hubbub.collector.count.slabs import LONG_BYTES, add_long_run

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW_BYTES = 32 << 10
"""Up to here, all reports together are counted by unpacking them."""

SHORT_RUN, SHORT_BYTES = 16, 1024
"""Runs with less of one of them are counted by unpacking them, too: laying a run into columns has its price."""

PART_BYTES = 4 << 20
"""Reports of mixed cohorts are sorted in parts: a part that stays in the cache is sorted in half the time."""


def count_reports(
    counts: NDArray[np.int64], packed: NDArray[np.uint8], cohorts: NDArray[np.integer] | None, *, in_order: bool
) -> None:
    """Count reports, at least one, by cohort; without cohorts, into the first row. All counts are 0 before."""
    if cohorts is None:
        _add_runs(counts, packed, np.array([0]), np.array([0]), np.array([len(packed)]))
    elif packed.nbytes <= FEW_BYTES:
        order, theirs = sort_by_cohort(cohorts, len(counts))
        present, counted = count_plain_by_cohort(packed[order], counts.shape[1], theirs)
        counts[present] = counted
    elif in_order:
        _add_sorted(counts, packed, cohorts)
    else:
        step = max(PART_BYTES // packed.shape[1], 4 * HEIGHT * len(counts))
        for start in range(0, len(packed), step):
            order, theirs = sort_by_cohort(cohorts[start : start + step], len(counts))
            _add_sorted(counts, packed[start : start + step].take(order, axis=0), theirs)


def _add_sorted(counts: NDArray[np.int64], packed: NDArray[np.uint8], cohorts: NDArray[np.integer]) -> None:
    starts = starts_of_runs(cohorts)
    stops = np.append(starts[1:], len(cohorts))
    short = stops - starts < max(SHORT_RUN, SHORT_BYTES // packed.shape[1])
    if short.any():
        these = np.repeat(short, stops - starts)
        add_plain(counts, packed[these], cohorts[these])
        starts, stops = starts[~short], stops[~short]
    if len(starts):
        _add_runs(counts, packed, cohorts[starts], starts, stops)


def _add_runs(
    counts: NDArray[np.int64],
    packed: NDArray[np.uint8],
    cohorts: NDArray[np.integer],
    starts: NDArray[np.intp],
    stops: NDArray[np.intp],
) -> None:
    columns = Columns(counts, packed.shape[1], int((stops - starts).sum()), len(starts))
    for cohort, start, stop in zip(cohorts.tolist(), starts.tolist(), stops.tolist(), strict=True):
        run = packed[start:stop]
        columns.add(cohort, add_long_run(counts[cohort], run) if run.nbytes >= LONG_BYTES else run)
    columns.finish()
