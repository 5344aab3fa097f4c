"""The pages and what stands on them."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from flask import Response, current_app, make_response, redirect, render_template, request
from markupsafe import Markup

from hubbub.collector import api
from hubbub.collector.candidates import LINES, MAX_CANDIDATES, TEXT
from hubbub.collector.dashboard import guard, tables, words
from hubbub.collector.dashboard.asked import SAVED, Asked, read_asked
from hubbub.collector.dashboard.blueprint import dashboard
from hubbub.collector.decode.estimates import SHOWN_ROWS
from hubbub.collector.decode.process import spell
from hubbub.collector.pictures import sparkline
from hubbub.collector.query import Query
from hubbub.collector.store.candidates import put_chunks

if TYPE_CHECKING:
    from werkzeug.wrappers import Response as AnyResponse

    from hubbub.collector.dashboard.desk import Desk, Shown
    from hubbub.collector.dashboard.orders import Glimpse
    from hubbub.collector.decode import Estimates
    from hubbub.collector.store.by_period import Counted
    from hubbub.shared.metric import Metric

SPARK_PERIODS = 30
"""The most periods that a sparkline shows."""

CONFIDENCES = (0.8, 0.9, 0.95, 0.99)
CONTROLS = ("fdr:0.05", "fdr:0.1", "fdr:0.2", "family-wise:0.05")


class Line(NamedTuple):
    """A metric on the overview."""

    metric: Metric
    reports: int
    last: str
    spark: Markup
    alarms: tuple[str, ...] | None
    candidates: int | None


@dashboard.get("/")
def overview() -> AnyResponse:
    """Every metric at a glance."""
    Query(request.args)
    registry = api.collector_here().registry
    found = _desk().glance()
    lines = [_line(metric, found[name]) for name, metric in registry.items()]
    return make_response(
        render_template(
            "overview.html",
            lines=lines,
            reports=sum(line.reports for line in lines),
            last=max((day for each in found.values() for day in each.counted), default=None),
            alarms=sum(len(line.alarms or ()) for line in lines),
            address=request.host_url.rstrip("/"),
            example=next(iter(registry), "metric"),
        )
    )


@dashboard.get("/metric/<name>")
def metric(name: str) -> AnyResponse:
    """All about one metric."""
    asked, search = _asked(name)
    found = asked.metric
    shown, news = _desk().answer(asked, anew=SAVED in request.args)
    counted = shown.counted
    empty = not asked.inside(counted)
    told: dict[str, Any] = {
        "metric": found,
        "asked": asked,
        "search": search,
        "shown": shown,
        "news": news,
        "reports": sum(counted.values()),
        "empty": empty,
        "last": words.period(max(counted, default=None), found.every),
        "spark": _spark(found, counted),
        "promises": words.promises(found),
        "values_promise": words.values_promise(found),
        "links": asked.links(counted),
        "query": asked.query(),
        "confidences": sorted({*CONFIDENCES, asked.confidence}),
        "controls": list(dict.fromkeys([*CONTROLS, str(asked.control)])),
        "address": request.host_url.rstrip("/"),
        "here": guard.here(),
        "saved": request.args.get(SAVED),
        "most": MAX_CANDIDATES,
    }
    if not empty and shown.estimates is not None:
        told |= _numbers(shown, shown.estimates, found.every, search)
    return make_response(render_template("metric.html", **told))


@dashboard.get("/metric/<name>/chart.svg")
def chart(name: str) -> AnyResponse:
    """The estimates, drawn."""
    return _chart(name, history=False)


@dashboard.get("/metric/<name>/history.svg")
def history(name: str) -> AnyResponse:
    """The time series, drawn."""
    return _chart(name, history=True)


@dashboard.get("/metric/<name>/chart.png")
def picture(name: str) -> AnyResponse:
    """The estimates, drawn, to be kept."""
    asked, _ = _asked(name)
    drawn = _desk().chart(asked, history=False, form="png", dark=False)
    return _download(drawn, "image/png", f"{name}.png")


@dashboard.get("/metric/<name>/estimates.csv")
def as_csv(name: str) -> AnyResponse:
    """The estimates as a table for other programs."""
    estimates = _desk().estimates(_asked(name)[0]).estimates
    assert estimates is not None  # noqa: S101  (it would have been refused)
    body = spell(estimates, "text/csv", undetected=False)
    return _download(body, "text/csv; charset=utf-8", f"{name}.csv")


@dashboard.get("/metric/<name>/estimates.json")
def as_json(name: str) -> AnyResponse:
    """The estimates as the API tells them."""
    return _download(_desk().estimates(_asked(name)[0]).body, api.JSON, f"{name}.json")


@dashboard.post("/metric/<name>/candidates")
def candidates(name: str) -> AnyResponse:
    """Replace the candidates by a file, or by what stands in the text field; or forget them."""
    found = api.string_metric(name)
    strings = 0
    file = request.files.get("file")
    if request.form.get("forget"):
        put_chunks(api.collector_here().store.engine, found.name, (), 0)
    elif file is not None and file.filename:
        media_type = LINES if file.filename.lower().endswith((".ndjson", ".jsonl")) else TEXT
        strings = api.replace_candidates(found, cast("Any", file.stream), media_type).strings
    else:
        lines = [line for line in request.form.get("strings", "").splitlines() if line.strip()]
        strings = api.replace_candidates(found, io.BytesIO("\n".join(lines).encode()), TEXT).strings
    _desk().forget(found.name)
    return redirect(f"/metric/{found.name}?{SAVED}={strings}#candidates", 303)


def _desk() -> Desk:
    return cast("Desk", current_app.extensions["hubbub_dashboard"])


def _asked(name: str) -> tuple[Asked, str]:
    return read_asked(api.metric_named(name), request.args)


def _line(found: Metric, glimpse: Glimpse) -> Line:
    counted, listed = glimpse.counted, glimpse.listed
    last = words.period(max(counted, default=None), found.every)
    strings = None if listed is None else listed[1]
    return Line(found, sum(counted.values()), last, _spark(found, counted), glimpse.alarms, strings)


def _spark(found: Metric, counted: Counted) -> Markup:
    lately = _lately(found, counted)
    label = f"reports of {found.name} in the last {words.plural(len(lately), 'period')}"
    return Markup(sparkline(lately, label)) if lately else Markup()  # noqa: S704


def _lately(found: Metric, counted: Counted) -> list[float]:
    """Reports of the last periods, of those without any too."""
    if not counted:
        return []
    first, last = min(counted), max(counted)
    step = timedelta(days=7 if found.every == "week" else 1)
    days = [last - step * back for back in range(SPARK_PERIODS) if last - step * back >= first]
    return [float(counted.get(day, 0)) for day in reversed(days)]


def _numbers(shown: Shown, estimates: Estimates, every: str, search: str) -> dict[str, Any]:
    """The tables of a page, and what is said about them."""
    return {
        "estimates": estimates,
        "table": tables.of_estimates(estimates, search),
        "quantiles": tables.of_quantiles(estimates),
        "history": tables.of_history(shown, estimates.kind, every),
        "found": len(estimates.detected),
        "hidden": max(len(estimates.detected) - SHOWN_ROWS, 0) if estimates.kind == "string" else 0,
    }


def _chart(name: str, *, history: bool) -> AnyResponse:
    asked, _ = _asked(name)
    dark = request.args.get("dark") == "1"
    return Response(_desk().chart(asked, history=history, form="svg", dark=dark), content_type="image/svg+xml")


def _download(body: bytes, content_type: str, name: str) -> AnyResponse:
    response = Response(body, content_type=content_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'  # names are plain words
    return response
