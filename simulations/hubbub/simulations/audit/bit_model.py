"""How likely each number of ones of a bit is under either value, in the reports of a device.

A model has a table for each value, with a row for each role of a bit and a column for each number of ones in T reports.
One model is declared by the registry, another is fitted to trials, and both are used in the same way. The last role is
no bit: it says whether a report is missing, which the guesser sees as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from hubbub.shared.bernoulli import ONE
from hubbub.simulations.audit.pair import Role

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.shared.response import Response

    Numbers = NDArray[np.float64]

DOUBT = 3.0
"""How many standard errors the two values must differ by before a fitted weight is used."""

SUMS = 4096
"""How many different sums of weights are kept apart; beyond it, neighbours are merged."""


@dataclass(frozen=True)
class BitModel:
    """The probability of each number of ones (column) of a bit of each role (row), and its weight in a guess."""

    first: Numbers
    second: Numbers
    weights: Numbers
    """The log-likelihood ratio, first to second; 0 where a number of ones says nothing."""


@dataclass(frozen=True)
class Sums:
    """The distribution of the sum of all weights of a device, under either value."""

    values: Numbers
    first: Numbers
    second: Numbers


def declared_model(response: Response, reports: int) -> BitModel:
    """Return the model that the four probabilities of a response mean; no report is ever missing."""
    p1, q1, p2, q2 = (number / ONE for number in (response.p1, response.q1, response.p2, response.q2))
    ones = np.arange(reports + 1)
    if_one, if_zero = _sequence(ones, reports, p2), _sequence(ones, reports, q2)
    when_set = np.logaddexp(np.log(p1) + if_one, np.log1p(-p1) + if_zero)
    when_clear = np.logaddexp(np.log(q1) + if_one, np.log1p(-q1) + if_zero)
    possible = np.isfinite(when_set)
    evidence = np.where(possible, when_set, 0.0) - np.where(possible, when_clear, 0.0)
    ways = special.gammaln(reports + 1) - special.gammaln(ones + 1) - special.gammaln(reports - ones + 1)
    set_, clear = np.exp(ways + when_set), np.exp(ways + when_clear)
    nothing, none_absent = np.zeros_like(evidence), (ones == 0).astype(float)
    return BitModel(
        first=np.stack([set_, clear, set_, clear, none_absent]),
        second=np.stack([clear, set_, set_, clear, none_absent]),
        weights=np.stack([evidence, -evidence, nothing, nothing, nothing]),
    )


def fitted_model(seen: NDArray[np.int64]) -> BitModel:
    """Fit a model to trials; `seen` counts bits by value, role and number of ones."""
    counts = seen + 0.5
    first, second = counts / counts.sum(axis=2, keepdims=True)
    errors = np.sqrt((1 / counts).sum(axis=0))
    ratios = np.log(first) - np.log(second)
    return BitModel(first, second, np.where(np.abs(ratios) > DOUBT * errors, ratios, 0.0))


def sums(model: BitModel, role_counts: list[tuple[tuple[int, ...], float]]) -> Sums:
    """Add up independent bits of each role, and mix the cohorts."""
    parts = [_sums_of(model, counts) for counts, _ in role_counts]
    shares = [share for _, share in role_counts]
    return _lump(
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.first * share for part, share in zip(parts, shares, strict=True)]),
        np.concatenate([part.second * share for part, share in zip(parts, shares, strict=True)]),
    )


def _sums_of(model: BitModel, counts: tuple[int, ...]) -> Sums:
    total = Sums(np.zeros(1), np.ones(1), np.ones(1))
    for role in Role:
        if not model.weights[role].any():
            continue
        for _ in range(counts[role]):
            total = _lump(
                np.add.outer(total.values, model.weights[role]).ravel(),
                np.outer(total.first, model.first[role]).ravel(),
                np.outer(total.second, model.second[role]).ravel(),
            )
    return total


def _lump(values: Numbers, first: Numbers, second: Numbers) -> Sums:
    """Merge equal sums, and near ones where there are too many."""
    keep = first + second > 0
    values, first, second = values[keep], first[keep], second[keep]
    rounded, place = np.unique(np.round(values, 9), return_inverse=True)
    if len(rounded) > SUMS:
        low, high = rounded[0], rounded[-1]
        place = np.minimum(((values - low) / (high - low) * SUMS).astype(np.intp), SUMS - 1)
        _, place = np.unique(place, return_inverse=True)
    return Sums(_total(place, values) / np.bincount(place), _total(place, first), _total(place, second))


def _total(place: NDArray[np.intp], numbers: Numbers) -> Numbers:
    return np.asarray(np.bincount(place, numbers), np.float64)


def _sequence(ones: NDArray[np.int_], reports: int, chance: float) -> Numbers:
    """Log-probability of one sequence of reports with so many ones."""
    return np.asarray(special.xlogy(ones, chance) + special.xlog1py(reports - ones, -chance), np.float64)
