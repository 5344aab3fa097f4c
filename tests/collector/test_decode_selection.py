"""Selection among candidates: intervals cover what passed, and false discoveries keep to their rate.

Trials draw new strings each time, and so new bits. How often a test fails by chance is said with each; the seeds are
fixed.
"""

import numpy as np
import pytest

from collector.decoding import CLASSIC, Value, drawn, names, string_metric
from hubbub.collector import decode
from hubbub.collector.decode.control import Control
from hubbub.collector.decode.null import Null
from hubbub.collector.decode.selection import conditional_interval
from hubbub.simulations.trials import DISTRIBUTIONS, SETTINGS, Outcome, distribution, trial


class TestSelection:
    """More candidates than half the equations."""

    @pytest.mark.parametrize("setting", range(len(SETTINGS)), ids=[str(setting) for setting in SETTINGS])
    def test_intervals_cover_and_false_discoveries_keep_to_their_rate(self, setting: int) -> None:
        """The five distributions at two sizes, 2 trials each, a tenth of the true strings missing from the list.

        1,800 true strings: a coverage of 95 % is known to 0.5 %, outside 92.5 to 97.5 % by chance once in 10^6 times.
        """
        rng = np.random.default_rng([3, setting])
        total = Outcome.total(
            trial(SETTINGS[setting], distribution(name), reports, 1500, rng)
            for name in DISTRIBUTIONS
            for reports in (10**5, 10**6)
            for _ in range(2)
        )
        assert 0.925 < total.covered / total.true < 0.975
        assert total.reported > 50
        assert total.reported_covered / total.reported > 0.9
        assert total.false_rate / total.trials < 0.2

    def test_strict_selects_here_and_infers_there(self) -> None:
        rng = np.random.default_rng(4)
        total = Outcome.total(
            trial(SETTINGS[1], distribution("exponential"), 10**6, 3000, rng, strict=True) for _ in range(8)
        )
        assert total.reported > 100
        assert total.reported_covered / total.reported > 0.9

    @pytest.mark.parametrize("candidates", [200, 3000])
    def test_where_nothing_is_there_nothing_is_found_and_an_alarm_tells(self, candidates: int) -> None:
        """Family-wise at most 5 % of 100 trials: 18 or more where 5 are expected have a chance of 10^-6."""
        rng = np.random.default_rng([5, candidates])
        control = Control("family-wise", 0.05)
        total = Outcome.total(
            trial(SETTINGS[1], distribution("zipf1"), 10**5, candidates, rng, control=control, none_exists=True)
            for _ in range(100)
        )
        assert total.alarms == total.trials
        assert total.any_false < 18

    def test_the_default_response_finds_more_than_rappors(self) -> None:
        """Zipf over 1,000 strings, a million reports, the same two epsilons: at least 1.4 times as many."""
        ours = string_metric(128, 1, 64, "{ report = 1.0743, lifetime = 4.3944 }")
        theirs = string_metric(128, 2, 64, CLASSIC)
        assert theirs.epsilon() == pytest.approx(ours.epsilon(), rel=1e-3)
        shares = 1 / np.arange(1, 1001)
        truth: dict[Value, float] = dict(zip(names(1000), (shares / shares.sum()).tolist(), strict=True))
        found = dict.fromkeys(("ours", "theirs"), 0)
        rng = np.random.default_rng(6)
        for _ in range(4):
            for name, it in (("ours", ours), ("theirs", theirs)):
                found[name] += len(decode(it, drawn(it, truth, 10**6, rng), candidates=names(1000)).detected)
        assert found["ours"] >= 1.4 * found["theirs"], found


class TestYardstick:
    def test_the_tail_is_that_of_absent_strings(self) -> None:
        """Scores of 2 million absent strings, over residuals with a heavy string in them that nobody asked about.

        The formula is good to 3 %; on top of that, five standard errors of what is counted. A normal distribution is
        off by a factor of five at 3, and of twenty-five at 4.
        """
        rng = np.random.default_rng(7)
        residual = rng.normal(0, 1, (16, 16))
        residual[np.arange(16), rng.integers(0, 16, 16)] += 8
        null = Null(residual, 1.0)
        picked = (rng.integers(0, 16, (400_000, 16)) for _ in range(5))
        centred = residual - residual.mean(axis=1, keepdims=True)
        scores = np.concatenate([centred[np.arange(16), each].sum(axis=1) for each in picked]) / null.deviation
        for score in (1.0, 2.0, 3.0, 4.0):
            seen = np.count_nonzero(scores > score)
            told = null.tail(np.array([score]))[0] * len(scores)
            assert abs(told - seen) < 0.03 * seen + 5 * seen**0.5, (score, seen, told)

    @pytest.mark.parametrize("truth", [0.0, 1.0, 2.5, 4.0, 8.0])
    def test_an_interval_covers_what_passed_the_bar(self, truth: float) -> None:
        """Normal errors, a bar at 3, 20,000 that passed: 95 % is measured to 0.15 %."""
        rng = np.random.default_rng(8)
        errors = rng.normal(0, 1, 40_000_000 if truth < 1 else 2_000_000)
        passed = (truth + errors)[truth + errors > 3][:20_000]
        null = Null(np.zeros((1, 1)), 1.0)
        low, high = conditional_interval(null, passed, 3.0, 0.95)
        share = ((low <= truth) & (truth <= high)).mean()
        assert abs(share - 0.95) < 5 * 0.0016 * max(1, (20_000 / len(passed)) ** 0.5)

    def test_far_above_the_bar_it_is_the_usual_interval(self) -> None:
        low, high = conditional_interval(Null(np.zeros((1, 1)), 1.0), np.array([12.0]), 3.0, 0.95)
        assert low[0] == pytest.approx(12 - 1.96, abs=1e-3)
        assert high[0] == pytest.approx(12 + 1.96, abs=1e-3)


@pytest.mark.slow
class TestGrid:
    """Everything that google/rappor's regression test varies, a tenth of the true strings missing from each list."""

    @pytest.mark.parametrize("candidates", [100, 1000, 10_000])
    @pytest.mark.parametrize("setting", range(len(SETTINGS)), ids=[str(setting) for setting in SETTINGS])
    def test_coverage_and_false_discoveries(self, setting: int, candidates: int) -> None:
        rng = np.random.default_rng([14, setting, candidates])
        number = 8 if candidates < 10_000 else 4
        total = Outcome.total(
            trial(SETTINGS[setting], distribution(name), reports, candidates, rng)
            for name in DISTRIBUTIONS
            for reports in (10**4, 10**5, 10**6)
            for _ in range(number)
        )
        assert 0.93 < total.covered / total.true < 0.97
        assert total.reported_covered / total.reported > 0.93
        # The rate of a trial varies by at most 0.5 around its mean: five standard errors of that.
        assert total.false_rate / total.trials < 0.1 + 5 * 0.2 / total.trials**0.5

    @pytest.mark.parametrize("control", ["fdr:0.1", "family-wise:0.05"])
    def test_the_complete_null(self, control: str) -> None:
        rng = np.random.default_rng(15)
        wanted = Control.parse(control)
        total = Outcome.total(
            trial(setting, distribution(name), reports, candidates, rng, control=wanted, none_exists=True)
            for setting in SETTINGS
            for name in DISTRIBUTIONS
            for reports in (10**4, 10**6)
            for candidates in (100, 1000)
            for _ in range(5)
        )
        assert total.trials == 500
        assert total.any_false < total.trials * wanted.level + 5 * (total.trials * wanted.level) ** 0.5
        assert total.alarms == total.trials
