"""Runs: reports of one cohort, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import NDArray

LONG_RUN = 64
"""Reports of a run, on average, from which on it is faster to search for its end than to compare neighbours."""


class Runs(NamedTuple):
    """All runs of some reports, one for each cohort, in the order of the cohorts."""

    cohorts: NDArray[np.intp]
    starts: NDArray[np.intp]
    stops: NDArray[np.intp]

    @classmethod
    def one(cls, reports: int) -> Self:
        """All reports together, as if of cohort 0."""
        return cls(np.zeros(1, np.intp), np.zeros(1, np.intp), np.full(1, reports, np.intp))

    @classmethod
    def of_sorted(cls, cohorts: NDArray[np.integer]) -> Self:
        """Find the runs of cohorts that are known to be in order; there must be at least one."""
        starts = starts_of_runs(cohorts)
        return cls(cohorts[starts].astype(np.intp), starts, np.append(starts[1:], len(cohorts)))

    @property
    def sizes(self) -> NDArray[np.intp]:
        """How many reports each has."""
        return self.stops - self.starts

    @property
    def groups(self) -> int:
        """One more than the largest cohort."""
        return int(self.cohorts[-1]) + 1 if len(self.cohorts) else 0

    def by_cohort(self, groups: int) -> NDArray[np.int64]:
        """How many reports each of so many cohorts has, also those that have none."""
        n = np.zeros(groups, np.int64)
        n[self.cohorts] = self.sizes
        return n

    def chosen(self, some: NDArray[np.bool_]) -> Runs:
        """Some of them."""
        return Runs(self.cohorts[some], self.starts[some], self.stops[some])

    def together(self) -> Runs:
        """Where they are when nothing lies between them."""
        stops = self.sizes.cumsum()
        return Runs(self.cohorts, stops - self.sizes, stops)


def find_runs(cohorts: NDArray[np.integer]) -> Runs | None:
    """Find the runs of cohorts that are in order and not negative, as in a file of the archive; of others, none."""
    if not len(cohorts):
        nothing = np.zeros(0, np.intp)
        return Runs(nothing, nothing, nothing)
    if not 0 <= int(cohorts[0]) <= int(cohorts[-1]):
        return None
    if len(cohorts) // LONG_RUN > int(cohorts[-1]) - int(cohorts[0]):
        return _guess_and_prove(cohorts)
    return None if (cohorts[1:] < cohorts[:-1]).any() else Runs.of_sorted(cohorts)


def _guess_and_prove(cohorts: NDArray[np.integer]) -> Runs | None:
    """Search for each cohort as if they were in order, and then see that each run holds nothing else.

    That takes one look at every cohort and no memory; comparing neighbours takes half as long again.
    """
    values = np.arange(int(cohorts[-1]) - int(cohorts[0]) + 1).astype(cohorts.dtype) + cohorts[0]
    starts = cohorts.searchsorted(values)
    stops = np.append(starts[1:], len(cohorts))
    if starts[0] or (stops < starts).any():
        return None
    found = Runs(values.astype(np.intp), starts, stops).chosen(stops > starts)
    for extreme in (np.minimum, np.maximum):
        if (extreme.reduceat(cohorts, found.starts) != found.cohorts).any():
            return None
    return found


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
