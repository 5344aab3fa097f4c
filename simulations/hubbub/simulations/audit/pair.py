"""The two values of an audit, and how their bits differ in each cohort."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hubbub.shared.encode import NULL, Bit, Bloom, Bucket, OneHot, Rounding
from hubbub.shared.errors import ParameterError, ValueRefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hubbub.shared.metric import Metric

CANDIDATES = 300
"""How many values are tried to find a pair that differs as much as two can, in as many cohorts as possible."""


ENOUGH_COHORTS = 1 / 16
"""The smallest share of the cohorts that an audit is limited to; a device in fewer takes too long to find."""


class Role(IntEnum):
    """Which of the two values sets a bit; `ABSENT` is no bit, but 1 for a device that did not send all its reports."""

    FIRST = 0
    SECOND = 1
    BOTH = 2
    NEITHER = 3
    ABSENT = 4


@dataclass(frozen=True)
class Pair:
    """Two values of a metric. Rows of `first_bits` and `second_bits` are cohorts, columns the bits of a report."""

    first: object
    second: object
    first_bits: NDArray[np.bool_]
    second_bits: NDArray[np.bool_]
    used_cohorts: NDArray[np.bool_]
    """Cohorts whose devices take part: the cohorts in which the two differ most, or all if those are too few.

    A device's cohort does not depend on its value, so leaving out cohorts changes no odds, only the number of trials.
    """

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The bits of each cohort, sorted by role: a bit's place then has the same meaning in (nearly) all cohorts."""
        return np.argsort(self._roles, axis=1, kind="stable")

    @cached_property
    def roles(self) -> NDArray[np.uint8]:
        """The role at each place of that order."""
        return np.take_along_axis(self._roles, self.order, axis=1)

    @cached_property
    def role_counts(self) -> list[tuple[tuple[int, ...], float]]:
        """The numbers of bits of each role in a cohort, and the share of the devices whose cohort has these numbers."""
        counts = np.stack([(self._roles[self.used_cohorts] == role).sum(axis=1) for role in Role], axis=1)
        counts[:, Role.ABSENT] = 1
        different, cohorts = np.unique(counts, axis=0, return_counts=True)
        shares = cohorts / len(counts)
        return [(tuple(numbers), share) for numbers, share in zip(different.tolist(), shares.tolist(), strict=True)]

    @property
    def _roles(self) -> NDArray[np.uint8]:
        first, second = self.first_bits, self.second_bits
        return np.select(
            [first & ~second, second & ~first, first & second],
            [np.uint8(Role.FIRST), np.uint8(Role.SECOND), np.uint8(Role.BOTH)],
            np.uint8(Role.NEITHER),
        )


def choose_pair(metric: Metric, reports: int, values: tuple[object, object] | None = None) -> Pair:
    """Choose two values that differ as much as any two can, in many cohorts, unless the two are given.

    The first sets many bits. The second has the largest sum, over cohorts, of the likelihood ratios between the two.
    """
    candidates = values or _candidates(metric)
    last = metric.encoding.offsets - 1
    if any(_encode(metric, value, 0, 0) != _encode(metric, value, 0, last) for value in candidates):
        raise ParameterError("values: are rounded at random; allowed: low and high")
    encoded = [[_encode(metric, value, cohort, 0) for cohort in range(metric.encoding.cohorts)] for value in candidates]
    first = max(range(len(candidates)), key=lambda each: sum(bits.bit_count() for bits in encoded[each]))
    for_set, for_clear = metric.response.evidence(reports)

    def evidence(other: int) -> NDArray[np.float64]:
        both_ways = [
            ((mine & ~theirs).bit_count(), (theirs & ~mine).bit_count())
            for mine, theirs in zip(encoded[first], encoded[other], strict=True)
        ]
        a, b = np.array(both_ways, float).T
        return np.asarray(np.maximum(a * for_set + b * for_clear, b * for_set + a * for_clear), np.float64)

    claimed = metric.epsilon(reports)
    others = [each for each in range(len(candidates)) if each != first]
    second = max(others, key=lambda other: float(np.exp(evidence(other) - claimed).sum()))
    best = np.isclose(evidence(second), evidence(second).max())
    return Pair(
        candidates[first],
        candidates[second],
        _bits(encoded[first], metric.size),
        _bits(encoded[second], metric.size),
        best if best.mean() >= ENOUGH_COHORTS else np.ones_like(best),
    )


def _encode(metric: Metric, value: object, cohort: int, offset: int) -> int:
    """Encode a value as the client does: an invalid one as the null encoding, if the kind has one."""
    try:
        return metric.encode(value, cohort, offset)
    except ValueRefusedError:
        if not metric.encoding.has_null:
            raise
        return NULL


def _candidates(metric: Metric) -> Sequence[object]:
    match metric.encoding:
        case Bloom():
            return [f"audit-{number}" for number in range(CANDIDATES)]
        case OneHot(categories):
            return categories[:CANDIDATES]
        case Bit():
            return (True, False)
        case Rounding(low, high):
            return (high, low)  # where the device's rounding offset decides nothing
        case Bucket(edges):
            return edges[:-1][:CANDIDATES]
        case encoding:
            raise TypeError(f"no values are known for the encoding {type(encoding).__name__}")


def _bits(encoded: list[int], size: int) -> NDArray[np.bool_]:
    return np.array([[bits >> bit & 1 for bit in range(size)] for bits in encoded], bool)
