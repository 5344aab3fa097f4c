"""Histograms: each bucket from the reports that observed it, and from them the curve, the quantiles and the mean."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.decode.bits import simplex_rows
from hubbub.collector.decode.estimates import Number, Point, Row
from hubbub.collector.decode.interval import normal_quantile
from hubbub.collector.decode.simplex import Simplex, simplex

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.collector.decode.control import Control
    from hubbub.collector.decode.noise import Noise, Numbers
    from hubbub.collector.tally import Tally
    from hubbub.shared.encode import Bucket

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def observed(encoding: Bucket, tally: Tally) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many reports observed each two of the buckets, and how often each was set."""
    seen = np.zeros((encoding.cohorts, encoding.buckets), np.int64)
    counts = np.zeros(encoding.buckets, np.int64)
    for cohort in range(encoding.cohorts):
        buckets = list(encoding.observed(cohort))
        seen[cohort, buckets] = 1
        counts[buckets] += tally.counts[cohort]
    return seen.T @ (seen * tally.n[:, None]), counts


def histogram(
    noise: Noise, tally: Tally, encoding: Bucket, confidence: float, control: Control
) -> tuple[list[Row], Simplex | None]:
    """Estimate the share of each bucket; None if a bucket was observed by no report, and nothing holds for all."""
    names = [f"{low:g} to {high:g}" for low, high in pairwise(encoding.edges)]
    together, counts = observed(encoding, tally)
    reports = np.diagonal(together).astype(float)
    debiased = noise.debias(counts.astype(float), reports)
    if reports.all():
        found = simplex(noise, debiased, together, confidence)
        return simplex_rows(found, names, float(tally.reports), control), found
    return [
        _row(noise, name, share, number, tally.reports, confidence)
        for name, share, number in zip(names, debiased.tolist(), reports.tolist(), strict=True)
    ], None


def _row(noise: Noise, name: str, share: float, observers: float, reports: int, confidence: float) -> Row:
    """A bucket by itself, when others were not observed."""
    if not observers:
        return Row(name, None, None, None, 0.0, 1.0, 1.0, False)
    error = float(np.sqrt(noise.variance(np.clip(share, 0, 1)) / noise.devices(np.array(observers))))
    reach = normal_quantile(confidence) * error
    return Row(name, share * reports, share, error, share - reach, share + reach, 1.0, False)


def cumulative(found: Simplex, encoding: Bucket, confidence: float) -> list[Point]:
    """The share of devices at or below each edge, with an interval for each point of the curve."""
    curve, covariance = _curve(found)
    reach = normal_quantile(confidence) * np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    low, high = np.clip(curve - reach, 0, 1), np.clip(curve + reach, 0, 1)
    return [Point(*point) for point in zip(encoding.edges, curve.tolist(), low.tolist(), high.tolist(), strict=True)]


def quantiles(found: Simplex, encoding: Bucket, confidence: float) -> list[Point]:
    """The numbers that given shares of the devices lie below, values spread evenly within a bucket.

    A number is in the interval unless the curve at that number is too far from the share.
    """
    edges = np.array(encoding.edges)
    possible = np.concatenate([[0.0], np.cumsum(found.consistent)])
    curve, covariance = _curve(found)
    square = normal_quantile(confidence) ** 2
    points = []
    for at in QUANTILES:
        near = [
            edges[bucket] + part * (edges[bucket + 1] - edges[bucket])
            for bucket in range(encoding.buckets)
            for part in _near(
                curve[bucket : bucket + 2] - at, square * covariance[bucket : bucket + 2, bucket : bucket + 2]
            )
        ]
        estimate = _cross(edges, possible, at)
        points.append(Point(at, estimate, float(min([*near, estimate])), float(max([*near, estimate]))))
    return points


def histogram_mean(found: Simplex, encoding: Bucket, confidence: float) -> Number:
    """The mean of devices spread evenly within buckets, and the most it can be whatever the spread there."""
    lower, upper = np.array(encoding.edges[:-1]), np.array(encoding.edges[1:])
    middle = (lower + upper) / 2
    estimate = float(found.shares @ middle)
    error = float(np.sqrt(max(middle @ found.covariance @ middle, 0.0)))
    reach = normal_quantile(confidence) * error
    least, most = float(found.consistent @ lower), float(found.consistent @ upper)
    return Number(
        estimate,
        error,
        estimate - reach,
        estimate + reach,
        max(least - reach, encoding.edges[0]),
        min(most + reach, encoding.edges[-1]),
    )


def _curve(found: Simplex) -> tuple[Numbers, Numbers]:
    """The cumulative curve at all edges, and its covariance."""
    curve = np.concatenate([[0.0], np.cumsum(found.shares)])
    covariance = np.zeros((len(curve), len(curve)))
    covariance[1:, 1:] = np.cumsum(np.cumsum(found.covariance, axis=0), axis=1)
    return curve, covariance


def _near(gaps: Numbers, reach: Numbers) -> list[float]:
    """The ends of the part of a bucket, from 0 to 1, where a straight line is within its doubt of 0.

    The line goes from the one gap to the other; `reach` is its covariance at the two ends, in units of the doubt.
    """
    start, slope = float(gaps[0]), float(gaps[1] - gaps[0])
    first, both, last = float(reach[0, 0]), float(reach[0, 1]), float(reach[1, 1])
    a = slope**2 - (first - 2 * both + last)
    b = 2 * (slope * start - (both - first))
    c = start**2 - first
    inside = [part for part in (0.0, 1.0) if a * part**2 + b * part + c <= 0]
    under = b**2 - 4 * a * c
    if under >= 0 and a:
        inside += [part for part in ((-b - under**0.5) / (2 * a), (-b + under**0.5) / (2 * a)) if 0 <= part <= 1]
    return inside


def _cross(edges: Numbers, curve: Numbers, at: float) -> float:
    """Where a curve that does not fall reaches a height, along straight lines between the edges."""
    if curve[-1] < at:
        return float(edges[-1])
    above = int(np.argmax(curve >= at))
    if above == 0:
        return float(edges[0])
    below = above - 1
    part = (at - curve[below]) / (curve[above] - curve[below])
    return float(edges[below] + part * (edges[above] - edges[below]))
