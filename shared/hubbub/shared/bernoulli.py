"""Exact random bits: whole vectors of independent bits with dyadic probabilities.

A vector of bits is a Python integer: bit i of the vector is bit i of the integer. A probability is an integer over
2^16. Each bit compares a uniform number u of its own, of 16 binary digits, to that integer: the probability drawn is
the probability stated, to the last digit, and no floating-point number takes part.

One number serves both questions about a bit: it comes out as 1 if u < when_clear, or if it is set and u < when_set.

The numbers arrive as bytes: all the high bytes first, then all the low ones, those of the last bit before those of
the first. High bytes decide 255 cases of 256 through one table look-up for the whole vector; the others look at their
low byte. Where both probabilities have at most eight digits the low bytes decide nothing, and are not drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

DIGITS = 16
ONE = 1 << DIGITS
"""The denominator of every probability in hubbub."""

Draw: TypeAlias = Callable[[int], bytes]
"""Gives as many uniform random bytes as it is asked for."""

Step: TypeAlias = Callable[[int, int, Draw], int]
"""Turns a vector of bits of some size into a random one, with bytes that it draws."""


def random_step(when_set: int, when_clear: int) -> Step:
    """Make the step by which set bits come out as 1 with probability `when_set`, clear ones with `when_clear`."""
    (edge_set, low_set), (edge_clear, low_clear) = divmod(when_set, 256), divmod(when_clear, 256)
    spelled_set, spelled_clear = _spelling(edge_set), _spelling(edge_clear)

    def of_eight_digits(bits: int, size: int, draw: Draw) -> int:
        # High bytes become digits, and the digits a number: much faster than bit after bit (benchmarks/bits.py).
        high = draw(size)
        return int(high.translate(spelled_clear), 2) | bits & int(high.translate(spelled_set), 2)

    def of_sixteen_digits(bits: int, size: int, draw: Draw) -> int:
        numbers = draw(2 * size)
        high = numbers[:size]
        if_set, always = int(high.translate(spelled_set), 2), int(high.translate(spelled_clear), 2)
        if low_set and edge_set in high:
            if_set |= _by_low_byte(edge_set, low_set, high, numbers)
        if low_clear and edge_clear in high:
            always |= _by_low_byte(edge_clear, low_clear, high, numbers)
        return always | bits & if_set

    return of_sixteen_digits if low_set or low_clear else of_eight_digits


@cache
def _spelling(edge: int) -> bytes:
    """For each high byte the digit 1 or 0 that says whether it alone puts a number below the threshold."""
    return bytes(ord("1") if byte < edge else ord("0") for byte in range(256))


def _by_low_byte(edge: int, low: int, high: bytes, numbers: bytes) -> int:
    """Find the numbers whose high byte is just the threshold's, and their low byte below it."""
    below, size = 0, len(high)
    place = high.find(edge)
    while place >= 0:
        if numbers[size + place] < low:
            below |= 1 << size - 1 - place
        place = high.find(edge, place + 1)
    return below
