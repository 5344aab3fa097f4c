"""The memory of simulated devices: old answers, how many encodings they revealed, and when they report the null one."""

import math
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from client.clients import MONDAY
from client.one_metric import watch_encodings
from hubbub.client.ledger import Ledger
from hubbub.client.recording import record
from hubbub.client.state import State
from hubbub.shared import Metric, Secret
from hubbub.shared.permanent import rounding_offset
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

    def test_past_its_limit_a_device_reports_the_null_encoding(self) -> None:
        """Of 3 encodings, one is kept for the null encoding. Its answer is memoised like any other."""
        metric = declared("string", "bits = 64", "hashes = 1", "cohorts = 1", "lifetime_values = 3")
        names = [f"s{number}" for number in range(4)]
        assert len({metric.encode(name, 0, 0) for name in names}) == 4
        crowd = Devices(metric, names, np.zeros(50, int), np.random.default_rng(4))
        null, kept = [], []
        for number in (0, 1, 2, 3, 1, 0, 2):
            crowd.hold(np.arange(50), np.full(50, number))
            reports = crowd.report()
            assert len(reports.devices) == 50
            null.append(reports.null.tolist())
            kept.append(crowd.permanent)
        assert null == [[is_null] * 50 for is_null in (False, False, True, True, False, False, True)]
        assert (kept[2] == kept[3]).all()
        assert (kept[2] == kept[6]).all()
        assert (kept[4] == kept[1]).all()
        assert (crowd.revealed == 3).all()

    def test_a_null_encoding_takes_no_place_of_a_value(self) -> None:
        """None is no valid value: a device that began with it can still reveal both others, and no third."""
        metric = declared("category", 'categories = ["a", "b", "c"]', "lifetime_values = 3")
        crowd = Devices(metric, [None, "a", "b", "c"], np.zeros(50, int), np.random.default_rng(4))
        null = []
        for number in (0, 1, 2, 3):
            crowd.hold(np.arange(50), np.full(50, number))
            null.append(bool(crowd.report().null.all()))
        assert null == [True, False, False, True]

    @pytest.mark.parametrize("first", [True, False])
    def test_past_its_limit_a_flag_repeats_its_answer(self, first: bool) -> None:
        metric = declared("flag", "lifetime_values = 1")
        crowd = Devices(metric, [first, not first], np.zeros(500, int), np.random.default_rng(4))
        crowd.report()
        kept = crowd.permanent
        crowd.hold(np.arange(500), np.ones(500, int))
        reports = crowd.report()
        assert len(reports.devices) == 500
        assert not reports.null.any()
        assert (crowd.permanent == kept).all()
        assert (crowd.revealed == 1).all()

    def test_null_reports_are_counted(self) -> None:
        metric = declared("category", 'categories = ["a", "b", "c"]', "lifetime_values = 2")
        found = simulate_devices(metric, {"a": 500, "b": 500}, periods=3, life=Life(change=0.5), seed=5)
        assert [tally.reports for tally in found.tallies] == [1000] * 3
        assert not found.silent.any()
        assert found.null[0] == 0
        assert found.null[1] > 100

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


@pytest.mark.parametrize(
    "metric",
    [
        declared("string", "bits = 16", "hashes = 1", "cohorts = 2", "lifetime_values = 3"),
        declared("category", 'categories = ["0", "1", "2", "3"]', "lifetime_values = 3"),
        declared("histogram", "edges = [0, 1, 2, 3, 4]", "sent = 2", "lifetime_values = 2"),
        declared("flag", "lifetime_values = 1"),
        declared("mean", "low = 0", "high = 3", "lifetime_values = 1"),
    ],
    ids=lambda metric: metric.kind,
)
def test_devices_reveal_what_the_client_reveals(
    metric: Metric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Day by day, for values that change and are invalid now and then."""
    values: list[object] = [0, 1, 2, 3] if metric.kind in ("mean", "histogram") else ["0", "1", "2", "3", None]
    values = [True, False] if metric.kind == "flag" else values
    revealed, state = watch_encodings(monkeypatch), State(tmp_path / "state.db")
    rng = np.random.default_rng(6)
    for _ in range(5):
        secret, history = Secret(rng.bytes(32)), rng.integers(len(values), size=12)
        device = Devices(metric, values, history[:1], rng)
        device.cohorts[:] = secret.number % metric.encoding.cohorts
        device._offsets[:] = rounding_offset(metric, secret)
        del revealed[:]
        simulated = []
        with state.transaction() as connection:
            for table in ("open", "ledger"):
                connection.execute(f"DELETE FROM {table}")
            for day, number in enumerate(history.tolist()):
                ledger = Ledger(connection, {metric.name: metric}, math.inf)
                record(connection, ledger, metric, values[number], secret, MONDAY.date() + timedelta(days=day))
                device.hold(np.array([0]), np.array([number]))
                device.report()
                simulated.append(int(device._encoded[0, device._place[0], 0]))
        assert simulated == revealed
