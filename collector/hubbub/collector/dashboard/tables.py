"""The numbers that stand beneath a chart, with the digits that their intervals let anybody know. Files have all."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hubbub.collector.dashboard.words import NOTHING, chance, period
from hubbub.collector.decode.estimates import NO_VALUE, NO_VALUE_IN_OTHER, OTHER, SHOWN_ROWS
from hubbub.collector.pictures import wording

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hubbub.collector.dashboard.desk import Shown
    from hubbub.collector.decode import Estimates
    from hubbub.collector.decode.estimates import Number, Point, Row


class Table(NamedTuple):
    """A header, and rows whose first cell names them. What matters most comes first: a phone shows little beside it."""

    header: list[str]
    rows: list[list[str]]


class Ranged(NamedTuple):
    """A number in its interval; None: nobody could have told."""

    number: float | None
    low: float | None
    high: float | None


def of_estimates(estimates: Estimates) -> Table:
    """Lay out estimates: of strings those that were found."""
    interval = _interval(estimates)
    if estimates.kind == "mean":
        mean = estimates.mean
        rows = [] if mean is None else [["mean", *_mean(mean)]]
        return Table(["quantity", "mean", interval, "guaranteed"], rows)
    if estimates.kind == "string":
        rows = _strings(estimates, estimates.detected[:SHOWN_ROWS], totals=True)
        return Table(["string", "share", interval, "count", "p-value"], rows)
    named = [
        (row.value, Ranged(row.share, row.low, row.high), row.consistent, chance(row.p_value)) for row in estimates.rows
    ]
    if estimates.no_value is not None:
        rest = max(1 - sum(row.consistent or 0.0 for row in estimates.rows), 0.0)
        named.append((NO_VALUE, _ranged(estimates.no_value), rest, ""))
    reach = _reach([each for _, each, _, _ in named])
    rows = [
        [name, *_shares(each, reach), _share(consistent, reach), _count(each, reach, estimates), p_value]
        for name, each, consistent, p_value in named
    ]
    return Table(["value", "share", interval, "consistent", "count", "p-value"], rows)


def of_search(estimates: Estimates, rows: Sequence[Row]) -> Table:
    """Lay out the strings that hold what was searched for, whether they were found or not."""
    cells = _strings(estimates, rows, totals=False)
    marked = [[*each[:3], "yes" if row.detected else "no", *each[3:]] for each, row in zip(cells, rows, strict=True)]
    return Table(["string", "share", _interval(estimates), "found", "count", "p-value"], marked)


def of_quantiles(estimates: Estimates) -> Table:
    """Lay out the mean and the quantiles of a histogram."""
    mean = estimates.mean
    rows = [] if mean is None else [["mean", *_mean(mean)[:2]]]
    rows += [[_quantile(point.at), *_numbers(point)] for point in estimates.quantiles]
    return Table(["quantity", "estimate", _interval(estimates)], rows)


def of_history(shown: Shown, kind: str, every: str) -> Table:
    """Lay out a time series, the last period first."""
    periods = shown.history or ()
    if kind == "mean":
        spoken = [(each, each.mean) for each in periods if each.mean is not None]
        header = ["period", "mean", "interval", "reports"]
        rows = [[period(each.start, every), *_mean(mean)[:2], f"{each.reports:,}"] for each, mean in spoken]
        return Table(header, rows[::-1])
    columns = [[_share_of(each, value) for each in periods] for value in shown.values]
    cells = [[_in_brackets(each, _reach(column)) for each in column] for column in columns]
    rows = [
        [period(each.start, every), *(column[place] for column in cells), f"{each.reports:,}"]
        for place, each in enumerate(periods)
    ]
    return Table(["period", *shown.values, "reports"], rows[::-1])


def _interval(estimates: Estimates) -> str:
    return f"{wording.per_cent(estimates.confidence)} interval"


def _strings(estimates: Estimates, rows: Sequence[Row], *, totals: bool) -> list[list[str]]:
    """Strings that were found have the interval that allows for that; others that of a string one had in mind."""
    named = [(" | ".join((row.value, *row.also)), _of_string(row), chance(row.p_value)) for row in rows]
    if totals:
        shares = {OTHER: estimates.other, NO_VALUE_IN_OTHER: estimates.no_value}
        named += [(name, _ranged(share), "") for name, share in shares.items() if share is not None]
    reach = _reach([each for _, each, _ in named])
    return [[name, *_shares(each, reach), _count(each, reach, estimates), p_value] for name, each, p_value in named]


def _ranged(number: Number) -> Ranged:
    return Ranged(number.estimate, number.low, number.high)


def _of_string(row: Row) -> Ranged:
    if row.detected:
        return Ranged(row.consistent or 0.0, row.found_low or 0.0, row.found_high or 0.0)
    return Ranged(row.share, row.low, row.high)


def _reach(ranged: Iterable[Ranged]) -> float:
    """Half the usual interval of a column, all of whose numbers are written with the same digits."""
    known = [(each.low, each.high) for each in ranged if each.low is not None and each.high is not None]
    return wording.usual_reach([low for low, _ in known], [high for _, high in known])


def _shares(each: Ranged, reach: float) -> list[str]:
    return [_share(each.number, reach), f"{_share(each.low, reach)} to {_share(each.high, reach)}"]


def _share(share: float | None, reach: float) -> str:
    return NOTHING if share is None else wording.share(share, reach)


def _count(each: Ranged, reach: float, estimates: Estimates) -> str:
    if each.number is None:
        return NOTHING
    return wording.number(each.number * estimates.reports, max(reach * estimates.reports, 1.0))


def _mean(mean: Number) -> list[str]:
    reach = (mean.high - mean.low) / 2
    told = _numbers(mean)
    if mean.guaranteed_low is None or mean.guaranteed_high is None:
        return [*told, NOTHING]
    return [*told, f"{wording.number(mean.guaranteed_low, reach)} to {wording.number(mean.guaranteed_high, reach)}"]


def _numbers(number: Number | Point) -> list[str]:
    """A number and its interval, with the same digits."""
    reach = (number.high - number.low) / 2
    estimate, low, high = (wording.number(each, reach) for each in (number.estimate, number.low, number.high))
    return [estimate, f"{low} to {high}"]


def _quantile(at: float) -> str:
    return "median" if at == 0.5 else f"{100 * at:g} % lie below"


def _share_of(estimates: Estimates, value: str) -> Ranged:
    try:
        row = estimates[value]
    except KeyError:
        return Ranged(None, None, None)
    return Ranged(row.share, row.low, row.high)


def _in_brackets(each: Ranged, reach: float) -> str:
    if each.number is None:
        return NOTHING
    share, interval = _shares(each, reach)
    return f"{share} ({interval})"
