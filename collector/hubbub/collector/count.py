"""Counting: how often each bit was set, in how many reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def count_bits(packed: NDArray[np.uint8], bits: int, cohorts: NDArray[np.integer] | None = None) -> NDArray[np.int64]:
    """Count the ones at each of `bits` positions over packed reports, one row per report.

    With `cohorts`, a number for each report, the result has one row per cohort, from 0 to the largest given.
    """
    width = (bits + 7) // 8
    if packed.ndim != 2 or packed.shape[1] != width or packed.dtype != np.uint8:
        raise ParameterError(
            f"packed: has shape {packed.shape} of {packed.dtype}; allowed: (reports, {width}) of uint8"
        )
    if cohorts is None:
        ones = np.unpackbits(packed, axis=1, count=bits, bitorder="little")
        total: NDArray[np.int64] = np.add.reduce(ones, axis=0, dtype=np.int64)
        return total
    if cohorts.shape != (len(packed),) or (cohorts < 0).any():
        raise ParameterError(f"cohorts: has shape {cohorts.shape}; allowed: a number from 0 for each of {len(packed)}")
    counts = np.zeros((int(cohorts.max(initial=-1)) + 1, bits), np.int64)
    if len(packed):
        order = np.argsort(cohorts, kind="stable")
        present, starts = np.unique(cohorts[order], return_index=True)
        ones = np.unpackbits(packed[order], axis=1, count=bits, bitorder="little")
        counts[present] = np.add.reduceat(ones, starts, axis=0, dtype=np.int64)
    return counts
