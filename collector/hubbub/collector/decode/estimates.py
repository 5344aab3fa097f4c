"""Estimates: what is there, how much of it, how sure that is, and whether the data look wrong."""

from __future__ import annotations

import csv
import html
import importlib
import io
from datetime import date  # noqa: TC003  (msgspec reads the annotations)
from typing import Any

import msgspec
from msgspec import Struct

from hubbub.shared.metric import Kind  # noqa: TC001

SHOWN_ROWS = 50
"""How many rows are printed; all of them are there."""


OTHER = "(other)"
NO_VALUE = "(no valid value)"
NO_VALUE_IN_OTHER = f"{NO_VALUE}, part of {OTHER}"

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Row(Struct, frozen=True):
    """One value, and what is known about it."""

    value: str
    count: float | None
    """How many of the reports hold it: its share of them."""
    share: float | None
    """Unbiased, and so sometimes negative; None if no report could have told."""
    standard_error: float | None
    low: float
    high: float
    """The interval for the share of a value that was decided on beforehand."""
    p_value: float
    """How often a value that nobody has would look at least as common."""
    detected: bool
    consistent: float | None = None
    """The nearest shares that are possible, all together: none is negative and their sum is at most 1."""
    found_error: float | None = None
    found_low: float | None = None
    found_high: float | None = None
    """The standard error and the interval for the share of a string that is reported because it was found."""
    also: tuple[str, ...] = ()
    """Other candidates that set exactly the same bits: no report can tell them apart."""


class Number(Struct, frozen=True):
    """One number, and how sure it is."""

    estimate: float
    standard_error: float | None
    low: float
    high: float
    guaranteed_low: float | None = None
    guaranteed_high: float | None = None
    """A wider interval that leans on no approximation."""


class Point(Struct, frozen=True):
    """A point of the cumulative curve: the share at or below `at`; or a quantile: the number that `at` lie below."""

    at: float
    estimate: float
    low: float
    high: float


class Diagnostic(Struct, frozen=True):
    """One look at whether the data can be what they should be."""

    name: str
    value: float | None
    expected: float | None
    p_value: float | None
    alarm: bool
    sentence: str


class Estimates(Struct, frozen=True):
    """All that a tally says about a metric."""

    metric: str
    version: int
    kind: Kind
    start: date | None
    end: date | None
    reports: int
    periods: int
    """Over how many periods a device may have reported more than once."""
    devices: int
    """The fewest that can have sent so many reports: what the intervals assume."""
    confidence: float
    rows: tuple[Row, ...] = ()
    control: str | None = None
    method: str = "bits"
    """`bits` alone, `least squares` on all candidates, or `selection` among them."""
    other: Number | None = None
    """Strings: the share of reports that hold no candidate, or after a selection no string found, for any reason.

    Reports without a valid value are included.
    """
    no_value: Number | None = None
    """Share of reports without a valid value; None for a flag or a mean, where it is not visible."""
    mean: Number | None = None
    quantiles: tuple[Point, ...] = ()
    cumulative: tuple[Point, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def detected(self) -> tuple[Row, ...]:
        """The rows of what is there."""
        return tuple(row for row in self.rows if row.detected)

    @property
    def alarms(self) -> tuple[str, ...]:
        """What looks wrong, a plain sentence each."""
        return tuple(each.sentence for each in self.diagnostics if each.alarm)

    def __getitem__(self, value: str) -> Row:
        """The row of a value."""
        for row in self.rows:
            if row.value == value or value in row.also:
                return row
        raise KeyError(value)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as numbers, strings, lists and dictionaries."""
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built | {"alarms": list(self.alarms)}

    def to_csv(self) -> str:
        """The rows, with a header; for a mean, its one row. Text that a spreadsheet would run is made plain text."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_columns(self))
        writer.writerows([harmless(cell) for cell in row] for row in _cells(self))
        return text.getvalue()

    def to_pandas(self) -> Any:
        """The rows as a data frame, if pandas is installed."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError:
            raise ImportError("to_pandas needs pandas, which is not installed: pip install pandas") from None
        return pandas.DataFrame(_cells(self), columns=_columns(self))

    def __str__(self) -> str:
        title, header, rows, notes = lay_out(self)
        widths = [max(map(len, cells)) for cells in zip(header, *rows, strict=True)]
        lines = [title]
        for row in (header, *rows):
            cells = [f"{row[0]:<{widths[0]}}"] + [
                f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)
            ]
            lines.append("  " + "  ".join(cells).rstrip())
        return "\n".join([*lines, *notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """For notebooks."""
        title, header, rows, notes = lay_out(self)
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        below = "".join(f"<p>{html.escape(note)}</p>" for note in notes)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<p><b>{html.escape(title)}</b></p>{table}{below}"


def harmless(cell: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would take for a formula; numbers stay numbers."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _columns(estimates: Estimates) -> list[str]:
    return list((Number if estimates.kind == "mean" else Row).__struct_fields__)


def _cells(estimates: Estimates) -> list[list[Any]]:
    rows = [estimates.mean] if estimates.kind == "mean" and estimates.mean else list(estimates.rows)
    return [
        [" | ".join(cell) if isinstance(cell, tuple) else cell for cell in msgspec.structs.astuple(row)] for row in rows
    ]


def lay_out(estimates: Estimates) -> tuple[str, list[str], list[list[str]], list[str]]:
    """Choose what to print: a title, a header, rows and notes."""
    per_cent = f"{100 * estimates.confidence:g} %"
    when = f", {estimates.start} to {estimates.end}" if estimates.start and estimates.end else ""
    title = f"{estimates.metric} version {estimates.version} ({estimates.kind}): {estimates.reports:,} reports{when}"
    notes = [f"! {sentence}" for sentence in estimates.alarms]
    if estimates.kind == "mean":
        return title, *_mean_table(estimates, per_cent), notes
    if estimates.kind == "string":
        header = ["found", "count", "share", f"{per_cent} interval", "p-value"]
        rows = [_found(row, estimates.reports) for row in estimates.detected[:SHOWN_ROWS]]
        if estimates.other is not None:
            rows.append([*_total(OTHER, estimates.other, estimates.reports), ""])
        if estimates.no_value is not None:
            rows.append([*_total(NO_VALUE_IN_OTHER, estimates.no_value, estimates.reports), ""])
        more = len(estimates.detected) - SHOWN_ROWS
        asked = f"{len(estimates.detected):,} of {len(estimates.rows):,} candidates found ({estimates.control})"
        return title, header, rows, [asked + (f"; {more:,} more not shown" if more > 0 else ""), *notes]
    header = ["value", "count", "share", f"{per_cent} interval", "consistent", "p-value"]
    rows = [
        [row.value, _count(row.count), *_share(row), _per_cent(row.consistent), f"{row.p_value:.2g}"]
        for row in estimates.rows
    ]
    if estimates.no_value is not None:
        rest = 1 - sum(row.consistent or 0.0 for row in estimates.rows)
        rows.append([*_total(NO_VALUE, estimates.no_value, estimates.reports), _per_cent(max(rest, 0.0)), ""])
    if estimates.mean is not None:
        _, mean_rows = _mean_table(estimates, per_cent)
        notes = (
            [f"mean {mean_rows[0][1]}, {per_cent} interval {mean_rows[0][2]}"]
            + [
                f"{100 * point.at:g} % lie below {point.estimate:.6g}, interval {point.low:.6g} to {point.high:.6g}"
                for point in estimates.quantiles
            ]
            + notes
        )
    return title, header, rows, notes


def _mean_table(estimates: Estimates, per_cent: str) -> tuple[list[str], list[list[str]]]:
    header = ["", "mean", f"{per_cent} interval", "guaranteed"]
    mean = estimates.mean
    if mean is None:
        return header, []
    guaranteed = f"{mean.guaranteed_low:.6g} to {mean.guaranteed_high:.6g}" if mean.guaranteed_low is not None else ""
    return header, [["mean", f"{mean.estimate:.6g}", f"{mean.low:.6g} to {mean.high:.6g}", guaranteed]]


def _found(row: Row, reports: int) -> list[str]:
    name = " | ".join((row.value, *row.also))
    share = row.consistent or 0.0
    interval = f"{_per_cent(row.found_low)} to {_per_cent(row.found_high)}"
    return [name, _count(share * reports), _per_cent(share), interval, f"{row.p_value:.2g}"]


def _total(name: str, share: Number, reports: int) -> list[str]:
    return [name, _count(share.estimate * reports), *_share(share)]


def _share(number: Row | Number) -> tuple[str, str]:
    share = number.share if isinstance(number, Row) else number.estimate
    return _per_cent(share), f"{_per_cent(number.low)} to {_per_cent(number.high)}"


def _count(count: float | None) -> str:
    return "-" if count is None else f"{count:,.0f}"


def _per_cent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f} %"
