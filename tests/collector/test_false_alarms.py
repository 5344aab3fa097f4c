"""How often honest data raise an alarm, and how little of what is wrong does.

Where it can be done, all outcomes are enumerated, and the chances of those that raise an alarm are added up: such tests
do not depend on luck. The others say how often luck alone would fail them.
"""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from collector.decoding import Value, drawn, metric, string_metric
from hubbub.collector import decode
from hubbub.collector.decode.diagnostics import (
    ALARM,
    binomial,
    cohort_balance,
    explained,
    impossible_bits,
    listed,
    long_tails,
    no_value,
    ones_distribution,
    ones_laws,
    ones_per_report,
    residual_misfit,
    sum_of_shares,
)
from hubbub.collector.decode.estimates import Number
from hubbub.collector.decode.least_squares import Equations, Fit
from hubbub.collector.decode.noise import Noise
from hubbub.collector.decode.shares import estimate_shares
from hubbub.shared import Metric

pytestmark = pytest.mark.unmeasured

USUAL = "{ report = 1.0, lifetime = 2.0 }"
RARE = "{ f = 0.5, p = 0.005, q = 0.02 }"
"""Bits that hardly anybody sends: what is far from normal."""

ONE_PERIOD = Noise(0.5, 0.1, 0.8, 0.2)
CATEGORY = metric("category", 'categories = ["a", "b"]')
OTHER_CATEGORY = metric("category", 'categories = ["a", "b"]', privacy="{ report = 0.5, lifetime = 2.0 }")
"""With the larger noise of another registry; smaller noise looks like reports without a valid value."""

RARE_CATEGORY = metric("category", 'categories = ["a", "b"]', privacy=RARE)
STRING = string_metric(64, 2, 16)
"""Two hashes, that may hit the same bit."""


def outcomes(reports: int, places: int) -> Iterator[list[int]]:
    """All ways to spread reports over some places."""
    if places == 1:
        yield [reports]
        return
    for here in range(reports + 1):
        for rest in outcomes(reports - here, places - 1):
            yield [here, *rest]


def noise_of(it: Metric, periods: int = 1) -> Noise:
    return Noise.of(it.response, periods)


def law_of(it: Metric) -> NDArray[np.float64]:
    law = ones_distribution(it.encoding, noise_of(it))
    assert law is not None
    whole: NDArray[np.float64] = law / law.sum()
    return whole


class TestHonest:
    @pytest.mark.parametrize(("cohorts", "reports"), [(2, 200), (3, 60), (4, 20), (5, 12)])
    def test_cohorts_are_called_uneven_by_chance_as_seldom_as_is_said(self, cohorts: int, reports: int) -> None:
        spread = np.array(list(outcomes(reports, cohorts)))
        chances = stats.multinomial.pmf(spread, reports, np.full(cohorts, 1 / cohorts))
        alarms = [cohort_balance(each, ONE_PERIOD).alarm for each in spread]
        assert chances.sum() == pytest.approx(1)
        assert chances[alarms].sum() <= ALARM

    @pytest.mark.parametrize("periods", [1, 30])
    def test_few_reports_in_many_cohorts_are_not_called_uneven(self, periods: int) -> None:
        """8,000 trials, an alarm in one of 10^4 at most: more than 10 have a chance below 10^-8.

        Chi-square, which wants five in each cohort, raised 30.
        """
        rng, noise = np.random.default_rng(1), Noise(0.5, 0.1, 0.8, 0.2, periods)
        alarms = 0
        for cohorts, devices in ((16, 3), (64, 12), (256, 12), (1024, 51)):
            drawn = periods * rng.multinomial(devices, np.full(cohorts, 1 / cohorts), size=2000)
            alarms += sum(cohort_balance(each, noise).alarm for each in drawn)
        assert alarms <= 10

    @pytest.mark.parametrize("it", [CATEGORY, RARE_CATEGORY], ids=["usual", "rare"])
    @pytest.mark.parametrize("reports", [3, 10, 40])
    def test_numbers_of_ones_are_called_wrong_by_chance_as_seldom_as_is_said(self, it: Metric, reports: int) -> None:
        law = law_of(it)
        counted = np.array(list(outcomes(reports, len(law))))
        chances = stats.multinomial.pmf(counted, reports, law)
        laws = ones_laws(it.encoding, noise_of(it))
        assert np.allclose(laws[1], law)
        for periods in (1, 5):
            # At the worst all reports of a device are alike.
            alarms = [ones_per_report(periods * each, *laws, periods).alarm for each in counted]
            assert chances[alarms].sum() <= ALARM
            assert any(alarms) or reports < 10

    def test_a_string_whose_hashes_hit_one_bit_is_as_honest_as_any(self) -> None:
        """Everybody may have it. 40 trials of bounds that fail once in 10^4 times: two alarms have a chance of 10^-5,
        three one below 10^-7; the average law over all strings calls every one of them wrong.
        """
        rng, noise = np.random.default_rng(2), noise_of(STRING)
        few, many = ones_laws(STRING.encoding, noise)
        one_bit = np.convolve(binomial(1, noise.truth), binomial(STRING.size - 1, noise.lie))
        for law in (one_bit, many):
            drawn = rng.multinomial(100_000, law / law.sum(), size=20)
            assert sum(ones_per_report(each, few, many).alarm for each in drawn) <= 2
        wrong = ones_per_report(rng.multinomial(100_000, one_bit / one_bit.sum()), law_of(STRING))
        assert wrong.alarm

    @pytest.mark.parametrize("it", [CATEGORY, RARE_CATEGORY, STRING], ids=["usual", "rare", "string"])
    def test_reports_without_a_valid_value_are_as_honest_as_any(self, it: Metric) -> None:
        """40 trials of bounds that fail once in 10^4 times: three alarms have a chance below 10^-7."""
        rng, laws = np.random.default_rng(3), ones_laws(it.encoding, noise_of(it))
        null = binomial(it.size, noise_of(it).lie)
        mixed = [
            rng.multinomial(100_000, share * null + (1 - share) * law_of(it)) for share in (0.3, 1.0) for _ in range(20)
        ]
        assert sum(ones_per_report(each, *laws).alarm for each in mixed) <= 2

    @pytest.mark.parametrize("privacy", [USUAL, RARE])
    @pytest.mark.parametrize("reports", [1, 2, 3, 5, 8, 12, 30, 100, 1000])
    def test_bits_are_called_impossible_by_chance_as_seldom_as_is_said(self, privacy: str, reports: int) -> None:
        noise = noise_of(metric("flag", privacy=privacy))
        counts = np.arange(reports + 1)
        alarms = [impossible_bits(noise, np.array([reports]), np.array([[each]])).alarm for each in counts]
        for all_have_it in (noise.truth, noise.lie):
            assert stats.binom.pmf(counts, reports, all_have_it)[alarms].sum() <= ALARM

    @pytest.mark.parametrize("privacy", [USUAL, RARE])
    @pytest.mark.parametrize("reports", [1, 2, 3, 5, 8, 12, 30, 100, 1000])
    @pytest.mark.parametrize("null", [0.0, 0.05, 0.3])
    def test_sums_are_called_wrong_by_chance_as_seldom_as_is_said(
        self, privacy: str, reports: int, null: float
    ) -> None:
        noise = noise_of(metric("category", 'categories = ["a", "b"]', privacy=privacy))
        valid, numbers = reports - round(null * reports), np.arange(2 * reports + 1)
        law = np.convolve(
            stats.binom.pmf(numbers, valid, noise.truth), stats.binom.pmf(numbers, 2 * reports - valid, noise.lie)
        )[: 2 * reports + 1]
        alarms = []
        for ones in range(2 * reports + 1):
            # The sum of the shares, and its error, depend on the number of ones alone.
            counts = np.array([ones - ones // 2, ones // 2], float)
            debiased = noise.debias(counts, np.full(2, float(reports)))
            found = estimate_shares(noise, debiased, np.full((2, 2), reports), 0.95)
            alarms.append(sum_of_shares(found, 1 / (noise.slope * reports)).alarm)
        assert law[alarms].sum() <= ALARM

    def test_an_interval_that_just_misses_the_bar_is_no_alarm_whatever_confidence_it_has(self) -> None:
        for low in (0.104, 0.2):
            assert not listed(Number(0.3, 0.1, low, 0.5)).alarm
            assert listed(Number(0.5, 0.1, low, 0.7)).alarm
            assert not explained(Number(0.8, 0.1, low, 1.0)).alarm
            assert explained(Number(0.9, 0.1, low, 1.0)).alarm
            assert not no_value(Number(0.4, 0.1, low, 0.6)).alarm
            assert no_value(Number(0.5, 0.1, low, 0.7)).alarm
        assert not listed(Number(0.9, None, 0.0, 1.0)).alarm

    @pytest.mark.parametrize("devices", [10, 100, 1000])
    def test_bits_that_are_rarely_set_vary_more_than_normal_ones(self, devices: int) -> None:
        """3,000 trials, an alarm in one of 10^4: ten or more have a chance below 10^-9.

        Chi-square raised 200 for 10 devices.
        """
        rng, number = np.random.default_rng(3), 500
        noise = noise_of(metric("flag", privacy=RARE))
        equations = Equations(np.zeros(number), np.full(number, float(devices)), 0.0, noise)
        sent = rng.binomial(devices, noise.lie, size=(3000, number))
        residuals = noise.debias(sent.astype(float), np.full(sent.shape, float(devices)))
        variance = equations.variance(np.zeros(number))
        alarms = 0
        for residual in residuals:
            fit = fit_of(residual, float((residual**2 / variance).sum()))
            alarms += residual_misfit(fit, number, long_tails(fit, equations)).alarm
        assert alarms < 10


def fit_of(residual: NDArray[np.float64], misfit: float) -> Fit:
    """A fit without any string, which leaves everything unexplained."""
    none = np.zeros(0)
    return Fit(none, none, none.astype(bool), 0 * residual, residual, 1 + 0 * residual, 0.0, misfit, len(residual))


class TestFaulty:
    """Faults that clients have. All are seven standard errors and more beyond what raises an alarm."""

    def test_a_tenth_of_the_clients_knows_of_half_the_cohorts(self) -> None:
        chances = np.full(64, 0.9 / 64)
        chances[:32] += 0.1 / 32
        reports = np.random.default_rng(4).multinomial(20_000, chances)
        assert cohort_balance(reports, ONE_PERIOD).alarm

    def test_one_device_in_two_hundred_is_a_copy_of_one(self) -> None:
        reports = np.random.default_rng(5).multinomial(100_000, np.full(64, 1 / 64))
        reports[17] += 500
        assert cohort_balance(reports, ONE_PERIOD).alarm

    @pytest.mark.parametrize(
        ("it", "other", "share"),
        [
            (STRING, string_metric(64, 2, 16, "{ report = 2.0, lifetime = 4.0 }"), 0.05),
            (string_metric(128, 1, 64), string_metric(128, 1, 64, "{ report = 2.0, lifetime = 4.0 }"), 0.01),
            (CATEGORY, OTHER_CATEGORY, 0.3),
        ],
        ids=["string of two hashes", "string", "category"],
    )
    def test_some_clients_have_another_registry(self, it: Metric, other: Metric, share: float) -> None:
        """Of 100,000."""
        rng, laws = np.random.default_rng(6), ones_laws(it.encoding, noise_of(it))
        ones = rng.multinomial(100_000, (1 - share) * law_of(it) + share * law_of(other))
        assert ones_per_report(ones, *laws).alarm

    def test_their_shares_sum_to_more_than_1(self) -> None:
        rng = np.random.default_rng(7)
        truth: dict[Value, float] = {"a": 0.7, "b": 0.3}
        tally = drawn(CATEGORY, truth, 70_000, rng) + drawn(OTHER_CATEGORY, truth, 30_000, rng)
        assert any("standard errors above 1" in alarm for alarm in decode(CATEGORY, tally).alarms)

    def test_all_clients_have_another_registry(self) -> None:
        """Who has not set a bit sends it less often than the registry says that anybody does."""
        strict, lax = (noise_of(metric("flag", privacy=each)) for each in ("{ report = 0.5, lifetime = 1.0 }", USUAL))
        counts = np.random.default_rng(8).binomial(10_000, lax.lie, size=(1, 1))
        assert impossible_bits(strict, np.array([10_000]), counts).alarm

    def test_bits_vary_half_as_much_again(self) -> None:
        noise = noise_of(metric("flag", privacy=USUAL))
        equations = Equations(np.zeros(500), np.full(500, 100.0), 0.0, noise)
        fit = fit_of(np.zeros(500), 1.5 * 500)
        assert residual_misfit(fit, 500, long_tails(fit, equations)).alarm
