"""Randomised rounding is exactly unbiased, and the biased variants found in print are caught."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest

from hubbub.shared.encode import Rounding
from hubbub.shared.encode.rounding import GRID
from hubbub.shared.errors import ValueRefusedError

Rule = Callable[[float, int], int]


def bias(rule: Rule, offsets: range, value: float, grid: int) -> Fraction:
    """Expected rounded value minus the value, over all offsets, in exact arithmetic."""
    ups = sum(rule(value, offset) for offset in offsets)
    return Fraction(grid * ups, len(offsets)) - Fraction(value)


@pytest.mark.parametrize("grid", [1, 2, 3, 4, 7, 16, 50])
def test_no_bias_at_any_place_of_a_grid(grid: int) -> None:
    rounding = Rounding(0.0, float(grid), offsets=grid)
    for place in range(grid + 1):
        assert bias(lambda value, offset: rounding.encode(value, 0, offset), range(grid), place, grid) == 0


def test_variants_from_print_are_caught() -> None:
    """The same measurement that finds no bias in ours finds it in each of them."""
    grid = 10
    too_few_offsets = [bias(lambda x, a: int(not x + a <= grid), range(1, grid), x, grid) for x in range(1, grid)]
    assert too_few_offsets == [Fraction(-(grid - x), grid - 1) for x in range(1, grid)]
    assert min(too_few_offsets) == -1

    halves = [x + 0.5 for x in range(grid)]
    integer_offsets_for_real_values = [bias(lambda x, a: int(x + a >= grid), range(grid), x, grid) for x in halves]
    assert set(integer_offsets_for_real_values) == {Fraction(-1, 2)}


def test_ends_of_the_range_are_certain() -> None:
    rounding = Rounding(-3.0, 5.0)
    assert rounding.encode(-3, 0, GRID - 1) == 0
    assert rounding.encode(5, 0, 0) == 1


def test_a_drifting_number_crosses_once() -> None:
    rounding = Rounding(0.0, 1.0)
    for offset in (0, 1, GRID // 3, GRID - 1):
        bits = [rounding.encode(step / 1000, 0, offset) for step in range(1001)]
        assert bits == sorted(bits)


@pytest.mark.parametrize("value", [-1e308, -7, -3.0000001, -(10**400)])
def test_below_the_range_counts_as_low(value: float) -> None:
    assert Rounding(-3.0, 5.0).place(value) == 0
    assert Rounding(-3.0, 5.0).clamps(value)


@pytest.mark.parametrize("value", [1e308, 5.0000001, 10**400])
def test_above_the_range_counts_as_high(value: float) -> None:
    assert Rounding(-3.0, 5.0).place(value) == GRID
    assert Rounding(-3.0, 5.0).clamps(value)


def test_inside_the_range_nothing_is_clamped() -> None:
    rounding = Rounding(-3.0, 5.0)
    assert not any(rounding.clamps(value) for value in (-3, 0, 4.999, 5, Fraction(1, 3)))
    assert rounding.place(1) == GRID // 2
    assert rounding.place(Fraction(1)) == GRID // 2
    assert not rounding.clamps("a word")
    assert not rounding.clamps(True)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "12", None, True, 1j, [1]])
def test_what_is_no_finite_number_is_refused(value: object) -> None:
    with pytest.raises(ValueRefusedError, match=r"allowed: a (finite )?number"):
        Rounding(0.0, 1.0).encode(value, 0, 0)


def test_the_widest_and_narrowest_ranges_work() -> None:
    for low, high in [(-8e307, 8e307), (0.0, 5e-324), (1.0, math.nextafter(1.0, 2.0))]:
        rounding = Rounding(low, high)
        assert rounding.place(low) == 0
        assert rounding.place(high) == GRID
