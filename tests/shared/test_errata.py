"""Errors found in well-known texts, each named, shown to be wrong, and shown not to be ours.

Expectations are exact: what a decoder would return on average, computed from the four probabilities. Those about
rounding offsets are in test_rounding.py.
"""

import math

import pytest

from hubbub.shared.bernoulli import ONE
from hubbub.shared.encode.encoding import ONE_BIT, TWO_BITS
from hubbub.shared.response import Response

RAPPOR = Response.rappor(0.5, 0.25, 0.75)
DEVICES, HOLDERS = 1000, 200


def expected_ones(response: Response, holders: float, devices: float) -> float:
    return holders * response.truth_is_sent + (devices - holders) * response.noise_is_sent


def debiased(response: Response, ones: float, devices: float) -> float:
    return (ones - devices * response.noise_is_sent) / (response.truth_is_sent - response.noise_is_sent)


def test_debiasing_returns_the_truth() -> None:
    for response in (RAPPOR, Response.least_variance(1.0, 4.0, TWO_BITS), Response.flipping(1.0, 0.1, ONE_BIT)):
        assert debiased(response, expected_ones(response, HOLDERS, DEVICES), DEVICES) == pytest.approx(HOLDERS)


def test_p_and_q_exchanged_in_the_instantaneous_step_return_everybody_else() -> None:
    """A permanent 1 sent with p instead of q: the usual decoder then returns N - t."""
    p1, q1, p2, q2 = RAPPOR.p1 / ONE, RAPPOR.q1 / ONE, RAPPOR.q2 / ONE, RAPPOR.p2 / ONE
    swapped_truth, swapped_noise = p1 * p2 + (1 - p1) * q2, q1 * p2 + (1 - q1) * q2
    ones = HOLDERS * swapped_truth + (DEVICES - HOLDERS) * swapped_noise
    assert debiased(RAPPOR, ones, DEVICES) == pytest.approx(DEVICES - HOLDERS)


def test_the_lifetime_bound_that_lost_an_f() -> None:
    """2h ln((1 - f/2)/(1/2)) gives 1.622 at f = 1/2, h = 2, where enumeration finds 4.394."""
    assert 4 * math.log(0.75 / 0.5) == pytest.approx(1.622, abs=1e-3)
    assert Response.rappor(0.5).epsilon(((2, 2),), math.inf) == pytest.approx(4.3944, abs=1e-4)


def test_odds_of_two_outputs_are_not_epsilon() -> None:
    """A device that says 1 nine times of ten whatever its value has odds of nine, and reveals nothing at all."""
    always_alike = Response(58983, 58982, ONE, 0)
    assert always_alike.epsilon(ONE_BIT, 1) < 1e-3
    assert math.log(0.9 / 0.1) > 2


def test_one_bit_mean_averaged_without_debiasing() -> None:
    """Numbers of 10 in [0, 10] at epsilon 1: raw bits average to 7.3, debiased ones to 10."""
    response = Response.one_time(1.0, ONE_BIT)
    ones = expected_ones(response, DEVICES, DEVICES)
    assert 10 * ones / DEVICES == pytest.approx(10 * math.e / (math.e + 1), abs=1e-3)
    assert 10 * debiased(response, ones, DEVICES) / DEVICES == pytest.approx(10)


def test_basic_rappor_decoded_without_debiasing() -> None:
    """Nobody holds the category, and 37.5 % of the raw bits are set all the same."""
    assert expected_ones(RAPPOR, 0, DEVICES) / DEVICES == pytest.approx(0.375)
    assert debiased(RAPPOR, expected_ones(RAPPOR, 0, DEVICES), DEVICES) == pytest.approx(0)


def test_f_rounded_by_the_client_and_not_by_the_decoder() -> None:
    """f = 0.3 drawn as 39/128 but decoded as 0.3 is off by a third of a percent; here one is drawn and decoded."""
    drawn, decoded = Response.rappor(39 / 128), Response.rappor(0.3)
    found = debiased(decoded, expected_ones(drawn, DEVICES, DEVICES), DEVICES)
    assert found / DEVICES == pytest.approx(0.9967, abs=2e-4)
    assert decoded.q1 == math.ceil(0.15 * ONE)
    assert decoded.noise_is_sent == decoded.q1 / ONE
