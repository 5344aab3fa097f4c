"""Adders in machine code: compiled by numba when they are first used.

A slab is some reports one after the other, as many as fill whole words. The sum of slabs is kept as its binary digits,
which are slabs as well: a row of `digits` for each. Places are unsigned: a place that could be negative would cost a
look at each use.
"""

# Machine code is beyond what coverage can see, so it is told to leave these functions out.
from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numba
import numpy as np
from numba import types

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Words = NDArray[np.uint64]
    F = TypeVar("F", bound=Callable[..., object])

SLABS = 16
"""How many are added at a time, with all that lies between in registers."""

MOST_FIXED = 16
"""Reports of up to so many items are moved by machine code for just that number: a loop would take longer."""

_ANY_WORDS = types.Array(types.uint64, 1, "C", readonly=True, aligned=False)


def _part(function: F) -> F:
    """Let numba compile a function into those that call it."""
    compiled: F = numba.njit(function)
    return compiled


def _compile(signature: Any, function: Callable[..., None]) -> Callable[..., None]:
    """Compile a function, or load what an earlier process has compiled: that takes a tenth of the time."""
    compiled: Callable[..., None]
    try:
        compiled = numba.njit(signature, cache=True)(function)
    except Exception:  # noqa: BLE001  (no folder may be written to, or what was kept there is damaged)
        compiled = numba.njit(signature)(function)
    return compiled


@cache
def run_adder() -> Callable[..., None]:
    """Compile what adds one run."""
    signature = types.void(types.int64[::1], _ANY_WORDS, types.uint64[::1], types.int64, types.uint64[:, ::1])
    return _compile(signature, _add_run)


@cache
def runs_adder() -> Callable[..., None]:
    """Compile what adds one run after the other, of reports that have whole words."""
    places = types.Array(types.int64, 1, "C")
    signature = types.void(
        types.int64[:, ::1], _ANY_WORDS, places, places, places, types.int64, types.uint64[::1], types.uint64[:, ::1]
    )
    return _compile(signature, _add_runs)


@cache
def mixed_adder(item: int, fixed: int) -> Callable[..., None]:
    """Compile what adds reports of mixed cohorts, by the bytes of an item and the items of a report, or 0 for any."""
    cohorts = types.Array(types.uint32, 1, "C", readonly=True, aligned=True)
    kind = getattr(types, f"uint{8 * item}")
    source = types.Array(kind, 1, "C", readonly=True, aligned=False)
    signature = types.void(
        types.int64[:, ::1], source, cohorts, types.int64, kind[::1], types.uint64[:, ::1], types.uint64[:, :, ::1]
    )
    return _compile(signature, _mixed(fixed))


@_part
def _majority(first: Any, second: Any, third: Any) -> Any:  # pragma: no cover
    return (first & second) | ((first ^ second) & third)


@_part
def _add_sixteen(digits: Words, carry: Words, slabs: Words) -> None:  # pragma: no cover
    """Add sixteen slabs to the digits of 1, 2, 4 and 8; the carry is of 16."""
    size = len(carry)
    ones, twos, fours, eights = digits[0], digits[1], digits[2], digits[3]
    s0, s1, s2, s3 = slabs[:size], slabs[size : 2 * size], slabs[2 * size : 3 * size], slabs[3 * size : 4 * size]
    slabs = slabs[4 * size :]
    s4, s5, s6, s7 = slabs[:size], slabs[size : 2 * size], slabs[2 * size : 3 * size], slabs[3 * size : 4 * size]
    slabs = slabs[4 * size :]
    s8, s9, s10, s11 = slabs[:size], slabs[size : 2 * size], slabs[2 * size : 3 * size], slabs[3 * size : 4 * size]
    slabs = slabs[4 * size :]
    s12, s13, s14, s15 = slabs[:size], slabs[size : 2 * size], slabs[2 * size : 3 * size], slabs[3 * size : 4 * size]
    for place in range(size):
        one, two, four, eight = ones[place], twos[place], fours[place], eights[place]
        a, b = s0[place], s1[place]
        two_a = _majority(one, a, b)
        one ^= a ^ b
        a, b = s2[place], s3[place]
        two_b = _majority(one, a, b)
        one ^= a ^ b
        four_a = _majority(two, two_a, two_b)
        two ^= two_a ^ two_b
        a, b = s4[place], s5[place]
        two_a = _majority(one, a, b)
        one ^= a ^ b
        a, b = s6[place], s7[place]
        two_b = _majority(one, a, b)
        one ^= a ^ b
        four_b = _majority(two, two_a, two_b)
        two ^= two_a ^ two_b
        eight_a = _majority(four, four_a, four_b)
        four ^= four_a ^ four_b
        a, b = s8[place], s9[place]
        two_a = _majority(one, a, b)
        one ^= a ^ b
        a, b = s10[place], s11[place]
        two_b = _majority(one, a, b)
        one ^= a ^ b
        four_a = _majority(two, two_a, two_b)
        two ^= two_a ^ two_b
        a, b = s12[place], s13[place]
        two_a = _majority(one, a, b)
        one ^= a ^ b
        a, b = s14[place], s15[place]
        two_b = _majority(one, a, b)
        one ^= a ^ b
        four_b = _majority(two, two_a, two_b)
        two ^= two_a ^ two_b
        eight_b = _majority(four, four_a, four_b)
        four ^= four_a ^ four_b
        carry[place] = _majority(eight, eight_a, eight_b)
        eights[place] = eight ^ eight_a ^ eight_b
        ones[place], twos[place], fours[place] = one, two, four


@_part
def _carry_on(digits: Words, carry: Words) -> None:  # pragma: no cover
    """Add a carry of 16 to the digits, which have to be enough for it."""
    level = 4
    more = True
    while more:
        left = np.uint64(0)
        row = digits[level]
        for place in range(len(carry)):
            digit, added = row[place], carry[place]
            row[place] = digit ^ added
            carry[place] = digit & added
            left |= digit & added
        more = left != 0
        level += 1


@_part
def _bring_in(counts: NDArray[np.int64], digits: Words, width: int) -> None:  # pragma: no cover
    """Add what the digits say to the counts, and begin at zero again. Padding bits are not counted."""
    bits = len(counts)
    for place in range(digits.shape[1]):
        first = place * 8 % width * 8
        whole = first + 64 <= bits
        row = counts[first : first + 64]  # the sum of two places could be negative, for all that numba knows
        for level in range(len(digits)):
            word = digits[level, place]
            digits[level, place] = np.uint64(0)
            if word != 0 and whole:
                for bit in range(64):
                    row[bit] += np.int64((word >> np.uint64(bit) & np.uint64(1)) << np.uint64(level))
            elif word != 0:
                at = first
                for bit in range(64):
                    if at == width * 8:
                        at = 0
                    if at < bits:
                        counts[at] += np.int64((word >> np.uint64(bit) & np.uint64(1)) << np.uint64(level))
                    at += 1


def _add_run(
    counts: NDArray[np.int64], source: Words, rest: Words, width: int, digits: Words
) -> None:  # pragma: no cover
    """Add a run to the counts of its cohort: sixteen slabs at a time, and last the rest with zeros behind it."""
    carry = np.empty(digits.shape[1], np.uint64)
    step = SLABS * len(carry)
    for at in range(0, len(source) - step + 1, step):
        _add_sixteen(digits, carry, source[at : at + step])
        _carry_on(digits, carry)
    _add_sixteen(digits, carry, rest)
    _carry_on(digits, carry)
    _bring_in(counts, digits, width)


def _add_runs(
    counts: NDArray[np.int64],
    source: Words,
    cohorts: NDArray[np.int64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    width: int,
    rest: Words,
    digits: Words,
) -> None:  # pragma: no cover
    """Add runs, which begin and end at these words, to the counts of their cohorts; `rest` has sixteen slabs."""
    carry = np.empty(digits.shape[1], np.uint64)
    for run in range(len(cohorts)):
        at, stop = starts[run], stops[run]
        while at + len(rest) <= stop:
            _add_sixteen(digits, carry, source[at : at + len(rest)])
            _carry_on(digits, carry)
            at += len(rest)
        for place in range(len(rest)):
            rest[place] = source[at + place] if at + place < stop else np.uint64(0)
        _add_sixteen(digits, carry, rest)
        _carry_on(digits, carry)
        _bring_in(counts[cohorts[run]], digits, width)


def _mixed(fixed: int) -> Callable[..., None]:
    """Give what adds reports of mixed cohorts that have so many items, or as many as they have, if it is 0."""

    def add(
        counts: NDArray[np.int64],
        source: NDArray[np.unsignedinteger],
        cohorts: NDArray[np.uint32],
        width: int,
        moved: NDArray[np.unsignedinteger],
        waiting: Words,
        digits: NDArray[np.uint64],
    ) -> None:  # pragma: no cover
        """Add reports of mixed cohorts: they wait until there are sixteen slabs of a cohort, which are then added.

        `moved` is the memory of `waiting`, in items as `source` has.
        """
        carry = np.empty(digits.shape[2], np.uint64)
        each = np.uint64(fixed or len(source) // len(cohorts))
        full = np.uint64(len(moved) // len(counts))
        ends = np.zeros(len(counts), np.uint64)
        here = np.uint64(0)
        for report in range(len(cohorts)):
            cohort = np.uint64(cohorts[report])
            end = ends[cohort]
            there = cohort * full + end
            for place in range(each):
                moved[there + place] = source[here + place]
            here += each
            end += each
            if end == full:
                _add_sixteen(digits[cohort], carry, waiting[cohort])
                _carry_on(digits[cohort], carry)
                end = np.uint64(0)
            ends[cohort] = end
        for number in range(len(counts)):
            there = np.uint64(number) * full
            for place in range(ends[number], full):
                moved[there + place] = 0
            _add_sixteen(digits[number], carry, waiting[number])
            _carry_on(digits[number], carry)
            _bring_in(counts[number], digits[number], width)

    return add
