"""A truth, which says how many devices hold what: refused if it cannot be, and followed to the last device."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from hubbub.collector.decode.noise import Noise
from hubbub.shared import Metric, ParameterError
from hubbub.simulations import simulate_tally
from hubbub.simulations.devices import Devices, simulate_devices
from simulations.simulated import METRICS, VALUES


def both(metric: Metric, truth: Any) -> Iterator[Callable[[], object]]:
    yield lambda: simulate_tally(metric, truth, 1)
    yield lambda: simulate_devices(metric, truth, seed=1)
    yield lambda: Devices.draw(metric, truth, 10, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("name", "truth", "fault"),
    [
        ("flag", {True: -1, False: 2}, "truth: holds a negative count; allowed: 0 and above"),
        ("flag", {True: 1.5}, "truth: holds a count of type float; allowed: whole numbers"),
        ("flag", {True: True}, "truth: holds a count of type bool; allowed: whole numbers"),
        ("flag", {True: 1 << 62, False: 1 << 62}, "truth: sums up to 9223372036854775808 devices; allowed: at most"),
        ("flag", {}, "truth: holds no device; allowed: at least one"),
        ("flag", {True: 0}, "truth: holds no device; allowed: at least one"),
        ("flag", {"yes": 5}, 'truth: metric "flag": the value is of type str; allowed: True or False'),
        ("category", {"pink": 5}, "is not one of the declared categories; allowed: light, dark, system"),
        ("string", {5: 5}, 'truth: metric "string": the value is of type int; allowed: a string'),
        ("flag", {None: 5}, "truth: None is not possible, because a flag has no null encoding"),
        ("mean", {0.5: 1, None: 0}, "truth: None is not possible, because a mean has no null encoding"),
        ("mean", {math.nan: 5}, "is NaN or infinite; allowed: a finite number"),
    ],
)
def test_a_truth_that_cannot_be_is_refused(name: str, truth: Any, fault: str) -> None:
    for simulate in both(METRICS[name], truth):
        with pytest.raises(ParameterError) as told:
            simulate()
        assert fault in str(told.value)
        assert "pink" not in str(told.value)


def test_a_truth_that_does_not_sum_up_is_refused() -> None:
    assert simulate_tally(METRICS["flag"], {True: 5, False: 6}, 1, devices=11).reports == 11
    with pytest.raises(ParameterError, match="truth: sums up to 11 devices; allowed: the 12 that were asked for"):
        simulate_tally(METRICS["flag"], {True: 5, False: 6}, 1, devices=12)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.encoding.has_null])
def test_devices_without_a_valid_value_send_noise_alone(name: str) -> None:
    """Each count is within 6 standard errors of its mean: false once in 5 * 10^8 times by chance, for each bit."""
    metric = METRICS[name]
    for truth in ({None: 1_000_000}, {VALUES[name][0]: 0, None: 1_000_000}):
        tally = simulate_tally(metric, truth, 2)
        lie = Noise.of(metric.response).lie
        assert tally.reports == 1_000_000
        away = tally.counts - tally.n[:, None] * lie
        assert (np.abs(away) < 6 * np.sqrt(tally.n[:, None] * lie * (1 - lie))).all()


def test_the_largest_population_is_counted_to_the_last_device() -> None:
    """Floats would lose devices from 2^53 on."""
    most = (1 << 63) - 1
    for name, (value, _) in VALUES.items():
        tally = simulate_tally(METRICS[name], {value: most}, 1)
        assert tally.reports == most
        assert (tally.counts >= 0).all()
        assert (tally.counts <= tally.n[:, None]).all()
