"""Counting with numba: only when it is asked for by name."""

from __future__ import annotations

from math import lcm
from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.count.runs import sort_by_cohort, starts_of_runs
from hubbub.shared.errors import ParameterError

try:
    from hubbub.collector.count import kernels
except ModuleNotFoundError as error:
    if error.name != "numba":
        raise
    raise ParameterError(
        'engine: numba is not installed: pip install "hubbub[fast]"; allowed without it: numpy'
    ) from None

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLAB_BYTES = 64
"""The least that a slab has; it also has whole words and whole reports."""

LONG_RUNS = 256
"""Reports of a run, on average, from which on sorted runs are added one by one, each with a call from Python."""

MOST_BYTES = 256 << 20
"""What waits and the digits of all cohorts may take; where that is not enough, reports are sorted instead."""


def count_compiled(
    counts: NDArray[np.int64], packed: NDArray[np.uint8], cohorts: NDArray[np.integer] | None, *, in_order: bool
) -> None:
    """Count reports, at least one, by cohort; without cohorts, into the first row. All counts are 0 before."""
    packed = np.ascontiguousarray(packed)
    if cohorts is None:
        _add_runs(counts, packed, np.zeros(1, np.intp), np.zeros(1, np.intp))
    elif in_order and len(packed) >= LONG_RUNS * len(counts):
        starts = starts_of_runs(cohorts)
        _add_runs(counts, packed, cohorts[starts], starts)
    elif len(counts) * (kernels.SLABS + _levels(packed)) * _slab(packed) <= MOST_BYTES:
        _add_mixed(counts, packed, cohorts)
    else:
        order, theirs = sort_by_cohort(cohorts, len(counts))
        starts = starts_of_runs(theirs)
        _add_runs(counts, packed[order], theirs[starts], starts)


def _add_runs(
    counts: NDArray[np.int64], packed: NDArray[np.uint8], cohorts: NDArray[np.integer], starts: NDArray[np.intp]
) -> None:
    width, slab, flat = packed.shape[1], _slab(packed), packed.reshape(-1)
    digits = np.zeros((_levels(packed), slab // 8), np.uint64)
    rest = np.empty(kernels.SLABS * slab, np.uint8)
    add = kernels.run_adder()
    stops = [*starts[1:].tolist(), len(packed)]
    for cohort, start, stop in zip(cohorts.tolist(), starts.tolist(), stops, strict=True):
        run = flat[start * width : stop * width]
        whole = len(run) // len(rest) * len(rest)
        left = len(run) - whole
        rest[:left] = run[whole:]
        rest[left:] = 0
        add(counts[cohort], run[:whole].view(np.uint64), rest.view(np.uint64), width, digits)


def _add_mixed(counts: NDArray[np.int64], packed: NDArray[np.uint8], cohorts: NDArray[np.integer]) -> None:
    slab = _slab(packed)
    waiting = np.empty((len(counts), kernels.SLABS * slab // 8), np.uint64)
    digits = np.zeros((len(counts), _levels(packed), slab // 8), np.uint64)
    numbers = np.ascontiguousarray(cohorts, np.uint32)
    kernels.mixed_adder()(counts, packed, numbers, waiting.view(np.uint8).reshape(-1), waiting, digits)


def _slab(packed: NDArray[np.uint8]) -> int:
    """Bytes of a slab: whole words, whole reports."""
    least = lcm(8, packed.shape[1])
    return -(-SLAB_BYTES // least) * least


def _levels(packed: NDArray[np.uint8]) -> int:
    """Give how many binary digits the number of slabs can have, with those of the last sixteen: none overflows."""
    return (packed.nbytes // _slab(packed) + kernels.SLABS).bit_length()
