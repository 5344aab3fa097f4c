"""What can be read, and the candidates, which can be written: JSON over HTTP, by Flask.

Everything needs the admin token, unless its view says `@public`.
"""

from __future__ import annotations

import io
import ipaddress
from datetime import date  # noqa: TC003  (msgspec reads the annotations)
from typing import IO, TYPE_CHECKING, TypeVar, cast

import msgspec
from flask import Blueprint, Response, current_app, request

from hubbub.collector import candidates
from hubbub.collector.candidates import MEDIA_TYPES, TEXT, TooManyCandidatesError
from hubbub.collector.decode.process import SPELLINGS
from hubbub.collector.decoding import Manner
from hubbub.collector.errors import StoreUnavailableError
from hubbub.collector.ingest import BEARER
from hubbub.collector.query import Query
from hubbub.collector.refusal import PROBLEM, Refused
from hubbub.collector.store.candidates import get_chunks, get_revision, put_chunks
from hubbub.shared.errors import ParameterError, UnknownMetricError
from hubbub.shared.metric import Kind  # noqa: TC001  (msgspec reads the annotations)
from hubbub.shared.period import Every  # noqa: TC001

if TYPE_CHECKING:
    from collections.abc import Callable

    from hubbub.collector.collector import Collector
    from hubbub.collector.decode.process import Spelling
    from hubbub.shared.metric import Metric

    View = TypeVar("View", bound=Callable[..., Response])

JSON = "application/json"
TOML = "application/toml"
DASHBOARD = "dashboard"
"""The blueprint with a guard of its own."""

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_FORWARDING = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP")

api = Blueprint("api", __name__)


class CandidateList(msgspec.Struct, frozen=True):
    """The list of candidates that a metric has."""

    revision: int
    strings: int


class MetricSummary(msgspec.Struct, frozen=True):
    """A metric of the registry, and what there is of it."""

    name: str
    description: str
    kind: Kind
    every: Every
    version: int
    bits: int
    cohorts: int
    epsilon_report: float
    epsilon_lifetime: float
    reports: int
    first: date | None
    last: date | None
    candidates: CandidateList | None


class Health(msgspec.Struct, frozen=True):
    """Whether the collector lives, or can take batches."""

    ok: bool


def public(view: View) -> View:
    """Open a view to everybody, on purpose."""
    view.public = True  # type: ignore[attr-defined]
    return view


@api.before_app_request
def authorize() -> None:
    """Let nobody see anything without the admin token, except what is public. The dashboard asks for it in its way."""
    if request.endpoint is None or request.blueprint == DASHBOARD:
        return
    if not getattr(current_app.view_functions[request.endpoint], "public", False):
        why = why_not()
        if why is not None:
            raise why


def why_not() -> Refused | None:
    """Why a request may not read; None where it shows the admin token, or comes from here and none is needed."""
    token = collector_here().admin_token
    if token is None and not _is_local():
        return Refused("token_wrong", "this collector has no admin token, and so answers only on loopback", BEARER)
    if token is not None and not token.opens(request.headers.get("Authorization")):
        return Refused("token_wrong", "this needs the admin token, as Authorization: Bearer TOKEN", BEARER)
    return None


@api.get("/v1/registry")
@public
def registry() -> Response:
    """The registry, as TOML: what clients need to know, and what anybody may check."""
    response = Response(collector_here().registry.text, content_type=f"{TOML}; charset=utf-8")
    response.add_etag()
    response.make_conditional(request)
    return response


@api.get("/v1/metrics")
def metrics() -> Response:
    """Every metric, with how much there is of it."""
    collector = collector_here()
    held = {(each.metric, each.version): each for each in collector.store.held()}
    summaries = []
    for metric in collector.registry.values():
        there = held.get((metric.name, metric.version))
        listed = get_revision(collector.store.engine, metric.name)
        summaries.append(
            MetricSummary(
                metric.name,
                metric.description,
                metric.kind,
                metric.every,
                metric.version,
                metric.size,
                metric.encoding.cohorts,
                metric.epsilon(),
                metric.epsilon(float("inf")),
                0 if there is None else there.reports,
                None if there is None else there.first,
                None if there is None else there.last,
                None if listed is None else CandidateList(*listed),
            )
        )
    return _json(summaries)


@api.get("/v1/metrics/<name>/tally")
def tally(name: str) -> Response:
    """Return the tally of a metric from `start` to `end`, inclusive, without the cells that have too few reports."""
    query, collector = Query(request.args, "start", "end"), collector_here()
    return _json(collector.store.published_tally(metric_named(name), collector.min_cohort_reports, *query.span()))


@api.get("/v1/metrics/<name>/estimates")
def estimates(name: str) -> Response:
    """What the tally says about a metric; of strings only those that are there, unless `all` are wanted."""
    query = Query(request.args, "start", "end", "confidence", "control", "strict", "all")
    spelling = cast("Spelling", request.accept_mimetypes.best_match(SPELLINGS, JSON))
    manner = Manner(query.confidence(), query.control(), query.flag("strict"), query.flag("all"), spelling)
    decoder = collector_here().decoder
    question = decoder.question(metric_named(name), *query.span(), manner)
    if request.if_none_match.contains_weak(question.etag):
        response = Response(status=304)  # and nothing has to be decoded
    else:
        question, body = decoder.answer(question)
        response = Response(body, content_type=JSON if spelling == JSON else f"{spelling}; charset=utf-8")
    response.set_etag(question.etag)
    return response


@api.put("/v1/metrics/<name>/candidates")
def put_candidates(name: str) -> Response:
    """Replace the candidates of a string metric: one a line, as they are or as JSON strings."""
    metric = string_metric(name)
    if request.mimetype not in MEDIA_TYPES or "Content-Encoding" in request.headers:
        raise Refused("media_type", f"Content-Type: is not that of candidates; allowed: {' or '.join(MEDIA_TYPES)}")
    # Buffered, because what Flask gives reads a line byte by byte.
    lines = io.BufferedReader(request.stream)  # type: ignore[type-var]
    return _json(replace_candidates(metric, lines, request.mimetype))


def replace_candidates(metric: Metric, lines: IO[bytes], media_type: str) -> CandidateList:
    """Read a list and keep it in place of the one before."""
    try:
        with candidates.spooling(lines, media_type) as spooled:
            revision = put_chunks(collector_here().store.engine, metric.name, spooled.chunks(), spooled.strings)
    except TooManyCandidatesError as error:
        raise Refused("too_large", str(error)) from None
    except ParameterError as error:
        raise Refused("not_candidates", str(error)) from None
    return CandidateList(revision, spooled.strings)


@api.get("/v1/metrics/<name>/candidates")
def get_candidates(name: str) -> Response:
    """The candidates of a metric, as they would be uploaded; the ETag is their revision."""
    found = get_chunks(collector_here().store.engine, string_metric(name).name)
    if found is None:
        raise Refused("not_found", f'metric "{name}": has no candidates')
    (revision, _), chunks = found
    media_type = request.accept_mimetypes.best_match(MEDIA_TYPES, TEXT)
    response = Response(candidates.spell(chunks, media_type), content_type=f"{media_type}; charset=utf-8")
    response.set_etag(str(revision))
    response.make_conditional(request)
    return response


@api.delete("/v1/metrics/<name>/candidates")
def delete_candidates(name: str) -> Response:
    """Forget the candidates of a metric."""
    put_chunks(collector_here().store.engine, string_metric(name).name, (), 0)
    return Response(status=204)


@api.get("/livez")
@public
def livez() -> Response:
    """Whether the process answers at all."""
    return _json(Health(True))


@api.get("/readyz")
@public
def readyz() -> Response:
    """Whether batches are taken: there is a writer, and the store answers."""
    collector = collector_here()
    if not collector.writer.ready:
        raise Refused("store_down", "the store cannot be reached now")
    collector.store.ping()
    return _json(Health(True))


@api.get("/metrics")
def prometheus() -> Response:
    """Counters of the collector about itself."""
    return Response(collector_here().monitoring.show(), content_type=PROMETHEUS)


@api.get("/openapi.json")
@public
def openapi() -> Response:
    """The whole interface, described."""
    from hubbub.collector.openapi import document  # noqa: PLC0415  (it describes this module)

    return _json(document())


@api.app_errorhandler(Refused)
def refused(error: Refused) -> Response:
    """Answer with a refusal."""
    return Response(error.body(), error.status, error.headers, content_type=PROBLEM)


@api.app_errorhandler(StoreUnavailableError)
def store_down(error: StoreUnavailableError) -> Response:
    """Say that the store is down, and keep to ourselves what it said: that is for the operator's log."""
    collector_here().monitoring.store_errors.inc()
    current_app.logger.warning("%s", error)
    return refused(Refused("store_down", "the store cannot be reached now; try again later"))


def collector_here() -> Collector:
    """The collector that the request came to."""
    return cast("Collector", current_app.extensions["hubbub"])


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), content_type=JSON)


def metric_named(name: str) -> Metric:
    """A metric of the registry."""
    try:
        return collector_here().registry[name]
    except UnknownMetricError as error:
        raise Refused("not_found", str(error)) from None


def string_metric(name: str) -> Metric:
    """A metric that can have candidates."""
    metric = metric_named(name)
    if metric.kind != "string":
        raise Refused("not_found", f'metric "{name}": is of kind {metric.kind}; only string metrics have candidates')
    return metric


def _is_local() -> bool:
    """Whether a request comes from this very machine, and names it: another site's page in a browser here does not."""
    try:
        local = ipaddress.ip_address(request.remote_addr or "").is_loopback
    except ValueError:
        return False
    name = request.host.rpartition(":")[0] if request.host.rpartition(":")[2].isdecimal() else request.host
    return local and name in _LOOPBACK_NAMES and not any(line in request.headers for line in _FORWARDING)
