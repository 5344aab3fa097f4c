"""Estimates over HTTP: the numbers of the decoder, in the form that was asked for, or a refusal that says why."""

from datetime import date, timedelta
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from collector.apps import collector_of, post
from collector.estimated import (
    CANDIDATES,
    DAYS,
    ESTIMATES,
    STRINGS,
    TRUTH,
    Processes,
    detected,
    directly,
    list_candidates,
    refusal,
    told,
)
from hubbub.collector import decoding
from hubbub.collector.decode import DEFAULT_CONFIDENCE, DEFAULT_CONTROL, process
from hubbub.collector.store import Store
from hubbub.collector.store.backend import writing
from hubbub.shared import Batch, Report, encode_batch
from hubbub.shared.period import today
from hubbub.shared.wire import new_batch_id


@pytest.mark.parametrize("name", [name for name in TRUTH if name not in STRINGS])
def test_numbers_are_those_of_the_decoder(stocked: Store, reader: FlaskClient, processes: Processes, name: str) -> None:
    path = f"/v1/metrics/{name}/estimates"
    assert told(reader.get(path)) == directly(stocked, name)
    some = reader.get(f"{path}?start={DAYS[1]}&end={DAYS[2]}&confidence=0.5&control=family-wise:0.01&all=true")
    how = {"confidence": 0.5, "control": "family-wise:0.01"}
    assert told(some) == directly(stocked, name, DAYS[1], DAYS[2], **how)
    assert processes.number == 0, "this takes microseconds"


@pytest.mark.parametrize("name", STRINGS)
@pytest.mark.unmeasured
def test_numbers_of_strings_are_those_of_the_decoder(stocked: Store, reader: FlaskClient, name: str) -> None:
    list_candidates(reader, name)
    expected = directly(stocked, name)
    assert 0 < len(expected.detected) < len(expected.rows) == len(CANDIDATES)
    assert expected.periods == (1 if name == "language" else 3)
    found = told(reader.get(f"/v1/metrics/{name}/estimates"))
    assert found == detected(expected)
    assert found.rows
    assert told(reader.get(f"/v1/metrics/{name}/estimates?all=true")) == expected


def test_parameters_reach_the_process_that_decodes(stocked: Store, reader: FlaskClient) -> None:
    query = f"start={DAYS[0]}&end={DAYS[1]}&confidence=0.8&control=family-wise:0.01&strict=true&all=true"
    how = {"confidence": 0.8, "control": "family-wise:0.01", "strict": True}
    expected = directly(stocked, "homepage", DAYS[0], DAYS[1], **how)
    assert expected.periods == 2
    assert told(reader.get(f"{ESTIMATES}?{query}")) == expected
    assert expected.rows != directly(stocked, "homepage", DAYS[0], DAYS[1], **how | {"strict": False}).rows


def test_reports_that_are_posted_are_estimated(client: FlaskClient, reader: FlaskClient, app: Flask) -> None:
    for number in range(12):
        report = Report("crashed", 1, today() - timedelta(days=number % 3), 0, bytes([number % 2]))
        assert post(client, encode_batch(Batch(new_batch_id(), (report,)))).status_code == 200
    estimates = told(reader.get("/v1/metrics/crashed/estimates"))
    assert estimates == directly(collector_of(app).store, "crashed")
    assert (estimates.reports, estimates.periods) == (12, 3)


@pytest.mark.parametrize(("name", "path"), [("theme", "/v1/metrics/theme/estimates"), ("homepage", ESTIMATES)])
def test_rows_are_told_as_csv_to_those_who_want_it(stocked: Store, reader: FlaskClient, name: str, path: str) -> None:
    answer = reader.get(path, headers={"Accept": "text/csv"})
    assert (answer.status_code, answer.content_type) == (200, "text/csv; charset=utf-8")
    expected = directly(stocked, name)
    assert answer.text == (detected(expected) if name == "homepage" else expected).to_csv()
    assert answer.headers["ETag"] != reader.get(path).headers["ETag"]


@pytest.mark.parametrize("accept", ["*/*", "image/png", "application/json", "text/csv;q=0.5, application/json", ""])
def test_json_is_told_to_all_others(stocked: Store, reader: FlaskClient, accept: str) -> None:
    told(reader.get("/v1/metrics/theme/estimates", headers={"Accept": accept}))


def test_no_reports_are_an_empty_result_and_an_alarm(reader: FlaskClient) -> None:
    list_candidates(reader)
    for name in ("homepage", "theme", "crashed", "minutes_used", "startup_ms"):
        answer = reader.get(f"/v1/metrics/{name}/estimates?start=2020-01-01&end=2020-12-31")
        estimates = told(answer)
        assert (estimates.reports, estimates.rows, estimates.mean) == (0, (), None)
        assert (estimates.start, estimates.end) == (date(2020, 1, 1), date(2020, 12, 31))
        assert answer.get_json()["alarms"] == list(estimates.alarms) != []


KEYS = "start, end, confidence, control, strict, all"
NUMBER = "a number above 0 and below 1"
CONTROL = "METHOD:LEVEL, as in fdr:0.1, with a level above 0 and below 1; methods: fdr, family-wise, once"


@pytest.mark.parametrize(
    ("query", "key", "allowed"),
    [
        ("start=yesterday", "start", "YYYY-MM-DD, once"),
        ("end=2026-11-31", "end", "YYYY-MM-DD, once"),
        ("start=2026-11-16&start=2026-11-16", "start", "YYYY-MM-DD, once"),
        ("start=2026-11-16&end=2026-11-15", "start", "up to it"),
        ("confidence=", "confidence", NUMBER),
        ("confidence=0", "confidence", NUMBER),
        ("confidence=1", "confidence", NUMBER),
        ("confidence=-0.5", "confidence", NUMBER),
        ("confidence=95", "confidence", NUMBER),
        ("confidence=0.9999999999999999", "confidence", NUMBER),
        ("confidence=nan", "confidence", NUMBER),
        ("confidence=1e999", "confidence", NUMBER),
        ("confidence=1e-999", "confidence", NUMBER),
        ("confidence=0.9%00", "confidence", NUMBER),
        ("confidence=%ff", "confidence", NUMBER),
        ("confidence=true", "confidence", NUMBER),
        ("confidence=[0.9]", "confidence", NUMBER),
        ("confidence=0.9&confidence=0.9", "confidence", NUMBER),
        ("control=", "control", CONTROL),
        ("control=fdr", "control", CONTROL),
        ("control=fdr:", "control", CONTROL),
        ("control=fdr:0", "control", CONTROL),
        ("control=fdr:1", "control", CONTROL),
        ("control=fdr:nan", "control", CONTROL),
        ("control=FDR:0.1", "control", CONTROL),
        ("control=fdr:0.1:0.2", "control", CONTROL),
        ("control=none:0.1", "control", CONTROL),
        ("control=fdr:0.1&control=fdr:0.1", "control", CONTROL),
        ("strict=", "strict", "true or false, once"),
        ("strict=yes", "strict", "true or false, once"),
        ("strict=True", "strict", "true or false, once"),
        ("strict=true&strict=false", "strict", "true or false, once"),
        ("all=1", "all", "true or false, once"),
        ("all=all", "all", "true or false, once"),
        ("from=2026-11-16", "from", KEYS),
        ("format=csv", "format", KEYS),
        ("Confidence=0.9", "Confidence", KEYS),
        ("=", "", KEYS),
        ("periods=3&candidates=a", "candidates, periods", KEYS),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(reader: FlaskClient, query: str, key: str, allowed: str) -> None:
    answer = reader.get(f"{ESTIMATES}?{query}")
    assert refusal(answer) == (400, "bad_query")
    detail: str = answer.get_json()["detail"]
    assert detail.startswith(f"{key}: ")
    assert f"; allowed: {allowed}" in detail


@pytest.mark.parametrize("confidence", ["5e-324", "0.001", "0.9999999999999", "0.999999999999999"])
@pytest.mark.parametrize("control", ["fdr:5e-324", "family-wise:0.9999999999999999"])
def test_what_is_allowed_gives_numbers_however_extreme(
    stocked: Store, reader: FlaskClient, confidence: str, control: str
) -> None:
    """Numbers that are not finite would be spelled as null, and that could not be read back."""
    for name in ("theme", "crashed", "minutes_used", "startup_ms"):
        told(reader.get(f"/v1/metrics/{name}/estimates?confidence={confidence}&control={control}"))


def test_estimates_need_the_token(client: FlaskClient) -> None:
    assert refusal(client.get(ESTIMATES)) == (401, "token_wrong")
    assert refusal(client.get(f"{ESTIMATES}?nonsense")) == (401, "token_wrong")


def test_a_metric_that_is_not_there_is_told_so(reader: FlaskClient) -> None:
    assert refusal(reader.get("/v1/metrics/nonsense/estimates")) == (404, "not_found")


def test_strings_without_candidates_are_refused_with_what_to_do(reader: FlaskClient) -> None:
    answer = reader.get(ESTIMATES)
    assert refusal(answer) == (409, "no_candidates")
    assert "PUT /v1/metrics/homepage/candidates" in answer.get_json()["detail"]
    list_candidates(reader)
    reader.delete("/v1/metrics/homepage/candidates")
    assert refusal(reader.get(ESTIMATES)) == (409, "no_candidates")


@pytest.mark.parametrize("name", ["homepage", "crashed"])
def test_a_tally_that_no_reports_can_have_made_is_told_so(stocked: Store, reader: FlaskClient, name: str) -> None:
    with writing(stocked.engine) as connection:
        connection.exec_driver_sql("UPDATE tally SET n = 1")
    answer = reader.get(f"/v1/metrics/{name}/estimates")
    assert refusal(answer) == (500, "internal")
    assert answer.get_json()["detail"].startswith("tally: ")


def test_limits_in_the_docs_are_those_of_the_code() -> None:
    text = (Path(__file__).parents[2] / "docs/operator.md").read_text(encoding="utf-8")
    section = text.split("\n## Estimates\n")[1].split("\n## ")[0]
    for words in (
        f"| `confidence` | {DEFAULT_CONFIDENCE} |",
        f"| `control` | `{DEFAULT_CONTROL}` |",
        f"{decoding.MAX_WAITING} more requests may wait",
        f"up to {decoding.TURN_SECONDS:g} s",
        f"After {process.DECODE_SECONDS:g} s",
        f"The last {decoding.CACHE_ENTRIES} answers about strings, up to {decoding.CACHE_BYTES >> 20} MiB",
    ):
        assert words in section
    assert f"for more than {decoding.TURN_SECONDS:g} s, or more than {decoding.MAX_WAITING} requests wait" in text
    assert f"took more than {process.DECODE_SECONDS:g} s or failed" in text
