"""The figure of one decoded metric, whatever its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.collector.charts import Axis, Figure, Panel, Series
from hubbub.collector.decode.estimates import OTHER
from hubbub.collector.pictures import wording
from hubbub.collector.pictures.histogram import histogram_panels, in_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hubbub.collector.decode.estimates import Estimates

TOP = 20
"""How many strings are shown unless somebody asks for more."""

MOST_ROWS = 40
"""Of more categories, or strings, than this only the most common are shown."""


def of_estimates(estimates: Estimates, *, top: int = TOP) -> Figure:
    """Show what is there, how much of it and how sure that is; where there is nothing, say so."""
    if not estimates.reports:
        return _figure(estimates, "no reports", ())
    match estimates.kind:
        case "mean":
            return _mean(estimates)
        case "string":
            return _strings(estimates, top)
        case "histogram":
            return _histogram(estimates)
        case _:
            return _shares(estimates)


def _figure(estimates: Estimates, finding: str, panels: Sequence[Panel], *more: str) -> Figure:
    told = (wording.reports(estimates), *more, wording.alarms(estimates))
    return Figure(f"{estimates.metric}: {finding}", wording.sentences(told), panels, stacked=True)


def _shares(estimates: Estimates) -> Figure:
    """A flag or categories: shares are shown as they were estimated, below zero too."""
    common = {row.value for row in sorted(estimates.rows, key=lambda row: -(row.share or 0.0))[:MOST_ROWS]}
    bars = [(row.value, row.share, row.low, row.high) for row in estimates.rows if row.value in common]
    if not bars:
        return _figure(estimates, "nothing can be told", ())
    panel = _lying(bars)
    finding = "share of each category"
    if estimates.kind == "flag":
        finding = f"{bars[0][0]} in {(panel.y.notes or '?')[0]} of reports"
    below = any(share is not None and share < 0 for _, share, *_ in bars)
    return _figure(
        estimates,
        finding,
        [panel],
        wording.intervals(estimates),
        _not_shown(len(estimates.rows) - len(bars)),
        wording.no_value(estimates),
        "A share below zero comes of the noise: few have that value, or nobody." if below else "",
    )


def _strings(estimates: Estimates, top: int) -> Figure:
    """Strings found, and the share of all others."""
    found = estimates.detected
    asked = f"{len(estimates.rows):,} candidate{'' if len(estimates.rows) == 1 else 's'}"
    if not found:
        return _figure(estimates, f"none of {asked} found", ())
    shown = found[: min(max(top, 1), MOST_ROWS)]
    bars = [
        (" | ".join((row.value, *row.also)), row.consistent, row.found_low or 0.0, row.found_high or 0.0)
        for row in shown
    ]
    rest = ""
    if estimates.other is not None:
        bars.append((OTHER, estimates.other.estimate, estimates.other.low, estimates.other.high))
        rest = f"{OTHER} is all that was {'not found' if estimates.method == 'selection' else 'not asked about'}."
    return _figure(
        estimates,
        f"{len(found):,} of {asked} found",
        [_lying(bars)],
        wording.intervals(estimates),
        _not_shown(len(found) - len(shown)),
        rest,
        wording.no_value(estimates),
        wording.control(estimates),
    )


def _not_shown(hidden: int) -> str:
    return f"{hidden:,} less common ones are not shown." if hidden else ""


def _lying(bars: Sequence[tuple[str, float | None, float, float]]) -> Panel:
    """Bars one under the other, where names of any length have room; what nobody could observe has none."""
    names, shares, low, high = zip(*bars, strict=True)
    reach = wording.usual_reach(low, high)
    notes = ["not observed" if share is None else wording.share(share, reach) for share in shares]
    known = [wording.MISSING if share is None else share for share in shares]
    series = Series("", range(len(bars)), known, low, high, "bars", sideways=True)
    return Panel("", Axis("share of reports", percent=True), Axis("", names=names, notes=notes), [series])


def _histogram(estimates: Estimates) -> Figure:
    panels = histogram_panels(estimates)
    finding = f"{len(estimates.rows):,} buckets" if panels else "nothing can be told"
    for point in estimates.quantiles:
        if point.at == 0.5:
            finding = f"median {wording.number(point.estimate, (point.high - point.low) / 2)}"
    return _figure(estimates, finding, panels, *in_words(estimates))


def _mean(estimates: Estimates) -> Figure:
    """One number, in its interval, and in the wider one that leans on no approximation."""
    mean = estimates.mean
    if mean is None:
        return _figure(estimates, "nothing can be told", ())
    level, reach = wording.per_cent(estimates.confidence), (mean.high - mean.low) / 2
    ranges = [(f"{level} interval", mean.low, mean.high)]
    if mean.guaranteed_low is not None and mean.guaranteed_high is not None:
        ranges.append((f"{level} guaranteed", mean.guaranteed_low, mean.guaranteed_high))
    names, low, high = zip(*ranges, strict=True)
    notes = [" to ".join(wording.number(end, reach) for end in ends) for _, *ends in ranges]
    series = Series("", range(len(ranges)), [mean.estimate] * len(ranges), low, high, "points", sideways=True)
    panel = Panel("", Axis(f"mean of {estimates.metric}"), Axis("", names=names, notes=notes), [series])
    more = "The guaranteed interval leans on no approximation." if len(ranges) > 1 else ""
    return _figure(estimates, f"mean {wording.number(mean.estimate, reach)}", [panel], more)
