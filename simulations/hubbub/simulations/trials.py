"""Trials of the string decoder: populations whose truth is known, decoded, and held against it.

The distributions are those of google/rappor's regression test: a hundred strings, uniform, Gaussian, exponential or
Zipf.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.decode.control import DEFAULT_CONTROL, Control
from hubbub.collector.decode.design import bloom_design
from hubbub.collector.decode.noise import Noise
from hubbub.collector.decode.strings import decode_strings, equations_of
from hubbub.shared.encode import Bloom
from hubbub.simulations.aggregate import held_bits, respond, spread_over_cohorts
from hubbub.simulations.distributions import shares

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hubbub.collector.decode.least_squares import Equations
    from hubbub.collector.decode.noise import Numbers
    from hubbub.collector.decode.strings import Decoded

STRINGS = 100
DISTRIBUTIONS = ("uniform", "gauss", "exponential", "zipf1", "zipf1.5")
MISSING = 10
"""Every tenth true string is not among the candidates, the commonest one included."""


@dataclass(frozen=True)
class Setting:
    """RAPPOR's parameters, with Greek letters spelled as google's files do."""

    k: int
    h: int
    m: int
    noise: Noise

    def __str__(self) -> str:
        return f"k={self.k} h={self.h} m={self.m} P={self.noise.truth:.3f} Q={self.noise.lie:.3f}"


SETTINGS = (
    Setting(16, 2, 64, Noise.rappor(f=0.5, p=0.5, q=0.75)),
    Setting(32, 1, 64, Noise.rappor(f=0.5, p=0.25, q=0.75)),
    Setting(32, 2, 64, Noise.rappor(f=0.0, p=0.5, q=0.75)),
    Setting(8, 2, 128, Noise.rappor(f=0.45, p=0.39, q=0.61)),
    Setting(128, 2, 64, Noise.rappor(f=0.5, p=0.5, q=0.75)),
)


@dataclass
class Outcome:
    """What came of some trials, added up."""

    trials: int = 0
    true: int = 0
    """True strings that were asked about."""
    covered: int = 0
    """Those whose interval holds the truth."""
    reported: int = 0
    """Strings that were reported, false ones among them."""
    reported_covered: int = 0
    false: int = 0
    """Reported strings that nobody has."""
    false_rate: float = 0.0
    """The share of false strings among those reported, added up over the trials."""
    any_false: int = 0
    """Trials with at least one false string."""
    alarms: int = 0
    """Trials in which a misfit or too little explained was told."""

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    @classmethod
    def total(cls, outcomes: Iterable[Outcome]) -> Outcome:
        """Add some up."""
        return sum(outcomes, start=cls())


def distribution(name: str) -> Numbers:
    """The shares of the true strings."""
    return shares("zipf" if name == "zipf1" else name, STRINGS)


def trial(
    setting: Setting,
    shares: Numbers,
    reports: int,
    candidates: int,
    rng: np.random.Generator,
    *,
    control: Control = DEFAULT_CONTROL,
    strict: bool = False,
    none_exists: bool = False,
) -> Outcome:
    """Draw a population, decode its tally, and compare; the strings, and so their bits, are new in every trial."""
    tag = int(rng.integers(1 << 62))
    true = [f"{tag}-{number}" for number in range(len(shares))]
    missing = np.ones(len(shares), bool) if none_exists else np.arange(len(shares)) % MISSING == 0
    listed = [name for name, gone in zip(true, missing, strict=True) if not gone][:candidates]
    truth = dict(zip(listed, shares[~missing].tolist(), strict=False))
    asked = listed + [f"{tag}-absent-{number}" for number in range(candidates - len(listed))]
    decoded = decode_drawn(setting, true, shares, reports, asked, rng, control=control, strict=strict)
    return judge(*decoded, truth)


def decode_drawn(
    setting: Setting,
    true: list[str],
    shares: Numbers,
    reports: int,
    asked: list[str],
    rng: np.random.Generator,
    *,
    control: Control = DEFAULT_CONTROL,
    strict: bool = False,
    confidence: float = 0.95,
) -> tuple[Decoded, Equations]:
    """Draw devices from shares of strings, let them report, and decode."""
    bloom = Bloom(setting.k, setting.h, setting.m)
    members = spread_over_cohorts(rng.multinomial(reports, shares), setting.m, rng)
    numbers = members.sum(axis=0)
    counts = respond(held_bits(bloom_design(bloom, true), members), numbers, setting.noise, rng)
    design = bloom_design(bloom, asked)
    equations = equations_of(design, setting.noise, numbers, counts, has_null=True)
    return decode_strings(design, equations, asked, reports, confidence, control, strict=strict), equations


def judge(decoded: Decoded, equations: Equations, truth: dict[str, float]) -> Outcome:
    """Hold what was decoded against the truth; strings that are not in it have a share of 0."""
    outcome = Outcome(trials=1)
    for row in decoded.rows:
        share = truth.get(row.value, 0.0)
        if share:
            outcome.true += 1
            outcome.covered += row.low <= share <= row.high
        if row.detected:
            outcome.reported += 1
            outcome.reported_covered += (row.found_low or 0.0) <= share <= (row.found_high or 0.0)
            outcome.false += not share
    outcome.false_rate = outcome.false / max(outcome.reported, 1)
    outcome.any_false = int(outcome.false > 0)
    outcome.alarms = int(any(look.alarm for look in decoded.diagnostics(equations)))
    return outcome
