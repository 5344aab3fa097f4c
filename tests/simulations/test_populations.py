"""The three simulators, held against the exact law of the mechanism, written down here from its four probabilities."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from hubbub.client import Client
from hubbub.client.state import State
from hubbub.collector import Tally
from hubbub.shared import Metric, ParameterError, Registry
from hubbub.shared.bernoulli import ONE
from hubbub.shared.encode import Rounding
from hubbub.simulations import simulate_tally
from hubbub.simulations.devices import BLOCK, Devices, Simulated, simulate_devices
from hubbub.simulations.encoders import encoder_of
from hubbub.simulations.errors import LiveError
from hubbub.simulations.live import LiveCollector, simulate_clients, state_file
from hubbub.simulations.packed_bits import packed, respond_to_words
from hubbub.simulations.population import Life
from hubbub.simulations.work import Work

REGISTRY = """
[metrics.string]
description = "a test"
kind = "string"
every = "day"
bits = 8
hashes = 2
cohorts = 2
lifetime_values = "unlimited"
privacy = { f = 0.75, p = 0.125, q = 0.875 }

[metrics.category]
description = "a test"
kind = "category"
every = "day"
categories = ["light", "dark", "system"]
privacy = { f = 0.25, p = 0.125, q = 0.75 }

[metrics.flag]
description = "a test"
kind = "flag"
every = "day"
privacy = { report = 1.0, lifetime = 2.0 }

[metrics.mean]
description = "a test"
kind = "mean"
every = "day"
low = 0
high = 10
combine = "last"
privacy = { epsilon = 2, gamma = 0.1 }

[metrics.histogram]
description = "a test"
kind = "histogram"
every = "day"
edges = [0, 1, 2, 3, 4]
sent = 2
privacy = { report = 2.0, lifetime = 3.0 }
"""
METRICS = Registry.parse(REGISTRY)
VALUES: dict[str, tuple[Any, Any]] = {
    "string": ("a", "b"),
    "category": ("dark", "system"),
    "flag": (True, False),
    "mean": (7.5, 2.5),
    "histogram": (0.5, 2.5),
}
ALARM = 1e-8
"""Of one chi-square test: even where its tail is off by a factor of ten, ten of them stay below one in a million."""

FEWEST = 10
"""Cells in which fewer are expected are taken together."""

Numbers = NDArray[np.float64]


def declared(kind: str, *lines: str, every: str = "day", privacy: str = "{ report = 1.0, lifetime = 2.0 }") -> Metric:
    text = ["[metrics.it]", 'description = "a test"', f'kind = "{kind}"', f'every = "{every}"', f"privacy = {privacy}"]
    return Registry.parse("\n".join([*text, *lines]))["it"]


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


def test_a_live_collector_that_cannot_be_started_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hubbub.simulations.live.collector._COMMAND", ("false",))
    with pytest.raises(LiveError, match="collector: does not start: it says nothing"), LiveCollector(REGISTRY):
        pass
    collector = LiveCollector(REGISTRY)
    with pytest.raises(LiveError, match="has not been started"):
        _ = collector.folder
    with pytest.raises(ParameterError, match="days = 15; allowed: 1 to 14"):
        collector.first_day(15)
    with pytest.raises(ParameterError, match="threads: 0 is none"):
        simulate_clients(collector, [], first_day=collector.first_day(1), threads=0)


def test_a_port_that_was_taken_meanwhile_is_given_up_for_another(tmp_path: Path) -> None:
    tried = []

    class Unlucky(LiveCollector):
        log_line = ""

        def _start(self, port: int) -> bool:
            tried.append(port)
            (self.folder / "collector.log").write_text(self.log_line)
            return len(tried) == 3

    collector = Unlucky(REGISTRY, folder=tmp_path)
    collector.log_line = "Error: --port: 127.0.0.1 port 1 cannot be used: Address already in use; allowed: a free one\n"
    with collector:
        assert len(set(tried)) == 3
    tried.clear()
    collector.log_line = "Error: --registry: is missing\n"
    with pytest.raises(LiveError, match="does not start: Error: --registry: is missing"), collector:
        pass
    assert len(tried) == 1


@pytest.mark.parametrize("name", METRICS)
def test_values_are_encoded_as_the_client_does(name: str) -> None:
    metric = METRICS[name]
    some: dict[str, list[Any]] = {
        "string": [f"site-{number}.example" for number in range(20)],
        "category": ["system", "light", "dark"],
        "flag": [False, True],
        "mean": [-1, 0, 1e-9, 3.3, 5, 9.99, 10, 1e300],
        "histogram": [-5, 0, 0.5, 1, 1.999, 2, 3.5, 4, 99],
    }
    values = some[name]
    rng = np.random.default_rng(6)
    held = rng.integers(len(values), size=500)
    cohorts = rng.integers(metric.encoding.cohorts, size=500)
    offsets = rng.integers(metric.encoding.offsets, size=500)
    encoded = encoder_of(metric, values)(held, cohorts, offsets)
    expected = [
        metric.encode(values[value], int(cohort), int(offset))
        for value, cohort, offset in zip(held, cohorts, offsets, strict=True)
    ]
    assert [int(row[0]) for row in encoded] == expected


@pytest.mark.parametrize("kind", ["string", "category", "histogram"])
def test_wide_encodings_fill_several_words(kind: str) -> None:
    """300 bits: five words, and bits behind the last one stay zero in what is sent."""
    lines = {
        "string": ("bits = 300", "hashes = 3", "cohorts = 4", 'lifetime_values = "unlimited"'),
        "category": (f"categories = {[f'c{number}' for number in range(300)]}",),
        "histogram": (f"edges = {list(range(601))}", "sent = 300"),
    }
    values: dict[str, list[Any]] = {
        "string": [f"s{number}" for number in range(40)],
        "category": [f"c{number}" for number in range(0, 300, 7)],
        "histogram": list(range(0, 600, 13)),
    }
    metric = declared(kind, *lines[kind])
    rng = np.random.default_rng(7)
    held = np.arange(len(values[kind]))
    cohorts = rng.integers(metric.encoding.cohorts, size=len(held))
    encoded = encoder_of(metric, values[kind])(held, cohorts, np.zeros_like(held))
    assert [int.from_bytes(row, "little") for row in packed(encoded, 300)] == [
        metric.encode(value, int(cohort), 0) for value, cohort in zip(values[kind], cohorts, strict=True)
    ]
    sent = Devices(metric, values[kind], held, rng).report().packed
    assert sent.shape == (len(held), metric.width)
    assert not (sent[:, -1] >> 4).any()


@pytest.mark.parametrize(
    ("when_set", "when_clear"), [(ONE, 0), (ONE, 12345), (40000, 0), (40000, 123), (ONE // 2, 1), (50001, ONE - 50001)]
)
def test_words_are_answered_with_the_probabilities_stated(when_set: int, when_clear: int) -> None:
    """A million bits of each kind, within 6 standard deviations: a false alarm has a chance of 4e-9."""
    rng = np.random.default_rng(8)
    number = 1_000_000 // 64
    for bits, numerator in ((~np.uint64(0), when_set), (np.uint64(0), when_clear)):
        answered = respond_to_words(np.full((number, 1), bits), when_set, when_clear, rng)
        chance = numerator / ONE
        ones = int(np.bitwise_count(answered).sum())
        assert abs(ones - number * 64 * chance) <= 6 * math.sqrt(number * 64 * chance * (1 - chance))


def same(one: Simulated, other: Simulated) -> bool:
    return one.tallies == other.tallies and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("present", "counted", "silent", "lost", "repeated")
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


def test_the_largest_population_is_counted_to_the_last_device() -> None:
    """Floats would lose devices from 2^53 on."""
    most = (1 << 63) - 1
    for name, (value, _) in VALUES.items():
        tally = simulate_tally(METRICS[name], {value: most}, 1)
        assert tally.reports == most
        assert (tally.counts >= 0).all()
        assert (tally.counts <= tally.n[:, None]).all()


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
