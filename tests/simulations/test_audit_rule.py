"""The calculations of the audit: an exact bound, the best rule, and a pair that differs as much as two values can."""

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from scipy import stats

from hubbub.client import privatize
from hubbub.shared import Metric, Registry
from hubbub.simulations.audit import audit
from hubbub.simulations.audit.bit_model import declared_model, sums
from hubbub.simulations.audit.bound import epsilon_bound
from hubbub.simulations.audit.pair import choose_pair
from hubbub.simulations.audit.rule import best_rule
from shared.brute_force import outputs
from shared.registries import one_metric
from simulations.audited import DEMO, METRICS, SURE, every_metric


class TestBound:
    @pytest.mark.parametrize(("right", "wrong"), [(1, 0), (30, 0), (30, 7), (900, 300), (450_000, 165_000)])
    def test_it_is_clopper_and_pearsons(self, right: int, wrong: int) -> None:
        """At the bound itself, so many right guesses or more have exactly the chance that is allowed for."""
        bound = epsilon_bound(right, wrong, 0.99)
        if bound == 0.0:
            assert stats.binom.sf(right - 1, right + wrong, 0.5) > 0.01
        else:
            share = 1 / (1 + math.exp(-bound))
            assert stats.binom.sf(right - 1, right + wrong, share) == pytest.approx(0.01, rel=1e-6)

    def test_it_is_too_high_as_seldom_as_it_says(self) -> None:
        """Every outcome of some numbers of guesses, with its exact probability."""
        for guesses, epsilon in itertools.product((1, 7, 60, 500), (0.0, 0.5, 2.0)):
            right = np.arange(guesses + 1)
            bounds = [epsilon_bound(int(each), guesses - int(each), 0.95) for each in right]
            chance = stats.binom.pmf(right, guesses, 1 / (1 + math.exp(-epsilon)))
            assert chance[np.array(bounds) > epsilon].sum() <= 0.05

    def test_no_right_guess_proves_nothing(self) -> None:
        assert epsilon_bound(0, 0, 0.99) == epsilon_bound(0, 5, 0.99) == epsilon_bound(5, 5, 0.99) == 0.0


def enumerated(metric: Metric, reports: int) -> dict[float, tuple[float, float]]:
    """All outcomes of a small metric without cohorts, by their log-likelihood ratio; chances under either value."""
    pair = choose_pair(metric, reports)
    table = outputs(metric.response, metric.size, reports)
    first, second = (table[metric.encode(value, 0, 0)] for value in (pair.first, pair.second))
    found: dict[float, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for a, b in zip(first, second, strict=True):
        if a + b > 0:
            both = found[round(math.log(a / b), 6) + 0.0]
            both[0] += a
            both[1] += b
    return {ratio: (a, b) for ratio, (a, b) in sorted(found.items())}


SMALL = {
    "string": one_metric(kind='"string"', every='"day"', bits="4", hashes="2", cohorts="1", lifetime_values="8",
                         privacy="{ f = 0.5, p = 0.5, q = 0.75 }"),
    "category": one_metric(kind='"category"', every='"day"', categories='["a", "b", "c"]',
                           privacy="{ report = 1.0, lifetime = 2.0 }"),
    "flag": METRICS["rappor flag"],
    "mean": METRICS["mean"],
    "one-time flag": one_metric(kind='"flag"', every='"once"', privacy="{ epsilon = 1.0 }"),
}  # fmt: skip


class TestRule:
    @pytest.mark.parametrize("reports", [1, 2, 3])
    @pytest.mark.parametrize("name", SMALL)
    def test_probabilities_are_exact(self, name: str, reports: int) -> None:
        metric = SMALL[name]
        total = sums(declared_model(metric.response, reports), choose_pair(metric, reports).role_counts)
        expected = enumerated(metric, reports)
        assert total.values == pytest.approx(list(expected), abs=2e-6)
        assert total.first == pytest.approx([a for a, _ in expected.values()])
        assert total.second == pytest.approx([b for _, b in expected.values()])

    @every_metric
    @pytest.mark.parametrize("reports", [1, 2, 5, 40])
    def test_the_surest_outcome_is_the_claim(self, metric: Metric, reports: int) -> None:
        """The pair differs as much as any two values can, so that no claim is out of the audit's sight."""
        total = sums(declared_model(metric.response, reports), choose_pair(metric, reports).role_counts)
        assert np.abs(total.values).max() == pytest.approx(metric.epsilon(reports), rel=1e-3)
        assert total.first.sum() == pytest.approx(1)
        assert total.second.sum() == pytest.approx(1)

    def test_threshold_of_the_highest_expected_bound(self) -> None:
        """Tried one by one. After 12 reports the surest outcome is too rare, and anything above 0 too weak."""
        metric, reports, trials = METRICS["category"], 12, 10_000
        pair = choose_pair(metric, reports)
        model = declared_model(metric.response, reports)
        rule = best_rule(model, pair, trials, 0.99)
        total = sums(model, pair.role_counts)

        def bound(threshold: float) -> float:
            up, down = total.values >= threshold, total.values <= -threshold
            right = (total.first[up].sum() + total.second[down].sum()) * trials / 2
            wrong = (total.second[up].sum() + total.first[down].sum()) * trials / 2
            share = float(stats.beta.ppf(0.01, right, wrong + 1))
            return math.log(share / (1 - share))

        bounds = {each: bound(each - 1e-6) for each in np.unique(np.round(np.abs(total.values), 6)) if each > 0}
        best = max(bounds, key=lambda each: bounds[each])
        assert rule.expected == pytest.approx(bounds[best])
        assert rule.threshold == pytest.approx(best, abs=1e-5)
        assert min(bounds) < best < max(bounds)

    def test_many_sums_are_lumped_with_little_loss(self) -> None:
        metric = one_metric(kind='"string"', every='"day"', bits="64", hashes="6", cohorts="1", lifetime_values="8",
                            privacy="{ report = 4.0, lifetime = 8.0 }")  # fmt: skip
        total = sums(declared_model(metric.response, 30), choose_pair(metric, 30).role_counts)
        assert len(total.values) <= 4096
        assert (total.first.sum(), total.second.sum()) == pytest.approx((1, 1))
        divergence = (total.values * total.first).sum()  # the mean of a sum is the sum of the means
        one = declared_model(metric.response, 30)
        assert divergence == pytest.approx(6 * (one.weights * one.first)[:2].sum(), rel=1e-3)

    def test_strings_that_cannot_be_told_apart(self) -> None:
        """The claim is above 0 because a string differs from the null encoding. Fails once in 10^7 runs."""
        metric = one_metric(kind='"string"', every='"day"', bits="1", hashes="1", cohorts="1", lifetime_values="1",
                            privacy="{ f = 0.5, p = 0.5, q = 0.75 }")  # fmt: skip
        found = audit(metric, trials=1000, confidence=SURE, client=privatize)
        assert (found.measured, found.share) == (0.0, 0.0)
        assert not found.refuted


class TestPair:
    def test_strings_of_the_demo_differ_in_every_cohort(self) -> None:
        pair = choose_pair(Registry.load(DEMO)["homepage"], 1)
        assert pair.role_counts == [((1, 1, 0, 126, 1), 1.0)]

    def test_devices_come_from_the_cohorts_that_see_the_pair(self) -> None:
        metric = METRICS["histogram"]
        pair = choose_pair(metric, 1)
        assert not pair.used_cohorts.all()
        for cohort in np.flatnonzero(pair.used_cohorts).tolist():
            assert metric.encode(pair.first, cohort, 0) != metric.encode(pair.second, cohort, 0) != 0
