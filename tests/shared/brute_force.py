"""Epsilon without a formula: the whole output distribution of a mechanism, written out, and the worst ratio in it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hubbub.shared.bernoulli import ONE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hubbub.shared.response import Response

Distribution = npt.NDArray[np.float64]


def transition(when_set: int, when_clear: int, size: int) -> Distribution:
    """Pr[output vector | input vector] for all 2^size by 2^size pairs, multiplied out bit by bit."""
    table = np.ones((1 << size, 1 << size))
    for source, target in itertools.product(range(1 << size), repeat=2):
        for bit in range(size):
            chance = (when_set if source >> bit & 1 else when_clear) / ONE
            table[source, target] *= chance if target >> bit & 1 else 1 - chance
    return table


def outputs(response: Response, size: int, reports: int) -> Distribution:
    """Pr[all reports | encoded vector], summed over every permanent vector; 0 reports shows that vector itself."""
    permanent = transition(response.p1, response.q1, size)
    if reports == 0:
        return permanent
    instantaneous = transition(response.p2, response.q2, size)
    seen = instantaneous
    for _ in range(reports - 1):
        seen = np.einsum("bs,bt->bst", seen, instantaneous).reshape(1 << size, -1)
    return permanent @ seen


def worst_ratio(rows: Iterable[Distribution]) -> float:
    """The largest log-likelihood ratio between any two inputs over any output that one of them can give."""
    table = np.array(list(rows))
    possible = table[:, (table > 0).any(axis=0)]
    with np.errstate(divide="ignore"):
        return float(np.max(np.log(possible.max(axis=0)) - np.log(possible.min(axis=0))))
