"""Strings: which of the candidates are there, and how many devices hold each.

Two questions have two answers. *How common is this string, which I had in mind before I saw any data?* is answered by
`share`, `low` and `high`, for every candidate: by least squares on all of them while there are fewer than half as many
as equations, and beyond that beside the strings whose presence is in no doubt. *What is there?* is answered by the
strings found: by a selection that keeps the wanted control over false ones, and by intervals that allow for a string
having been found because it looked large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from hubbub.collector.decode import diagnostics
from hubbub.collector.decode.estimates import Number, Row
from hubbub.collector.decode.interval import normal_quantile
from hubbub.collector.decode.least_squares import Equations, Fit, fit
from hubbub.collector.decode.selection import Selection, conditional_interval, judge, select

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray
    from scipy import sparse

    from hubbub.collector.decode.control import Control
    from hubbub.collector.decode.design import Design
    from hubbub.collector.decode.estimates import Diagnostic
    from hubbub.collector.decode.noise import Noise, Numbers

NO_DOUBT = 3.0
"""A string this many standard errors above the bar is there, whatever luck it had."""

FIXED_LIST = 0.5
"""Up to this many candidates for each equation all of them are fitted together."""


@dataclass(frozen=True)
class Decoded:
    """Everything about the strings of a tally."""

    rows: list[Row]
    other: Number
    no_value: Number | None
    """The share of reports without a valid value, which is a part of `other`; None if every report holds a string."""
    fit: Fit
    """The fit whose residuals tell whether the strings explain the bits."""
    found: Fit
    fixed: bool
    """Whether all candidates were fitted together."""
    not_found: Number
    """The share of all reports that hold none of the strings found."""

    def diagnostics(self, equations: Equations) -> list[Diagnostic]:
        """Whether the strings explain the bits, and how much of the reports."""
        looks = [
            diagnostics.residual_misfit(
                self.fit, equations.freedom - len(self.fit.shares), diagnostics.long_tails(self.fit, equations)
            ),
            diagnostics.explained(self.not_found),
        ]
        if self.fixed:
            looks.append(diagnostics.listed(self.other))
        return looks if self.no_value is None else [*looks, diagnostics.no_value(self.no_value)]


def equations_of(
    design: Design, noise: Noise, reports: NDArray[np.int64], counts: NDArray[np.int64], *, has_null: bool
) -> Equations:
    """Debias the counts of a tally, a row for each cohort.

    With `has_null`, some reports hold no string and set no bit. Their share follows from the average of all bits,
    which is `spread` in a report with a string.
    """
    numbers = np.repeat(reports.astype(float), design.bits)
    debiased = noise.debias(counts.ravel().astype(float), numbers)
    null_share = 1 - float(debiased @ numbers / numbers.sum()) / design.spread if has_null else None
    background = design.spread * (1 - (null_share or 0.0))
    seen = np.where(numbers > 0, debiased - background, 0.0)
    return Equations(seen, noise.devices(numbers), design.spread, noise, null_share)


def decode_strings(
    design: Design,
    equations: Equations,
    candidates: Sequence[str],
    reports: int,
    confidence: float,
    control: Control,
    *,
    strict: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Decoded:
    """Find the candidates that are there, and estimate the share of every one."""
    # On one core: the same sums in the same order on any machine, and no threads that wait for each other.
    with threadpool_limits(1, "blas"):
        if strict:
            here, there = _halves(design, equations)
            selected = select(design, here, control, progress)
            refitted = fit(there, design.matrix[:, selected.found], there.variance(selected.fit.fitted))
            errors = _errors(design, there, refitted)
            found = _Found(refitted, errors, *_plain_interval(refitted.shares, errors, confidence))
        else:
            selected = select(design, equations, control, progress)
            errors = _errors(design, equations, selected.fit)
            standing = np.maximum(selected.fit.shares / errors, selected.bar)
            low, high = conditional_interval(selected.null, standing, selected.bar, confidence)
            found = _Found(selected.fit, errors, low * errors, high * errors)
        progress("estimating every candidate")
        fixed = design.columns < FIXED_LIST * equations.number
        shares, errors, low, high, whole = _every(design, equations, selected, control, confidence, fixed=fixed)
        rows = _rows(design, candidates, reports, selected, found, (shares, errors, low, high))
        not_found = _other(found.fit, confidence)
        model, columns = (whole, design.matrix) if fixed else (found.fit, design.matrix[:, selected.found])
        other = _other(whole, confidence) if fixed else not_found
        no_value = _no_value(design, equations, model, columns, confidence)
        return Decoded(rows, other, no_value, model, found.fit, fixed, not_found)


@dataclass(frozen=True)
class _Found:
    fit: Fit
    errors: Numbers
    low: Numbers
    high: Numbers


def _every(
    design: Design, equations: Equations, selected: Selection, control: Control, confidence: float, *, fixed: bool
) -> tuple[Numbers, Numbers, Numbers, Numbers, Fit]:
    """Share, standard error and interval of every column."""
    variance = equations.variance(selected.fit.fitted)
    if fixed:
        whole = fit(equations, design.matrix, variance)
        errors = _errors(design, equations, whole)
        return whole.shares, errors, *_plain_interval(whole.shares, errors, confidence), whole
    # Strings that are in the model by luck would spoil the estimates of the others; they are left in the noise.
    standing = selected.shares[selected.found] / selected.errors[selected.found]
    certain = selected.found[standing >= selected.bar + NO_DOUBT]
    beside = judge(design, equations, control, certain, fit(equations, design.matrix[:, certain], variance))
    errors = beside.errors.copy()
    errors[certain] = _errors(design, equations, beside.fit)
    upper, lower = beside.null.quantiles(confidence)
    return beside.shares, errors, beside.shares - upper * errors, beside.shares - lower * errors, beside.fit


def _errors(design: Design, equations: Equations, fitted: Fit) -> Numbers:
    """Standard errors, with what the equations leave out: a device sets all bits of its string or none."""
    bits = design.spread * design.bits
    devices = max(float(equations.devices.sum()) / design.bits, 1.0)
    shares = np.clip(fitted.shares, 0.0, 1.0)
    errors: Numbers = np.sqrt(fitted.errors**2 + (1 - 1 / bits) * shares * (1 - shares) / devices)
    return errors


def _plain_interval(shares: Numbers, errors: Numbers, confidence: float) -> tuple[Numbers, Numbers]:
    reach = normal_quantile(confidence) * errors
    return shares - reach, shares + reach


def _halves(design: Design, equations: Equations) -> tuple[Equations, Equations]:
    """Give every other cohort to one half of the equations, and the rest to the other."""
    first = design.rows_of(np.arange(design.cohorts) % 2 == 0)
    return (
        replace(equations, devices=np.where(first, equations.devices, 0.0)),
        replace(equations, devices=np.where(first, 0.0, equations.devices)),
    )


def _other(fitted: Fit, confidence: float) -> Number:
    """Estimate the share of all reports that hold no string of the model, reports without a valid value included.

    Without those reports the share would have a much larger error: that of the average of all bits.
    """
    estimate = 1 - float(fitted.shares.sum())
    if fitted.lost.any():
        return Number(estimate, None, 0.0, 1.0)
    error = max(float(fitted.covariance.sum()), 0.0) ** 0.5
    reach = normal_quantile(confidence) * error
    return Number(estimate, error, estimate - reach, estimate + reach)


def _no_value(
    design: Design, equations: Equations, fitted: Fit, columns: sparse.csc_array, confidence: float
) -> Number | None:
    """Estimate the share of reports without a valid value from the average of all bits.

    Two hashes of a string can hit the same bit, so a string can set fewer bits than `spread` says. For strings in the
    model this is corrected; for the others it is an error, as large as their part in the excess variance.
    """
    if equations.null_share is None:
        return None
    noise, set_bits, uneven = equations.noise, design.bits * design.spread, design.set_bits_variance
    weights = equations.devices / equations.devices.sum()
    extra = columns.T @ weights / design.spread - 1
    estimate = equations.null_share + float(extra @ fitted.shares)
    valid = min(max(1 - estimate, 0.0), 1.0)
    one_device = (
        design.bits * noise.variance_given(0)
        + set_bits * valid * (noise.variance_given(1) - noise.variance_given(0))
        + set_bits**2 * valid * (1 - valid)
        + uneven * valid
    )
    devices = float(equations.devices.sum()) / design.bits
    variance = one_device / devices / set_bits**2 + float(extra @ fitted.covariance @ extra)
    if uneven > 0:
        squares = fitted.excess / (design.spread * (1 - design.spread))  # of the shares that are not in the model
        variance += squares * uneven * design.bits * float(weights @ weights) / set_bits**2
    error = max(variance, 0.0) ** 0.5
    reach = normal_quantile(confidence) * error
    return Number(estimate, error, estimate - reach, estimate + reach)


def nearest_possible(fitted: Fit) -> Numbers:
    """The best fit of shares that are not negative and sum to at most 1."""
    kept = np.ones(len(fitted.shares), bool)
    shares = fitted.shares
    while kept.any():
        covariance = fitted.covariance
        if not kept.all():
            # Holding the others at 0 is conditioning on it.
            gone = covariance[np.ix_(~kept, ~kept)]
            across = covariance[np.ix_(kept, ~kept)]
            back = np.linalg.pinv(gone)
            shares = np.zeros(len(kept))
            shares[kept] = fitted.shares[kept] - across @ (back @ fitted.shares[~kept])
            covariance = np.zeros_like(fitted.covariance)
            covariance[np.ix_(kept, kept)] = fitted.covariance[np.ix_(kept, kept)] - across @ back @ across.T
        surplus = float(shares.sum()) - 1
        if surplus > 0:
            common = covariance.sum(axis=1)
            total = float(common.sum())
            shares = shares - common * (surplus / total) if total > 0 else shares / shares.sum()
        negative = kept & (shares < 0)
        if not negative.any():
            break
        kept &= ~negative
    return np.where(kept, np.maximum(shares, 0.0), 0.0)


def _rows(
    design: Design,
    candidates: Sequence[str],
    reports: int,
    selected: Selection,
    found: _Found,
    every: tuple[Numbers, Numbers, Numbers, Numbers],
) -> list[Row]:
    also: dict[int, list[str]] = {}
    for candidate in np.flatnonzero(design.first[design.column] != np.arange(len(design.column))).tolist():
        also.setdefault(int(design.column[candidate]), []).append(candidates[candidate])
    possible = nearest_possible(found.fit)
    there: dict[int, tuple[float | None, float | None, float | None, float | None]] = {
        # An interval of what has only just passed the bar may lie below the estimate; it is made to reach up to it.
        int(column): (
            float(share),
            float(error) if np.isfinite(error) else None,
            min(max(float(low), 0.0), float(share)),
            min(max(float(high), float(share)), 1.0),
        )
        for column, share, error, low, high in zip(
            selected.found, possible, found.errors, found.low, found.high, strict=True
        )
    }
    shares, errors, low, high = every
    is_found = np.zeros(design.columns, bool)
    is_found[selected.found] = True
    sizes = shares.copy()
    sizes[selected.found] = possible
    order = np.lexsort((np.arange(design.columns), -sizes, ~is_found))
    columns = (shares, errors, low, high, selected.chances)
    return [
        Row(
            candidates[first],
            *_told(share, error, lower, upper, reports),
            chance,
            column in there,
            *there.get(column, (None, None, None, None)),
            tuple(also.get(column, ())),
        )
        for column, first, share, error, lower, upper, chance in zip(
            order.tolist(), design.first[order].tolist(), *(each[order].tolist() for each in columns), strict=True
        )
    ]


def _told(
    share: float, error: float, low: float, high: float, reports: int
) -> tuple[float | None, float | None, float | None, float, float]:
    if math.isinf(error):
        return None, None, None, 0.0, 1.0
    return share * reports, share, error, low, high
