"""The exact numbers that stand beneath a chart."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from hubbub.collector.dashboard.words import NOTHING, per_cent, period
from hubbub.collector.decode.estimates import lay_out

if TYPE_CHECKING:
    from hubbub.collector.dashboard.desk import Shown
    from hubbub.collector.decode import Estimates


class Table(NamedTuple):
    """A header, and rows whose first cell names them."""

    header: list[str]
    rows: list[list[str]]


def of_estimates(estimates: Estimates, search: str) -> Table:
    """Lay out estimates as they are printed elsewhere too; of strings only those that hold what is searched for."""
    if search:
        wanted = search.casefold()
        rows = tuple(row for row in estimates.rows if any(wanted in each.casefold() for each in (row.value, *row.also)))
        estimates = msgspec.structs.replace(estimates, rows=rows, other=None)
    _, header, rows_shown, _ = lay_out(estimates)
    return Table(["quantity", *header[1:]] if not header[0] else header, rows_shown)


def of_quantiles(estimates: Estimates) -> Table:
    """Lay out the mean and the quantiles of a histogram."""
    rows = []
    if estimates.mean is not None:
        mean = estimates.mean
        rows.append(["mean", f"{mean.estimate:.6g}", f"{mean.low:.6g} to {mean.high:.6g}"])
    rows += [
        [_quantile(point.at), f"{point.estimate:.6g}", f"{point.low:.6g} to {point.high:.6g}"]
        for point in estimates.quantiles
    ]
    return Table(["quantity", "estimate", f"{100 * estimates.confidence:g} % interval"], rows)


def of_history(shown: Shown, kind: str, every: str) -> Table:
    """Lay out a time series, the last period first."""
    if kind == "mean":
        header = ["period", "reports", "mean", "interval"]
        rows = [
            [period(each.start, every), f"{each.reports:,}", f"{each.mean.estimate:.6g}", _between(each)]
            for each in shown.history or ()
            if each.mean is not None
        ]
        return Table(header, rows[::-1])
    header = ["period", "reports", *shown.values]
    rows = [
        [period(each.start, every), f"{each.reports:,}", *(_share(each, value) for value in shown.values)]
        for each in shown.history or ()
    ]
    return Table(header, rows[::-1])


def _quantile(at: float) -> str:
    return "median" if at == 0.5 else f"{100 * at:g} % lie below"


def _between(estimates: Estimates) -> str:
    return "" if estimates.mean is None else f"{estimates.mean.low:.6g} to {estimates.mean.high:.6g}"


def _share(estimates: Estimates, value: str) -> str:
    try:
        row = estimates[value]
    except KeyError:
        return NOTHING
    return f"{per_cent(row.share)} ({per_cent(row.low)} to {per_cent(row.high)})"
