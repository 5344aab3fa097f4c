"""Diagnostics that need single reports: whether each can be honest, in numbers and in a plain sentence.

Only what is proved is an alarm. In a period every device sends one report, with noise of its own, so reports are
independent; those of one device in several periods are not, so each period is looked at for itself. Both looks bound
the chance that honest reports are so far off, whatever was recorded, and the smallest over all periods is multiplied by
their number (Bonferroni): an archive of honest reports raises an alarm once in a million times at most.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from hubbub.collector.decode.diagnostics import binomial
from hubbub.collector.decode.estimates import Diagnostic
from hubbub.collector.errors import ArchiveError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from numpy.typing import NDArray

    from hubbub.collector.archive.file import FileHead
    from hubbub.shared.encode import Encoding
    from hubbub.shared.metric import Metric

    Numbers = NDArray[np.float64]

FALSE_ALARM = 1e-6
"""How often honest reports raise an alarm, at most."""

TINY = 1e-300


def check_meaning(metric: Metric, head: FileHead) -> None:
    """Refuse to judge reports by a metric that is not theirs."""
    if metric.fingerprint != head.fingerprint:
        raise ArchiveError(
            f'metric "{metric.name}": version {metric.version} of the registry has another meaning than the reports '
            f"of {head.metric} version {head.version} in the archive; allowed: the registry they were collected with"
        )


def ones_per_report(metric: Metric, ones: Mapping[date, NDArray[np.int64]]) -> Diagnostic:
    """Whether reports have as many ones as honest reports have.

    A report whose value sets j bits has Binomial(j, P) + Binomial(k - j, Q) ones; j is at least 0, as in the null
    encoding, and at most the number of hashes, and more set bits mean more ones. So both tails of the number of ones
    are bounded whatever was recorded, and the share of n reports that are in a tail exceeds its bound b by chance with
    at most exp(-n KL(share, b)) (Hoeffding 1963, theorem 1, for reports that need not be alike).
    """
    few, most = _bits_set(metric.encoding)
    lower, upper = _numbers_of_ones(metric, few), _numbers_of_ones(metric, most)
    at_most, at_least = np.cumsum(lower), np.cumsum(upper[::-1])[::-1]
    total = sum(int(seen.sum()) for seen in ones.values())
    found = sum(float(seen @ np.arange(len(seen))) for seen in ones.values()) / total
    low, high = (float(law @ np.arange(len(law))) for law in (lower, upper))
    chances = {
        day: min(_surprise(np.cumsum(seen), at_most), _surprise(np.cumsum(seen[::-1])[::-1], at_least))
        for day, seen in ones.items()
    }
    worst, chance = _worst(chances, 2 * len(lower))
    honest = f"{low:.2f}" if few == most else f"{low:.2f} to {high:.2f}"
    sentence = f"reports have {found:.2f} ones on average, honest ones {honest}"
    alarm = chance < FALSE_ALARM
    if alarm:
        sentence += f"; those of {worst} cannot all be honest: some have too many ones, or too few"
    return Diagnostic("ones_per_report", found, (low + high) / 2, chance, alarm, sentence)


def _surprise(seen: NDArray[np.int64], bound: Numbers) -> float:
    """Logarithm of how likely the most surprising of the tails is, at most."""
    n = int(seen.max())
    share, bound = seen / n, np.clip(bound, TINY, 1.0)
    # KL of two coins, of which the second falls short of the first.
    with np.errstate(divide="ignore", invalid="ignore"):
        away = special.rel_entr(share, bound) + special.rel_entr(1 - share, 1 - bound)
    return -n * float(np.max(np.where(share > bound, away, 0.0)))


def repeated_reports(metric: Metric, n: Mapping[date, NDArray[np.int64]], repeats: Mapping[date, int]) -> Diagnostic:
    """Whether more reports equal another one of their cohort and period than chance allows.

    An honest report equals a given string of k bits with probability at most w = max(P, 1 - P)^j max(Q, 1 - Q)^(k - j),
    j bits being set; so each repeats one of the i before it in its cohort with at most i w, whatever those are. All
    together there are r or more with probability at most e^(r - L) (L/r)^r, L = w * (the pairs of one cohort): the
    bound of Chernoff.
    """
    reports, found = sum(int(each.sum()) for each in n.values()), sum(repeats.values())
    allowed = {day: _repeats_allowed(metric, each) for day, each in n.items()}
    hopeful = sum(allowed.values())
    if not can_tell(metric, n):
        sentence = "reports have too few bits to tell whether some were sent twice"
        return Diagnostic("repeated_reports", None, None, None, False, sentence)
    worst, chance = _worst({day: _chernoff(repeats[day], allowed[day]) for day in n}, 1)
    alarm = chance < FALSE_ALARM
    sentence = f"{found:,} of {reports:,} reports equal an earlier one of their cohort and period"
    if alarm:
        sentence += (
            f", honest ones would {hopeful:.2g} times at most; look at {worst}: reports were sent again, or devices "
            "share a secret"
        )
    return Diagnostic("repeated_reports", float(found), hopeful, chance, alarm, sentence)


def can_tell(metric: Metric, n: Mapping[date, NDArray[np.int64]]) -> bool:
    """Whether repeated reports could raise an alarm at all: not where all of them may repeat another by chance."""
    return any(_repeats_allowed(metric, each) < each.sum() for each in n.values())


def _repeats_allowed(metric: Metric, n: NDArray[np.int64]) -> float:
    truth, lie = (max(chance, 1 - chance) for chance in _chances(metric))
    few, most = _bits_set(metric.encoding)
    alike = max(truth**j * lie ** (metric.size - j) for j in (few, most))
    return float(n @ (n - 1.0)) / 2 * alike


def _chernoff(found: int, allowed: float) -> float:
    """Logarithm of how likely so many are, at most."""
    if found <= allowed:
        return 0.0
    return found - allowed + found * math.log(max(allowed, TINY) / found)


def _worst(chances: Mapping[date, float], looks: int) -> tuple[date, float]:
    """The period that surprises most, and how likely it is that one of them is so surprising."""
    worst = min(chances, key=lambda day: chances[day])
    return worst, min(math.exp(chances[worst]) * looks * len(chances), 1.0)


def _chances(metric: Metric) -> tuple[float, float]:
    return metric.response.truth_is_sent, metric.response.noise_is_sent


def _bits_set(encoding: Encoding) -> tuple[int, int]:
    """Return the fewest and the most bits that a report sets before the noise; the null encoding sets none."""
    return 0, min(encoding.hashes, encoding.size)


def _numbers_of_ones(metric: Metric, bits_set: int) -> Numbers:
    truth, lie = _chances(metric)
    law: Numbers = np.convolve(binomial(bits_set, truth), binomial(metric.size - bits_set, lie))
    return law
