"""Debiasing: what a response does to a bit, undone, and how much doubt that leaves.

A set bit is sent as 1 with probability P, a clear one with Q. If a share t of the devices has the bit set, a report has
it with probability Q + (P - Q) t, so that (frequency - Q)/(P - Q) estimates t without bias.

Reports of several periods are not independent: a device sends the same permanent bits again. Averaging T of its reports
makes the instantaneous noise T times smaller and leaves the permanent noise as it was: a floor that days do not remove.
Who sent what is not known, so the worst is assumed, that every device has reported in every period.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hubbub.shared.bernoulli import ONE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.shared.response import Response

    Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """The noise of one bit: p1, q1, p2, q2 as in `hubbub.shared.response`, and the periods that were added up."""

    p1: float
    q1: float
    p2: float
    q2: float
    periods: int = 1

    @classmethod
    def of(cls, response: Response, periods: int = 1) -> Noise:
        """The noise of a response; its probabilities are the very ones that were drawn with."""
        return cls(response.p1 / ONE, response.q1 / ONE, response.p2 / ONE, response.q2 / ONE, periods)

    @classmethod
    def rappor(cls, f: float, p: float, q: float) -> Noise:
        """The noise of RAPPOR's own parameters (Erlingsson et al. 2014)."""
        return cls(1 - f / 2, f / 2, q, p)

    @property
    def truth(self) -> float:
        """P = Pr[sent bit 1 | encoded bit 1]."""
        return self.p1 * self.p2 + (1 - self.p1) * self.q2

    @property
    def lie(self) -> float:
        """Q = Pr[sent bit 1 | encoded bit 0]."""
        return self.q1 * self.p2 + (1 - self.q1) * self.q2

    @property
    def slope(self) -> float:
        """P - Q: by how much a bit's frequency moves when all devices set it."""
        return self.truth - self.lie

    def devices(self, reports: Numbers) -> Numbers:
        """The fewest devices that can have sent so many reports, one in each period."""
        return reports / self.periods

    def debias(self, counts: Numbers, reports: Numbers) -> Numbers:
        """Estimate the share of devices that have a bit set; 0 where there are no reports."""
        shares: Numbers = (counts / np.maximum(reports, 1) - self.lie) / self.slope
        return np.where(reports > 0, shares, 0.0)

    def variance_given(self, bit: int) -> float:
        """Variance of one device's debiased bit, averaged over its periods, when the bit is truly set, or clear."""
        r = self.p1 if bit else self.q1
        permanent = (self.p2 - self.q2) ** 2 * r * (1 - r)
        instantaneous = r * self.p2 * (1 - self.p2) + (1 - r) * self.q2 * (1 - self.q2)
        return (permanent + instantaneous / self.periods) / self.slope**2

    def variance_of_noise(self, share: Numbers) -> Numbers:
        """Variance of one device's debiased bit around its truth, when this share of the devices has it set."""
        return share * self.variance_given(1) + (1 - share) * self.variance_given(0)

    def variance(self, share: Numbers) -> Numbers:
        """The same around the share itself, for devices drawn from a population: for one period r(1 - r)/(P - Q)^2."""
        return share * (1 - share) + self.variance_of_noise(share)
