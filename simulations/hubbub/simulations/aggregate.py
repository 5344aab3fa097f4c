"""Whole populations at once: the tally of any number of devices, drawn from its exact distribution.

A cohort's count of a bit is the sum of two binomials, one over the devices that have the bit set and one over those
that have it clear, and given what the devices hold, the bits are independent. So a tally takes as long for a thousand
million devices as for a thousand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from hubbub.collector.decode.design import bloom_design
from hubbub.collector.decode.noise import Noise
from hubbub.collector.tally import Tally
from hubbub.shared.encode import Bloom, Rounding
from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from hubbub.collector.decode.design import Design
    from hubbub.shared.metric import Metric

    Counts = NDArray[np.int64]

Value = TypeVar("Value", bound=str | bool | float)


def simulate_tally(metric: Metric, truth: Mapping[Value, int], seed: int | np.random.Generator) -> Tally:
    """Draw the tally of one period: `truth` says how many devices hold each value."""
    counts = np.array(list(truth.values()), np.int64)
    if (counts < 0).any():
        raise ParameterError("truth: holds a negative count; allowed: 0 and above")
    rng = np.random.default_rng(seed)
    tally = Tally.empty(metric)
    members = spread_over_cohorts(counts, metric.encoding.cohorts, rng)
    tally.n[:] = members.sum(axis=0)
    if isinstance(metric.encoding, Bloom):
        holding = held_bits(bloom_design(metric.encoding, [str(value) for value in truth]), members)
    else:
        holding = _held_bits(metric, list(truth), members, rng)
    tally.counts[:] = respond(holding, tally.n, Noise.of(metric.response), rng)
    return tally


def spread_over_cohorts(counts: Counts, cohorts: int, rng: np.random.Generator) -> Counts:
    """Draw how many of the devices that hold each value (row) are in each cohort (column)."""
    return rng.multinomial(counts, np.full(cohorts, 1 / cohorts))


def held_bits(design: Design, members: Counts) -> Counts:
    """Count the devices of each cohort (row) that have each bit (column) set, before any noise."""
    in_columns = np.zeros((design.columns, design.cohorts), np.int64)
    np.add.at(in_columns, design.column, members)
    entries = design.matrix.tocoo()
    rows, columns = entries.coords
    held = np.bincount(rows, in_columns[columns, rows // design.bits] * entries.data, minlength=design.equations)
    return held.astype(np.int64).reshape(design.cohorts, design.bits)


def respond(holding: Counts, reports: Counts, noise: Noise, rng: np.random.Generator) -> Counts:
    """Draw how often each bit is sent as 1, by those that have it set and by those that do not."""
    sent: Counts = rng.binomial(holding, noise.truth) + rng.binomial(reports[:, None] - holding, noise.lie)
    return sent


def _held_bits(metric: Metric, values: list[Value], members: Counts, rng: np.random.Generator) -> Counts:
    holding = np.zeros((metric.encoding.cohorts, metric.size), np.int64)
    for value, spread in zip(values, members, strict=True):
        if isinstance(metric.encoding, Rounding):
            holding[0, 0] += rng.binomial(spread.sum(), metric.encoding.place(value) / metric.encoding.offsets)
            continue
        for cohort, number in enumerate(spread):
            encoded = metric.encode(value, cohort, 0)
            for bit in range(metric.size):
                holding[cohort, bit] += (encoded >> bit & 1) * number
    return holding
