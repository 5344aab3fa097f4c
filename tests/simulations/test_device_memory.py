"""What simulated devices remember: old answers, how many values they have revealed, and when to be silent."""

import numpy as np

from hubbub.simulations.devices import Devices, simulate_devices
from hubbub.simulations.population import Life
from simulations.simulated import METRICS, declared


class TestMemory:
    def test_an_old_value_gets_its_old_permanent_bits(self) -> None:
        metric = declared(
            "string", "bits = 128", "hashes = 2", "cohorts = 4", 'lifetime_values = "unlimited"', every="day"
        )
        crowd = Devices(metric, [f"s{number}" for number in range(6)], np.zeros(200, int), np.random.default_rng(1))
        everyone = np.arange(200)
        kept = []
        for number in (0, 1, 2, 3, 4, 5):
            crowd.hold(everyone, np.full(200, number))
            crowd.report()
            kept.append(crowd.permanent)
        for number in (3, 0, 5):
            crowd.hold(everyone, np.full(200, number))
            crowd.report()
            assert (crowd.permanent == kept[number]).all()
        assert (crowd.revealed == 6).all()
        assert len({row.tobytes() for rows in kept for row in rows}) == 1200

    def test_values_with_the_same_bits_share_them(self) -> None:
        """Two strings that set the same bits in one cohort and not in the other, found by trying."""
        metric = METRICS["string"]
        names = (f"t{number}" for number in range(1000))
        twin = next(
            name
            for name in names
            if metric.encode(name, 0, 0) == metric.encode("a", 0, 0)
            and metric.encode(name, 1, 0) != metric.encode("a", 1, 0)
        )
        crowd = Devices(metric, ["a", twin], np.zeros(300, int), np.random.default_rng(2))
        crowd.report()
        before = crowd.permanent
        crowd.hold(np.arange(300), np.ones(300, int))
        crowd.report()
        assert (crowd.permanent == before)[crowd.cohorts == 0].all()
        assert (crowd.revealed == 1 + crowd.cohorts).all()

    def test_a_number_that_drifts_has_two_answers(self) -> None:
        metric = METRICS["mean"]
        values = [number / 10 for number in range(101)]
        crowd = Devices(metric, values, np.zeros(2000, int), np.random.default_rng(3))
        answers = []
        for number in (*range(0, 101, 5), *range(100, -1, -5)):
            crowd.hold(np.arange(2000), np.full(2000, number))
            crowd.report()
            answers.append(crowd.permanent[:, 0])
        assert (crowd.revealed == 2).all()
        up, down = np.array(answers[:21]), np.array(answers[21:])
        assert (np.abs(np.diff(up.astype(int), axis=0)).sum(axis=0) <= 1).all()
        assert (up == down[::-1]).all()

    def test_past_its_lifetime_values_a_device_is_silent(self) -> None:
        metric = declared("string", "bits = 64", "hashes = 1", "cohorts = 1", "lifetime_values = 2")
        names = [f"s{number}" for number in range(3)]
        assert len({metric.encode(name, 0, 0) for name in names}) == 3
        crowd = Devices(metric, names, np.zeros(50, int), np.random.default_rng(4))
        heard = []
        for number in (0, 1, 2, 2, 1, 0):
            crowd.hold(np.arange(50), np.full(50, number))
            heard.append(len(crowd.report().devices))
        assert heard == [50, 50, 0, 0, 50, 50]
        assert (crowd.revealed == 2).all()

    def test_silent_devices_are_told(self) -> None:
        metric = declared("flag", "lifetime_values = 1")
        found = simulate_devices(metric, {True: 500, False: 500}, periods=3, life=Life(change=0.5), seed=5)
        for period, tally in enumerate(found.tallies):
            assert tally.reports == 1000 - found.silent[period]
        assert found.silent[0] == 0
        assert found.silent[1] > 100

    def test_what_is_reported_once_is_reported_once(self) -> None:
        metric = declared("flag", every="once", privacy="{ epsilon = 1.0 }")
        truth = {True: 3_000, False: 1_000}
        found = simulate_devices(metric, truth, periods=3, life=Life(join=0.5, change=0.5), seed=6)
        present = found.present.sum(axis=1)
        assert [tally.reports for tally in found.tallies] == [present[0], *np.diff(present)]
        assert found.silent.tolist() == [0, present[0], present[1]]
        crowd = Devices.draw(metric, truth, 10, np.random.default_rng(7))
        assert (crowd.report().packed == crowd.permanent).all()

    def test_fresh_noise_is_drawn_for_every_report(self) -> None:
        crowd = Devices.draw(METRICS["string"], {"a": 1}, 500, np.random.default_rng(8))
        one, other = crowd.report(), crowd.report()
        assert (one.devices == np.arange(500)).all()
        assert (one.packed != other.packed).any()
        some = crowd.report(np.array([5, 7]))
        assert some.devices.tolist() == [5, 7]
        assert some.cohorts.tolist() == crowd.cohorts[[5, 7]].tolist()
