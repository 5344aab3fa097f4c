"""Responses: the four numbers, how they are solved, and which cannot be made."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.shared.bernoulli import ONE
from hubbub.shared.encode import Bloom
from hubbub.shared.encode.encoding import ONE_BIT, TWO_BITS, Contrast
from hubbub.shared.errors import ParameterError
from hubbub.shared.response import MAX_EPSILON, Response

CONTRASTS = [ONE_BIT, TWO_BITS, ((2, 2),), ((5, 5),), Bloom(3, 2, 1).contrasts]
epsilons = st.floats(0.001, MAX_EPSILON)


@given(report=epsilons, lifetime=epsilons, contrasts=st.sampled_from(CONTRASTS))
def test_solved_epsilons_never_exceed_their_targets(
    report: float, lifetime: float, contrasts: tuple[Contrast, ...]
) -> None:
    if report >= lifetime:
        return
    for make in (Response.least_variance, Response.classic):
        try:
            response = make(report, lifetime, contrasts)
        except ParameterError as error:
            assert "too small" in str(error)  # noqa: PT017  (only a target below the grid may fail)
            assert report < 0.02
            continue
        assert response.epsilon(contrasts, 1) <= report
        assert response.epsilon(contrasts, math.inf) <= lifetime


@pytest.mark.parametrize("report", [0.05, 0.5, 1.0, 1.0743, 2.0, 3.9])
@pytest.mark.parametrize("lifetime", [4.0, 4.3944, 8.0])
@pytest.mark.parametrize("hashes", [1, 2])
def test_least_variance_is_the_closed_form(report: float, lifetime: float, hashes: int) -> None:
    """p1 = 1/2, q1 = 1/(e^L + 1), p2 = (e^(L+R) - 1)/(e^L - e^R + e^(L+R) - 1), q2 = 1 - p2, rounded to the grid."""
    response = Response.least_variance(report, lifetime, ((hashes, hashes),))
    big_l, big_r = lifetime / hashes, report / hashes
    q1 = 1 / (math.exp(big_l) + 1)
    assert response.p1 == ONE // 2
    assert 0 <= response.q1 - q1 * ONE < 1
    both = math.exp(big_l + big_r)
    p2 = (both - 1) / (math.exp(big_l) - math.exp(big_r) + both - 1)
    # Rounding q1 up leaves less room for p2 to spend; the two roundings together stay within a few steps.
    assert response.p2 == pytest.approx(p2 * ONE, abs=1 + 3 * math.exp(big_l) / math.expm1(big_l - big_r))
    assert response.q2 == ONE - response.p2
    optimal_unary = 4 * math.exp(big_r) / math.expm1(big_r) ** 2
    # One step of the grid moves Q by at most 2^-16, and the variance by what its derivative says.
    slope = 1 / response.noise_is_sent + 2 / (response.truth_is_sent - response.noise_is_sent)
    assert optimal_unary <= response.variance <= optimal_unary * (1 + 1.1 * slope / ONE)


def test_least_variance_at_rappors_own_point() -> None:
    """n Var falls from 7.875 to 3.151 at the same two epsilons."""
    rappor, two = Response.rappor(0.5, 0.5, 0.75), ((2, 2),)
    assert rappor.variance / 2 == pytest.approx(7.875)
    report, lifetime = rappor.epsilon(two, 1), rappor.epsilon(two, math.inf)
    ours = Response.least_variance(report, lifetime, TWO_BITS)
    assert ours.variance == pytest.approx(3.151, abs=1e-3)
    assert Response.classic(report, lifetime, two) == rappor


def test_single_bits_are_symmetric_in_both_steps() -> None:
    response = Response.least_variance(0.5, 2.0, ONE_BIT)
    assert response.p1 + response.q1 == response.p2 + response.q2 == ONE
    assert response.p1 == math.floor(ONE * math.exp(2) / (math.exp(2) + 1))
    assert response.truth_is_sent == pytest.approx(math.exp(0.5) / (math.exp(0.5) + 1), abs=1e-4)


@pytest.mark.parametrize("contrasts", [ONE_BIT, TWO_BITS, ((2, 2),)])
def test_no_other_response_nearby_is_better(contrasts: tuple[Contrast, ...]) -> None:
    """Every response within a few steps of the solution either breaks a target or has no less variance."""
    report, lifetime = 1.0, 3.0
    best = Response.least_variance(report, lifetime, contrasts)
    worst_case = max(best.truth_is_sent * (1 - best.truth_is_sent), best.noise_is_sent * (1 - best.noise_is_sent))
    best_worst = worst_case / (best.truth_is_sent - best.noise_is_sent) ** 2
    for step in (-640, -64, 64, 640):
        for name in ("p1", "q1", "p2", "q2"):
            numbers = {key: getattr(best, key) for key in ("p1", "q1", "p2", "q2")}
            numbers[name] += step
            other = Response(**numbers)
            gap = other.truth_is_sent - other.noise_is_sent
            worst = max(
                other.truth_is_sent * (1 - other.truth_is_sent), other.noise_is_sent * (1 - other.noise_is_sent)
            )
            breaks = other.epsilon(contrasts, 1) > report or other.epsilon(contrasts, math.inf) > lifetime
            assert breaks or worst / gap**2 > best_worst


def test_rounding_adds_noise_and_never_removes_it() -> None:
    """f, p and q that are no multiples of 2^-16 move towards each other, and flips become more."""
    response = Response.rappor(0.45, 0.39, 0.61)
    assert (response.p1, response.q1, response.p2, response.q2) == (50790, 14746, 39976, 25560)
    assert Response.flipping(1.0, 0.1, ONE_BIT).q2 == math.ceil(0.1 * ONE)


def test_instantaneous_response_does_not_swap_p_and_q() -> None:
    """A permanent 1 is sent as 1 with probability q. Swapped, a decoder would return N - t."""
    response = Response.rappor(0.5, 0.25, 0.75)
    assert response.p2 / ONE == 0.75
    assert response.q2 / ONE == 0.25
    assert response.truth_is_sent > response.noise_is_sent


def test_dbitflip_spends_all_on_one_bit_and_half_on_each_of_two() -> None:
    """FORMULAS F6: k = 100, epsilon 1, d = 1: n Var 92 with the whole epsilon, 392 with half of it."""
    alone, shared = Response.flipping(1.0, 0.0, ONE_BIT), Response.flipping(1.0, 0.0, TWO_BITS)
    assert alone.p1 / ONE == pytest.approx(math.e / (math.e + 1), abs=2e-5)
    assert shared.p1 / ONE == pytest.approx(math.exp(0.5) / (math.exp(0.5) + 1), abs=2e-5)
    assert 100 * alone.variance == pytest.approx(92, abs=0.5)
    assert 100 * shared.variance == pytest.approx(392, abs=0.5)


def test_one_time_is_optimal_unary_encoding() -> None:
    response = Response.one_time(1.0, TWO_BITS)
    assert (response.p1, response.p2, response.q2) == (ONE // 2, ONE, 0)
    assert response.variance == pytest.approx(4 * math.e / math.expm1(1) ** 2, rel=2e-4)


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda: Response.rappor(0.0, 0.5, 0.75), "f = 0.0"),
        (lambda: Response.rappor(1.0, 0.5, 0.75), "f = 1.0"),
        (lambda: Response.rappor(-0.1, 0.5, 0.75), "f = -0.1"),
        (lambda: Response.rappor(math.nan, 0.5, 0.75), "f = nan"),
        (lambda: Response.rappor(0.5, 0.5, 0.5), "q = 0.5"),
        (lambda: Response.rappor(0.5, 0.75, 0.5), "q = 0.5"),
        (lambda: Response.rappor(0.5, -0.5, 0.5), "p = -0.5"),
        (lambda: Response.rappor(0.5, 0.5, 1.5), "q = 1.5"),
        (lambda: Response.rappor(0.5, 0.5, 0.500001), "instantaneous"),
        (lambda: Response.rappor(0.99999, 0.5, 0.75), "permanent"),
        (lambda: Response.least_variance(2.0, 2.0, TWO_BITS), "report = 2.0"),
        (lambda: Response.least_variance(3.0, 2.0, TWO_BITS), "report = 3.0"),
        (lambda: Response.least_variance(0.0, 2.0, TWO_BITS), "report = 0.0"),
        (lambda: Response.least_variance(1.0, 21.0, TWO_BITS), "lifetime = 21.0"),
        (lambda: Response.least_variance(1.0, math.inf, TWO_BITS), "lifetime = inf"),
        (lambda: Response.least_variance(1e-9, 2.0, TWO_BITS), "too small"),
        (lambda: Response.classic(2.0, 2.0, TWO_BITS), "report = 2.0"),
        (lambda: Response.one_time(0.0, ONE_BIT), "epsilon = 0.0"),
        (lambda: Response.one_time(1e-9, ONE_BIT), "too small"),
        (lambda: Response.one_time(math.nan, ONE_BIT), "epsilon = nan"),
        (lambda: Response.flipping(1.0, 0.5, ONE_BIT), "gamma = 0.5"),
        (lambda: Response.flipping(1.0, -0.1, ONE_BIT), "gamma = -0.1"),
        (lambda: Response(ONE, 1, ONE, 0), "p1"),
        (lambda: Response(ONE // 2, 0, ONE, 0), "q1"),
        (lambda: Response(5, 5, ONE, 0), "p1"),
        (lambda: Response(5, 1, 7, 7), "p2"),
        (lambda: Response(5, 1, ONE + 1, 7), "p2"),
    ],
)
def test_impossible_and_privacy_voiding_parameters_cannot_be_constructed(make, wrong) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParameterError, match="allowed: ") as caught:
        make()
    assert wrong in str(caught.value)
