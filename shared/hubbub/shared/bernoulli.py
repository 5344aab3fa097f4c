"""Exact random bits: whole vectors of independent bits with dyadic probabilities.

A vector of bits is a Python integer: bit i of the vector is bit i of the integer. A probability is an integer over
2^16. Each bit compares a uniform number u of its own, of 16 binary digits, to that integer: the probability drawn is
the probability stated, to the last digit, and no floating-point number takes part.

Where the two probabilities add up to one, a bit is flipped if u < when_clear. Elsewhere one number serves both
questions about a bit: it comes out as 1 if u < when_clear, or if it is set and u < when_set.

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
    below_set, below_clear = _below(when_set), _below(when_clear)
    bytes_a_bit = 2 if (when_set | when_clear) & 0xFF else 1

    def symmetric(bits: int, size: int, draw: Draw) -> int:
        return bits ^ below_clear(draw(bytes_a_bit * size), size)

    def general(bits: int, size: int, draw: Draw) -> int:
        numbers = draw(bytes_a_bit * size)
        return below_clear(numbers, size) | bits & below_set(numbers, size)

    return symmetric if when_set + when_clear == ONE else general


def _below(threshold: int) -> Callable[[bytes, int], int]:
    """Make the function that tells which numbers of a row are below a threshold."""
    edge, low = divmod(threshold, 256)
    spelled = _spelling(edge)

    def high_byte_decides(numbers: bytes, size: int) -> int:
        # Bytes become digits, and the digits a number: much faster than bit after bit (benchmarks/bits.py).
        return int(numbers[:size].translate(spelled), 2)

    def low_byte_decides_ties(numbers: bytes, size: int) -> int:
        high = numbers[:size]
        below = int(high.translate(spelled), 2)
        place = high.find(edge)
        while place >= 0:
            if numbers[size + place] < low:
                below |= 1 << size - 1 - place
            place = high.find(edge, place + 1)
        return below

    return low_byte_decides_ties if low else high_byte_decides


@cache
def _spelling(edge: int) -> bytes:
    """For each high byte the digit 1 or 0 that says whether it alone puts a number below the threshold."""
    return bytes(ord("1") if byte < edge else ord("0") for byte in range(256))
