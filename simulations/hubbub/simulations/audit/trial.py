"""Trials: a coin, a new device, its reports; and what is counted of them. The client is called and not looked into."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hubbub.shared.secret import Secret
from hubbub.simulations.audit.pair import Role
from hubbub.simulations.errors import AuditError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from hubbub.shared.metric import Metric
    from hubbub.shared.wire import Report
    from hubbub.simulations.audit.pair import Pair
    from hubbub.simulations.audit.rule import Rule

BLOCK = 20_000
"""How many reports a process makes before it tells."""

CELLS = 1 << 22
"""How many bits are held at once."""


class Privatize(Protocol):
    """A client: what turns a value into a report."""

    def __call__(self, metric: Metric, value: object, secret: Secret, /) -> Report:
        """Make a report of a value."""
        ...


@dataclass(frozen=True)
class Block:
    """Some trials, all alike."""

    client: Privatize
    metric: Metric
    pair: Pair
    reports: int
    trials: int = 0
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class Outcomes:
    """What came of some trials; rows are devices."""

    is_first: NDArray[np.bool_]
    roles: NDArray[np.uint8]
    ones: NDArray[np.int64]
    """How often each bit was 1, in the order of roles."""


def blocks(block: Block, trials: int) -> list[Block]:
    """Divide trials into blocks for several processes."""
    size = max(1, BLOCK // block.reports)
    sizes = [size] * (trials // size) + ([trials % size] if trials % size else [])
    return [replace(block, trials=each) for each in sizes]


def look(block: Block, _: np.random.Generator) -> NDArray[np.int64]:
    """Count bits by value (0 is the first), role and number of ones."""
    shape = (2, len(Role), block.reports + 1)
    seen = np.zeros(shape, np.int64)
    for outcomes in _outcomes(block):
        value = np.where(outcomes.is_first, 0, 1)[:, None]
        cells = np.ravel_multi_index(np.broadcast_arrays(value, outcomes.roles, outcomes.ones), shape)
        seen += np.bincount(cells.ravel(), minlength=seen.size).reshape(shape)
    return seen


def guess(block: Block, _: np.random.Generator) -> NDArray[np.int64]:
    """Count right and wrong guesses (columns) by each rule (row)."""
    counts = np.zeros((len(block.rules), 2), np.int64)
    for outcomes in _outcomes(block):
        for number, rule in enumerate(block.rules):
            scores = rule.weights[outcomes.roles, outcomes.ones].sum(axis=1)
            counts[number] += rule.count(scores, outcomes.is_first)
    return counts


def _outcomes(block: Block) -> Iterator[Outcomes]:
    metric, pair = block.metric, block.pair
    most = max(1, CELLS // (block.reports * metric.size))
    for start in range(0, block.trials, most):
        devices = min(most, block.trials - start)
        # The system's randomness, here too: the coins have to be as good as the client's.
        is_first = np.frombuffer(os.urandom(devices), np.uint8) & 1 == 1
        cohorts, bits = _reports(block, is_first)
        ones = np.take_along_axis(bits, pair.order[cohorts], axis=2).sum(axis=1, dtype=np.int64)
        # A device stays in its cohort; one that does not is read place by place all the same.
        yield Outcomes(is_first, pair.roles[cohorts[:, 0]], ones)


def _reports(block: Block, is_first: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.uint8]]:
    """Let a new device report for each coin: cohorts by device and report, bits by device, report and bit."""
    client, metric = block.client, block.metric
    cohorts: list[int] = []
    packed: list[bytes] = []
    asked = block.pair.asked.tolist()
    for coin in is_first.tolist():
        secret = Secret.generate()
        while not asked[secret.number % len(asked)]:
            secret = Secret.generate()
        value = block.pair.first if coin else block.pair.second
        for _ in range(block.reports):
            report = client(metric, value, secret)
            cohorts.append(report.cohort)
            packed.append(report.bits)
    _check(metric, cohorts, packed)
    shape = (len(is_first), block.reports)
    raw = np.frombuffer(b"".join(packed), np.uint8).reshape(*shape, metric.width)
    return np.array(cohorts, np.intp).reshape(shape), np.unpackbits(raw, axis=2, count=metric.size, bitorder="little")


def _check(metric: Metric, cohorts: list[int], packed: list[bytes]) -> None:
    if not 0 <= min(cohorts) <= max(cohorts) < metric.encoding.cohorts:
        raise AuditError(
            f'metric "{metric.name}": the client made a report of a cohort that there is not; '
            f"allowed: 0 to {metric.encoding.cohorts - 1}"
        )
    if set(map(len, packed)) != {metric.width}:
        raise AuditError(
            f'metric "{metric.name}": the client made a report of the wrong length; allowed: {metric.width} bytes'
        )
