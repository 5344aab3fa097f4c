"""Diagnostics: whether the data can be what they should be, in numbers and in a plain sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from hubbub.collector.decode.estimates import Diagnostic, Number
from hubbub.shared.encode import Bloom, Bucket

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hubbub.collector.decode.least_squares import Fit
    from hubbub.collector.decode.noise import Noise, Numbers
    from hubbub.collector.decode.simplex import Simplex
    from hubbub.shared.encode import Encoding

ALARM = 1e-4
"""An alarm is raised where honest data would look as wrong as this, or worse, once in ten thousand times."""

FEW_REPORTS = 100
EXPLAINED = 0.5
"""Strings found that surely explain less than this share of the reports raise an alarm."""

LISTED = 0.9
"""So does a list of candidates that surely holds less than this."""


def cohort_balance(reports: NDArray[np.int64], noise: Noise) -> Diagnostic:
    """Whether devices are spread evenly over the cohorts: each draws its own at random."""
    cohorts, total = len(reports), int(reports.sum())
    if cohorts == 1:
        return Diagnostic("cohort_balance", None, None, None, False, "there is one cohort")
    # Devices, not reports, are independent; each may have sent one in every period.
    square = float(((reports - total / cohorts) ** 2).sum() * cohorts / total / noise.periods)
    chance = float(special.chdtrc(cohorts - 1, square))
    alarm = chance < ALARM
    told = "are not spread evenly over" if alarm else "are spread over"
    sentence = f"reports {told} the {cohorts} cohorts: {reports.min():,} to {reports.max():,} in each"
    if alarm:
        sentence += "; devices draw their cohort at random, so some of the reports are not theirs, or are missing"
    return Diagnostic("cohort_balance", square / (cohorts - 1), 1.0, chance, alarm, sentence)


def impossible_bits(noise: Noise, reports: NDArray[np.int64], counts: NDArray[np.int64]) -> Diagnostic:
    """How many bits are set more often, or less often, than any truth allows."""
    numbers = np.repeat(noise.devices(reports.astype(float)), counts.shape[1])
    debiased = noise.debias(counts.ravel().astype(float), np.repeat(reports.astype(float), counts.shape[1]))
    spoken = numbers > 0
    debiased, numbers = debiased[spoken], numbers[spoken]
    over = (debiased - 1) / np.sqrt(np.maximum(noise.variance_given(1), 1e-12) / numbers)
    under = -debiased / np.sqrt(np.maximum(noise.variance_given(0), 1e-12) / numbers)
    # Bonferroni over both sides of all bits; small numbers make the tails of a binomial longer than a normal's.
    bar = -special.ndtri(ALARM / (2 * max(len(debiased), 1))) * (1 + 2 / np.sqrt(np.maximum(numbers, 1.0)))
    wrong = int(np.count_nonzero((over > bar) | (under > bar)))
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


def sum_of_shares(found: Simplex) -> Diagnostic:
    """Whether shares that have to sum to 1 do so before they are made to."""
    standing = (found.total - 1) / found.total_error if found.total_error else 0.0
    chance = float(2 * special.ndtr(-abs(standing)))
    alarm = chance < ALARM
    sentence = f"the shares sum to {found.total:.3f} before they are made to sum to 1"
    if alarm:
        sentence += f", which is {abs(standing):.1f} standard errors away: some reports are not honest ones"
    return Diagnostic("misfit", standing**2, 1.0, chance, alarm, sentence)


def residual_misfit(fit: Fit, strings: int, equations: int) -> Diagnostic:
    """Whether the bits vary more than the noise and the strings in the model explain."""
    freedom = equations - strings
    if freedom <= 0:
        return Diagnostic("misfit", None, None, None, False, "there are too few bits to tell whether they fit")
    chance = float(special.chdtrc(freedom, fit.misfit))
    alarm = chance < ALARM
    ratio = fit.misfit / freedom
    sentence = f"the bits vary {ratio:.2f} times as much as noise alone would make them"
    if alarm:
        sentence += ": strings that are not in the model hold a part of the reports"
    return Diagnostic("misfit", ratio, 1.0, chance, alarm, sentence)


def explained(other: Number) -> Diagnostic:
    """How much of the reports the strings found explain."""
    share, told = _explained(other)
    alarm = 1 - other.low < EXPLAINED
    sentence = f"the strings found explain {told} of the reports"
    if alarm:
        sentence += "; the others hold strings that are not in the candidate list, or are too rare to be found"
    return Diagnostic("explained", share, None, None, alarm, sentence)


def listed(other: Number) -> Diagnostic:
    """How much of the reports all candidates together explain."""
    share, told = _explained(other)
    alarm = 1 - other.low < LISTED
    sentence = f"the candidate list explains {told} of the reports"
    if alarm:
        sentence += "; the others hold strings that are not in it"
    return Diagnostic("listed", share, 1.0, None, alarm, sentence)


def _explained(other: Number) -> tuple[float, str]:
    share, low, high = (min(max(1 - part, 0.0), 1.0) for part in (other.estimate, other.high, other.low))
    return share, f"{100 * share:.0f} % ({100 * low:.0f} % to {100 * high:.0f} %)"


def ones_distribution(encoding: Encoding, noise: Noise) -> Numbers | None:
    """How likely an honest report is to have 0, 1, 2, ... ones, where the encoding alone decides that.

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


def ones_per_report(ones: NDArray[np.int64], expected: Numbers) -> Diagnostic:
    """Whether reports have as many ones as honest reports have; `ones` counts the reports by their number of ones."""
    total = int(ones.sum())
    wanted = expected * total
    # Neighbours are put together until at least five reports are expected of each group.
    groups = np.minimum(np.cumsum(wanted) // 5, max(total // 5, 1) - 1).astype(int)
    seen = np.bincount(groups, ones[: len(wanted)])
    hoped = np.bincount(groups, wanted)
    kept = hoped > 0
    square = float(((seen[kept] - hoped[kept]) ** 2 / hoped[kept]).sum())
    freedom = max(int(kept.sum()) - 1, 1)
    chance = float(special.chdtrc(freedom, square))
    mean = float(ones @ np.arange(len(ones))) / max(total, 1)
    honest = float(expected @ np.arange(len(expected)))
    alarm = chance < ALARM
    sentence = f"reports have {mean:.2f} ones on average, honest ones {honest:.2f}"
    if alarm:
        sentence += ": some reports were not made by the client"
    return Diagnostic("ones_per_report", mean, honest, chance, alarm, sentence)


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
