"""Carry-save adders: numbers, one for each bit, are added digit by digit, a whole array at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def add_three(
    first: NDArray[np.uint8],
    second: NDArray[np.uint8],
    third: NDArray[np.uint8],
    carry: NDArray[np.uint8],
    spare: NDArray[np.uint8],
    total: NDArray[np.uint8],
) -> None:
    """Add three of one weight: `total` becomes the lower digit of each sum, `carry` the higher one.

    Harley and Seal's, in Warren, Hacker's Delight, section 5-1; the carry is found as: not all alike, unless the sum
    is odd, or all alike, if it is. So it needs no memory: `carry`, `spare` and `total` may be `first`, `second` and
    `third`, in this order, which are then lost.
    """
    np.bitwise_xor(first, second, carry)
    np.bitwise_xor(second, third, spare)
    np.bitwise_xor(carry, third, total)
    np.bitwise_or(carry, spare, carry)
    np.bitwise_xor(carry, total, carry)


def add_up(digits: dict[int, list[NDArray[np.uint8]]]) -> None:
    """Add arrays, listed by level, in place, until at most two are left of each; one at level i weighs 2^i."""
    level = min(digits)
    while level in digits:
        same = digits[level]
        while len(same) > 2:
            first, second, third = same[:3]
            add_three(first, second, third, first, second, third)
            same[:3] = []
            same.append(third)
            digits.setdefault(level + 1, []).append(first)
        level += 1
