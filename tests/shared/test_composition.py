"""Composition: the published numbers, brute force on small cases, and refusals."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.shared.composition import compose, exact_delta, group
from hubbub.shared.errors import ParameterError


@pytest.mark.parametrize(
    ("epsilon", "count", "renyi", "exact"), [(0.5, 30, 14.35, 13.95), (0.1, 365, 10.96, 10.31), (1.0, 100, 85.5, 83.5)]
)
def test_known_totals(epsilon: float, count: int, renyi: float, exact: float) -> None:
    """FORMULAS F9, at delta = 1e-6."""
    composed = compose([epsilon] * count, 1e-6)
    assert composed.method == "exact"
    assert composed.epsilon == composed.totals["exact"] == pytest.approx(exact, rel=1e-3)
    assert composed.totals["renyi"] == pytest.approx(renyi, rel=1e-3)
    assert composed.totals["basic"] == pytest.approx(epsilon * count)
    rho = count * epsilon * math.tanh(epsilon / 2)
    assert composed.totals["zcdp"] == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1e6)))


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0])
@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_exact_delta_equals_enumeration_of_randomised_response(epsilon: float, count: int) -> None:
    """Randomised response is the worst pure mechanism: the hockey-stick divergence of all its outputs, summed."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    for total in (0.0, 0.3, epsilon, 0.9 * count * epsilon):
        delta = 0.0
        for output in itertools.product((0, 1), repeat=count):
            one = math.prod(keep if bit else 1 - keep for bit in output)
            other = math.prod(1 - keep if bit else keep for bit in output)
            delta += max(0.0, one - math.exp(total) * other)
        assert exact_delta(epsilon, count, total) == pytest.approx(delta, abs=1e-12)


@settings(max_examples=60)
@given(epsilon=st.floats(0.01, 3), count=st.integers(1, 400), delta=st.floats(1e-12, 1e-2))
def test_no_bound_is_below_the_exact_one(epsilon: float, count: int, delta: float) -> None:
    composed = compose([epsilon] * count, delta)
    assert exact_delta(epsilon, count, composed.totals["exact"]) <= delta
    assert min(composed.totals.values()) >= composed.totals["exact"] - 1e-9


def test_unequal_mechanisms_take_the_best_of_what_is_left() -> None:
    composed = compose([0.1] * 200 + [0.2] * 100, 1e-6)
    assert set(composed.totals) == {"basic", "renyi", "zcdp"}
    assert composed.method == "renyi"
    assert composed.epsilon < composed.totals["basic"] == pytest.approx(40)
    few = compose([1.0, 2.0], 1e-9)
    assert (few.method, few.epsilon, few.delta) == ("basic", 3.0, 0.0)


def test_pure_composition_is_the_sum() -> None:
    assert compose([1.0, 2.5]).epsilon == 3.5
    assert compose([1.0, 2.5]).totals == {"basic": 3.5}
    assert compose([], 1e-6).epsilon == 0
    assert compose([0.0, 0.0], 1e-6).epsilon == 0


def test_group_privacy() -> None:
    assert group(0.5, 4) == (2.0, 0.0)
    epsilon, delta = group(0.5, 3, 1e-6)
    assert epsilon == 1.5
    assert delta == pytest.approx(1e-6 * (1 + math.exp(0.5) + math.exp(1.0)))
    assert group(0.0, 3, 1e-6)[1] == pytest.approx(3e-6)
    with pytest.raises(ParameterError, match="size = 0"):
        group(1.0, 0)


@pytest.mark.parametrize("delta", [-0.1, 1.0, math.nan])
def test_impossible_deltas(delta: float) -> None:
    with pytest.raises(ParameterError, match="delta"):
        compose([1.0], delta)


@pytest.mark.parametrize("epsilon", [-1.0, math.inf, math.nan])
def test_impossible_epsilons(epsilon: float) -> None:
    with pytest.raises(ParameterError, match="epsilon"):
        compose([1.0, epsilon])
