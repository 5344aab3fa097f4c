"""What a metric promises, in exact numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from hubbub.shared.bernoulli import ONE

if TYPE_CHECKING:
    from hubbub.shared.metric import Metric

DEFAULT_REPORTS = 30
"""How many reports of one value `epsilon_after` speaks of, unless told."""


class Promise(Struct, frozen=True):
    """The privacy and the noise of one metric: the fields of `hubbub privacy --json`."""

    name: str
    kind: str
    version: int
    every: str
    bits: int
    hashes: int
    cohorts: int
    p1: float
    p1_exact: str
    q1: float
    q1_exact: str
    p2: float
    p2_exact: str
    q2: float
    q2_exact: str
    epsilon_report: float
    reports: int
    epsilon_after: float
    epsilon_lifetime: float
    lifetime_values: int | None
    variance_per_report: float


def promise(metric: Metric, reports: int = DEFAULT_REPORTS) -> Promise:
    """Work out what a metric promises, and how much one report tells."""
    response, encoding = metric.response, metric.encoding
    return Promise(
        name=metric.name,
        kind=metric.kind,
        version=metric.version,
        every=metric.every,
        bits=metric.size,
        hashes=encoding.hashes,
        cohorts=encoding.cohorts,
        p1=response.p1 / ONE,
        p1_exact=f"{response.p1}/{ONE}",
        q1=response.q1 / ONE,
        q1_exact=f"{response.q1}/{ONE}",
        p2=response.p2 / ONE,
        p2_exact=f"{response.p2}/{ONE}",
        q2=response.q2 / ONE,
        q2_exact=f"{response.q2}/{ONE}",
        epsilon_report=metric.epsilon(1),
        reports=reports,
        epsilon_after=metric.epsilon(reports),
        epsilon_lifetime=metric.epsilon(math.inf),
        lifetime_values=metric.lifetime_values,
        variance_per_report=metric.variance,
    )
