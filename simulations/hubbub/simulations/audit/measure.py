"""An audit of one metric: trials, and what they prove."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from hubbub.client import Client
from hubbub.collector.decode.interval import check_confidence
from hubbub.shared.errors import ParameterError
from hubbub.simulations.audit.bit_model import declared_model, fitted_model
from hubbub.simulations.audit.bound import epsilon_bound
from hubbub.simulations.audit.checks import bit_rates, fresh_noise, p_value, rarest_fault
from hubbub.simulations.audit.device import ClientDevices, FunctionDevices
from hubbub.simulations.audit.pair import choose_pair
from hubbub.simulations.audit.rule import best_rule
from hubbub.simulations.audit.trial import Block, Counts, blocks, run
from hubbub.simulations.errors import AuditError
from hubbub.simulations.work import Work

if TYPE_CHECKING:
    from hubbub.shared.metric import Metric
    from hubbub.simulations.audit.device import ClientFactory, OpenDevices, Privatize
    from hubbub.simulations.audit.rule import Rule

DEFAULT_TRIALS = 30_000
"""Trials with real clients: about a minute for each metric on two cores."""
DEFAULT_DIRECT_TRIALS = 1_000_000
FEWEST_TRIALS = 1_000
DEFAULT_CONFIDENCE = 0.99
DEFAULT_REPORTS = 1
FITTED_SHARE = 10
"""One in this many trials serves to fit the second rule, and no guess is made."""

TESTS = 4
"""The probability of error is divided among two rules of guessing and two checks."""

CLIENT_BLOCK, FUNCTION_BLOCK = 500, 20_000
"""How many reports a process makes before the progress bar moves."""


@dataclass(frozen=True)
class Audit:
    """The claim of a metric, and the measurements."""

    name: str
    kind: str
    claimed: float
    """Epsilon of this number of reports of one value, by the registry."""
    measured: float
    """A lower bound of epsilon."""
    trials: int
    reports: int
    right: int
    """Right guesses behind the measured bound."""
    wrong: int
    confidence: float
    """The probability that a client as declared is not refuted."""
    bit_rates_p: float
    """The p-value of the check that bits arrive as 1 as often as declared."""
    fresh_noise_p: float | None
    """The p-value of the check that two reports differ as often as declared; None if there is one report only."""
    rarest_fault: int
    """One bare report in this many is noticed by half of all such audits; 0 if none is."""

    @property
    def reason(self) -> str | None:
        """Why the client is refuted, or None."""
        alpha = (1 - self.confidence) / TESTS
        if self.measured > self.claimed:
            return f"epsilon is at least {self.measured:.4f}, and the registry claims {self.claimed:.4f}"
        if self.bit_rates_p < alpha:
            return f"bits do not arrive as 1 as often as the registry declares (p = {self.bit_rates_p:.1e})"
        if self.fresh_noise_p is not None and self.fresh_noise_p < alpha:
            return f"two reports of one value do not differ as fresh noise makes them (p = {self.fresh_noise_p:.1e})"
        return None

    @property
    def refuted(self) -> bool:
        """Whether the client is not what the registry declares."""
        return self.reason is not None

    @property
    def share(self) -> float | None:
        """The measured bound as a share of the claim."""
        return self.measured / self.claimed if self.claimed > 0 else None


def audit(
    metric: Metric,
    *,
    trials: int | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    reports: int = DEFAULT_REPORTS,
    workers: int = 1,
    client: Privatize | None = None,
    device: ClientFactory = Client,
    values: tuple[object, object] | None = None,
) -> Audit:
    """Measure epsilon of some reports of one value, and check the noise, from outside.

    Args:
        metric: The metric to audit.
        trials: How many devices report; by default 30,000, or 1,000,000 with `client`.
        confidence: The probability that a client as declared is not refuted.
        reports: How many reports of a device the guesser sees; always 1 for a metric of `every = "once"`.
        workers: How many processes work. With several, `client` and `device` must be importable by other processes.
        client: A function like `hubbub.client.privatize` to audit instead of a client.
        device: A class or function that makes the client to audit, with the parameters of `hubbub.client.Client`.
        values: The two values; by default two that differ in as many bits as two values can.

    Returns:
        The claim and the measurements.

    Raises:
        AuditError: The client does not send, or its reports do not have the declared form.
        ParameterError: A parameter is out of range.

    Example:
        >>> audit(registry["crashed"], trials=2_000).refuted
        False

    """
    with Work(workers) as work:
        return measure(
            metric,
            work,
            trials=trials,
            confidence=confidence,
            reports=reports,
            client=client,
            device=device,
            values=values,
        )


def measure(
    metric: Metric,
    work: Work,
    *,
    trials: int | None,
    confidence: float,
    reports: int,
    client: Privatize | None = None,
    device: ClientFactory = Client,
    values: tuple[object, object] | None = None,
) -> Audit:
    """Do the trials of one audit in the processes of `work`; the other parameters are those of `audit`."""
    check_confidence(confidence)
    if trials is None:
        trials = DEFAULT_TRIALS if client is None else DEFAULT_DIRECT_TRIALS
    if trials < FEWEST_TRIALS:
        raise ParameterError(f"trials = {trials}; allowed: {FEWEST_TRIALS} and above")
    if reports < 1:
        raise ParameterError(f"reports = {reports}; allowed: 1 and above")
    reports = 1 if metric.every == "once" else reports
    devices: OpenDevices = (
        partial(ClientDevices, device=device) if client is None else partial(FunctionDevices, client=client)
    )
    block = Block(devices, metric, choose_pair(metric, reports, values), reports)
    size = max(1, (CLIENT_BLOCK if client is None else FUNCTION_BLOCK) // block.made)
    alpha = (1 - confidence) / TESTS

    fitting = trials // FITTED_SHARE
    total = _run(block, work, fitting, size, f"{metric.name}, fitting")
    rules = _rules(block, total, trials - fitting, 1 - alpha)
    counts = _run(replace(block, rules=rules), work, trials - fitting, size, f"{metric.name}, guessing")
    guesses = [(epsilon_bound(right, wrong, 1 - alpha), right, wrong) for right, wrong in counts.guesses.tolist()]
    measured, right, wrong = max(guesses, key=lambda guess: guess[0])
    # The checks need no rule, so that the trials for the fit count as well.
    counts.add(replace(total, guesses=counts.guesses * 0))
    if not counts.devices.any():
        raise AuditError(f'metric "{metric.name}": no device sent all its reports, so that there is nothing to audit')
    rates = bit_rates(metric.response, block.pair, counts)
    return Audit(
        name=metric.name,
        kind=metric.kind,
        claimed=metric.epsilon(reports),
        measured=measured,
        trials=trials,
        reports=reports,
        right=right,
        wrong=wrong,
        confidence=confidence,
        bit_rates_p=p_value(rates),
        fresh_noise_p=p_value(fresh_noise(metric.response, counts)) if block.made > 1 else None,
        rarest_fault=rarest_fault(rates, alpha),
    )


def _run(block: Block, work: Work, trials: int, size: int, label: str) -> Counts:
    total = Counts.zero(block)
    # Trials take their randomness from the system, and ignore the seed.
    for counts in work.map(run, blocks(block, trials, size), seed=0, label=label):
        total.add(counts)
    return total


def _rules(block: Block, fitted: Counts, trials: int, confidence: float) -> tuple[Rule, ...]:
    """Fix the rules of guessing before a guess is counted.

    The declared likelihood ratio is best for a client as declared. A broken client may tell its values apart by
    something else, which the first trials show.
    """
    models = declared_model(block.metric.response, block.reports), fitted_model(fitted.ones)
    return tuple(best_rule(model, block.pair, trials, confidence) for model in models)
