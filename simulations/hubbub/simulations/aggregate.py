"""Whole populations at once: the tally of any number of devices, drawn from its exact distribution.

A cohort's count of a bit is the sum of two binomials, one over the devices that have the bit set and one over those
that have it clear, and given what the devices hold, the bits are independent. So a tally takes as long for a thousand
million devices as for a thousand.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from hubbub.collector.decode.design import bloom_design
from hubbub.collector.decode.noise import Noise
from hubbub.collector.tally import Tally
from hubbub.shared.encode import Bloom, Bucket, Rounding
from hubbub.simulations.encoders import bucket_numbers
from hubbub.simulations.population import Truth

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from hubbub.collector.decode.design import Design
    from hubbub.shared.metric import Metric

    Counts = NDArray[np.int64]

Value = TypeVar("Value", bound=str | bool | float | None)


def simulate_tally(
    metric: Metric, truth: Mapping[Value, int], seed: int | np.random.Generator, *, devices: int | None = None
) -> Tally:
    """Draw the tally of one period: `truth` says how many devices hold each value.

    The value None means devices without a valid value: they report the null encoding, with no bit set.
    With `devices` the truth has to sum up to as many, which catches a list that has lost a line.
    """
    whole = Truth.of(metric, truth, devices)
    rng = np.random.default_rng(seed)
    tally = Tally.empty(metric)
    members = spread_over_cohorts(whole.counts, metric.encoding.cohorts, rng)
    tally.n[:] = members.sum(axis=0)
    tally.counts[:] = respond(_holding(metric, whole, members, rng), tally.n, Noise.of(metric.response), rng)
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
    held = np.zeros(design.equations, np.int64)
    # In integers: a sum of floats is wrong from 2^53 devices on.
    np.add.at(held, rows, in_columns[columns, rows // design.bits] * entries.data.astype(np.int64))
    return held.reshape(design.cohorts, design.bits)


def respond(holding: Counts, reports: Counts, noise: Noise, rng: np.random.Generator) -> Counts:
    """Draw how often each bit is sent as 1, by those that have it set and by those that do not."""
    sent: Counts = rng.binomial(holding, noise.truth) + rng.binomial(reports[:, None] - holding, noise.lie)
    return sent


def _holding(metric: Metric, truth: Truth, members: Counts, rng: np.random.Generator) -> Counts:
    """Count the devices of each cohort that have each bit set; for a mean that is up to their offsets, and drawn."""
    encoding = metric.encoding
    valid = [value is not None for value in truth.values]
    values, members = list(compress(truth.values, valid)), members[valid]
    if isinstance(encoding, Bloom):
        return held_bits(bloom_design(encoding, values), members)
    if isinstance(encoding, Rounding):
        up = [encoding.place(value) / encoding.offsets for value in values]
        return np.array([[rng.binomial(members.sum(axis=1), up).sum()]])
    if isinstance(encoding, Bucket):
        in_buckets = np.zeros((encoding.buckets, encoding.cohorts), np.int64)
        np.add.at(in_buckets, bucket_numbers(encoding, values), members)
        observed = [encoding.observed(cohort) for cohort in range(encoding.cohorts)]
        return in_buckets[observed, np.arange(encoding.cohorts)[:, None]]
    holding = np.zeros((encoding.cohorts, metric.size), np.int64)
    for value, spread in zip(values, members, strict=True):
        bit = metric.encode(value, 0, 0).bit_length() - 1
        if bit >= 0:
            holding[:, bit] += spread
    return holding
