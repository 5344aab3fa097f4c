"""Planning: which parameters to choose for a goal, and what they will find.

For a share, n Var is what `Metric.variance` says, and a string, category or bucket is detected when its estimate
exceeds z(1 - alpha/candidates) standard errors of noise (Bonferroni); the smallest share found with a wanted power
follows. The number of devices for a share s is n Var ((z(1 - alpha/candidates) + z(power)) / s)^2.
"""

from __future__ import annotations

import math

from msgspec import Struct

from hubbub.shared.encode import Bit, Bloom, Bucket, Encoding, OneHot, Rounding
from hubbub.shared.errors import ParameterError
from hubbub.shared.kinds import default_cohorts
from hubbub.shared.metric import Kind  # noqa: TC001  (msgspec reads the annotations)
from hubbub.shared.response import Response
from hubbub.shared.wire import MAX_BITS, MAX_COHORTS

ALPHA = 0.05
"""The chance that anything at all is found where there is nothing."""

POWER = 0.8
"""The chance that a share just large enough is found."""

DEFAULT_MIN_COHORT_REPORTS = 10
"""Reports that a cohort needs in one period before a collector publishes its counts, unless the operator sets it."""

MIN_COHORT_DEVICES = 20
"""Devices that a cohort needs so that a collector publishes nearly all cohorts.

The number of devices in a cohort is nearly Poisson. With a mean of 20, a cohort has fewer than 10
with probability 0.5%.
"""

DEFAULT_CANDIDATES = 100
DEFAULT_CATEGORIES = 8
DEFAULT_BUCKETS = 16
MAX_CANDIDATES = 10_000_000

_LIFETIME_VALUES = 8
_STRING_BITS = 128
_FEWEST_COHORTS = 8
_EQUATIONS_PER_CANDIDATE = 4
"""A string filter is made large enough for four bit counts to each candidate: collisions then cost little."""


class Goal(Struct, frozen=True):
    """What somebody wants to learn, from how many devices and at what price."""

    kind: Kind
    devices: int
    report: float
    lifetime: float
    candidates: int = DEFAULT_CANDIDATES
    """How many strings will be asked about."""
    categories: int = DEFAULT_CATEGORIES
    low: float = 0.0
    high: float = 1.0
    buckets: int = DEFAULT_BUCKETS
    share: float | None = None
    """The smallest share that should be found."""
    error: float | None = None
    """The standard error that is wanted: a share, or for a mean the unit of the range."""


class Outlook(Struct, frozen=True):
    """What one choice of parameters will find."""

    parameters: dict[str, float]
    p1: int
    q1: int
    p2: int
    q2: int
    epsilon_report: float
    epsilon_lifetime: float
    variance_per_report: float
    standard_error: float
    detectable_share: float | None
    devices_needed: int | None


class Plan(Struct, frozen=True):
    """The recommended parameters, and RAPPOR's own at the same two epsilons beside them."""

    goal: Goal
    recommended: Outlook
    classic: Outlook
    registry: str
    """The recommended metric as it would stand in a registry."""
    warnings: list[str]
    """Problems with the recommended parameters, one sentence each."""


def plan(goal: Goal) -> Plan:
    """Choose parameters for a goal and work out what they will find."""
    _check(goal)
    encoding = _best_encoding(goal)
    plain = Bloom(encoding.bits, 2, encoding.cohorts) if isinstance(encoding, Bloom) else encoding
    response = Response.least_variance(goal.report, goal.lifetime, encoding.contrasts)
    return Plan(
        goal=goal,
        recommended=_outlook(goal, encoding, response),
        classic=_outlook(goal, plain, Response.classic(goal.report, goal.lifetime, plain.contrasts)),
        registry=_registry(goal, encoding),
        warnings=[*cohort_warnings(encoding, goal.devices), *_filter_warnings(goal, encoding)],
    )


def max_cohorts(devices: int) -> int:
    """Return the most cohorts, a power of two, that leave enough devices in each cohort."""
    return min(1 << (max(devices // MIN_COHORT_DEVICES, 1).bit_length() - 1), MAX_COHORTS)


def cohort_warnings(encoding: Encoding, devices: int) -> list[str]:
    """Return a sentence if so few devices share a cohort that a collector would withhold it.

    Args:
        encoding: The encoding of a metric.
        devices: Devices that report in each period.

    Returns:
        One sentence, or none if the cohorts are large enough.

    """
    cohorts, allowed = encoding.cohorts, max_cohorts(devices)
    if devices >= MIN_COHORT_DEVICES * cohorts:
        return []
    rule = f"a collector withholds cohorts with fewer than {DEFAULT_MIN_COHORT_REPORTS} reports"
    if cohorts == 1:
        return [
            f"{_count(devices, 'device')} in 1 cohort are too few; {rule}: use {MIN_COHORT_DEVICES} devices or more"
        ]
    share = _count(max(round(devices / cohorts), 1), "device")
    advice = f"use at most {_count(allowed, 'cohort')}"
    if isinstance(encoding, Bucket) and allowed * encoding.sent < encoding.buckets:
        # Together the cohorts must observe every bucket.
        advice += f", with sent = {math.ceil(encoding.buckets / allowed)} or more"
    return [f"{cohorts:,} cohorts for {_count(devices, 'device')} leave {share} in a cohort; {rule}: {advice}"]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _check(goal: Goal) -> None:
    bounds = (
        ("devices", goal.devices, 1, 10**12),
        ("candidates", goal.candidates, 1, MAX_CANDIDATES),
        ("categories", goal.categories, 2, MAX_BITS),
        ("buckets", goal.buckets, 2, MAX_BITS),
    )
    for name, value, low, high in bounds:
        if not low <= value <= high:
            raise ParameterError(f"{name} = {value}; allowed: an integer from {low} to {high}")
    if not (math.isfinite(goal.low) and math.isfinite(goal.high) and 0 < goal.high - goal.low < math.inf):
        raise ParameterError(f"range = {goal.low} {goal.high}; allowed: two finite numbers, the first below the second")
    if goal.share is not None and not 0 < goal.share < 1:
        raise ParameterError(f"share = {goal.share}; allowed: a number above 0 and below 1")
    if goal.share is not None and goal.kind == "mean":
        raise ParameterError("share: a mean has none; allowed: error, in the unit of the range")
    if goal.error is not None and not 0 < goal.error < math.inf:
        raise ParameterError(f"error = {goal.error}; allowed: a number above 0")


def _best_encoding(goal: Goal) -> Encoding:
    match goal.kind:
        case "string":
            return _string_filter(goal.candidates, max_cohorts(goal.devices))
        case "category":
            return OneHot(tuple(f"category {number + 1}" for number in range(goal.categories)))
        case "flag":
            return Bit()
        case "mean":
            return Rounding(goal.low, goal.high)
        case "histogram":
            return _histogram(goal)


def _string_filter(candidates: int, allowed: int) -> Bloom:
    """Choose a filter for this many candidates.

    It has one hash, so that all of epsilon goes into one bit. More candidates need more cohorts, up to the allowed
    number, then more bits.
    """
    bits, cohorts = _STRING_BITS, min(_FEWEST_COHORTS, allowed)
    while bits * cohorts < _EQUATIONS_PER_CANDIDATE * candidates and bits < MAX_BITS:
        if cohorts < allowed:
            cohorts *= 2
        else:
            bits *= 2
    return Bloom(bits, 1, cohorts)


def _filter_warnings(goal: Goal, encoding: Encoding) -> list[str]:
    """Return a sentence if the devices allow too few cohorts for the candidates."""
    if not isinstance(encoding, Bloom) or encoding.cohorts == MAX_COHORTS:
        return []
    most = encoding.bits * encoding.cohorts // _EQUATIONS_PER_CANDIDATE
    if goal.candidates <= most:
        return []
    return [
        (
            f"{_count(goal.devices, 'device')} allow only {_count(encoding.cohorts, 'cohort')}, too few to tell "
            f"{goal.candidates:,} candidates apart: use at most {most:,} candidates"
        )
    ]


def _histogram(goal: Goal) -> Bucket:
    """Choose to send all buckets or one, whichever has less noise among those with cohorts that are large enough.

    One bit can spend the whole epsilon, two bits must share it. To send all buckets takes one cohort.
    """
    step = (goal.high - goal.low) / goal.buckets
    edges = (*(goal.low + step * number for number in range(goal.buckets)), goal.high)
    choices = [Bucket(edges, sent, default_cohorts(goal.buckets, sent)) for sent in (goal.buckets, 1)]
    allowed = max_cohorts(goal.devices)
    possible = [
        choice for choice in choices if choice.cohorts * choice.sent >= goal.buckets and choice.cohorts <= allowed
    ]
    return min(possible, key=lambda choice: _noise(goal, choice))


def _noise(goal: Goal, encoding: Encoding) -> float:
    return encoding.variance(Response.least_variance(goal.report, goal.lifetime, encoding.contrasts))


def _outlook(goal: Goal, encoding: Encoding, response: Response) -> Outlook:
    from statistics import NormalDist  # noqa: PLC0415  (slow to import, and needed nowhere else)

    normal = NormalDist()
    tests = {"string": goal.candidates, "category": goal.categories, "histogram": goal.buckets}.get(goal.kind, 1)
    strictness = -normal.inv_cdf(ALPHA / tests) + normal.inv_cdf(POWER)
    variance = encoding.variance(response)
    needed = [variance * (strictness / goal.share) ** 2] if goal.share is not None else []
    needed += [variance / goal.error**2] if goal.error is not None else []
    return Outlook(
        parameters=_parameters(encoding),
        p1=response.p1,
        q1=response.q1,
        p2=response.p2,
        q2=response.q2,
        epsilon_report=response.epsilon(encoding.contrasts, 1),
        epsilon_lifetime=response.epsilon(encoding.contrasts, math.inf),
        variance_per_report=variance,
        standard_error=math.sqrt(variance / goal.devices),
        detectable_share=None if goal.kind == "mean" else strictness * math.sqrt(variance / goal.devices),
        devices_needed=math.ceil(max(needed)) if needed else None,
    )


def _parameters(encoding: Encoding) -> dict[str, float]:
    match encoding:
        case Bloom():
            return {"bits": encoding.bits, "hashes": encoding.hashes, "cohorts": encoding.cohorts}
        case Bucket():
            return {"buckets": encoding.buckets, "sent": encoding.sent, "cohorts": encoding.cohorts}
        case Rounding():
            return {"low": encoding.low, "high": encoding.high}
        case OneHot():
            return {"categories": encoding.size}
        case _:
            return {}


def _registry(goal: Goal, encoding: Encoding) -> str:
    lines = ["[metrics.NAME]", 'description = "..."', f'kind = "{goal.kind}"', 'every = "day"']
    match encoding:
        case Bloom():
            lines += [f"bits = {encoding.bits}", f"hashes = {encoding.hashes}", f"cohorts = {encoding.cohorts}"]
            lines += [f"lifetime_values = {_LIFETIME_VALUES}"]
        case OneHot():
            lines += ["categories = [" + ", ".join(f'"{category}"' for category in encoding.categories) + "]"]
        case Rounding():
            lines += [f"low = {encoding.low!r}", f"high = {encoding.high!r}"]
        case Bucket():
            lines += ["edges = [" + ", ".join(map(repr, encoding.edges)) + "]", f"sent = {encoding.sent}"]
            lines += [f"cohorts = {encoding.cohorts}"]
    lines += [f"privacy = {{ report = {goal.report!r}, lifetime = {goal.lifetime!r} }}"]
    return "\n".join(lines) + "\n"
