"""The metrics of the experiments, declared as an app would declare them: as text, through the registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from hubbub.shared import Registry
from hubbub.shared.bernoulli import ONE
from hubbub.shared.encode import OneHot
from hubbub.shared.metric import Metric
from hubbub.shared.response import Response

if TYPE_CHECKING:
    from hubbub.shared.period import Every

Privacy: TypeAlias = Mapping[str, float]

RAPPOR: Privacy = {"f": 0.5, "p": 0.5, "q": 0.75}
"""The parameters of RAPPOR's own simulations (Erlingsson et al. 2014)."""
RAPPOR_EPSILONS = (1.0743, 4.3944)
"""What they come to with two hashes: of one report, and of a lifetime."""
ONE_STEP = Response(p1=3 * ONE // 4, q1=ONE // 2, p2=ONE, q2=0)
"""p = 1/2, q = 3/4 and f = 0, which the registry has not: a step that is drawn once and sent as it is says the same."""


def string(
    privacy: Privacy,
    *,
    hashes: int = 2,
    cohorts: int = 64,
    every: Every = "day",
    name: str = "it",
    description: str = "simulated",
) -> Metric:
    """Strings in a Bloom filter of 128 bits, as in the paper."""
    keys: dict[str, object] = {"bits": 128, "hashes": hashes, "cohorts": cohorts}
    if every != "once":
        keys["lifetime_values"] = '"unlimited"'
    return _parse("string", privacy, keys, every, name, description)


def category(
    categories: Sequence[str],
    privacy: Privacy,
    *,
    every: Every = "day",
    name: str = "it",
    description: str = "simulated",
) -> Metric:
    """A bit for each category."""
    return _parse("category", privacy, {"categories": list(categories)}, every, name, description)


def mean(
    privacy: Privacy,
    *,
    low: float = 0.0,
    high: float = 1.0,
    every: Every = "day",
    name: str = "it",
    description: str = "simulated",
) -> Metric:
    """The mean of a number, by one bit."""
    return _parse("mean", privacy, {"low": low, "high": high}, every, name, description)


def mean_once(epsilon: float, low: float = 0.0, high: float = 1.0) -> Metric:
    """The mean of a number that is reported once."""
    return mean({"epsilon": epsilon}, low=low, high=high, every="once")


def histogram(buckets: int, sent: int, privacy: Privacy) -> Metric:
    """Buckets of width 1, of which a device tells of some; reported once."""
    keys = {"edges": list(range(buckets + 1)), "sent": sent}
    return _parse("histogram", privacy, keys, "once", "it", "simulated")


def one_step(categories: Sequence[str]) -> Metric:
    """Basic One-time RAPPOR with a single step."""
    return Metric("it", "simulated", "category", "once", OneHot(tuple(categories)), ONE_STEP)


def _parse(
    kind: str, privacy: Privacy, keys: Mapping[str, object], every: Every, name: str, description: str
) -> Metric:
    given = ", ".join(f"{key} = {number!r}" for key, number in privacy.items())
    lines = [
        f"[metrics.{name}]",
        f'description = "{description}"',
        f'kind = "{kind}"',
        f'every = "{every}"',
        *(f"{key} = {value}" for key, value in keys.items()),
        f"privacy = {{ {given} }}",
    ]
    return Registry.parse("\n".join(lines))[name]
