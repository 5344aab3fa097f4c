"""Checks next to epsilon: bits arrive as 1, and change between reports, as often as the registry declares.

Every bit of a report is drawn on its own, and so is every device. The counts are therefore binomial with known rates,
and the tests are exact. Each check does several tests, and multiplies the smallest p-value by their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special, stats

from hubbub.shared.bernoulli import ONE
from hubbub.simulations.audit.pair import Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hubbub.shared.response import Response
    from hubbub.simulations.audit.pair import Pair
    from hubbub.simulations.audit.trial import Counts

SETTERS = ((Role.FIRST, Role.BOTH), (Role.SECOND, Role.BOTH))
"""The roles of the bits that the first and the second value set."""


@dataclass(frozen=True)
class Binomial:
    """A count, and the rate that it should have."""

    count: int
    total: int
    rate: float
    bare_rate: float = 0.0
    """The rate if every report was the bare encoding."""

    @property
    def p_value(self) -> float:
        """The probability of a count this far from its rate, on both sides."""
        law = stats.binom(self.total, self.rate)
        return min(1.0, 2 * float(min(law.cdf(self.count), law.sf(self.count - 1))))

    def noticed_share(self, p_value: float) -> float:
        """The share of bare reports at which the count gives this p-value in half of all audits; infinite if none."""
        law, total = stats.binom(self.total, self.rate), self.total
        if self.bare_rate > self.rate:
            critical = int(law.isf(p_value / 2)) + 1
            median = special.betaincinv(critical, total - critical + 1, 0.5) if critical <= total else np.inf
        else:
            critical = int(law.ppf(p_value / 2)) - 1
            median = special.betaincinv(critical + 1, total - critical, 0.5) if critical >= 0 else -np.inf
        return float((median - self.rate) / (self.bare_rate - self.rate))


def bit_rates(response: Response, pair: Pair, counts: Counts) -> list[Binomial]:
    """Count ones by value and role, and reports that are the bare encoding, in the first report of each device."""
    sent = response.truth_is_sent, response.noise_is_sent
    cells = [
        Binomial(int(counts.first_ones[value, role]), total, sent[not is_set], float(is_set))
        for value, role, is_set, total in _bits(counts)
    ]
    bare = sum(share * _bare_rate(sent, roles, value) for roles, share in pair.role_counts for value in range(2)) / 2
    return [*cells, Binomial(int(counts.bare.sum()), int(counts.devices.sum()), bare, 1.0)]


def fresh_noise(response: Response, counts: Counts) -> list[Binomial]:
    """Count bits that differ between two reports of a device, by value and role."""
    p1, q1, p2, q2 = (number / ONE for number in (response.p1, response.q1, response.p2, response.q2))
    differs = [r * 2 * p2 * (1 - p2) + (1 - r) * 2 * q2 * (1 - q2) for r in (p1, q1)]
    return [
        Binomial(int(counts.differing[value, role]), total, differs[not is_set])
        for value, role, is_set, total in _bits(counts)
    ]


def p_value(cells: Sequence[Binomial]) -> float:
    """Combine the p-values of several counts; the result is at most this small with at most this probability."""
    return min([1.0, *(len(cells) * cell.p_value for cell in cells)])


def rarest_fault(cells: Sequence[Binomial], p_value: float) -> int:
    """Return the N of the rarest fault that is noticed in half of all audits: one bare report in N; 0 if none."""
    share = min(cell.noticed_share(p_value / len(cells)) for cell in cells)
    return int(1 / share) if share <= 1 else 0


def _bits(counts: Counts) -> Iterator[tuple[int, Role, bool, int]]:
    """List value, role, whether the value sets such a bit, and how many there are, where there are any."""
    for value, setters in enumerate(SETTERS):
        for role in Role:
            total = int(counts.bits[value, role])
            if total:
                yield value, role, role in setters, total


def _bare_rate(sent: tuple[float, float], roles: tuple[int, ...], value: int) -> float:
    """The probability that a report is the bare encoding by chance."""
    is_set = sum(roles[role] for role in SETTERS[value])
    is_clear = sum(roles[role] for role in Role if role is not Role.ABSENT) - is_set
    return float(sent[0] ** is_set * (1 - sent[1]) ** is_clear)
