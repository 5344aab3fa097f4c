"""Adding reports of one cohort slab by slab, as they come: what was added stays for the reports that come later.

By the operators of bitarray, on the same memory as numpy's: a call costs a sixth of one of numpy. So slabs can be as
small as the nearest cache, and even a run of one file has many of them.
"""

from __future__ import annotations

from bitarray import bitarray
from bitarray.util import zeros

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

    def digits(self) -> list[bitarray]:
        """Give the binary digits of the sum, from the lowest on, a slab each. Then it is used up."""
        if self._rest:
            self._rest += zeros(2 * self._size - len(self._rest))
            self._add_pairs(self._rest, 0, len(self._rest))
        carry = zeros(self._size)
        for total, waiting in zip(self._totals, self._waiting, strict=True):
            carry = _add_three(waiting or zeros(self._size), carry, total)
        return [*self._totals, carry] if carry.any() else self._totals

    def _add_pairs(self, reports: bitarray, start: int, stop: int) -> None:
        """Add an even number of slabs."""
        size, totals, waiting, lowest = self._size, self._totals, self._waiting, self._totals[0]
        for at in range(start, stop, 2 * size):
            carry = _add_three(reports[at : at + size], reports[at + size : at + 2 * size], lowest)
            level = 1
            while level < len(totals):
                first = waiting[level]
                if first is None:
                    waiting[level] = carry
                    break
                waiting[level] = None
                carry = _add_three(first, carry, totals[level])
                level += 1
            else:
                totals.append(carry)
                waiting.append(None)


def _add_three(first: bitarray, second: bitarray, total: bitarray) -> bitarray:
    """Add three by the adder of adders.py, in place: `total` becomes the lower digit, `first` the higher one."""
    first ^= second
    second ^= total
    total ^= first
    first |= second
    first ^= total
    return first
