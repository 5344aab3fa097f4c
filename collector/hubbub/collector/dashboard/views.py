"""The pages and what stands on them."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from flask import Response, current_app, make_response, redirect, render_template, request
from markupsafe import Markup

from hubbub.collector import api
from hubbub.collector.candidates import LINES, MAX_CANDIDATES, TEXT
from hubbub.collector.dashboard import guard, tables, words
from hubbub.collector.dashboard.asked import ALL, SAVED, Asked, BackwardsError, read_asked
from hubbub.collector.dashboard.blueprint import dashboard
from hubbub.collector.dashboard.desk import SEARCHED_CANDIDATES
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
    lately: int
    """Reports of the last period."""
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
            example=next(iter(registry), "metric"),
            **_start(),
        )
    )


@dashboard.get("/metric/<name>")
def metric(name: str) -> AnyResponse:
    """All about one metric."""
    try:
        asked, search = _asked(name)
    except BackwardsError as error:
        if not guard.wants_pages():
            raise
        return _backwards(error.asked)
    shown, news = _desk().answer(asked, anew=SAVED in request.args)
    told = _about(asked, shown) | {"news": news, "saved": request.args.get(SAVED)}
    if not told["empty"] and shown.estimates is not None:
        told |= _numbers(shown, shown.estimates, asked.metric.every)
        if search and asked.metric.kind == "string":
            told |= _searched(asked, shown, shown.estimates, search)
    return make_response(render_template("metric.html", **told))


def _searched(asked: Asked, shown: Shown, estimates: Estimates, search: str) -> dict[str, Any]:
    """What a page shows instead of all strings that were found."""
    return {
        "search": search,
        "table": tables.of_search(estimates, _desk().search(asked, shown, search)),
        "all_searched": (shown.candidates or 0) <= SEARCHED_CANDIDATES,
    }


def _backwards(asked: Asked) -> AnyResponse:
    """Show the metric with its form, and what is wrong with the days in it."""
    shown, _ = _desk().answer(replace(asked, start=None, end=None))
    return make_response(render_template("metric.html", **_about(asked, shown), backwards=True), 400)


def _about(asked: Asked, shown: Shown) -> dict[str, Any]:
    """What stands on the page of a metric, whatever there is of it."""
    found, counted = asked.metric, shown.counted
    return {
        "metric": found,
        "asked": asked,
        "shown": shown,
        "reports": sum(counted.values()),
        "empty": not asked.inside(counted),
        "last": words.period(max(counted, default=None), found.every),
        "spark": _spark(found, counted),
        "promises": words.promises(found),
        "values_promise": words.values_promise(found),
        "links": asked.links(counted),
        "query": asked.query(),
        "confidences": sorted({*CONFIDENCES, asked.confidence}),
        "controls": list(dict.fromkeys([*CONTROLS, str(asked.control)])),
        "here": guard.here(),
        "most": MAX_CANDIDATES,
        "search": "",
        "saved": None,
        **_start(),
    }


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
    asked = _asked(name)[0]
    if _all_wanted(asked):
        return _download(_desk().everything(asked, "text/csv"), "text/csv; charset=utf-8", f"{name}-all.csv")
    estimates = _desk().estimates(asked).estimates
    assert estimates is not None  # noqa: S101  (it would have been refused)
    body = spell(estimates, "text/csv", undetected=False)
    return _download(body, "text/csv; charset=utf-8", f"{name}.csv")


@dashboard.get("/metric/<name>/estimates.json")
def as_json(name: str) -> AnyResponse:
    """The estimates as the API tells them."""
    asked = _asked(name)[0]
    if _all_wanted(asked):
        return _download(_desk().everything(asked, "application/json"), api.JSON, f"{name}-all.json")
    return _download(_desk().estimates(asked).body, api.JSON, f"{name}.json")


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


def _all_wanted(asked: Asked) -> bool:
    """Whether strings that were not found are wanted too; everything else is always told whole."""
    return Query(request.args, *request.args).flag(ALL) and asked.metric.kind == "string"


def _start() -> dict[str, Any]:
    """What a client has to be told; the ingest key itself is for the operator to hand out."""
    return {"address": request.host_url.rstrip("/"), "needs_key": api.collector_here().ingest_key is not None}


def _line(found: Metric, glimpse: Glimpse) -> Line:
    counted, listed = glimpse.counted, glimpse.listed
    last = words.period(max(counted, default=None), found.every)
    strings = None if listed is None else listed[1]
    lately = counted[max(counted)] if counted else 0
    return Line(found, sum(counted.values()), last, _spark(found, counted), lately, glimpse.alarms, strings)


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


def _numbers(shown: Shown, estimates: Estimates, every: str) -> dict[str, Any]:
    """The tables of a page, and what is said about them."""
    return {
        "estimates": estimates,
        "table": tables.of_estimates(estimates),
        "quantiles": tables.of_quantiles(estimates),
        "history": tables.of_history(shown, estimates.kind, every),
        # What could not be looked at is not fine either.
        "looks": [each for each in estimates.diagnostics if each.alarm or each.value is not None],
        "hidden": max(len(estimates.detected) - SHOWN_ROWS, 0) if estimates.kind == "string" else 0,
    }


def _chart(name: str, *, history: bool) -> AnyResponse:
    asked, _ = _asked(name)
    dark, narrow = (request.args.get(key) == "1" for key in ("dark", "narrow"))
    drawn = _desk().chart(asked, history=history, form="svg", dark=dark, narrow=narrow)
    return Response(drawn, content_type="image/svg+xml")


def _download(body: bytes, content_type: str, name: str) -> AnyResponse:
    response = Response(body, content_type=content_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'  # names are plain words
    return response
