"""Counting: how often each bit was set, in how many reports.

How, is chosen by the size of the input alone, and the result is the same: see docs/decisions/counting.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from hubbub.collector.count import choice
from hubbub.collector.count.plain import count_plain
from hubbub.collector.count.runs import Runs, find_runs
from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

__all__ = ["ENGINES", "Engine", "Runs", "count_bits", "count_runs", "find_runs"]

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
    if cohorts is None and engine == "numpy" and packed.nbytes <= choice.FEW_BYTES:
        return count_plain(packed, bits)
    if cohorts is None:
        total: NDArray[np.int64] = count_runs(packed, bits, Runs.one(len(packed)), engine=engine)[0]
        return total
    groups, runs = _look(cohorts, len(packed))
    if runs is not None:
        return count_runs(packed, bits, runs, engine=engine)
    counts = np.zeros((groups, bits), np.int64)
    _engine(engine).count_mixed(counts, packed, cohorts)
    return counts


def count_runs(packed: NDArray[np.uint8], bits: int, runs: Runs, *, engine: Engine = "numpy") -> NDArray[np.int64]:
    """Count as `count_bits` does, where the runs of the cohorts are known already."""
    counts = np.zeros((runs.groups, bits), np.int64)
    if len(packed):
        _engine(engine).count_sorted(counts, packed, runs)
    return counts


def _engine(name: Engine) -> ModuleType:
    if name == "numpy":
        return choice
    from hubbub.collector.count import compiled  # noqa: PLC0415  only when it is asked for

    return compiled


def _look(cohorts: NDArray[np.integer], reports: int) -> tuple[int, Runs | None]:
    """Give the number of rows of the result, and the runs, if the cohorts are known to be in order."""
    if cohorts.shape == (reports,) and (cohorts.dtype.kind in "iu" or not reports):
        runs = find_runs(cohorts) if reports >= MANY or not reports else None
        if runs is not None:
            return runs.groups, runs
        if cohorts.min() >= 0:
            return int(cohorts.max()) + 1, None
    raise ParameterError(
        f"cohorts: has shape {cohorts.shape} of {cohorts.dtype}; allowed: a whole number from 0 for each of {reports}"
    )
