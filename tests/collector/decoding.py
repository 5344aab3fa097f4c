"""Metrics, populations and yardsticks for the tests of decoding."""

import numpy as np
from numpy.typing import NDArray

from hubbub.collector import Tally
from hubbub.collector.decode.noise import Noise
from hubbub.shared import Metric, Registry
from hubbub.simulations import simulate_tally

Numbers = NDArray[np.float64]
Value = str | bool | float | None
"""A value; None is a device without a valid value."""

CLASSIC = "{ f = 0.5, p = 0.5, q = 0.75 }"
"""The privacy that google/rappor gives its own strings."""


def names(number: int, tag: str = "s") -> list[str]:
    """So many strings."""
    return [f"{tag}{index}" for index in range(number)]


def metric(kind: str, *lines: str, every: str = "day", privacy: str = "{ report = 1.0, lifetime = 2.0 }") -> Metric:
    """A metric of a kind, declared as in a registry."""
    text = ["[metrics.it]", 'description = "a test"', f'kind = "{kind}"', f'every = "{every}"', f"privacy = {privacy}"]
    return Registry.parse("\n".join([*text, *lines]))["it"]


def string_metric(bits: int, hashes: int, cohorts: int, privacy: str = "{ report = 1.0, lifetime = 4.0 }") -> Metric:
    """A string metric that reports every day."""
    lines = (f"bits = {bits}", f"hashes = {hashes}", f"cohorts = {cohorts}", 'lifetime_values = "unlimited"')
    return metric("string", *lines, privacy=privacy)


def drawn(metric: Metric, shares: dict[Value, float], reports: int, rng: np.random.Generator) -> Tally:
    """The tally of devices that are drawn from a population with these shares."""
    counts = rng.multinomial(reports, list(shares.values()))
    return simulate_tally(metric, dict(zip(shares, counts.tolist(), strict=True)), rng)


def bound_of_shares(noise: Noise, shares: Numbers, reports: Numbers, observed: list[list[int]]) -> Numbers:
    """The Cramer-Rao bound for shares whose sum is unknown, from a tally of reports that observe some of the shares.

    Written down from the covariance of one report, and inverted as it stands: the bits of a report are independent
    given the value, and at most one of them belongs to it.
    """
    information = np.zeros((len(shares), len(shares)))
    for number, seen in zip(reports, observed, strict=True):
        part = shares[seen]
        sent = noise.lie + noise.slope * part
        covariance = -(noise.slope**2) * np.outer(part, part)
        np.fill_diagonal(covariance, sent * (1 - sent))
        inside = noise.slope**2 * np.linalg.inv(covariance) * number
        information[np.ix_(seen, seen)] += inside
    return np.diagonal(np.linalg.inv(information))


def with_null(shares: dict[Value, float], null: float) -> dict[Value, float]:
    """Shares of a population in which this share of the devices has no valid value."""
    return {value: share * (1 - null) for value, share in shares.items()} | {None: null}


def is_unbiased(errors: Numbers) -> None:
    """The mean error is within 5.6 standard errors of 0: by chance false once in 45 million times for each column."""
    spread = errors.std(axis=0, ddof=1) / np.sqrt(len(errors))
    assert (np.abs(errors.mean(axis=0)) < 5.6 * spread).all(), errors.mean(axis=0) / spread


def covers(hits: NDArray[np.bool_]) -> None:
    """Intervals of 95 % hold the truth in 93 to 97 % of the trials."""
    share = hits.mean(axis=0)
    assert ((share > 0.93) & (share < 0.97)).all(), share
