"""Devices one by one, many at a time: what the shipped client does, on arrays.

Each device keeps the permanent bits of every encoding it has revealed, so a device that comes back to an old value, or
to another one with the same bits, gives its old answer, and a number that drifts keeps its offset and its two answers.
The same memory enforces `Metric.encodings`: a device that may not reveal another encoding reports the null encoding,
or repeats an answer where the kind has none. `tests/simulations/test_populations.py` compares the reports with those of
the real client.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.collector.count import count_bits
from hubbub.collector.tally import Tally
from hubbub.shared.encode import NULL
from hubbub.shared.errors import ParameterError
from hubbub.shared.period import period_of
from hubbub.simulations.encoders import encoder_of
from hubbub.simulations.packed_bits import instantaneous_words, packed, permanent_words, words_for
from hubbub.simulations.population import Life, Stays, Truth
from hubbub.simulations.work import Work

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from numpy.typing import NDArray

    from hubbub.shared.metric import Metric
    from hubbub.simulations.encoders import Indices
    from hubbub.simulations.packed_bits import Words

BLOCK = 16_384
"""Devices that are simulated together: what is in hand stays in the processor's cache, and memory does not grow."""

PARTS = 64
"""Into how many shares of blocks the work is cut at most; what comes back of each is as large as its tallies."""

NOWHERE = -1


@dataclass(frozen=True, eq=False)
class Reports:
    """What some devices send in a period."""

    devices: Indices
    """Who sends: a number from 0 for each device of the block. The collector never learns this."""
    cohorts: Indices
    packed: NDArray[np.uint8]
    """One row of bytes for each report, as on the wire."""
    null: NDArray[np.bool_]
    """Whether each report is one of the null encoding."""


class Devices:
    """A block of devices, with all that each of them remembers of one metric."""

    def __init__(self, metric: Metric, values: Sequence[Any], held: Indices, rng: np.random.Generator) -> None:
        """`held` tells for each device which of the values it holds, by its number."""
        number, words = len(held), words_for(metric.size)
        self.metric = metric
        self.held = held.copy()
        """The number of the value that each device holds."""
        self.cohorts: Indices = rng.integers(metric.encoding.cohorts, size=number)
        self._offsets: Indices = rng.integers(metric.encoding.offsets, size=number)
        self._encode = encoder_of(metric, values)
        self._rng = rng
        # Device by device the encodings it has revealed, the answers to them, how many there are, and where among them
        # that of the value it holds is.
        self._encoded: Words = np.zeros((number, 1, words), np.uint64)
        self._answers: Words = np.zeros((number, 1, words), np.uint64)
        self._revealed = np.zeros(number, np.int64)
        self._place = np.full(number, NOWHERE)
        self._reported = np.zeros(number, bool)

    @classmethod
    def draw(cls, metric: Metric, truth: Mapping[Any, int], number: int, rng: np.random.Generator) -> Devices:
        """Draw some devices of a population; `truth` says how common each value is."""
        if number < 1:
            raise ParameterError(f"devices: {number} is none; allowed: 1 and above")
        whole = Truth.of(metric, truth)
        return cls(metric, whole.values, whole.draw(number, rng), rng)

    def __len__(self) -> int:
        return len(self.held)

    def hold(self, who: Indices, held: Indices) -> None:
        """Let some devices hold other values from now on."""
        changed = who[self.held[who] != held]
        self.held[who] = held
        self._place[changed] = NOWHERE

    def report(self, who: Indices | None = None) -> Reports:
        """Make the reports of some devices, or of all, for one period.

        A device that has reported a metric of `every = "once"` is silent from then on. All others send a report.
        """
        asked = np.arange(len(self)) if who is None else who
        if self.metric.every == "once":
            asked = asked[~self._reported[asked]]
        self._look_up(asked[self._place[asked] == NOWHERE])
        self._reported[asked] = True
        kept = self._answers[asked, self._place[asked]]
        sent = instantaneous_words(kept, self.metric.response, self._rng)
        null = (self._encoded[asked, self._place[asked]] == NULL).all(axis=1) & self.metric.encoding.has_null
        return Reports(asked, self.cohorts[asked], packed(sent, self.metric.size), null)

    @property
    def permanent(self) -> NDArray[np.uint8]:
        """The answer that each device keeps for the value it holds, packed; zeros where it has never reported that."""
        kept = self._answers[np.arange(len(self)), np.maximum(self._place, 0)]
        kept[self._place == NOWHERE] = 0
        return packed(kept, self.metric.size)

    @property
    def revealed(self) -> Indices:
        """How many different encodings each device has revealed."""
        return self._revealed.copy()

    def _look_up(self, who: Indices) -> None:
        """Find the answers of some devices among those they have given, or draw them if they may."""
        encoded = self._encode(self.held[who], self.cohorts[who], self._offsets[who])
        limit, has_null = self.metric.encodings, self.metric.encoding.has_null
        if limit is not None and self.metric.every != "once":
            known = self._places_of(who, encoded) != NOWHERE
            # The null encoding has its own place, so that a device can always report it.
            null_known = self._places_of(who, np.full_like(encoded, NULL)) != NOWHERE
            full = self._revealed[who] - null_known >= limit - 1 if has_null else self._revealed[who] >= limit
            # A single bit that may not be revealed leaves the other bit, which was.
            encoded = np.where((~known & full)[:, None], NULL if has_null else encoded ^ np.uint64(1), encoded)
        places = self._places_of(who, encoded)
        self._place[who] = places
        new = places == NOWHERE
        self._answer(who[new], encoded[new])

    def _places_of(self, who: Indices, encoded: Words) -> Indices:
        """Find where among the encodings that each device has revealed one encoding is."""
        same = (self._encoded[who] == encoded[:, None]).all(axis=2)
        same &= np.arange(same.shape[1]) < self._revealed[who][:, None]
        return np.where(same.any(axis=1), same.argmax(axis=1), NOWHERE)

    def _answer(self, who: Indices, encoded: Words) -> None:
        """Draw the answers to encodings that these devices reveal for the first time."""
        places = self._revealed[who]
        while places.max(initial=0) >= self._answers.shape[1]:
            self._encoded = np.concatenate([self._encoded, np.zeros_like(self._encoded)], axis=1)
            self._answers = np.concatenate([self._answers, np.zeros_like(self._answers)], axis=1)
        self._encoded[who, places] = encoded
        self._answers[who, places] = permanent_words(encoded, self.metric.response, self._rng)
        self._place[who] = places
        self._revealed[who] += 1


@dataclass(frozen=True, eq=False)
class Simulated:
    """What the collector counted in each period, and what was true."""

    values: tuple[Any, ...]
    tallies: list[Tally]
    present: NDArray[np.int64]
    """Devices that are there, by period (row) and value (column)."""
    counted: NDArray[np.int64]
    """Devices whose report arrived, by period and value."""
    silent: NDArray[np.int64]
    """Devices of each period that send nothing because they have reported a metric of `every = "once"` already."""
    null: NDArray[np.int64]
    """Reports of the null encoding in each period, sent instead of a value or because a cohort does not observe it."""
    lost: NDArray[np.int64]
    """Reports of each period that never arrived."""
    repeated: NDArray[np.int64]
    """Reports of each period that arrived twice."""

    def truth(self, period: int) -> dict[Any, int]:
        """How many devices held each value in a period, whether they were heard or not."""
        return dict(zip(self.values, self.present[period].tolist(), strict=True))

    def reported(self, period: int) -> dict[Any, int]:
        """How many devices that held each value were heard in a period."""
        return dict(zip(self.values, self.counted[period].tolist(), strict=True))


def simulate_devices(
    metric: Metric,
    truth: Mapping[Any, int],
    *,
    seed: int | Sequence[int],
    periods: int = 1,
    life: Life | None = None,
    deduplicate: bool = True,
    start: date | None = None,
    work: Work | None = None,
) -> Simulated:
    """Let devices live and report for some periods; `truth` says how many hold each value at first.

    Without `deduplicate` the collector counts a repeated report twice, which shows what the ids of batches are for.
    `start` is a day of the first period, for tallies that name their days. The same seed gives the same result whoever
    does the work.
    """
    life = life or Life()
    if periods < 1:
        raise ParameterError(f"periods = {periods}; allowed: 1 and above")
    if life.join and periods == 1:
        raise ParameterError(f"join = {life.join}, with one period only; allowed: 0, or more periods to arrive in")
    whole = Truth.of(metric, truth)
    parts = [
        _Part(metric, whole, periods, life, deduplicate, share) for share in np.array_split(*_blocks(whole.devices))
    ]
    counts = (work or Work()).map(_simulate, parts, seed=seed, label=f"{whole.devices:,} devices")
    return _added(metric, whole, periods, start, counts)


@dataclass(frozen=True, eq=False)
class _Part:
    """A share of the work: some blocks, by their first devices."""

    metric: Metric
    truth: Truth
    periods: int
    life: Life
    deduplicate: bool
    blocks: Indices


@dataclass(frozen=True, eq=False)
class _Counts:
    """What came of some devices; all arrays have a row for each period."""

    n: NDArray[np.int64]
    ones: NDArray[np.int64]
    present: NDArray[np.int64]
    counted: NDArray[np.int64]
    silent: NDArray[np.int64]
    null: NDArray[np.int64]
    lost: NDArray[np.int64]
    repeated: NDArray[np.int64]

    @classmethod
    def zero(cls, metric: Metric, values: int, periods: int) -> _Counts:
        cohorts = metric.encoding.cohorts
        shapes = [(cohorts,), (cohorts, metric.size), (values,), (values,), (), (), (), ()]
        return cls(*(np.zeros((periods, *shape), np.int64) for shape in shapes))


def _blocks(devices: int) -> tuple[Indices, int]:
    first = np.arange(0, devices, BLOCK)
    return first, min(PARTS, len(first))


def _simulate(part: _Part, rng: np.random.Generator) -> _Counts:
    counts = _Counts.zero(part.metric, len(part.truth.values), part.periods)
    for first in part.blocks.tolist():
        held = part.truth.held_by(first, min(first + BLOCK, part.truth.devices))
        devices = Devices(part.metric, part.truth.values, held, rng)
        stays = Stays.draw(len(devices), part.life, part.periods, rng)
        for period in range(part.periods):
            if part.life.change:
                staying = stays.staying(period)
                changing = staying[rng.random(len(staying)) < part.life.change]
                devices.hold(changing, part.truth.draw(len(changing), rng))
            _count(part, counts, period, devices, stays.present(period), rng)
    return counts


def _count(
    part: _Part, counts: _Counts, period: int, devices: Devices, present: Indices, rng: np.random.Generator
) -> None:
    """Let those that are there report, and count what arrives."""
    reports = devices.report(present)
    number = len(reports.devices)
    arrived = rng.random(number) >= part.life.lost if part.life.lost else np.ones(number, bool)
    twice = arrived & (rng.random(number) < part.life.repeated) if part.life.repeated else np.zeros(number, bool)
    copies = arrived.astype(np.int64) if part.deduplicate else arrived.astype(np.int64) + twice
    cohorts = np.repeat(reports.cohorts, copies)
    ones = count_bits(np.repeat(reports.packed, copies, axis=0), part.metric.size, cohorts)
    counts.ones[period, : len(ones)] += ones
    counts.n[period] += np.bincount(cohorts, minlength=part.metric.encoding.cohorts)
    counts.present[period] += part.truth.count(devices.held[present])
    counts.counted[period] += part.truth.count(devices.held[reports.devices[arrived]])
    counts.silent[period] += len(present) - number
    counts.null[period] += reports.null.sum()
    counts.lost[period] += number - arrived.sum()
    counts.repeated[period] += twice.sum()


def _added(metric: Metric, truth: Truth, periods: int, start: date | None, parts: Sequence[_Counts]) -> Simulated:
    tallies = []
    length = timedelta(weeks=1) if metric.every == "week" else timedelta(days=1)
    for period in range(periods):
        day = None if start is None else period_of(metric.every, start) + period * length
        tally = Tally.empty(metric, day, day)
        for part in parts:
            tally.n[:] += part.n[period]
            tally.counts[:] += part.ones[period]
        tallies.append(tally)

    def total(name: str) -> NDArray[np.int64]:
        added: NDArray[np.int64] = sum(getattr(part, name) for part in parts)
        return added

    names = ("present", "counted", "silent", "null", "lost", "repeated")
    return Simulated(truth.values, tallies, *(total(name) for name in names))
