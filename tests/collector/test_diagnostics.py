"""Diagnostics: silent on honest data, and telling in a plain sentence what is wrong with others."""

import numpy as np
import pytest

from collector.decoding import Value, drawn, metric, string_metric, with_null
from hubbub.collector import Estimates, Tally, decode
from hubbub.collector.decode.diagnostics import ALARM, ones_distribution
from hubbub.collector.decode.noise import Noise
from hubbub.shared import Metric

CATEGORY = metric("category", 'categories = ["a", "b", "c"]')
HISTOGRAM = metric("histogram", "edges = [0, 1, 2, 3, 4]", "sent = 2")
STRING = string_metric(32, 1, 16)
SHARES: dict[str, dict[Value, float]] = {
    "category": {"a": 0.7, "b": 0.3, "c": 0.0},
    "histogram": {0.5: 0.5, 1.5: 0.5},
    "string": {"a": 0.6, "b": 0.4},
}


def estimates_of(it: Metric, tally: Tally) -> Estimates:
    return decode(it, tally, candidates=["a", "b", "c"] if it.kind == "string" else None)


def diagnostic(estimates: Estimates, name: str) -> tuple[bool, str]:
    [found] = [each for each in estimates.diagnostics if each.name == name]
    return found.alarm, found.sentence


@pytest.mark.parametrize("null", [0.0, 0.05])
@pytest.mark.parametrize("it", [CATEGORY, HISTOGRAM, STRING], ids=["category", "histogram", "string"])
@pytest.mark.unmeasured
def test_honest_data_raise_no_alarm(it: Metric, null: float) -> None:
    """300 trials with a few looks each, an alarm once in 10^4 looks: five or more have a chance below 10^-6."""
    rng = np.random.default_rng(1)
    shares = with_null(SHARES[it.kind], null)
    alarms = [estimates_of(it, drawn(it, shares, 20_000, rng)).alarms for _ in range(300)]
    assert sum(map(bool, alarms)) < 5, [each for each in alarms if each]
    assert pytest.approx(1e-4) == ALARM


@pytest.mark.parametrize("it", [CATEGORY, HISTOGRAM, STRING], ids=["category", "histogram", "string"])
def test_many_reports_without_a_valid_value_are_noticed(it: Metric) -> None:
    """30 % of 300,000 reports, of which 10 % would be no alarm. Its error is below 2 %: no luck hides it."""
    tally = drawn(it, with_null(SHARES[it.kind], 0.3), 300_000, np.random.default_rng(7))
    estimates = estimates_of(it, tally)
    alarm, sentence = diagnostic(estimates, "no_value")
    assert alarm
    assert "of the reports hold no valid value: the app records values the registry does not declare" in sentence
    assert not diagnostic(estimates, "misfit")[0]


def test_reports_that_claim_everything_are_noticed() -> None:
    """One device in a hundred sends all ones."""
    tally = drawn(CATEGORY, SHARES["category"], 100_000, np.random.default_rng(2))
    forged = Tally(tally.metric, tally.version, tally.n + 1000, tally.counts + 1000)
    alarm, sentence = diagnostic(decode(CATEGORY, forged), "misfit")
    assert alarm
    assert "standard errors above 1" in sentence


def test_cohorts_that_are_not_even_are_noticed() -> None:
    tally = drawn(STRING, SHARES["string"], 100_000, np.random.default_rng(3))
    tally.n[5] += 3000
    tally.counts[5] += 1000
    alarm, sentence = diagnostic(estimates_of(STRING, tally), "cohort_balance")
    assert alarm
    assert sentence.startswith("reports are not spread evenly over the 16 cohorts")


def test_bits_that_no_truth_allows_are_noticed() -> None:
    it = metric("flag", privacy="{ report = 0.5, lifetime = 1.0 }")
    tally = Tally.empty(it)
    tally.n[:], tally.counts[:] = 10_000, 9_900
    alarm, sentence = diagnostic(decode(it, tally), "saturated_bits")
    assert alarm
    assert "1 of 1 bits" in sentence
    assert "forged" in sentence


def test_a_list_that_misses_most_is_told_in_a_plain_sentence() -> None:
    it = string_metric(64, 1, 32)
    tally = drawn(it, {"a": 0.37, "x": 0.33, "y": 0.3}, 300_000, np.random.default_rng(4))
    estimates = decode(it, tally, candidates=["a", "b"])
    assert any(alarm.startswith("the candidate list explains 3") for alarm in estimates.alarms)
    assert any("vary" in alarm and "times as much as noise" in alarm for alarm in estimates.alarms)
    assert diagnostic(estimates, "explained")[0]


class TestOnes:
    @pytest.mark.parametrize(
        "it", [CATEGORY, string_metric(16, 3, 4), metric("histogram", "edges = [0, 1, 2]", "sent = 2")]
    )
    def test_the_distribution_is_that_of_reports(self, it: Metric) -> None:
        """Against 20,000 reports of the client itself, by a chi-square that fails once in 10^6 times."""
        from hubbub.client import privatize
        from hubbub.shared import Secret

        value = {"category": "a", "string": "example.org", "histogram": 0.5}[it.kind]
        ones = np.zeros(it.size + 1, np.int64)
        for _ in range(20_000):
            ones[sum(byte.bit_count() for byte in privatize(it, value, Secret.generate()).bits)] += 1
        estimates = decode(it, Tally.empty(it), candidates=["a"] if it.kind == "string" else None, ones=ones)
        assert estimates.reports == 0  # nothing to say about no reports
        expected = ones_distribution(it.encoding, Noise.of(it.response))
        assert expected is not None
        assert expected.sum() == pytest.approx(1)
        kept = expected * 20_000 > 5
        square = ((ones - expected * 20_000) ** 2 / (expected * 20_000))[kept].sum()
        assert square < kept.sum() + 5 * (2 * kept.sum()) ** 0.5 + 12

    def test_forged_reports_are_noticed_and_honest_ones_are_not(self) -> None:
        it = string_metric(32, 2, 4)
        tally = drawn(it, {"a": 1.0}, 10_000, np.random.default_rng(5))
        expected = ones_distribution(it.encoding, Noise.of(it.response))
        assert expected is not None
        honest = np.random.default_rng(6).multinomial(10_000, expected / expected.sum())
        forged = honest.copy()
        forged[-1] += 100
        looks = [decode(it, tally, candidates=["a"], ones=ones) for ones in (honest, forged)]
        assert [diagnostic(look, "ones_per_report")[0] for look in looks] == [False, True]

    def test_where_it_depends_on_the_value_nothing_is_expected(self) -> None:
        for it in (metric("flag"), HISTOGRAM, metric("mean", "low = 0", "high = 1")):
            assert ones_distribution(it.encoding, Noise.of(it.response)) is None
