"""Plain sentences and numbers for the pages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from datetime import date

    from hubbub.shared.metric import Metric

AFTER = (7, 30)
"""Numbers of reports that the privacy card speaks of, besides one and all."""

NOTHING = "\N{EN DASH}"
EVERY = {"once": "once for each device", "day": "once a day", "week": "once a week"}


class Promise(NamedTuple):
    """One line of the privacy card."""

    name: str
    epsilon: str
    sentence: str


def promises(metric: Metric) -> list[Promise]:
    """Say what a metric promises, as a lawyer would want to read it."""
    told = [_promise("One report", metric.epsilon(), "One report changes")]
    if metric.every == "once":
        return told
    told += [_promise(f"{n} reports", metric.epsilon(n), f"{n} reports of one answer change") for n in AFTER]
    lifetime = metric.epsilon(math.inf)
    return [*told, _promise("A lifetime", lifetime, "All reports of one answer together, however many, change")]


def values_promise(metric: Metric) -> str:
    """Say what becomes of somebody whose answer changes."""
    if metric.every == "once":
        return "Each device sends one report, once."
    limit = metric.lifetime_values
    told = "and nothing limits how many" if limit is None else f"and a device never reveals more than {limit:,} of them"
    return f"These numbers are about one answer. Each different one adds as much again, {told}."


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


def per_cent(share: float | None) -> str:
    """Spell a share."""
    return NOTHING if share is None else f"{100 * share:.2f} %"


def control(spelled: str) -> str:
    """Say what a control over false discoveries allows."""
    way, _, level = spelled.partition(":")
    allowed = f"{100 * float(level):g} %"
    return f"{allowed} of those found" if way == "fdr" else f"any, with a chance of {allowed}"


def _promise(name: str, epsilon: float, subject: str) -> Promise:
    sentence = f"{subject} anyone's odds about a person's answer by a factor of at most {factor(epsilon)}."
    return Promise(name, f"{math.ceil(epsilon * 1000 - 1e-9) / 1000:.3f}", sentence)
