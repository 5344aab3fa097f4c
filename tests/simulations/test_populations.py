"""The three simulators, held against the exact law of the mechanism, written down here from its four probabilities."""

import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from hubbub.client import Client
from hubbub.client.state import State
from hubbub.collector import Tally
from hubbub.shared import Metric
from hubbub.shared.bernoulli import ONE
from hubbub.shared.encode import Rounding
from hubbub.simulations import simulate_tally
from hubbub.simulations.devices import Devices, simulate_devices
from hubbub.simulations.live import LiveCollector, simulate_clients, state_file
from simulations.simulated import METRICS, REGISTRY, VALUES

ALARM = 1e-8
"""Of one chi-square test: even where its tail is off by a factor of ten, ten of them stay below one in a million."""

FEWEST = 10
"""Cells in which fewer are expected are taken together."""

Numbers = NDArray[np.float64]


def encodings(metric: Metric, values: Sequence[object]) -> Iterator[tuple[float, int, tuple[int, ...]]]:
    """Each way a device can encode these values, one a period, with its probability and its cohort."""
    cohorts, offsets = metric.encoding.cohorts, metric.encoding.offsets
    # A number is rounded up from some offset on: between two such offsets nothing changes.
    places = {metric.encoding.place(value) for value in values} if isinstance(metric.encoding, Rounding) else set()
    edges = sorted({0, offsets} | {offsets - place for place in places})
    for cohort in range(cohorts):
        for low, high in itertools.pairwise(edges):
            yield (
                (high - low) / offsets / cohorts,
                cohort,
                tuple(metric.encode(value, cohort, low) for value in values),
            )


def law_of_bit(metric: Metric, encoded: tuple[int, ...], bit: int) -> Numbers:
    """The probability of each row of a bit over the periods: the same encoding is answered by the same kept bit."""
    response = metric.response
    law = np.zeros((2,) * len(encoded))
    for sent in itertools.product((0, 1), repeat=len(encoded)):
        chance = 1.0
        for one in set(encoded):
            kept_set = (response.p1 if one >> bit & 1 else response.q1) / ONE
            chances = [kept_set, 1 - kept_set]
            for period, each in enumerate(encoded):
                if each == one:
                    for place, noise in enumerate((response.p2, response.q2)):
                        chances[place] *= noise / ONE if sent[period] else 1 - noise / ONE
            chance *= sum(chances)
        law[sent] = chance
    return law.ravel()


def law(metric: Metric, values: Sequence[object], bits: Sequence[int]) -> Numbers:
    """The probability of each cohort (row) and pattern of some bits over the periods (column)."""
    total = np.zeros((metric.encoding.cohorts, 2 ** (len(bits) * len(values))))
    for chance, cohort, encoded in encodings(metric, values):
        pattern: Numbers = np.ones(1)
        for bit in bits:
            pattern = np.kron(pattern, law_of_bit(metric, encoded, bit)).astype(np.float64)
        total[cohort] += chance * pattern
    return total


def patterns(unpacked: NDArray[np.int64], bits: Sequence[int]) -> NDArray[np.int64]:
    """Number the pattern of each device as `law` does, from its bits by device, period and place."""
    code = np.zeros(len(unpacked), np.int64)
    for bit in bits:
        for period in range(unpacked.shape[1]):
            code = 2 * code + unpacked[:, period, bit]
    return code


def chi_square(expected: Numbers, observed: NDArray[np.int64]) -> float:
    """The chance of being as far from what is expected; rare cells are taken together."""
    rare = expected < FEWEST
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        observed = np.append(observed[~rare], observed[rare].sum())
        if expected[-1] < FEWEST:
            expected = np.append(expected[:-2], expected[-2:].sum())
            observed = np.append(observed[:-2], observed[-2:].sum())
    assert len(expected) > 1
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def fit(
    metric: Metric,
    values: Sequence[object],
    bits: Sequence[int],
    cohorts: NDArray[np.int64],
    unpacked: NDArray[np.int64],
) -> float:
    """How well devices that hold these values, one a period, follow the law."""
    probabilities = law(metric, values, bits)
    cells = cohorts * probabilities.shape[1] + patterns(unpacked, bits)
    observed = np.bincount(cells, minlength=probabilities.size)
    return chi_square(probabilities.ravel() * len(cohorts), observed)


def surprise_of_agreement(
    metric: Metric, values: Sequence[object], cohorts: NDArray[np.int64], unpacked: NDArray[np.int64]
) -> float:
    """By how many standard deviations the bits of the first and the last period agree more often than they should."""
    expected = variance = 0.0
    for bit in range(metric.size):
        chances = law(metric, [values[0], values[-1]], [bit]) * metric.encoding.cohorts
        agree = (chances[:, 0b00] + chances[:, 0b11])[cohorts]
        expected += agree.sum()
        variance += (agree * (1 - agree)).sum()
    return float(((unpacked[:, 0] == unpacked[:, -1]).sum() - expected) / math.sqrt(variance))


def unpack(rows: NDArray[np.uint8], size: int) -> NDArray[np.int64]:
    return np.unpackbits(rows, axis=1, count=size, bitorder="little").astype(np.int64)


def lived(metric: Metric, numbers: Sequence[int], devices: int, seed: int) -> tuple[NDArray[np.int64], Any]:
    """Devices of the vectorised kind that hold these values one period after the other: cohorts, and their bits."""
    values = VALUES[metric.kind]
    crowd = Devices(metric, values, np.full(devices, numbers[0]), np.random.default_rng(seed))
    reports = []
    for number in numbers:
        crowd.hold(np.arange(devices), np.full(devices, number))
        reports.append(unpack(crowd.report().packed, metric.size))
    return crowd.cohorts, np.stack(reports, axis=1)


@pytest.mark.parametrize("name", METRICS)
def test_a_device_follows_the_joint_law_of_all_bits_of_a_report(name: str) -> None:
    """False alarms: two tests at 1e-8."""
    metric = METRICS[name]
    for number, value in enumerate(VALUES[name]):
        cohorts, unpacked = lived(metric, [number], 100_000, seed=number)
        assert fit(metric, [value], range(metric.size), cohorts, unpacked) > ALARM


@pytest.mark.parametrize("name", METRICS)
def test_a_device_remembers_its_answers_over_periods(name: str) -> None:
    """A value, another one, and the first again: its answer is that of before. False alarms: nine tests at 1e-8."""
    metric = METRICS[name]
    values = [VALUES[name][number] for number in (0, 1, 0)]
    cohorts, unpacked = lived(metric, [0, 1, 0], 60_000, seed=3)
    for bit in range(metric.size):
        assert fit(metric, values, [bit], cohorts, unpacked) > ALARM
    if metric.size > 1:
        assert fit(metric, values[:2], [0, metric.size - 1], cohorts, unpacked[:, :2]) > ALARM


def moments(metric: Metric, truth: dict[Any, int]) -> tuple[Numbers, Numbers]:
    """Mean and covariance of a tally, cohort by cohort its number of reports and then its counts."""
    width = 1 + metric.size
    size = metric.encoding.cohorts * width
    mean, covariance = np.zeros(size), np.zeros((size, size))
    for value, count in truth.items():
        first, second = np.zeros(size), np.zeros((size, size))
        for cohort, chances in enumerate(law(metric, [value], range(metric.size))):
            spelled = np.array(list(itertools.product((0, 1), repeat=metric.size)))
            rows = np.column_stack([np.ones(len(spelled)), spelled])
            block = slice(cohort * width, (cohort + 1) * width)
            first[block] = chances @ rows
            second[block, block] = rows.T * chances @ rows
        mean += count * first
        covariance += count * (second - np.outer(first, first))
    return mean, covariance


def flat(tally: Tally) -> Numbers:
    return np.column_stack([tally.n, tally.counts]).ravel().astype(float)


@pytest.mark.parametrize("name", METRICS)
def test_a_tally_has_the_exact_moments(name: str) -> None:
    """Means, variances and covariances of every pair of counts, over replicates.

    At most 189 numbers are within 7 standard errors of what they should be: a false alarm has a chance below 1e-9.
    """
    metric = METRICS[name]
    truth = dict(zip(VALUES[name], (1500, 900), strict=True))
    rng = np.random.default_rng(4)
    drawn = np.array([flat(simulate_tally(metric, truth, rng)) for _ in range(1000)])
    mean, covariance = moments(metric, truth)
    variances = np.diag(covariance)
    # A number that cannot vary has no error at all: the devices of the only cohort.
    mean_error = np.sqrt(variances / len(drawn))
    assert (np.abs(drawn.mean(axis=0) - mean) <= 7 * mean_error + 1e-6).all()
    found = (drawn - mean).T @ (drawn - mean) / len(drawn)
    error = np.sqrt((np.outer(variances, variances) + covariance**2) / len(drawn))
    assert (np.abs(found - covariance) <= 7 * error + 1e-6).all()


@pytest.mark.parametrize("name", METRICS)
def test_tallies_of_devices_have_the_same_moments(name: str) -> None:
    """Each count of each period within 7 standard deviations: a false alarm has a chance below 1e-9."""
    metric = METRICS[name]
    truth = dict(zip(VALUES[name], (15_000, 9_000), strict=True))
    mean, covariance = moments(metric, truth)
    for tally in simulate_devices(metric, truth, periods=3, seed=5).tallies:
        assert (np.abs(flat(tally) - mean) <= 7 * np.sqrt(np.diag(covariance)) + 1e-6).all()


LIVE_DEVICES = 120
LIVE_DAYS = (0, 1, 0)
"""The numbers of the values that a device holds, day by day."""


def test_real_clients_and_a_real_collector_follow_the_same_law(tmp_path: Path) -> None:
    """The collector has counted just what the clients held, and that follows the law.

    False alarms: 18 chi-square tests at 1e-8, of the bits over three days and of pairs of bits, and five times 6
    standard deviations, 2e-9 each.
    """
    held: dict[tuple[str, int, int], str] = {}
    lives = [[{name: VALUES[name][number] for name in METRICS} for number in LIVE_DAYS]] * LIVE_DEVICES

    def look(device: int, day: int, client: Client) -> None:
        held.update({(pending.metric, device, day): pending.bits or "" for pending in client.preview()})

    with LiveCollector(REGISTRY, folder=tmp_path) as collector:
        first_day = collector.first_day(len(LIVE_DAYS))
        sent = simulate_clients(collector, lives, first_day=first_day, look=look, threads=16)
        assert sent == len(held) == LIVE_DEVICES * len(LIVE_DAYS) * len(METRICS)
        tallies = {name: collector.tallies(name, first_day, len(LIVE_DAYS)) for name in METRICS}
        secrets = [State(state_file(collector, device)) for device in range(LIVE_DEVICES)]
        numbers = np.array([each.secret().number for each in secrets])
        for each in secrets:
            each.close()
    for name, metric in METRICS.items():
        cohorts = numbers % metric.encoding.cohorts
        unpacked = np.array(
            [
                [[int(bit) for bit in held[name, device, day]] for day in range(len(LIVE_DAYS))]
                for device in range(LIVE_DEVICES)
            ]
        )
        for day, tally in enumerate(tallies[name]):
            for cohort in range(metric.encoding.cohorts):
                assert tally.n[cohort] == (cohorts == cohort).sum()
                assert tally.counts[cohort].tolist() == unpacked[cohorts == cohort, day].sum(axis=0).tolist()
        values = [VALUES[name][number] for number in LIVE_DAYS]
        assert abs(surprise_of_agreement(metric, values, cohorts, unpacked)) <= 6
        for bit in range(metric.size):
            assert fit(metric, values, [bit], cohorts, unpacked) > ALARM
        if metric.size > 1:
            assert fit(metric, values[:1], [0, metric.size - 1], cohorts, unpacked[:, :1]) > ALARM
