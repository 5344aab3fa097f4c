"""Weighted least squares on the bits of a tally, with everything that is not in the model as a background.

The debiased share of bit j in cohort c is

    y = sum_s x_s a_s + u b + noise,        u = 1 - nu - sum_s x_s,

where x_s is the share of string s, a_s says whether it sets the bit, u is the share of all other strings, b the chance
that one of those sets the bit, and nu the share of reports without a string, which set no bit. If every report holds
a string, nu is 0, and u is known from the rest. If not, the level of all bits is fitted too: each a_s is centred at its
weighted mean instead of at b. With one hash and equal weights the two are the same, so nothing is lost. What the others
set beyond their average, and the hash functions decide that as if by chance, is noise as well: its variance is
estimated from the residuals by the method of moments and added to that of the response, so that strings nobody asked
about widen the intervals instead of spoiling them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy import sparse

    from hubbub.collector.decode.noise import Noise, Numbers

LEAST_FREEDOM = 0.25
"""However much a choice has cost, this share of the equations is taken to be left to judge the noise by."""

TINY = 1e-300

SINGULAR = 1e-9
"""Below this part of a string's own weight, what is left of it beside the others is rounding."""


@dataclass(frozen=True)
class Equations:
    """The left side: what was seen of each bit in each cohort, less the background, and its noise."""

    seen: Numbers
    devices: Numbers
    """How many devices speak of each bit; 0 in a cohort without reports."""
    spread: float
    noise: Noise
    null_share: float | None = None
    """The estimated share of reports without a string; None if every report holds one."""

    @property
    def number(self) -> int:
        """How many there are that say something."""
        return int(np.count_nonzero(self.devices))

    @property
    def freedom(self) -> int:
        """Degrees of freedom: the number of equations, less one if the share of null reports was estimated."""
        return self.number - (self.null_share is not None)

    def centre(self, weighted: Numbers, weights: Numbers) -> Numbers:
        """Return the mean of each column under the background, from the weights of the columns and of the equations."""
        if self.null_share is None:
            return np.full(len(weighted), self.spread)
        return weighted / max(float(weights.sum()), TINY)

    def variance(self, fitted: Numbers) -> Numbers:
        """Variance of what was seen if these are the true shares above the background; infinite without reports."""
        shares = np.clip(fitted + self.spread * (1 - (self.null_share or 0.0)), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            # Never surer than one device more or less: without any noise a bit that is never set would have none.
            variance: Numbers = np.maximum(self.noise.variance(shares), 1 / self.devices) / self.devices
        return variance


@dataclass(frozen=True)
class Fit:
    """Strings fitted together."""

    shares: Numbers
    covariance: Numbers
    lost: NDArray[np.bool_]
    """Strings that cannot be told apart from combinations of the others: nothing is known about their shares."""
    fitted: Numbers
    """What the fit says of each bit, above the background."""
    residual: Numbers
    weights: Numbers
    excess: float
    """Variance of the bits that the response does not explain."""
    misfit: float
    """Chi-square of the residuals under the noise of the response alone."""
    freedom: float
    """Its degrees of freedom."""

    @property
    def errors(self) -> Numbers:
        """Standard errors of the shares."""
        return np.where(self.lost, np.inf, np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0)))


def fit(equations: Equations, columns: sparse.csc_array, variance: Numbers, spent: float | None = None) -> Fit:
    """Fit strings, given by their columns of the design, under a variance of each bit that was worked out before.

    `spent` is the number of degrees of freedom that choosing the strings has cost; without a choice, one for each.
    """
    excess, normal = 0.0, _normal_equations(equations, columns, 1 / variance)
    fitted, residual = _apply(equations, columns, normal)
    misfit = float((residual**2 / variance).sum())
    freedom = equations.freedom - (columns.shape[1] if spent is None else spent)
    freedom = max(freedom, equations.number * LEAST_FREEDOM, 0.0)
    if misfit > freedom > 0:
        excess = _excess(residual, variance, freedom)
        normal = _normal_equations(equations, columns, 1 / (variance + excess))
        fitted, residual = _apply(equations, columns, normal)
    covariance, lost = normal.invert()
    return Fit(normal.shares, covariance, lost, fitted, residual, 1 / (variance + excess), excess, misfit, freedom)


@dataclass(frozen=True)
class _Normal:
    """Normal equations, solved: by their Cholesky factor, or without one if they have none."""

    shares: Numbers
    factor: Numbers | None
    gram: Numbers
    centre: Numbers
    """The mean of each column."""
    level: float
    """The mean of all bits above the background."""

    def invert(self) -> tuple[Numbers, NDArray[np.bool_]]:
        """The covariance of the shares, and which of them are lost."""
        if self.factor is None:
            return _pseudo_inverse(self.gram)
        lower, _ = linalg.lapack.dpotri(self.factor, lower=1)
        whole: Numbers = np.tril(lower) + np.tril(lower, -1).T
        return whole, np.zeros(len(whole), bool)


def _normal_equations(equations: Equations, columns: sparse.csc_array, weights: Numbers) -> _Normal:
    weighted, total, level = columns.T @ weights, weights.sum(), float(weights @ equations.seen)
    centre = equations.centre(weighted, weights)
    # The matrix of the centred columns, multiplied out, because they are not sparse.
    gram = (columns.T @ columns.multiply(weights[:, None])).toarray()
    half = np.outer(centre, weighted - total / 2 * centre)
    gram -= half
    gram -= half.T
    target = columns.T @ (weights * equations.seen) - level * centre
    level = 0.0 if equations.null_share is None else level / max(float(total), TINY)
    if not gram.size:
        return _Normal(np.zeros(0), None, gram, centre, level)
    factor, failed = linalg.lapack.dpotrf(gram, lower=1, clean=0)
    pivots, own = np.diagonal(factor), np.diagonal(gram)
    if failed or (pivots**2 <= SINGULAR * own).any() or not own.all():
        inverse, _ = _pseudo_inverse(gram)
        return _Normal(inverse @ target, None, gram, centre, level)
    shares, _ = linalg.lapack.dpotrs(factor, target, lower=1)
    return _Normal(shares, factor, gram, centre, level)


def _apply(equations: Equations, columns: sparse.csc_array, normal: _Normal) -> tuple[Numbers, Numbers]:
    """What shares say of each bit, and what they leave unexplained."""
    fitted = columns @ normal.shares - normal.centre @ normal.shares + normal.level
    return fitted, np.where(equations.devices > 0, equations.seen - fitted, 0.0)


def _pseudo_inverse(gram: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
    """The inverse on what can be told apart, and which of the strings cannot."""
    if not gram.size:
        return gram, np.zeros(0, bool)
    scale = np.sqrt(np.where(np.diagonal(gram) > 0, np.diagonal(gram), 1.0))
    values, vectors = linalg.eigh(gram / np.outer(scale, scale))
    kept = values > SINGULAR * max(values[-1], SINGULAR)
    inverse: Numbers = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T / np.outer(scale, scale)
    return inverse, (vectors[:, ~kept] ** 2).sum(axis=1) > 1e-6


def _excess(residual: Numbers, variance: Numbers, freedom: float) -> float:
    """The variance to add for the residuals to be as large as they should (DerSimonian and Laird's idea)."""
    squares = residual**2
    low, high = 0.0, float(squares.sum()) / freedom
    while float((squares / (variance + high)).sum()) > freedom:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if float((squares / (variance + middle)).sum()) > freedom else (low, middle)
    return high
