"""What figures say in words: numbers with the digits that are known, and what every caption tells."""

from __future__ import annotations

import math
from statistics import median_low
from typing import TYPE_CHECKING

from hubbub.collector.decode.control import Control

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import date

    from hubbub.collector.decode import Estimates

MISSING = float("nan")
"""A number that nobody knows: it has no place in a figure."""


def number(value: float, reach: float) -> str:
    """Write a number with as many digits as half its interval lets anybody know."""
    reach = reach or abs(value)
    decimals = 1 - math.floor(math.log10(reach) + 1e-9) if 0 < reach < math.inf else 0
    known = round(value, decimals) if decimals < 0 else value
    written = f"{known:,.{min(max(decimals, 0), 9)}f}"
    return written.removeprefix("-") if not written.strip("-0.,") else written


def share(value: float, reach: float) -> str:
    """Write a share in per cent."""
    return f"{number(100 * value, 100 * reach)} %"


def usual_reach(low: Sequence[float], high: Sequence[float]) -> float:
    """Half the interval that numbers in one column have most of the time: they are written with the same digits."""
    halves = [(upper - lower) / 2 for lower, upper in zip(low, high, strict=True) if upper > lower]
    return median_low(halves) if halves else 0.0


def per_cent(level: float) -> str:
    """Write a level that somebody chose, such as a confidence."""
    return f"{100 * level:.12g} %"


def reports(estimates: Estimates) -> str:
    """How much was added up, of what and of when."""
    number = f"{estimates.reports:,} report{'' if estimates.reports == 1 else 's'}"
    return f"{number} of {estimates.metric} version {estimates.version}{when(estimates.start, estimates.end)}."


def when(start: date | None, end: date | None) -> str:
    """The days from first to last, as the end of a sentence."""
    if start is None or end is None:
        return ""
    return f", {start}" if start == end else f", {start} to {end}"


def intervals(estimates: Estimates, what: str = "Thin lines") -> str:
    """What the error bars are."""
    return f"{what} are {per_cent(estimates.confidence)} intervals."


def no_value(estimates: Estimates) -> str:
    """Describe the share of reports without a valid value; its interval would be too long for most charts."""
    found = estimates.no_value
    if found is None:
        return ""
    estimate, low, high = (
        share(part, (found.high - found.low) / 2) for part in (found.estimate, found.low, found.high)
    )
    if found.low <= 0:
        return f"At most {high} of the reports hold no valid value." if found.high > 0 else ""
    return f"{estimate} ({low} to {high}) of the reports hold no valid value."


def control(estimates: Estimates) -> str:
    """How many of the strings found may not be there."""
    if estimates.control is None:
        return ""
    chosen = Control.parse(estimates.control)
    if chosen.method == "fdr":
        return f"Of those found, at most {per_cent(chosen.level)} are false on average."
    return f"The chance that any of those found is false is at most {per_cent(chosen.level)}."


def alarms(estimates: Estimates) -> str:
    """What looks wrong."""
    return sentences(f"Alarm: {sentence.rstrip('.')}." for sentence in estimates.alarms)


def sentences(parts: Iterable[str]) -> str:
    """Sentences one after the other."""
    return " ".join(filter(None, parts))
