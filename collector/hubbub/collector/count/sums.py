"""Adding reports of one cohort slab by slab, as they come: what was added stays for the reports that come later.

By the operators of bitarray, on the same memory as numpy's: a call costs a sixth of one of numpy. So slabs can be as
small as the nearest cache, and even a run of one file has many of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bitarray import bitarray
from bitarray.util import zeros

if TYPE_CHECKING:
    from collections.abc import Iterator

SLAB_BYTES = 9600
"""Three of them stay in the nearest cache; and no power of two, of which they would share the same places there."""


class Sums:
    """The sum of slabs, as binary digits that are slabs themselves: one of each weight, and perhaps one that waits.

    It has as many weights as it needs, so that nothing can overflow. What is less than two slabs is kept as it is.
    """

    def __init__(self, size: int) -> None:
        """Begin with nothing; a slab has so many bits."""
        self._size = size
        self._totals = [zeros(size)]
        self._waiting: list[bitarray | None] = [None]
        self._rest = bitarray()

    def add(self, reports: bitarray, start: int, stop: int) -> None:
        """Add what lies between two places, which is whole reports; it is left as it is."""
        pair = 2 * self._size
        if self._rest:
            end = min(stop, start + pair - len(self._rest))
            self._rest += reports[start:end]
            if len(self._rest) < pair:
                return
            self._add_pairs(self._rest, 0, pair)
            start = end
        end = stop - (stop - start) % pair
        self._add_pairs(reports, start, end)
        self._rest = reports[end:stop]

    def digits(self) -> Iterator[tuple[int, memoryview]]:
        """Give all slabs, each with its level, at most two of each: one of level i weighs 2^i. Then it is used up."""
        if self._rest:
            self._rest += zeros(2 * self._size - len(self._rest))
            self._add_pairs(self._rest, 0, len(self._rest))
        for slabs in (self._totals, self._waiting):
            for level, slab in enumerate(slabs):
                if slab is not None:
                    yield level, memoryview(slab)

    def _add_pairs(self, reports: bitarray, start: int, stop: int) -> None:
        """Add an even number of slabs, by the adder of adders.py."""
        size, totals, waiting, lowest = self._size, self._totals, self._waiting, self._totals[0]
        for at in range(start, stop, 2 * size):
            carry, second = reports[at : at + size], reports[at + size : at + 2 * size]
            carry ^= second
            second ^= lowest
            lowest ^= carry
            carry |= second
            carry ^= lowest
            level = 1
            while level < len(totals):
                first = waiting[level]
                if first is None:
                    waiting[level] = carry
                    break
                waiting[level] = None
                total = totals[level]
                first ^= carry
                carry ^= total
                total ^= first
                first |= carry
                first ^= total
                carry = first
                level += 1
            else:
                totals.append(carry)
                waiting.append(None)
