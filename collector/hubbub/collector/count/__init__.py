"""Counting: how often each bit was set, in how many reports.

How, is chosen by the sizes of the input alone, and the result is the same: see docs/decisions/counting.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from hubbub.collector.count import choice
from hubbub.collector.count.plain import count_few, count_plain
from hubbub.collector.count.runs import Runs, find_runs
from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from types import ModuleType

    from numpy.typing import NDArray

__all__ = ["ENGINES", "Counter", "Engine", "Runs", "count_bits", "find_runs"]

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
    few = engine == "numpy" and packed.nbytes <= choice.FEW_BYTES
    if cohorts is None and few:
        return count_plain(packed, bits)
    groups, runs = (1, Runs.one(len(packed))) if cohorts is None else _look(cohorts, len(packed))
    if cohorts is not None and runs is None and few:
        return count_few(packed, bits, cohorts, groups)
    counter = Counter(bits, groups, engine=engine)
    counter.add(packed, cohorts, runs)
    counts = counter.counts()
    return counts if cohorts is not None else counts[0]


class Counter:
    """Counts reports that come in parts, such as the files of an archive, with a row of counts for each cohort.

    That is faster than to add up the counts of each part: what the adders leave of one stays for the next.
    """

    def __init__(self, bits: int, cohorts: int, *, engine: Engine = "numpy") -> None:
        """Begin at zero; cohorts are below the given number."""
        if engine not in ENGINES:
            raise ParameterError(f'engine: "{engine}" is not known; allowed: {", ".join(ENGINES)}')
        self._counts = np.zeros((cohorts, bits), np.int64)
        self._adder = _adders(engine).Adder(self._counts, (bits + 7) // 8)

    def add(self, packed: NDArray[np.uint8], cohorts: NDArray[np.integer] | None, runs: Runs | None) -> None:
        """Count packed reports, one row per report, of these cohorts; `runs` are theirs, if they are in order."""
        if not len(packed):
            return
        if runs is not None:
            self._adder.add_sorted(packed, runs)
        else:
            self._adder.add_mixed(packed, cohorts)

    def counts(self) -> NDArray[np.int64]:
        """Tell how often each bit was set in reports of each cohort."""
        self._adder.settle()
        return self._counts


def _adders(name: Engine) -> ModuleType:
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
        if cohorts.dtype.kind == "u" or cohorts.min() >= 0:
            return int(cohorts.max()) + 1, None
    raise ParameterError(
        f"cohorts: has shape {cohorts.shape} of {cohorts.dtype}; allowed: a whole number from 0 for each of {reports}"
    )
