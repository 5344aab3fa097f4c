"""The interface as OpenAPI 3.1, made from the very structs that are read and written."""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec

from hubbub.collector import api
from hubbub.collector.candidates import MEDIA_TYPES
from hubbub.collector.decode import DEFAULT_CONFIDENCE, DEFAULT_CONTROL, Estimates
from hubbub.collector.decode.process import SPELLINGS
from hubbub.collector.ingest import PATH, Receipt
from hubbub.collector.refusal import PROBLEM, ProblemDocument
from hubbub.collector.tally import TallyDocument
from hubbub.shared.wire import JSON, MSGPACK, JsonBatch

_SCHEMA = "#/components/schemas/{name}"


@cache
def document() -> dict[str, Any]:
    """Describe every route."""
    structs = [
        JsonBatch,
        Receipt,
        ProblemDocument,
        TallyDocument,
        Estimates,
        api.MetricSummary,
        api.CandidateList,
        api.Health,
    ]
    _, schemas = msgspec.json.schema_components([*structs, list[api.MetricSummary]], ref_template=_SCHEMA)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hubbub collector",
            "version": version("hubbub"),
            "summary": "Takes randomised reports, adds them up, and tells what was added up.",
        },
        "paths": {
            PATH: {"post": _ingest()},
            "/v1/registry": {"get": _conditional(_public("The registry, as TOML", {api.TOML: _TEXT}))},
            "/v1/metrics": {
                "get": _protected("Every metric, with how much there is of it", _json(list[api.MetricSummary]))
            },
            "/v1/metrics/{name}/tally": {
                "parameters": [_NAME],
                "get": _tally(),
            },
            "/v1/metrics/{name}/estimates": {"parameters": [_NAME], "get": _estimates()},
            "/v1/metrics/{name}/candidates": {
                "parameters": [_NAME],
                "get": _conditional(_protected("The candidates of a metric", dict.fromkeys(MEDIA_TYPES, _TEXT), "404")),
                "put": _protected(
                    "Replace the candidates of a metric", _json(api.CandidateList), "404", "413", "415", "422"
                )
                | {"requestBody": {"required": True, "content": dict.fromkeys(MEDIA_TYPES, _TEXT)}},
                "delete": _forget(),
            },
            "/livez": {"get": _public("Whether the process answers", _json(api.Health))},
            "/readyz": {"get": _public("Whether batches are taken", _json(api.Health), "503")},
            "/metrics": {"get": _protected("Counters, for Prometheus", {"text/plain": _TEXT})},
            "/openapi.json": {"get": _public("This document", {JSON: {"schema": {"type": "object"}}})},
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "admin": {"type": "http", "scheme": "bearer", "description": "The admin token"},
                "ingest": {"type": "http", "scheme": "bearer", "description": "The ingest key, where there is one"},
            },
        },
    }


_TEXT: dict[str, Any] = {"schema": {"type": "string"}}
_NO = {"type": "boolean", "default": False}
_NAME = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}


def _day(name: str) -> dict[str, Any]:
    return _parameter(name, {"type": "string", "format": "date"})


def _parameter(name: str, schema: dict[str, Any], **told: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, **told}


def _json(type_: Any) -> dict[str, Any]:
    [schema], _ = msgspec.json.schema_components([type_], ref_template=_SCHEMA)
    return {JSON: {"schema": schema}}


def _responses(content: dict[str, Any], *refusals: str) -> dict[str, Any]:
    [schema], _ = msgspec.json.schema_components([ProblemDocument], ref_template=_SCHEMA)
    refused = {"description": "Refused", "content": {PROBLEM: {"schema": schema}}}
    return {"200": {"description": "Done", "content": content}} | dict.fromkeys(refusals, refused)


def _public(summary: str, content: dict[str, Any], *refusals: str) -> dict[str, Any]:
    return {"summary": summary, "security": [], "responses": _responses(content, "400", *refusals)}


def _protected(summary: str, content: dict[str, Any], *refusals: str) -> dict[str, Any]:
    responses = _responses(content, "400", "401", "503", *refusals)
    return {"summary": summary, "security": [{"admin": []}], "responses": responses}


def _conditional(operation: dict[str, Any]) -> dict[str, Any]:
    """Add what is answered to those who show that they have it already."""
    return operation | {"responses": operation["responses"] | {"304": {"description": "As the ETag that was shown"}}}


def _forget() -> dict[str, Any]:
    operation = _protected("Forget the candidates of a metric", {}, "404")
    responses = {status: told for status, told in operation["responses"].items() if status != "200"}
    return operation | {"responses": responses | {"204": {"description": "Forgotten"}}}


def _tally() -> dict[str, Any]:
    [schema], _ = msgspec.json.schema_components([TallyDocument], ref_template=_SCHEMA)
    # Only tallies that the collector publishes must have the key.
    published = {"allOf": [schema, {"type": "object", "required": ["withheld"]}]}
    operation = _protected("The tally of a metric, without small cohorts", {JSON: {"schema": published}}, "404")
    return operation | {"parameters": [_day("start"), _day("end")]}


def _estimates() -> dict[str, Any]:
    [schema], _ = msgspec.json.schema_components([Estimates], ref_template=_SCHEMA)
    alarms = {"description": "What looks wrong, a sentence each", "type": "array", "items": {"type": "string"}}
    with_alarms = {"allOf": [schema, {"type": "object", "properties": {"alarms": alarms}, "required": ["alarms"]}]}
    content: dict[str, Any] = dict.fromkeys(SPELLINGS, _TEXT) | {JSON: {"schema": with_alarms}}
    confidence = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": DEFAULT_CONFIDENCE}
    control = "How many false discoveries to put up with: fdr:LEVEL or family-wise:LEVEL"
    parameters = [
        _day("start"),
        _day("end"),
        _parameter("confidence", confidence, description="Of every interval"),
        _parameter("control", {"type": "string", "default": str(DEFAULT_CONTROL)}, description=control),
        _parameter("strict", _NO, description="Select strings on half the cohorts, and estimate on the other half"),
        _parameter("all", _NO, description="Tell of strings that were not detected too"),
    ]
    operation = _protected("What the tally says about a metric", content, "404", "409")
    return _conditional(operation) | {"parameters": parameters}


def _ingest() -> dict[str, Any]:
    content = _json(JsonBatch) | {
        MSGPACK: {"schema": {"description": "The same fields; bits are binary", "type": "object"}}
    }
    return {
        "summary": "Hand in a batch of reports; gzip is understood",
        "security": [{}, {"ingest": []}],
        "requestBody": {"required": True, "content": content},
        "responses": _responses(_json(Receipt), "400", "401", "408", "413", "415", "422", "503"),
    }
