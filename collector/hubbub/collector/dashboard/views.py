"""The pages and what stands on them."""

from __future__ import annotations

import io
import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlencode

from flask import Blueprint, Response, current_app, make_response, redirect, render_template, request
from markupsafe import Markup
from werkzeug.datastructures import MultiDict

from hubbub.collector import api
from hubbub.collector.candidates import LINES, MAX_CANDIDATES, TEXT
from hubbub.collector.dashboard import guard, session, tables, words
from hubbub.collector.dashboard.desk import Asked
from hubbub.collector.decode import DEFAULT_CONFIDENCE, DEFAULT_CONTROL
from hubbub.collector.decode.estimates import SHOWN_ROWS
from hubbub.collector.decode.process import spell
from hubbub.collector.pictures import sparkline
from hubbub.collector.query import Query
from hubbub.collector.store.by_period import reports_by_period
from hubbub.collector.store.candidates import get_revision, put_chunks

if TYPE_CHECKING:
    from datetime import date

    from werkzeug.wrappers import Response as AnyResponse

    from hubbub.collector.dashboard.desk import Desk
    from hubbub.collector.store.by_period import Counted
    from hubbub.shared.metric import Metric

SPARK_PERIODS = 30
"""The most periods that a sparkline shows."""

SPANS = (7, 30, 90)
"""Days that the period picker has links for."""

CONFIDENCES = (0.8, 0.9, 0.95, 0.99)
CONTROLS = ("fdr:0.05", "fdr:0.1", "fdr:0.2", "family-wise:0.05")
_PAGE = re.compile(r"/metric/[a-z0-9_]+(\?[A-Za-z0-9_=&:.%+-]*)?")
_KEYS = ("start", "end", "confidence", "control")

dashboard = Blueprint(api.DASHBOARD, __name__, template_folder="templates")
guard.guard(dashboard)


class Line(NamedTuple):
    """A metric on the overview."""

    metric: Metric
    reports: int
    last: str
    spark: Markup
    alarms: tuple[str, ...] | None
    candidates: int | None


@dashboard.app_template_global()
def form_token() -> str:
    """The hidden field of every form."""
    return guard.form_token()


@dashboard.context_processor
def _common() -> dict[str, Any]:
    has_token = api.collector_here().admin_token is not None
    return {"logged_in": guard.logged_in(), "open": not has_token, "words": words}


@dashboard.get("/")
def overview() -> AnyResponse:
    """Every metric at a glance."""
    Query(request.args)
    collector = api.collector_here()
    counted = reports_by_period(collector.store)
    lines = [_line(metric, counted.get((metric.name, metric.version), {})) for metric in collector.registry.values()]
    alarms = sum(len(line.alarms or ()) for line in lines)
    last = max((max(each) for each in counted.values()), default=None)
    example = next(iter(collector.registry), "metric")
    return make_response(
        render_template(
            "overview.html",
            lines=lines,
            reports=sum(line.reports for line in lines),
            last=last,
            alarms=alarms,
            address=request.host_url.rstrip("/"),
            example=example,
        )
    )


@dashboard.get("/metric/<name>")
def metric(name: str) -> AnyResponse:
    """All about one metric."""
    asked, search = _asked(name)
    collector = api.collector_here()
    found = asked.metric
    counted = reports_by_period(collector.store, found.name).get((found.name, found.version), {})
    listed = get_revision(collector.store.engine, found.name) if found.kind == "string" else None
    told: dict[str, Any] = {
        "metric": found,
        "asked": asked,
        "search": search,
        "counted": counted,
        "reports": sum(counted.values()),
        "listed": listed,
        "line": _line(found, counted, health=False),
        "promises": words.promises(found),
        "values_promise": words.values_promise(found),
        "links": _links(asked, counted),
        "query": _query(asked),
        "confidences": sorted({*CONFIDENCES, asked.confidence}),
        "controls": list(dict.fromkeys([*CONTROLS, str(asked.control)])),
        "address": request.host_url.rstrip("/"),
        "saved": request.args.get("saved"),
        "most": MAX_CANDIDATES,
        "shown": None,
    }
    inside = [day for day in counted if (asked.start or day) <= day <= (asked.end or day)]
    told["empty"] = not inside
    if inside and (found.kind != "string" or listed is not None):
        shown, news = _desk().answer(asked)
        estimates = shown.estimates
        told |= {
            "shown": shown,
            "news": news,
            "estimates": estimates,
            "table": tables.of_estimates(estimates, search),
            "quantiles": tables.of_quantiles(estimates),
            "history": tables.of_history(shown, found.every),
            "found": len(estimates.detected),
            "hidden": max(len(estimates.detected) - SHOWN_ROWS, 0) if found.kind == "string" else 0,
        }
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
    shown, _ = _desk().answer(_asked(name)[0], soon=True)
    body = spell(shown.estimates, "text/csv", undetected=False)
    return _download(body, "text/csv; charset=utf-8", f"{name}.csv")


@dashboard.get("/metric/<name>/estimates.json")
def as_json(name: str) -> AnyResponse:
    """The estimates as the API tells them."""
    shown, _ = _desk().answer(_asked(name)[0], soon=True)
    return _download(shown.body, api.JSON, f"{name}.json")


@dashboard.post("/metric/<name>/candidates")
def candidates(name: str) -> AnyResponse:
    """Replace the candidates by a file, or by what stands in the text field; or forget them."""
    found = api.string_metric(name)
    if request.form.get("forget"):
        put_chunks(api.collector_here().store.engine, found.name, (), 0)
        return redirect(f"/metric/{found.name}?saved=0#candidates", 303)
    file = request.files.get("file")
    if file is not None and file.filename:
        media_type = LINES if file.filename.lower().endswith((".ndjson", ".jsonl")) else TEXT
        saved = api.replace_candidates(found, cast("Any", file.stream), media_type)
    else:
        lines = [line for line in request.form.get("strings", "").splitlines() if line.strip()]
        saved = api.replace_candidates(found, io.BytesIO("\n".join(lines).encode()), TEXT)
    return redirect(f"/metric/{found.name}?saved={saved.strings}#candidates", 303)


@dashboard.get("/login")
@guard.unguarded
def login() -> AnyResponse:
    """Ask for the admin token."""
    query = Query(request.args, "next")
    if guard.logged_in() or api.collector_here().admin_token is None:
        return redirect("/", 303)
    return _login_page(query.read("next", str, "a page of the dashboard"))


@dashboard.post("/login")
@guard.unguarded
def log_in() -> AnyResponse:
    """Look at the admin token, and give a session for it."""
    token = api.collector_here().admin_token
    if token is None:
        return redirect("/", 303)
    following = request.form.get("next")
    if not token.opens(f"Bearer {request.form.get('token', '')}"):
        return _login_page(following, wrong=True)
    response = redirect(_safe(following), 303)
    guard.set_cookie(response, session.COOKIE, session.new_session(token), session.SESSION_SECONDS)
    response.delete_cookie(session.VISITOR)
    return response


@dashboard.post("/logout")
def log_out() -> AnyResponse:
    """Forget the session."""
    response = redirect("/login", 303)
    response.delete_cookie(session.COOKIE, httponly=True, samesite="Strict", secure=guard.secure())
    return response


@dashboard.get("/static/dashboard.css")
@guard.unguarded
def style() -> AnyResponse:
    """How it all looks."""
    return _static("dashboard.css", "text/css; charset=utf-8")


@dashboard.get("/static/icon.svg")
@guard.unguarded
def icon() -> AnyResponse:
    """The mark."""
    return _static("icon.svg", "image/svg+xml")


def _desk() -> Desk:
    return cast("Desk", current_app.extensions["hubbub_dashboard"])


def _asked(name: str) -> tuple[Asked, str]:
    """Read what a page is asked about. A form sends fields that were left empty too: they are not there."""
    found = api.metric_named(name)
    given = MultiDict([(key, value) for key, value in request.args.items(multi=True) if value])
    query = Query(given, *_KEYS, "q", "dark", "saved")
    start, end = query.span()
    search = query.read("q", str, "a text") or ""
    return Asked(found, start, end, query.confidence(), query.control()), search.strip()


def _line(found: Metric, counted: Counted, *, health: bool = True) -> Line:
    reports = sum(counted.values())
    lately = _lately(found, counted)
    listed = get_revision(api.collector_here().store.engine, found.name) if found.kind == "string" else None
    alarms = _desk().alarms(found, counted) if health and reports else None
    label = f"reports of {found.name} in the last {words.plural(len(lately), 'period')}"
    spark = Markup(sparkline(lately, label)) if lately else Markup()  # noqa: S704
    last = words.period(max(counted, default=None), found.every)
    return Line(found, reports, last, spark, alarms, None if listed is None else listed[1])


def _lately(found: Metric, counted: Counted) -> list[float]:
    """Reports of the last periods, of those without any too."""
    if not counted:
        return []
    first, last = min(counted), max(counted)
    step = timedelta(days=7 if found.every == "week" else 1)
    days = [last - step * back for back in range(SPARK_PERIODS) if last - step * back >= first]
    return [float(counted.get(day, 0)) for day in reversed(days)]


def _query(asked: Asked, **changed: object) -> str:
    """Spell what a page is about; what is as usual is left out."""
    told: dict[str, object] = {"start": asked.start, "end": asked.end}
    if asked.confidence != DEFAULT_CONFIDENCE:
        told["confidence"] = asked.confidence
    if asked.control != DEFAULT_CONTROL:
        told["control"] = asked.control
    return urlencode({key: value for key, value in (told | changed).items() if value is not None})


def _links(asked: Asked, counted: Counted) -> list[tuple[str, str, bool]]:
    """Links for the usual spans, which end with the last period that there is."""
    last: date | None = max(counted, default=None)
    links = []
    for days in SPANS:
        start = None if last is None else last - timedelta(days=days - 1)
        here = start is not None and (asked.start, asked.end) == (start, None)
        links.append((f"Last {days} days", _query(asked, start=start, end=None), here))
    links.append(("All", _query(asked, start=None, end=None), asked.start is None and asked.end is None))
    return links


def _chart(name: str, *, history: bool) -> AnyResponse:
    asked, _ = _asked(name)
    dark = request.args.get("dark") == "1"
    return Response(_desk().chart(asked, history=history, form="svg", dark=dark), content_type="image/svg+xml")


def _download(body: bytes, content_type: str, name: str) -> AnyResponse:
    response = Response(body, content_type=content_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'  # names are plain words
    return response


def _login_page(following: str | None, *, wrong: bool = False) -> AnyResponse:
    page = render_template("login.html", wrong=wrong, following=_safe(following))
    return make_response(page, 401 if wrong else 200)


def _safe(following: str | None) -> str:
    """Where to go after a login: to a page of ours, and nowhere else."""
    return following if following is not None and _PAGE.fullmatch(following) else "/"


def _static(name: str, content_type: str) -> AnyResponse:
    with dashboard.open_resource(f"static/{name}") as file:
        response = Response(file.read(), content_type=content_type)
    response.headers["Cache-Control"] = "no-cache"
    response.add_etag()
    response.make_conditional(request)
    return response
