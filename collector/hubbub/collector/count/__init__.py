"""Counting: how often each bit was set, in how many reports.

How, is chosen by the size of the input alone, and the result is the same: see docs/decisions/counting.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from hubbub.collector.count.choice import FEW_BYTES, count_reports
from hubbub.collector.count.plain import count_plain
from hubbub.collector.count.runs import are_sorted
from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ENGINES", "Engine", "count_bits"]

Engine = Literal["numpy", "numba"]
ENGINES: tuple[Engine, ...] = ("numpy", "numba")
MANY = 1024
"""Reports from which on it is worth a look whether their cohorts are in order."""


def count_bits(
    packed: NDArray[np.uint8],
    bits: int,
    cohorts: NDArray[np.integer] | None = None,
    *,
    engine: Engine = "numpy",
) -> NDArray[np.int64]:
    """Count the ones at each of `bits` positions over packed reports, one row per report.

    With `cohorts`, a number for each report, the result has one row per cohort, from 0 to the largest given. They may
    be in any order, and are counted fastest when they are sorted. The engine "numba" is faster than "numpy" and has to
    be installed: `pip install "hubbub[fast]"`.
    """
    width = (bits + 7) // 8
    if bits < 1 or packed.ndim != 2 or packed.shape[1] != width or packed.dtype != np.uint8:
        raise ParameterError(
            f"packed: has shape {packed.shape} of {packed.dtype}; allowed: (reports, {width}) of uint8"
        )
    if engine not in ENGINES:
        raise ParameterError(f'engine: "{engine}" is not known; allowed: {", ".join(ENGINES)}')
    if cohorts is None and engine == "numpy" and packed.nbytes <= FEW_BYTES:
        return count_plain(packed, bits)
    groups, in_order = (1, True) if cohorts is None else _look(cohorts, len(packed))
    counts = np.zeros((groups, bits), np.int64)
    if engine == "numba":
        from hubbub.collector.count.compiled import count_compiled  # noqa: PLC0415  only when it is asked for

        count = count_compiled
    else:
        count = count_reports
    if len(packed):
        count(counts, packed, cohorts, in_order=in_order)
    return counts[0] if cohorts is None else counts


def _look(cohorts: NDArray[np.integer], reports: int) -> tuple[int, bool]:
    """Give the number of rows of the result, and whether the cohorts are known to be in order."""
    if cohorts.shape == (reports,) and not reports:
        return 0, True
    if cohorts.shape == (reports,) and cohorts.dtype.kind in "iu":
        # Of cohorts in order, as an archive has them, the first and the last are enough: reading all takes time.
        in_order = reports >= MANY and are_sorted(cohorts)
        lowest, highest = (cohorts[0], cohorts[-1]) if in_order else (cohorts.min(), cohorts.max())
        if lowest >= 0:
            return int(highest) + 1, in_order
    raise ParameterError(
        f"cohorts: has shape {cohorts.shape} of {cohorts.dtype}; allowed: a whole number from 0 for each of {reports}"
    )
