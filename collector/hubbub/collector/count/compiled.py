"""Counting with numba: only when it is asked for by name."""

from __future__ import annotations

from math import gcd, lcm
from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.count.together import bring_together
from hubbub.shared.errors import ParameterError

try:
    from hubbub.collector.count import kernels
except ModuleNotFoundError as error:
    if error.name != "numba":
        raise
    raise ParameterError('numba: is not installed: pip install "hubbub[fast]"; allowed without it: numpy') from None

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.collector.count.runs import Runs

SLAB_BYTES = 96
"""The most that a slab has, unless it takes more to have whole words and whole reports."""

MOST_BYTES = 256 << 20
"""What waits and the digits of all cohorts may take; where that is not enough, reports are sorted instead."""


class Adder:
    """Adds reports to counts at once: machine code leaves nothing that is worth keeping for the reports to come."""

    def __init__(self, counts: NDArray[np.int64], _width: int) -> None:
        """Add to these counts, a row for each cohort."""
        self._counts = counts

    def add_sorted(self, packed: NDArray[np.uint8], runs: Runs) -> None:
        """Add reports that lie in runs."""
        _add_runs(self._counts, np.ascontiguousarray(packed), runs)

    def add_mixed(self, packed: NDArray[np.uint8], cohorts: NDArray[np.integer]) -> None:
        """Add reports of cohorts in any order, at least one."""
        groups = len(self._counts)
        if groups * (kernels.SLABS + _levels(packed)) * _slab(packed) <= MOST_BYTES:
            _add_mixed(self._counts, np.ascontiguousarray(packed), cohorts)
        else:
            _add_runs(self._counts, *bring_together(packed, cohorts, groups))

    def settle(self) -> None:
        """Nothing is left to add."""


def _add_runs(counts: NDArray[np.int64], packed: NDArray[np.uint8], runs: Runs) -> None:
    width, slab, flat = packed.shape[1], _slab(packed), packed.reshape(-1)
    digits = np.zeros((_levels(packed), slab // 8), np.uint64)
    rest = np.empty(kernels.SLABS * slab, np.uint8)
    if width % 8 == 0:  # all in one call: to make one for each run would take a tenth of the time
        places = [np.ascontiguousarray(each, np.int64) for each in runs]
        starts, stops = (each * (width // 8) for each in places[1:])
        kernels.runs_adder()(
            counts, flat.view(np.uint64), places[0], starts, stops, width, rest.view(np.uint64), digits
        )
        return
    add = kernels.run_adder()
    for cohort, start, stop in zip(*(each.tolist() for each in runs), strict=True):
        run = flat[start * width : stop * width]
        whole = len(run) // len(rest) * len(rest)
        left = len(run) - whole
        rest[:left] = run[whole:]
        rest[left:] = 0
        add(counts[cohort], run[:whole].view(np.uint64), rest.view(np.uint64), width, digits)


def _add_mixed(counts: NDArray[np.int64], packed: NDArray[np.uint8], cohorts: NDArray[np.integer]) -> None:
    slab, width = _slab(packed), packed.shape[1]
    waiting = np.empty((len(counts), kernels.SLABS * slab // 8), np.uint64)
    digits = np.zeros((len(counts), _levels(packed), slab // 8), np.uint64)
    numbers = np.ascontiguousarray(cohorts, np.uint32)
    item = gcd(8, width)
    source, moved = (memory.reshape(-1).view(f"u{item}") for memory in (packed, waiting))
    fixed = width // item if width // item <= kernels.MOST_FIXED else 0
    kernels.mixed_adder(item, fixed)(counts, source, numbers, width, moved, waiting, digits)


def _slab(packed: NDArray[np.uint8]) -> int:
    """Bytes of a slab: whole words, whole reports."""
    least = lcm(8, packed.shape[1])
    return max(SLAB_BYTES // least, 1) * least


def _levels(packed: NDArray[np.uint8]) -> int:
    """Give how many binary digits the number of slabs can have, with those of the last sixteen: none overflows."""
    return (packed.nbytes // _slab(packed) + kernels.SLABS).bit_length()
