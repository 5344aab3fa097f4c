"""An audit of one metric: trials, and what they prove."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hubbub.client import privatize
from hubbub.collector.decode.interval import check_confidence
from hubbub.shared.errors import ParameterError
from hubbub.simulations.audit.bound import epsilon_bound
from hubbub.simulations.audit.law import declared_law, learnt_law
from hubbub.simulations.audit.pair import choose_pair
from hubbub.simulations.audit.rule import best_rule
from hubbub.simulations.audit.trial import Block, blocks, guess, look
from hubbub.simulations.work import Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.shared.metric import Metric
    from hubbub.simulations.audit.rule import Rule
    from hubbub.simulations.audit.trial import Privatize

DEFAULT_TRIALS = 1_000_000
FEWEST_TRIALS = 1_000
DEFAULT_CONFIDENCE = 0.99
DEFAULT_REPORTS = 1
FIRST_LOOK = 10
"""One in so many trials only looks for what tells the two values apart, and is not counted."""


@dataclass(frozen=True)
class Audit:
    """What a metric claims, and what was measured of it."""

    name: str
    kind: str
    claimed: float
    """Epsilon of so many reports of one value, by the registry."""
    measured: float
    """Epsilon is at least this, at the confidence that was asked for."""
    trials: int
    reports: int
    right: int
    """Right guesses that the measured bound comes from."""
    wrong: int

    @property
    def exceeded(self) -> bool:
        """Whether the claim is refuted."""
        return self.measured > self.claimed

    @property
    def share(self) -> float | None:
        """How much of the claim is accounted for; the rest is chance, or caution."""
        return self.measured / self.claimed if self.claimed > 0 else None


def audit(
    metric: Metric,
    *,
    trials: int = DEFAULT_TRIALS,
    confidence: float = DEFAULT_CONFIDENCE,
    reports: int = DEFAULT_REPORTS,
    workers: int = 1,
    client: Privatize = privatize,
) -> Audit:
    """Measure epsilon of some reports of one value, by a client that is called and not looked into.

    The bound exceeds the true epsilon with a chance of at most 1 - confidence. With several workers `client` has to be
    a function of a module, which other processes can import.
    """
    with Work(workers) as work:
        return measure(metric, work, trials=trials, confidence=confidence, reports=reports, client=client)


def measure(
    metric: Metric, work: Work, *, trials: int, confidence: float, reports: int, client: Privatize = privatize
) -> Audit:
    """Do the trials of one audit wherever `work` says."""
    check_confidence(confidence)
    if trials < FEWEST_TRIALS:
        raise ParameterError(f"trials = {trials}; allowed: {FEWEST_TRIALS} and above")
    if reports < 1:
        raise ParameterError(f"reports = {reports}; allowed: 1 and above")
    first = trials // FIRST_LOOK
    # Two rules are tried, and the chance of error is divided between them.
    confidence = (1 + confidence) / 2
    block = Block(client, metric, choose_pair(metric, reports), reports)
    # Trials take their randomness from the system, and no notice of the seed.
    seen = work.map(look, blocks(block, first), seed=0, label=f"{metric.name}, looking")
    block = replace(block, rules=_rules(block, np.sum(seen, axis=0), trials - first, confidence))
    counts = work.map(guess, blocks(block, trials - first), seed=0, label=f"{metric.name}, guessing")
    guesses = [
        (epsilon_bound(right, wrong, confidence), right, wrong) for right, wrong in np.sum(counts, axis=0).tolist()
    ]
    measured, right, wrong = max(guesses, key=lambda each: each[0])
    return Audit(metric.name, metric.kind, metric.epsilon(reports), measured, trials, reports, right, wrong)


def _rules(block: Block, seen: NDArray[np.int64], trials: int, confidence: float) -> tuple[Rule, ...]:
    """Decide how to guess, before any guess is counted.

    A client that is as declared is guessed best by the declared likelihood ratio. One that is not may tell its values
    apart by something else, and that is learnt from the first trials.
    """
    laws = declared_law(block.metric.response, block.reports), learnt_law(seen)
    return tuple(best_rule(law, block.pair, trials, confidence) for law in laws)
