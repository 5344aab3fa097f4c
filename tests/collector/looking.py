"""What counting has to give: reports in which any bit may be set, and their ones, counted by looking at each."""

import numpy as np
from numpy.typing import NDArray

Cohorts = NDArray[np.integer] | None


def by_looking(packed: NDArray[np.uint8], bits: int, cohorts: Cohorts) -> NDArray[np.int64]:
    """One bit after the other, by nothing that the code under test uses."""
    groups = 1 if cohorts is None else int(cohorts.max(initial=0)) + 1 if len(cohorts) else 0
    counts = np.zeros((groups, bits), np.int64)
    of = np.zeros(len(packed), np.int64) if cohorts is None else cohorts.astype(np.int64)
    for bit in range(bits):
        ones = packed[:, bit // 8] >> (bit % 8) & 1
        counts[:, bit] = np.bincount(of[ones == 1], minlength=groups)
    return counts[0] if cohorts is None else counts


def reports(bits: int, number: int, seed: int = 1) -> NDArray[np.uint8]:
    """Random in all bits, padding included, which must not be counted."""
    return np.random.default_rng(seed).integers(0, 256, (number, (bits + 7) // 8), dtype=np.uint8)
