"""The checks next to epsilon: exact p-values, and how rare a fault they notice."""

import itertools

import numpy as np
import pytest
from scipy import stats

from hubbub.simulations.audit.checks import Binomial, bit_rates, fresh_noise, p_value, rarest_fault
from hubbub.simulations.audit.pair import Role, choose_pair
from hubbub.simulations.audit.trial import Counts
from shared.brute_force import outputs
from simulations.audited import METRICS

ALPHA = 0.01 / 20


def test_p_values_are_small_as_seldom_as_they_say() -> None:
    """Every count of some binomials, with its exact probability."""
    for total, rate, alpha in itertools.product((1, 9, 200), (1e-6, 0.1, 0.5, 0.9), (0.3, 0.01, 1e-4)):
        chances = stats.binom.pmf(np.arange(total + 1), total, rate)
        small = [Binomial(count, total, rate).p_value <= alpha for count in range(total + 1)]
        assert chances[small].sum() <= alpha * (1 + 1e-9)


def test_several_counts_share_the_chance_of_error() -> None:
    unlikely, likely = Binomial(10, 10, 0.5), Binomial(5, 10, 0.5)
    assert p_value([unlikely, likely, likely]) == pytest.approx(3 * 2 / 2**10)
    assert p_value([likely]) == 1.0


@pytest.mark.parametrize(
    ("total", "rate", "bare"),
    [(40_000, 0.73, 1.0), (20_000, 0.27, 0.0), (40_000, 1e-17, 1.0), (1_000, 0.5, 1.0), (1_000, 0.01, 0.0)],
)
def test_the_rarest_fault_is_noticed_every_other_time(total: int, rate: float, bare: float) -> None:
    """Beyond it less often, up to the step between two counts."""
    cell = Binomial(0, total, rate, bare)
    share = cell.noticed_share(ALPHA)
    counts = np.arange(total + 1)
    law = stats.binom(total, rate)
    noticed = 2 * np.minimum(law.cdf(counts), law.sf(counts - 1)) <= ALPHA
    found = stats.binom.pmf(counts, total, rate + share * (bare - rate))[noticed].sum()
    assert found == pytest.approx(0.5, abs=1e-3)
    assert rarest_fault([cell], ALPHA) == int(1 / share)


def test_too_few_trials_notice_nothing() -> None:
    assert rarest_fault([Binomial(0, 5, 0.5, 1.0), Binomial(0, 5, 0.5, 0.0)], ALPHA) == 0


@pytest.mark.parametrize("name", ["category", "flag", "mean"])
def test_rates_are_those_of_all_outcomes(name: str) -> None:
    """The declared rates, compared with every outcome of two reports and its probability."""
    metric = METRICS[name]
    pair = choose_pair(metric, 1)
    encoded = [metric.encode(value, 0, 0) for value in (pair.first, pair.second)]
    one, two = outputs(metric.response, metric.size, 1), outputs(metric.response, metric.size, 2)
    counts = Counts(*(np.ones((2, len(Role)), np.int64) for _ in range(4)), *(np.ones(2, np.int64) for _ in range(3)))
    rates = bit_rates(metric.response, pair, counts)
    assert rates[-1].rate == pytest.approx(np.mean([one[bits][bits] for bits in encoded]))
    for value, bits in enumerate(encoded):
        role = Role.FIRST if value == 0 else Role.SECOND
        if not bits:
            continue
        bit = bits.bit_length() - 1
        number = value * len(Role) + role
        patterns = np.arange(2**metric.size)
        assert rates[number].rate == pytest.approx(one[bits][patterns >> bit & 1 == 1].sum())
        first, second = np.divmod(np.arange(4**metric.size), 2**metric.size)
        assert fresh_noise(metric.response, counts)[number].rate == pytest.approx(
            np.ravel(two[bits])[(first ^ second) >> bit & 1 == 1].sum()
        )
