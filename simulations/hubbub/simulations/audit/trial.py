"""Trials: a coin, a new device, its reports, and counts of them. The client is called and not inspected."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hubbub.simulations.audit.pair import Role
from hubbub.simulations.errors import AuditError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from numpy.typing import NDArray

    from hubbub.shared.metric import Metric
    from hubbub.shared.wire import Report
    from hubbub.simulations.audit.device import Devices, OpenDevices
    from hubbub.simulations.audit.pair import Pair
    from hubbub.simulations.audit.rule import Rule

    Integers = NDArray[np.int64]

CELLS = 1 << 22
"""How many bits are held at once."""


@dataclass(frozen=True)
class Block:
    """Some equal trials."""

    devices: OpenDevices
    metric: Metric
    pair: Pair
    reports: int
    """How many reports the guesser sees."""
    trials: int = 0
    rules: tuple[Rule, ...] = ()

    @property
    def made(self) -> int:
        """How many reports each device makes: two at least, because noise that is not fresh shows in two."""
        return 1 if self.metric.every == "once" else max(self.reports, 2)


@dataclass(frozen=True)
class Counts:
    """Counts of some trials. The first axis is the value of the device: 0 is the first of the pair, 1 the second."""

    ones: Integers
    """Bits by value, role and number of ones in the reports of a device."""
    bits: Integers
    """Bits by value and role."""
    first_ones: Integers
    """Those that are 1 in the first report."""
    differing: Integers
    """Those that differ between the first and the last report."""
    devices: Integers
    """Devices by value of which all reports arrived."""
    bare: Integers
    """Devices by value whose first report is the bare encoding."""
    guesses: Integers
    """Right and wrong guesses (columns) by rule (row)."""

    @classmethod
    def zero(cls, block: Block) -> Self:
        """Return counts of no trials."""
        shapes = [(2, len(Role), block.reports + 1), *[(2, len(Role))] * 3, (2,), (2,), (len(block.rules), 2)]
        return cls(*(np.zeros(shape, np.int64) for shape in shapes))

    def add(self, other: Counts) -> None:
        """Add the counts of other trials."""
        for each in fields(self):
            getattr(self, each.name)[...] += getattr(other, each.name)


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of some trials; rows are devices."""

    value: Integers
    """0 if the device held the first value, 1 if the second."""
    complete: NDArray[np.bool_]
    """Whether all reports of a device arrived; its bits are counted only then."""
    roles: NDArray[np.uint8]
    bits: NDArray[np.uint8]
    """Bits by device, report and place, in the order of roles."""


def blocks(block: Block, trials: int, size: int) -> list[Block]:
    """Divide trials into blocks for several processes."""
    sizes = [size] * (trials // size) + ([trials % size] if trials % size else [])
    return [replace(block, trials=each) for each in sizes]


def run(block: Block, _: np.random.Generator) -> Counts:
    """Do the trials of a block and count."""
    counts = Counts.zero(block)
    with block.devices(block.metric) as devices:
        for outcomes in _outcomes(block, devices):
            _count(counts, block, outcomes)
    return counts


def _count(counts: Counts, block: Block, outcomes: Outcomes) -> None:
    value, complete = outcomes.value, outcomes.complete
    ones = outcomes.bits[:, : block.reports].sum(axis=1, dtype=np.int64)
    absent = (~complete).astype(np.int64)
    for number, rule in enumerate(block.rules):
        scores = np.where(complete, rule.weights[outcomes.roles, ones].sum(axis=1), 0.0)
        scores += rule.weights[Role.ABSENT, absent]
        counts.guesses[number] += rule.count(scores, value == 0)
    counts.ones[:, Role.ABSENT] += _histogram(counts.ones[:, Role.ABSENT].shape, value, absent)
    value, roles, ones, bits = value[complete], outcomes.roles[complete], ones[complete], outcomes.bits[complete]
    first, last = bits[:, 0], bits[:, -1]
    counts.ones[...] += _histogram(counts.ones.shape, value[:, None], roles, ones)
    for total, weights in ((counts.bits, None), (counts.first_ones, first), (counts.differing, first != last)):
        total[...] += _histogram(total.shape, value[:, None], roles, weights=weights)
    encoded = (roles == Role.BOTH) | (roles == np.where(value == 0, Role.FIRST, Role.SECOND)[:, None])
    counts.devices[...] += np.bincount(value, minlength=2)
    counts.bare[...] += np.bincount(value[(first == encoded).all(axis=1)], minlength=2)


def _histogram(shape: tuple[int, ...], *indices: NDArray[Any], weights: NDArray[Any] | None = None) -> Integers:
    """Count how often each cell of an array of this shape is named."""
    cells = np.ravel_multi_index(np.broadcast_arrays(*indices), shape).ravel()
    counts = np.bincount(cells, None if weights is None else weights.ravel(), minlength=math.prod(shape))
    return counts.astype(np.int64).reshape(shape)


def _outcomes(block: Block, devices: Devices) -> Iterator[Outcomes]:
    metric, pair = block.metric, block.pair
    most = max(1, CELLS // (block.made * metric.size))
    for start in range(0, block.trials, most):
        trials = [_trial(block, devices) for _ in range(min(most, block.trials - start))]
        complete = np.array([len(reports) == block.made for _, reports in trials])
        blank = [(0, bytes(metric.width))] * block.made
        cells = [
            [(report.cohort, report.bits) for report in reports] if arrived else blank
            for (_, reports), arrived in zip(trials, complete, strict=True)
        ]
        cohorts = np.array([[cohort for cohort, _ in row] for row in cells], np.intp)
        raw = np.frombuffer(b"".join(bits for row in cells for _, bits in row), np.uint8)
        bits = np.unpackbits(
            raw.reshape(len(trials), block.made, metric.width), axis=2, count=metric.size, bitorder="little"
        )
        # A device stays in its cohort. One that does not is read place by place all the same.
        yield Outcomes(
            np.array([value for value, _ in trials], np.int64),
            complete,
            pair.roles[cohorts[:, 0]],
            np.take_along_axis(bits, pair.order[cohorts], axis=2),
        )


def _trial(block: Block, devices: Devices) -> tuple[int, list[Report]]:
    """Toss a coin and return it with the reports of a new device; repeat for devices of other cohorts.

    Leaving out a cohort, which is public, is a guesser's right to pass. A device without a report has none, and counts.
    """
    while True:
        # The system's randomness, here too: the coins must be as good as the client's.
        coin = os.urandom(1)[0] & 1
        reports = devices.reports((block.pair.first, block.pair.second)[coin], block.made)
        _check(block, reports)
        if not reports or block.pair.used_cohorts[reports[0].cohort]:
            return coin, reports


def _check(block: Block, reports: Sequence[Report]) -> None:
    metric = block.metric
    if len(reports) > block.made:
        raise AuditError(f'metric "{metric.name}": the client sent {len(reports)} reports in {block.made} period(s)')
    for report in reports:
        if not 0 <= report.cohort < metric.encoding.cohorts:
            raise AuditError(
                f'metric "{metric.name}": the client sent a report of cohort {report.cohort}; '
                f"allowed: 0 to {metric.encoding.cohorts - 1}"
            )
        if len(report.bits) != metric.width:
            raise AuditError(
                f'metric "{metric.name}": the client sent a report of {len(report.bits)} bytes; '
                f"allowed: {metric.width} bytes"
            )
