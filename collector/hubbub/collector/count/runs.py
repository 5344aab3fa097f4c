"""Runs: reports of one cohort, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def sort_by_cohort(cohorts: NDArray[np.integer], below: int) -> tuple[NDArray[np.intp], NDArray[np.integer]]:
    """Give the order that brings reports of one cohort together, and the cohorts in that order.

    numpy sorts numbers of at most 16 bits by their digits, about eight times as fast as larger ones.
    """
    narrow: NDArray[np.integer] = cohorts
    if below <= 1 << 16 and len(cohorts) >= 256:
        narrow = cohorts.astype(np.uint8) if below <= 1 << 8 else cohorts.astype(np.uint16)
    order = narrow.argsort(kind="stable")
    return order, narrow[order]


def starts_of_runs(cohorts: NDArray[np.integer]) -> NDArray[np.intp]:
    """Tell where each run begins. There must be at least one report."""
    begins = np.empty(len(cohorts), np.bool_)
    begins[0] = True
    np.not_equal(cohorts[1:], cohorts[:-1], out=begins[1:])
    return begins.nonzero()[0]


def are_sorted(cohorts: NDArray[np.integer]) -> bool:
    """Tell whether there is one run of each cohort, in their order, as in a file of the archive."""
    return not bool((cohorts[1:] < cohorts[:-1]).any())
