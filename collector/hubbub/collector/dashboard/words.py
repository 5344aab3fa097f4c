"""Plain sentences and numbers for the pages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from hubbub.shared.budget import metric_year

if TYPE_CHECKING:
    from datetime import date

    from hubbub.shared.metric import Metric

AFTER = (7, 30)
"""Numbers of reports that the privacy card speaks of, besides one and all."""

SMALLEST_CHANCE = 1e-300
"""The smallest p-value that is told as a number."""

NOTHING = "\N{EN DASH}"
PER = {"once": "Reports per day", "day": "Reports per day", "week": "Reports per week"}
EVERY = {"once": "once for each device", "day": "once a day", "week": "once a week"}


class Promise(NamedTuple):
    """One line of the privacy card."""

    name: str
    epsilon: str
    sentence: str


def promises(metric: Metric) -> list[Promise]:
    """Say what a metric promises, as a lawyer would want to read it."""
    lines = [_promise("One report", metric.epsilon(), "One report changes")]
    if metric.every == "once":
        return lines
    lines += [_promise(f"{n} reports", metric.epsilon(n), f"{n} reports of one answer change") for n in AFTER]
    lifetime = metric.epsilon(math.inf)
    lines.append(_promise("A lifetime", lifetime, "All reports of one answer together, however many, change"))
    return lines if metric.encodings == 1 else [*lines, _of_all_values(metric)]


def _of_all_values(metric: Metric) -> Promise:
    """What `hubbub privacy` adds up: all different answers; where nothing limits how many, those of a year."""
    limit = metric.encodings
    if limit is None:
        year = metric_year(metric)
        subject = f"All {year.reports:,} reports of a year, each of another answer, together change"
        return _promise("A year of new answers", year.epsilon, subject, "answers")
    all_of_them = "both" if limit == 2 else f"all {limit:,}"
    subject = f"All reports of {all_of_them} different answers together, if they change in the same periods, change"
    return _promise(f"{all_of_them.capitalize()} answers", limit * metric.epsilon(math.inf), subject, "answers")


def values_promise(metric: Metric) -> str:
    """Say what becomes of somebody whose answer changes."""
    if metric.every == "once":
        return "Each device sends one report, once."
    limit = metric.encodings
    bound = (
        "and nothing limits how many" if limit is None else f"and a device never reveals more than {limit:,} of them"
    )
    return (
        f"Each different answer adds as much again as the first, {bound}; no valid answer counts as one. "
        "When an answer changed is hidden by the fresh noise of each report alone."
    )


def factor(epsilon: float) -> str:
    """Spell the factor that belongs to an epsilon, rounded up: it is said to be the most."""
    if epsilon > 20:
        return "hundreds of millions or more"
    number = math.exp(epsilon)
    if number < 100:
        return f"{math.ceil(number * 100 - 1e-9) / 100:.2f}"
    return f"{math.ceil(number):,}"


def plural(number: int, noun: str) -> str:
    """Spell a number of things."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def period(day: date | None, every: str) -> str:
    """Name a period."""
    if day is None:
        return "never"
    return f"week of {day}" if every == "week" else str(day)


def chance(p_value: float) -> str:
    """Spell a p-value, which is never nothing: the smallest are only too small for a number."""
    return f"{p_value:.2g}" if p_value >= SMALLEST_CHANCE else f"< {SMALLEST_CHANCE:g}"


def control(spelled: str) -> str:
    """Say what a control over false discoveries allows."""
    way, _, level = spelled.partition(":")
    allowed = f"{100 * float(level):g} %"
    return f"{allowed} of those found" if way == "fdr" else f"any, with a chance of {allowed}"


def _promise(name: str, epsilon: float, subject: str, about: str = "answer") -> Promise:
    sentence = f"{subject} anyone's odds about a person's {about} by a factor of at most {factor(epsilon)}."
    return Promise(name, f"{math.ceil(epsilon * 1000 - 1e-9) / 1000:.3f}", sentence)
