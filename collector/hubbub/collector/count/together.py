"""Bringing reports of one cohort together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.collector.count.runs import Runs, sort_by_cohort
from hubbub.collector.count.scratch import scratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

MANY = 1 << 15
"""Reports from which on scipy is asked: it has some 50 microseconds of its own to do."""

MOST = np.iinfo(np.int32).max
"""Reports up to which 32 bits are enough for their places."""

MOVED: dict[int, type[np.generic]] = {
    1: np.uint8,
    2: np.uint16,
    4: np.uint32,
    8: np.uint64,
    16: np.complex128,
}
"""What scipy can move as one number, by its bytes. It copies numbers and does not look at them."""


def bring_together(
    packed: NDArray[np.uint8], cohorts: NDArray[np.integer], groups: int
) -> tuple[NDArray[np.uint8], Runs]:
    """Give reports in the order of their cohorts, all below `groups`, and where those of each cohort lie."""
    if not MANY <= len(packed) <= MOST or groups > len(packed):
        order, theirs = sort_by_cohort(cohorts, groups)
        return _fetch(packed, order), Runs.of_sorted(theirs)
    kind = MOVED.get(packed.shape[1])
    if kind is None:
        order, runs = _transpose(np.arange(len(packed)), cohorts, groups)
        return _fetch(packed, order), runs
    whole = np.require(np.ascontiguousarray(packed).reshape(-1).view(kind), requirements="A")
    moved, runs = _transpose(whole, cohorts, groups)
    return moved.view(np.uint8).reshape(packed.shape), runs


def _fetch(packed: NDArray[np.uint8], order: NDArray[np.intp]) -> NDArray[np.uint8]:
    fetched = scratch("sorted", len(order) * packed.shape[1]).reshape(len(order), -1)
    # Not "raise", by which numpy would write to other memory first: the order names no report that is not there.
    return packed.take(order, axis=0, out=fetched, mode="clip")


def _transpose(values: NDArray[Any], cohorts: NDArray[np.integer], groups: int) -> tuple[NDArray[Any], Runs]:
    """Sort values by cohort as a sparse matrix of one row is transposed: in two passes, without comparing any.

    numpy would find the order first, and then fetch each report from anywhere: that takes twice as long.
    """
    from scipy import sparse  # noqa: PLC0415  a collector at work has few reports at a time, and does without

    matrix = sparse.csr_array((1, groups), dtype=values.dtype)
    matrix.data = values
    matrix.indices = cohorts.astype(np.int32)
    matrix.indptr = np.array([0, len(values)], np.int32)
    by_cohort = matrix.tocsc()
    borders = by_cohort.indptr.astype(np.intp)
    runs = Runs(np.arange(groups), borders[:-1], borders[1:])
    return by_cohort.data, runs.chosen(runs.sizes > 0)
