"""How a metric went, period by period."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from itertools import pairwise
from statistics import median_low
from typing import TYPE_CHECKING

from hubbub.collector.charts import Axis, Figure, Panel, Series
from hubbub.collector.charts.words import label
from hubbub.collector.pictures import wording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hubbub.collector.decode.estimates import Estimates

MOST_LINES = 5
"""How many values are followed when nobody names any."""

MOST_ALARMS = 3
"""How many periods have their alarms told; of the others only the number is."""

_DAY_ZERO = date(1970, 1, 1)
_Dot = tuple[float, float, float]
"""A number, and the ends of its interval."""
_NOTHING: _Dot = (wording.MISSING,) * 3


def of_history(history: Sequence[Estimates], *, values: Sequence[str] = ()) -> Figure:
    """Show one estimate a period, in their order: the mean, or the shares of some values, each in its band.

    Shares are those of values that were decided on beforehand: never picked because they stood out in that period.
    """
    spoken = [each for each in history if each.reports and each.start is not None]
    if not spoken:
        name = f"{history[0].metric}: " if history else ""
        return Figure(f"{name}no reports", "There is no period with reports yet.", ())
    if spoken[0].kind == "mean":
        lines = {"mean": [_mean(each) for each in spoken]}
    else:
        lines = {value: [_share(each, value) for each in spoken] for value in values or _most_common(spoken)}
    unknown = [value for value, dots in lines.items() if all(dot is _NOTHING for dot in dots)]
    lines = {value: dots for value, dots in lines.items() if value not in unknown}
    title = f"{spoken[0].metric}: {_subject(spoken[0], list(lines))}"
    caption = _caption(spoken, unknown)
    return Figure(title, caption, [_panel(spoken, lines)] if lines else ())


def _subject(first: Estimates, names: Sequence[str]) -> str:
    if first.kind == "mean":
        return "mean by period"
    return f"share of {label(names[0])} by period" if len(names) == 1 else "shares by period"


def _caption(spoken: Sequence[Estimates], unknown: Sequence[str]) -> str:
    first, last = spoken[0], spoken[-1]
    reports = sum(each.reports for each in spoken)
    periods = "one period" if len(spoken) == 1 else f"{len(spoken):,} periods"
    told = [f"{reports:,} reports in {periods}{wording.when(first.start, last.end)}."]
    told += [wording.intervals(first, "Bands" if len(spoken) > 1 else "Thin lines")]
    told += [f"Nothing is known of {_listed(unknown)}."] if unknown else []
    wrong = [each for each in spoken if each.alarms]
    told += [f"Period {each.start}: {wording.alarms(each)}" for each in wrong[:MOST_ALARMS]]
    told += [f"There are alarms in {len(wrong) - MOST_ALARMS:,} more periods."] if len(wrong) > MOST_ALARMS else []
    return wording.sentences(told)


def _listed(values: Sequence[str]) -> str:
    more = len(values) - MOST_LINES
    return ", ".join(map(label, values[:MOST_LINES])) + (f" and {more:,} more" if more > 0 else "")


def _mean(estimates: Estimates) -> _Dot:
    mean = estimates.mean
    return _NOTHING if mean is None else (mean.estimate, mean.low, mean.high)


def _share(estimates: Estimates, value: str) -> _Dot:
    try:
        row = estimates[value]
    except KeyError:
        return _NOTHING
    return _NOTHING if row.share is None else (row.share, row.low, row.high)


def _most_common(spoken: Sequence[Estimates]) -> list[str]:
    """The values with most reports over all periods; of strings, those that were found at least once."""
    counts: defaultdict[str, float] = defaultdict(float)
    found: set[str] = set()
    for each in spoken:
        for row in each.rows:
            counts[row.value] += row.count or 0.0
            if row.detected or each.kind != "string":
                found.add(row.value)
    return sorted(found, key=lambda value: (-counts[value], value))[:MOST_LINES]


def _panel(spoken: Sequence[Estimates], lines: dict[str, list[_Dot]]) -> Panel:
    days = [(each.start - _DAY_ZERO).days for each in spoken if each.start is not None]
    margin = 0.5 + 0.02 * (days[-1] - days[0])
    daily = all(each.start == each.end for each in spoken)
    x = Axis("day" if daily else "first day of the period", dates=True, low=days[0] - margin, high=days[-1] + margin)
    y = Axis(f"mean of {spoken[0].metric}") if spoken[0].kind == "mean" else Axis("share of reports", percent=True)
    return Panel("", x, y, [_line(value if len(lines) > 1 else "", days, dots) for value, dots in lines.items()])


def _line(name: str, days: Sequence[int], dots: Sequence[_Dot]) -> Series:
    """One value over time; nothing is known between two periods that do not follow each other."""
    usual = median_low([after - before for before, after in pairwise(days)]) if len(days) > 1 else 1
    placed: list[tuple[float, _Dot]] = []
    for day, dot in zip(days, dots, strict=True):
        if placed and day - placed[-1][0] > 1.5 * usual:
            placed.append((day - usual / 2, _NOTHING))
        placed.append((day, dot))
    numbers, low, high = zip(*(dot for _, dot in placed), strict=True)
    return Series(name, [day for day, _ in placed], numbers, low, high, look="trend")
