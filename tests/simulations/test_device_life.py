"""What becomes of simulated devices: they change, join, leave, lose and repeat reports as often as a life says."""

import itertools
import math
from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pytest

from hubbub.shared import ParameterError
from hubbub.simulations.devices import BLOCK, Devices, Simulated, simulate_devices
from hubbub.simulations.population import Life
from hubbub.simulations.work import Work
from simulations.simulated import METRICS, declared


def same(one: Simulated, other: Simulated) -> bool:
    return one.tallies == other.tallies and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("present", "counted", "silent", "null", "lost", "repeated")
    )


def test_the_same_seed_gives_the_same_whoever_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = {"a": 2 * BLOCK, "b": BLOCK + 100}
    life = Life(change=0.2, join=0.3, leave=0.1, lost=0.1, repeated=0.1)

    def run(seed: int, workers: int) -> Simulated:
        with Work(workers) as work:
            return simulate_devices(METRICS["string"], truth, periods=3, life=life, seed=seed, work=work)

    alone = run(1, 1)
    assert same(alone, run(1, 2))
    assert not same(alone, run(2, 1))
    # Fewer and larger parts draw other numbers, and add up as well.
    monkeypatch.setattr("hubbub.simulations.devices.PARTS", 2)
    assert run(1, 1).present[0].sum() == pytest.approx(alone.present[0].sum(), rel=0.02)


class TestLife:
    IT = METRICS["flag"]
    TRUTH: ClassVar = {True: 6_000, False: 14_000}

    def run(self, periods: int = 4, *, deduplicate: bool = True, seed: int = 1, **life: float) -> Simulated:
        return simulate_devices(
            self.IT, self.TRUTH, periods=periods, life=Life(**life), deduplicate=deduplicate, seed=seed
        )

    def test_without_one_nothing_happens(self) -> None:
        found = self.run()
        assert [found.truth(period) for period in range(4)] == [self.TRUTH] * 4
        assert [found.reported(period) for period in range(4)] == [self.TRUTH] * 4
        assert [tally.reports for tally in found.tallies] == [20_000] * 4
        assert not found.silent.any()
        assert not found.null.any()
        assert not found.lost.any()
        assert not found.repeated.any()

    def test_change_draws_from_the_truth(self) -> None:
        """Within 6 standard deviations: a false alarm has a chance below 1e-8."""
        found = self.run(change=1.0)
        assert found.truth(0) == self.TRUTH
        assert (found.present.sum(axis=1) == 20_000).all()
        for period in range(1, 4):
            assert 0 < abs(found.present[period, 0] - 6_000) <= 6 * math.sqrt(20_000 * 0.3 * 0.7)

    def test_join_spreads_arrivals_over_the_later_periods(self) -> None:
        """Within 6 standard deviations: a false alarm has a chance below 1e-8."""
        present = self.run(join=0.6).present.sum(axis=1)
        assert abs(present[0] - 8_000) <= 6 * math.sqrt(20_000 * 0.4 * 0.6)
        for arrived in np.diff(present):
            assert abs(arrived - 4_000) <= 6 * math.sqrt(20_000 * 0.2 * 0.8)
        assert present[-1] == 20_000

    def test_leave_is_for_good(self) -> None:
        """Within 6 standard deviations: a false alarm has a chance below 1e-8."""
        present = self.run(leave=0.25).present.sum(axis=1)
        assert present[0] == 20_000
        for before, after in itertools.pairwise(present):
            assert abs(after - 0.75 * before) <= 6 * math.sqrt(before * 0.25 * 0.75)

    def test_lost_reports_are_not_counted_and_spend_privacy_all_the_same(self) -> None:
        """Within 6 standard deviations: a false alarm has a chance below 1e-8."""
        found = self.run(lost=0.2)
        for period, tally in enumerate(found.tallies):
            assert tally.reports == found.counted[period].sum() == 20_000 - found.lost[period]
            assert abs(found.lost[period] - 4_000) <= 6 * math.sqrt(20_000 * 0.2 * 0.8)

    def test_repeated_reports_are_counted_once_thanks_to_their_ids(self) -> None:
        """Within 6 standard deviations: a false alarm has a chance below 1e-8."""
        found = self.run(repeated=0.1)
        assert (np.abs(found.repeated - 2_000) <= 6 * math.sqrt(20_000 * 0.1 * 0.9)).all()
        assert [tally.reports for tally in found.tallies] == [20_000] * 4
        twice = self.run(repeated=0.1, deduplicate=False)
        assert [tally.reports for tally in twice.tallies] == (20_000 + twice.repeated).tolist()
        assert (twice.counted.sum(axis=1) == 20_000).all()

    def test_days_are_named_from_the_start(self) -> None:
        week = declared("flag", every="week")
        found = simulate_devices(week, {True: 5}, periods=2, seed=1, start=self.day("2026-11-18"))
        assert [(tally.start, tally.end) for tally in found.tallies] == [
            (self.day("2026-11-16"), self.day("2026-11-16")),
            (self.day("2026-11-23"), self.day("2026-11-23")),
        ]

    @staticmethod
    def day(text: str) -> Any:
        return np.datetime64(text).astype(object)


@pytest.mark.parametrize("probability", ["change", "join", "leave", "lost", "repeated"])
@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, "often", True])
def test_a_life_of_impossible_probabilities_is_refused(probability: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"{probability} = .*; allowed: a probability, from 0 to 1"):
        Life(**{probability: value})


def test_periods_and_devices_that_are_none_are_refused() -> None:
    flag = METRICS["flag"]
    with pytest.raises(ParameterError, match="periods = 0; allowed: 1 and above"):
        simulate_devices(flag, {True: 1}, periods=0, seed=1)
    with pytest.raises(ParameterError, match="with one period only; allowed: 0, or more periods"):
        simulate_devices(flag, {True: 1}, life=Life(join=0.5), seed=1)
    with pytest.raises(ParameterError, match="devices: 0 is none; allowed: 1 and above"):
        Devices.draw(flag, {True: 1}, 0, np.random.default_rng(1))


def test_certain_lives_are_possible() -> None:
    """The ends of the range of every probability: nobody is left, nothing arrives."""
    found = simulate_devices(METRICS["flag"], {True: 50}, periods=3, life=Life(1, 1, 1, 1, 1), seed=1)
    assert found.present.sum(axis=1).tolist() == [0, *found.present.sum(axis=1)[1:]]
    assert found.present.sum() == found.lost.sum() == 50
    assert Counter(tally.reports for tally in found.tallies) == {0: 3}
