"""Histograms: the share of each bucket, and the curve, the quantiles and the mean of the devices with a valid value."""

from __future__ import annotations

from itertools import compress, pairwise
from typing import TYPE_CHECKING

import numpy as np

from hubbub.collector.decode.estimates import Number, Point, Row
from hubbub.collector.decode.interval import normal_quantile
from hubbub.collector.decode.shares import Shares, estimate_shares

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
) -> tuple[list[Row], Shares | None]:
    """Estimate the share of each bucket; return None as well if no report observed one of the buckets."""
    names = [f"{low:g} to {high:g}" for low, high in pairwise(encoding.edges)]
    together, counts = observed(encoding, tally)
    reports = np.diagonal(together)
    seen = reports > 0
    debiased = noise.debias(counts[seen].astype(float), reports[seen].astype(float))
    found = estimate_shares(noise, debiased, together[np.ix_(seen, seen)], confidence)
    rows = [Row(name, None, None, None, 0.0, 1.0, 1.0, False) for name in names]
    estimated = found.rows(list(compress(names, seen)), float(tally.reports), control)
    for place, row in zip(np.flatnonzero(seen), estimated, strict=True):
        rows[place] = row
    return rows, found if seen.all() else None


def has_values(found: Shares, confidence: float) -> bool:
    """Check that the sum of the shares is surely positive. If not, any ratio to the sum is possible (Fieller 1954)."""
    return found.total > normal_quantile(confidence) * found.total_error


def cumulative(found: Shares, encoding: Bucket, confidence: float) -> list[Point]:
    """Return the share of valid values at or below each edge, with an interval for each point of the curve."""
    curve, errors = _ratios(found, _below(encoding))
    reach = normal_quantile(confidence) * errors
    low, high = np.clip(curve - reach, 0, 1), np.clip(curve + reach, 0, 1)
    return [Point(*point) for point in zip(encoding.edges, curve.tolist(), low.tolist(), high.tolist(), strict=True)]


def quantiles(found: Shares, encoding: Bucket, confidence: float) -> list[Point]:
    """Return the numbers below which given shares of the valid values lie, if values are even within a bucket.

    An interval holds each number at which the curve, less the given share of the total, is close enough to 0.
    """
    edges, square = np.array(encoding.edges), normal_quantile(confidence) ** 2
    possible = _below(encoding) @ found.consistent
    points = []
    for at in QUANTILES:
        weights = _below(encoding) - at
        gaps, reach = weights @ found.shares, square * weights @ found.covariance @ weights.T
        near = [
            edges[bucket] + part * (edges[bucket + 1] - edges[bucket])
            for bucket in range(encoding.buckets)
            for part in _near(gaps[bucket : bucket + 2], reach[bucket : bucket + 2, bucket : bucket + 2])
        ]
        estimate = _cross(edges, possible, at * possible[-1])
        points.append(Point(at, estimate, float(min([*near, estimate])), float(max([*near, estimate]))))
    return points


def histogram_mean(found: Shares, encoding: Bucket, confidence: float) -> Number:
    """Return the mean of valid values even within buckets, and its bounds however values lie there."""
    lower, upper = np.array(encoding.edges[:-1]), np.array(encoding.edges[1:])
    [estimate], [error] = (each.tolist() for each in _ratios(found, (lower + upper)[None] / 2))
    reach = normal_quantile(confidence) * error
    least, most = (float(found.consistent @ ends / found.consistent.sum()) for ends in (lower, upper))
    return Number(
        estimate,
        error,
        estimate - reach,
        estimate + reach,
        max(least - reach, encoding.edges[0]),
        min(most + reach, encoding.edges[-1]),
    )


def _below(encoding: Bucket) -> Numbers:
    """Return a row for each edge, with a 1 for each bucket below it."""
    return np.tri(encoding.buckets + 1, encoding.buckets, -1)


def _ratios(found: Shares, weights: Numbers) -> tuple[Numbers, Numbers]:
    """Divide weighted sums of the shares by their sum; the standard errors are those of the delta method."""
    ratios = weights @ found.shares / found.total
    away = (weights - ratios[:, None]) / found.total
    return ratios, np.sqrt(np.maximum(((away @ found.covariance) * away).sum(axis=1), 0.0))


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
