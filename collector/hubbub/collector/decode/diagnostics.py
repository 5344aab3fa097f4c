"""Diagnostics: whether the data can be what they should be, in numbers and in a plain sentence each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from hubbub.collector.decode.estimates import Diagnostic, Number
from hubbub.shared.encode import Bloom, Bucket
from hubbub.shared.planning import DEFAULT_MIN_COHORT_REPORTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.collector.decode.least_squares import Equations, Fit
    from hubbub.collector.decode.noise import Noise, Numbers
    from hubbub.collector.decode.shares import Shares
    from hubbub.shared.encode import Encoding

ALARM = 1e-4
"""An alarm is raised where honest data would look as wrong as this, or worse, at most once in ten thousand times."""

TINY = 1e-300

FEW_REPORTS = 100
MANY_DEVICES = 50
"""In each cohort: from there on squares of their deviations are as good as chi-square."""

EXPLAINED = 0.5
"""Strings found that surely explain less than this share of the reports raise an alarm."""

LISTED = 0.9
"""So does a list of candidates that surely holds less than this."""

MOST_WITHOUT_VALUE = 0.1
"""The largest share of reports without a valid value that raises no alarm."""


def surprise(seen: Numbers, chances: Numbers, devices: float) -> float:
    """How likely it is, at most, that one of some shares of the reports exceeds its chance by as much as these do.

    Reports fall under a share with its chance, those of different devices independently: then it comes out as s instead
    of c with probability at most exp(-devices KL(s, c)) (Hoeffding 1963, theorem 1). Those of one device may all be
    alike. A device with w reports enters the proof by log(1 - c + c e^(tw)), which is convex in w, so that nothing is
    worse than fewest devices with a report in every period each. Bonferroni over the shares.
    """
    chances = np.clip(chances, TINY, 1.0)
    away = special.rel_entr(seen, chances) + special.rel_entr(1 - seen, 1 - chances)
    farthest = float(np.max(away, where=seen > chances, initial=0.0))
    return min(len(seen) * math.exp(-devices * farthest), 1.0)


def unlikely(away: Numbers, variance: Numbers, step: Numbers) -> Numbers:
    """How likely sums of independent numbers are, at most, to be so far above their means.

    `step` is how far one of the numbers can be above its own. By Bernstein's inequality, as Bennett (1962) proves it.
    """
    away = np.maximum(away, 0.0)
    bound: Numbers = np.exp(-(away**2) / np.maximum(2 * (variance + step * away / 3), TINY))
    return bound


def cohort_balance(reports: NDArray[np.int64], noise: Noise) -> Diagnostic:
    """Whether devices are spread evenly over the cohorts: each draws its own at random.

    It looks at every cohort, at every binary digit of their numbers, because a client that knows of half as many
    cohorts never sets the last, and, where there are enough devices, at the squares of all deviations together.
    """
    cohorts, total = len(reports), int(reports.sum())
    if cohorts == 1:
        return Diagnostic("cohort_balance", None, None, None, False, "there is one cohort")
    digits = np.arange(cohorts)[:, None] >> np.arange((cohorts - 1).bit_length()) & 1
    seen = np.concatenate([reports, reports @ digits]) / total
    chances = np.concatenate([np.full(cohorts, 1 / cohorts), digits.mean(axis=0)])
    both = np.concatenate([seen, 1 - seen]), np.concatenate([chances, 1 - chances])
    # The variance of the cohorts beside that of chance, if all devices have reported in every period.
    square = float(((reports - total / cohorts) ** 2).sum() * cohorts / total / noise.periods)
    chance = surprise(*both, total / noise.periods)
    if total / noise.periods >= MANY_DEVICES * cohorts:
        chance = min(2 * min(chance, float(special.chdtrc(cohorts - 1, square))), 1.0)
    alarm = chance < ALARM
    told = "are not spread evenly over" if alarm else "are spread over"
    # The exact count of a small cohort is not published: it can stand for very few devices.
    low, high = int(reports.min()), int(reports.max())
    small = f"fewer than {DEFAULT_MIN_COHORT_REPORTS}"
    least, most = (small if count < DEFAULT_MIN_COHORT_REPORTS else f"{count:,}" for count in (low, high))
    sentence = f"reports {told} the {cohorts} cohorts: {least if least == most else f'{least} to {most}'} in each"
    if alarm:
        sentence += "; devices draw their cohort at random, so some of the reports are not theirs, or are missing"
    return Diagnostic("cohort_balance", square / (cohorts - 1), 1.0, chance, alarm, sentence)


def impossible_bits(noise: Noise, reports: NDArray[np.int64], counts: NDArray[np.int64]) -> Diagnostic:
    """How many bits are set more often, or less often, than any truth allows.

    A device that has it set sends it more often than one that has not, so nothing exceeds what there would be if all
    had it, and nothing falls short of what there would be if none had.
    """
    numbers = np.repeat(noise.devices(reports.astype(float)), counts.shape[1])
    debiased = noise.debias(counts.ravel().astype(float), np.repeat(reports.astype(float), counts.shape[1]))
    spoken = numbers > 0
    debiased, numbers = debiased[spoken], numbers[spoken]
    step = 1 / (abs(noise.slope) * numbers)
    over = unlikely(debiased - 1, noise.variance_given(1) / numbers, step)
    under = unlikely(-debiased, noise.variance_given(0) / numbers, step)
    # Bonferroni over both sides of all bits.
    wrong = int(np.count_nonzero(np.minimum(over, under) < ALARM / (2 * max(len(debiased), 1))))
    share = wrong / max(len(debiased), 1)
    sentence = f"{wrong:,} of {len(debiased):,} bits are set more often, or less often, than any truth allows"
    if wrong:
        sentence += ": reports are forged, or were made with other parameters"
    return Diagnostic("saturated_bits", share, 0.0, None, wrong > 0, sentence)


def few_reports(reports: int) -> Diagnostic:
    """Whether there are enough reports for the noise to average out at all."""
    few = reports < FEW_REPORTS
    sentence = f"there are {reports:,} reports"
    if few:
        sentence = f"there are only {reports:,} reports: the noise of each is as large as what is looked for"
    return Diagnostic("reports", float(reports), None, None, few, sentence)


def of_shares(found: Shares, step: float, confidence: float) -> list[Diagnostic]:
    """Check the sum of the shares and the share of reports without a valid value."""
    return [sum_of_shares(found, step), no_value(found.no_value(confidence))]


def sum_of_shares(found: Shares, step: float = 0.0) -> Diagnostic:
    """Check that shares do not sum to more than 1; `step` is how far one bit of one device moves the sum."""
    error = found.total_error or math.inf
    standing = (found.total - 1) / error
    chance = float(unlikely(np.array(standing), np.array(1.0), np.array(step / error)))
    alarm = chance < ALARM
    sentence = f"the shares sum to {found.total:.3f}"
    if alarm:
        sentence += f", {standing:.1f} standard errors above 1: some reports are not honest"
    return Diagnostic("misfit", max(standing, 0.0) ** 2, 1.0, chance, alarm, sentence)


def no_value(share: Number) -> Diagnostic:
    """Check the share of reports without a valid value."""
    estimate, low, high = (min(max(part, 0.0), 1.0) for part in (share.estimate, share.low, share.high))
    sentence = f"{estimate:.1%} ({low:.1%} to {high:.1%}) of the reports hold no valid value"
    alarm = _surely_below(share, 1 - MOST_WITHOUT_VALUE)
    if alarm:
        sentence += ": the app records values the registry does not declare, or devices have used up lifetime_values"
    return Diagnostic("no_value", share.estimate, None, None, alarm, sentence)


def residual_misfit(fit: Fit, freedom: int, tails: float = 0.0) -> Diagnostic:
    """Whether the bits vary more than the noise and the strings in the model explain.

    `freedom` is the number of bits less the number of fitted shares; `tails` is the result of `long_tails`.
    """
    if freedom <= 0:
        return Diagnostic("misfit", None, None, None, False, "there are too few bits to tell whether they fit")
    # A sum of squares whose variance is 2 freedom + tails is taken for a chi-square of fewer degrees of freedom.
    fewer = freedom / (1 + tails / (2 * freedom))
    chance = float(special.chdtrc(fewer, fit.misfit * fewer / freedom))
    alarm = chance < ALARM
    ratio = fit.misfit / freedom
    sentence = f"the bits vary {ratio:.2f} times as much as noise alone would make them"
    if alarm:
        sentence += ": strings that are not in the model hold a part of the reports"
    return Diagnostic("misfit", ratio, 1.0, chance, alarm, sentence)


def long_tails(fit: Fit, equations: Equations) -> float:
    """By how much more the squares of all residuals vary than those of normal numbers, where bits are rarely set.

    A mean of n independent numbers between 0 and 1, of variance v, has a square of which the variance, by that of the
    mean, is at most 2 + 1/(nv).
    """
    spoken = equations.devices > 0
    step = 1 / (equations.noise.slope * equations.devices[spoken])
    return float((step**2 / equations.variance(fit.fitted)[spoken]).sum())


def explained(other: Number) -> Diagnostic:
    """How much of the reports the strings found explain."""
    share, told = _explained(other)
    alarm = _surely_below(other, EXPLAINED)
    sentence = f"the strings found explain {told} of the reports"
    if alarm:
        sentence += "; the others hold no candidate, or a candidate that is too rare to be found"
    return Diagnostic("explained", share, None, None, alarm, sentence)


def listed(other: Number) -> Diagnostic:
    """How much of the reports all candidates together explain."""
    share, told = _explained(other)
    alarm = _surely_below(other, LISTED)
    sentence = f"the candidate list explains {told} of the reports"
    if alarm:
        sentence += "; the others hold no candidate"
    return Diagnostic("listed", share, 1.0, None, alarm, sentence)


def _surely_below(other: Number, bar: float) -> bool:
    """Whether what is not `other` is less than this, whatever confidence was asked for."""
    if other.standard_error is None:
        return False
    return bool(1 - other.estimate - special.ndtri(ALARM) * other.standard_error < bar)


def _explained(other: Number) -> tuple[float, str]:
    share, low, high = (min(max(1 - part, 0.0), 1.0) for part in (other.estimate, other.high, other.low))
    return share, f"{100 * share:.0f} % ({100 * low:.0f} % to {100 * high:.0f} %)"


def ones_distribution(encoding: Encoding, noise: Noise) -> Numbers | None:
    """How likely an honest report with a valid value is to have 0, 1, 2, ... ones, where the encoding decides that.

    None where it depends on what is recorded: a flag, a mean, or buckets of which a device shows only some.
    """
    size = encoding.size
    if isinstance(encoding, Bloom):
        sets = _distinct_bits(encoding.bits, encoding.hashes)
    elif size == 1 or (isinstance(encoding, Bucket) and encoding.sent < encoding.buckets):
        return None
    else:
        sets = np.array([0.0, 1.0])
    chances = np.zeros(size + 1)
    for number, weight in enumerate(sets):
        if weight:
            one = binomial(number, noise.truth)
            zero = binomial(size - number, noise.lie)
            chances += weight * np.convolve(one, zero)
    return chances


def ones_laws(encoding: Encoding, noise: Noise) -> tuple[Numbers, Numbers]:
    """Return the same law for reports with as few set bits as possible, and for as many: all others lie between.

    In every encoding a report can have no set bit: it holds no valid value, or a value that sets none.
    """
    most = min(encoding.hashes, encoding.size)
    many = np.convolve(binomial(most, noise.truth), binomial(encoding.size - most, noise.lie))
    return binomial(encoding.size, noise.lie), many


def ones_per_report(
    ones: NDArray[np.int64], fewest: Numbers, most: Numbers | None = None, periods: int = 1
) -> Diagnostic:
    """Whether reports have as many ones as honest reports have; `ones` counts the reports by their number of ones.

    It looks at how many have a number of ones or fewer, and how many that or more, for each number. `fewest` and `most`
    are the laws of honest reports, one where it is known.
    """
    most = fewest if most is None else most
    total = max(int(ones.sum()), 1)
    seen = np.concatenate([np.cumsum(ones), np.cumsum(ones[::-1])]) / total
    chance = surprise(seen, np.concatenate([np.cumsum(fewest), np.cumsum(most[::-1])]), total / periods)
    mean, low, high = (float(each @ np.arange(len(each))) for each in (ones / total, fewest, most))
    alarm = chance < ALARM
    honest = f"{low:.2f}" if low == high else f"{low:.2f} to {high:.2f}"
    sentence = f"reports have {mean:.2f} ones on average, honest ones {honest}"
    if alarm:
        sentence += ": some reports were not made by the client"
    return Diagnostic("ones_per_report", mean, (low + high) / 2, chance, alarm, sentence)


def binomial(number: int, chance: float) -> Numbers:
    """How likely 0, 1, 2, ... of a number of draws are to succeed."""
    successes = np.arange(number + 1)
    ways = -np.log(number + 1) - special.betaln(number - successes + 1, successes + 1)
    chances: Numbers = np.exp(ways + special.xlogy(successes, chance) + special.xlog1py(number - successes, -chance))
    return chances


def _distinct_bits(bits: int, hashes: int) -> Numbers:
    """How likely `hashes` draws among `bits` are to hit 0, 1, 2, ... different ones."""
    chances = np.zeros(hashes + 1)
    chances[0] = 1.0
    for _ in range(hashes):
        hit = np.arange(hashes + 1) / bits
        chances = chances * hit + np.concatenate([[0.0], chances[:-1] * (1 - hit[:-1])])
    return chances
