"""Counting many runs at once, with carry-save adders over columns of reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

HEIGHT = 255
"""Reports of a column: one less than a power of two, so that adders of three fit; and no count is beyond a byte."""

BLOCK_BYTES = 2 << 20
"""Columns that are added together. A call of numpy costs about as much as 16 kB; the whole has to stay in the cache."""


class Columns:
    """Columns of 255 reports, side by side, each of one cohort and filled up with zeros where it has fewer.

    So an operation of numpy works on all columns at once, however long the runs are. Row by row, all first reports of
    the columns stand together, then all second ones: these rows are what the adders add.
    """

    def __init__(self, counts: NDArray[np.int64], width: int, reports: int, runs: int) -> None:
        self._counts = counts
        self._width = width
        most = max(1, BLOCK_BYTES // (HEIGHT * width))
        self._columns = min(most, reports // HEIGHT + runs)
        length = self._columns * width
        self._rows = np.empty((HEIGHT, length), np.uint8)
        self._carries = [np.empty((HEIGHT >> level, length), np.uint8) for level in range(1, HEIGHT.bit_length())]
        self._filled = 0
        self._runs: list[tuple[int, int]] = []

    def add(self, cohort: int, reports: NDArray[np.uint8]) -> None:
        """Add reports of one cohort."""
        while len(reports):
            room = HEIGHT * (self._columns - self._filled)
            self._put(cohort, reports[:room])
            reports = reports[room:]
            if self._filled == self._columns:
                self.finish()

    def finish(self) -> None:
        """Bring what was added into the counts."""
        if self._filled:
            self._rows[:, self._filled * self._width :] = 0
            ones = _heights(self._fold()).reshape(self._columns, -1)[:, : self._counts.shape[1]]
            sums = np.add.reduceat(ones, [first for _, first in self._runs], axis=0, dtype=np.int64)
            for (cohort, _), each in zip(self._runs, sums, strict=True):
                self._counts[cohort] += each
            self._filled = 0
            self._runs.clear()

    def _put(self, cohort: int, reports: NDArray[np.uint8]) -> None:
        """Lay reports into as many columns as they need, which have to be there."""
        columns = -(-len(reports) // HEIGHT)
        whole, rest = divmod(len(reports), columns)
        rows = self._rows.reshape(HEIGHT, self._columns, self._width)[:, self._filled : self._filled + columns]
        rows[:whole] = reports[: whole * columns].reshape(whole, columns, self._width)
        if whole < HEIGHT:
            rows[whole, :rest] = reports[whole * columns :]
            rows[whole, rest:] = 0
            rows[whole + 1 :] = 0
        self._runs.append((cohort, self._filled))
        self._filled += columns

    def _fold(self) -> list[NDArray[np.uint8]]:
        """Add the rows up: the binary digits of the sums, lowest first.

        Three rows of one weight become one of that weight and one of twice the weight, as many threes at once as there
        are, until one row of each weight is left.
        """
        digits = []
        rows = self._rows
        for carries in self._carries:
            done = 0
            while len(rows) > 1:
                third = len(rows) // 3
                first, second, total = rows[:third], rows[third : 2 * third], rows[2 * third : 3 * third]
                add_three(first, second, total, carries[done : done + third], first, second)
                rows = rows[2 * third :]
                done += third
            digits.append(rows[0])
            rows = carries
        return [*digits, rows[0]]


def add_three(
    first: NDArray[np.uint8],
    second: NDArray[np.uint8],
    total: NDArray[np.uint8],
    carry: NDArray[np.uint8],
    half: NDArray[np.uint8],
    both: NDArray[np.uint8],
) -> None:
    """A carry-save adder for each bit: `total` becomes the lower digit of the sum of three, `carry` the higher one.

    Harley and Seal's, in Warren, Hacker's Delight, section 5-1. `half` and `both` are for intermediate results; they
    may be `first` and `second`, which are then lost: operations in place take two thirds of the time of others.
    """
    np.bitwise_and(first, second, out=carry)
    np.bitwise_xor(first, second, out=half)
    np.bitwise_and(half, total, out=both)
    np.bitwise_xor(half, total, out=total)
    np.bitwise_or(carry, both, out=carry)


def _heights(digits: list[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """Turn binary digits, lowest first, into numbers: a byte for each bit of the reports."""
    numbers = np.unpackbits(digits[-1], bitorder="little")
    for digit in reversed(digits[:-1]):
        numbers += numbers
        numbers += np.unpackbits(digit, bitorder="little")
    return numbers
