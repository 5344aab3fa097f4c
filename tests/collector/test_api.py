"""Reading: who may, and what is told."""

import hmac
import json
from datetime import timedelta
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from openapi_spec_validator import validate
from prometheus_client.parser import text_string_to_metric_families

from collector.apps import BEARER, TOKEN, collector_of, post, running
from hubbub.collector import Tally, candidates
from hubbub.collector.openapi import document
from hubbub.collector.token import Token
from hubbub.shared import Batch, Registry, Report, encode_batch
from hubbub.shared.period import today
from hubbub.shared.planning import DEFAULT_MIN_COHORT_REPORTS
from hubbub.shared.text import MAX_TEXT_BYTES
from hubbub.shared.wire import new_batch_id
from shared.registries import EXAMPLE, example

PUBLIC = {"/v1/registry", "/livez", "/readyz", "/openapi.json", "/login", "/static/dashboard.css", "/static/icon.svg"}
"""What is open to everybody, on purpose."""

CANDIDATES = "/v1/metrics/homepage/candidates"


@pytest.fixture
def reader(app: Flask) -> FlaskClient:
    """A client that shows the admin token with every request."""
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {TOKEN}"
    return client


def routes(app: Flask) -> list[tuple[str, str]]:
    """Every method and path of the app, with the name of a metric in it."""
    return [
        (method, str(rule).replace("<name>", "homepage"))
        for rule in app.url_map.iter_rules()
        for method in sorted(rule.methods or ())
    ]


WRONG = [
    None,
    "",
    "Bearer",
    "Bearer ",
    f"Bearer {TOKEN[:-1]}",
    f"Bearer {TOKEN}x",
    f"Bearer {TOKEN.upper()}",
    f"Basic {TOKEN}",
    TOKEN,
    "Bearer \udcff",
    f"Bearer {TOKEN[:-1]}\xe9",
]


def test_every_route_is_public_on_purpose_or_protected(app: Flask) -> None:
    """A new route that is neither fails here."""
    client = app.test_client()
    for method, path in routes(app):
        for shown in WRONG:
            environ = {} if shown is None else {"HTTP_AUTHORIZATION": shown}
            answer = client.open(path, method=method, environ_overrides=environ)
            if path in PUBLIC:
                assert answer.status_code == (403 if method == "POST" else 200), path  # of a form that nobody asked for
            else:
                assert answer.status_code == 401, (method, path, shown)
                assert answer.headers["WWW-Authenticate"] == "Bearer"
                if method != "HEAD":
                    assert answer.get_json()["code"] == "token_wrong"
    assert {path for _, path in routes(app)} >= PUBLIC


def test_a_wrong_token_takes_no_shortcut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is shown, digests of one length are compared, once, by a comparison in constant time."""
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return hmac.compare_digest(one, other)

    monkeypatch.setattr("hubbub.collector.token.compare_digest", compare)
    for shown in [*WRONG, f"Bearer {TOKEN}"]:
        compared.clear()
        assert Token(TOKEN).opens(shown) is (shown == f"Bearer {TOKEN}")
        [(one, other)] = compared
        assert len(one) == len(other) == 32


def test_the_scheme_of_a_token_may_be_written_in_any_case() -> None:
    assert Token(TOKEN).opens(f"bearer {TOKEN}")
    assert Token(TOKEN).opens(f"BEARER  {TOKEN} ")


def local(
    client: FlaskClient, path: str, address: str = "127.0.0.1", host: str = "127.0.0.1:8000", **headers: str
) -> int:
    sent = {name.replace("_", "-"): value for name, value in headers.items()} | {"Host": host}
    return client.get(path, headers=sent, environ_overrides={"REMOTE_ADDR": address}).status_code


def test_without_a_token_only_this_machine_may_read(tmp_path: Path) -> None:
    with running(tmp_path, admin_token=None) as app:
        client = app.test_client()
        for host in ("127.0.0.1:8000", "localhost", "localhost:8000", "[::1]:8000", "[::1]"):
            assert local(client, "/v1/metrics", host=host) == 200, host
        assert local(client, "/v1/metrics", address="::1") == 200
        for address in ("192.0.2.1", "10.0.0.1", "::ffff:192.0.2.1", "", "nonsense"):
            assert local(client, "/v1/metrics", address=address) == 401, address
            assert local(client, "/livez", address=address) == 200


def test_a_page_of_another_site_cannot_read_by_a_name_that_leads_here(tmp_path: Path) -> None:
    """Its own name may resolve to 127.0.0.1, and the browser then asks us; but it names the site, not this machine."""
    with running(tmp_path, admin_token=None) as app:
        for host in ("evil.example.org", "evil.example.org:8000", "localhost.evil.example.org", "127.0.0.1.evil.org"):
            assert local(app.test_client(), "/v1/metrics", host=host) == 401


def test_what_a_proxy_hands_on_is_not_from_this_machine(tmp_path: Path) -> None:
    with running(tmp_path, admin_token=None) as app:
        for name in ("X_Forwarded_For", "Forwarded", "Via", "X_Real_IP"):
            assert local(app.test_client(), "/v1/metrics", **{name: "192.0.2.1"}) == 401


def test_answers_have_the_headers_that_keep_browsers_from_mistakes(client: FlaskClient, reader: FlaskClient) -> None:
    for answer in (client.get("/livez"), client.get("/nonsense"), reader.get("/v1/metrics"), client.get("/v1/metrics")):
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"


def test_the_registry_is_given_away_as_it_was_written(client: FlaskClient) -> None:
    answer = client.get("/v1/registry")
    assert answer.content_type == "application/toml; charset=utf-8"
    assert Registry.parse(answer.text).text == EXAMPLE
    assert client.get("/v1/registry", headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304


def test_metrics_tell_what_there_is(client: FlaskClient, reader: FlaskClient) -> None:
    day = today()
    for days in (0, 2):
        report = Report("crashed", 1, day - timedelta(days=days), 0, b"\x01")
        post(client, encode_batch(Batch(new_batch_id(), (report,))))
    reader.put(CANDIDATES, data="a\nb\n", content_type="text/plain")
    listed = {each["name"]: each for each in reader.get("/v1/metrics").get_json()}
    assert list(listed) == list(example())
    crashed = listed["crashed"]
    assert (crashed["reports"], crashed["first"], crashed["last"]) == (
        2,
        (day - timedelta(days=2)).isoformat(),
        day.isoformat(),
    )
    assert (listed["theme"]["reports"], listed["theme"]["first"]) == (0, None)
    assert listed["homepage"]["candidates"] == {"revision": 1, "strings": 2}
    assert listed["homepage"]["epsilon_report"] == pytest.approx(1.0, abs=1e-3)


def test_a_tally_is_told_for_the_days_that_are_asked_about(client: FlaskClient, reader: FlaskClient) -> None:
    day = today()
    reports = [Report("crashed", 1, day - timedelta(days=days), 0, b"\x01") for days in range(4)]
    for _ in range(DEFAULT_MIN_COHORT_REPORTS):
        post(client, encode_batch(Batch(new_batch_id(), tuple(reports))))
    metric = example()["crashed"]
    whole = Tally.parse(reader.get("/v1/metrics/crashed/tally").data, metric)
    assert whole == Tally.of(metric, reports * DEFAULT_MIN_COHORT_REPORTS)
    start, end = day - timedelta(days=2), day - timedelta(days=1)
    part = reader.get(f"/v1/metrics/crashed/tally?start={start}&end={end}").get_json()
    assert part == {
        "metric": "crashed",
        "version": 1,
        "start": start.isoformat(),
        "end": end.isoformat(),
        "cohorts": [{"cohort": 0, "n": 20, "counts": [20]}],
        "withheld": {"cohorts": 0, "reports": 0, "min_cohort_reports": 10},
    }


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/metrics/nonsense/tally", 404, "not_found"),
        ("/v1/metrics/crashed/tally?start=yesterday", 400, "bad_query"),
        ("/v1/metrics/crashed/tally?start=2026-13-01", 400, "bad_query"),
        ("/v1/metrics/crashed/tally?start=2026-11-16T00:00:00", 400, "bad_query"),
        ("/v1/metrics/crashed/tally?end=", 400, "bad_query"),
        ("/v1/metrics/crashed/tally?start=2026-11-16&start=2026-11-17", 400, "bad_query"),
        ("/v1/metrics/crashed/tally?start=2026-11-16&end=2026-11-15", 400, "bad_query"),
        ("/v1/metrics/crashed/tally?from=2026-11-16", 400, "bad_query"),
        ("/v1/metrics/crashed/candidates", 404, "not_found"),
        ("/v1/metrics/nonsense/candidates", 404, "not_found"),
        (CANDIDATES, 404, "not_found"),
        ("/v1/nonsense", 404, "not_found"),
        ("/nonsense", 404, "not_found"),
    ],
)
def test_a_question_that_has_no_answer_is_told_so(reader: FlaskClient, path: str, status: int, code: str) -> None:
    answer = reader.get(path)
    assert (answer.status_code, answer.content_type) == (status, "application/problem+json")
    assert answer.get_json()["code"] == code


def test_a_method_that_is_not_there_is_told_so(reader: FlaskClient) -> None:
    answer = reader.post("/v1/metrics")
    assert (answer.status_code, answer.get_json()["code"]) == (405, "method_not_allowed")
    assert "GET" in answer.headers["Allow"]


def test_candidates_come_back_as_they_went_in(reader: FlaskClient) -> None:
    strings = [f"site-{number}.example" for number in range(25_000)] + ["with spaces ", "ünïcödé", "a"]
    told = reader.put(CANDIDATES, data="\n".join(strings), content_type="text/plain; charset=utf-8")
    assert told.get_json() == {"revision": 1, "strings": len(strings)}
    answer = reader.get(CANDIDATES)
    assert answer.content_type == "text/plain; charset=utf-8"
    assert answer.text.splitlines() == strings
    assert answer.headers["ETag"] == '"1"'
    assert reader.get(CANDIDATES, headers={"If-None-Match": '"1"'}).status_code == 304


def test_candidates_with_line_breaks_are_spelled_as_json(reader: FlaskClient) -> None:
    strings = ["one\nline", 'and "another"', "\u2028"]
    lines = "".join(json.dumps(string) + "\n" for string in strings)
    assert reader.put(CANDIDATES, data=lines, content_type="application/x-ndjson").status_code == 200
    answer = reader.get(CANDIDATES, headers={"Accept": "application/x-ndjson"})
    assert answer.content_type == "application/x-ndjson; charset=utf-8"
    assert [json.loads(line) for line in answer.text.strip("\n").split("\n")] == strings


def test_line_ends_of_other_systems_do_not_become_part_of_a_candidate(reader: FlaskClient) -> None:
    reader.put(CANDIDATES, data="one\r\ntwo\r\n", content_type="text/plain")
    assert reader.get(CANDIDATES).text == "one\ntwo\n"


def test_candidates_can_be_forgotten_and_their_revision_still_grows(reader: FlaskClient) -> None:
    reader.put(CANDIDATES, data="one", content_type="text/plain")
    assert reader.delete(CANDIDATES).status_code == 204
    assert reader.get(CANDIDATES).status_code == 404
    assert reader.delete(CANDIDATES).status_code == 204
    assert reader.put(CANDIDATES, data="one", content_type="text/plain").get_json()["revision"] == 4


@pytest.mark.parametrize(
    ("body", "content_type", "status", "told"),
    [
        (b"", "text/plain", 422, "empty"),
        (b"one\n\ntwo", "text/plain", 422, "line 2 is empty"),
        (b"one\n\xff\n", "text/plain", 422, "line 2 is not UTF-8"),
        (b"x" * (MAX_TEXT_BYTES + 1), "text/plain", 422, "line 1 is empty or too long"),
        (b"x" * 1_000_000, "text/plain", 422, "line 1 is empty or too long"),
        (b'"one"\ntwo\n', "application/x-ndjson", 422, "line 2 is not a JSON string"),
        (b'"one"\n5\n', "application/x-ndjson", 422, "line 2 is not a JSON string"),
        (b'"\\ud800"\n', "application/x-ndjson", 422, "line 1"),
        (b"one", "application/json", 415, "allowed: text/plain"),
        (b"one", "", 415, "allowed: text/plain"),
    ],
)
def test_a_list_with_a_fault_is_refused_and_the_old_one_stays(
    reader: FlaskClient, body: bytes, content_type: str, status: int, told: str
) -> None:
    reader.put(CANDIDATES, data="kept", content_type="text/plain")
    answer = reader.put(CANDIDATES, data=body, content_type=content_type)
    assert (answer.status_code, answer.content_type) == (status, "application/problem+json")
    assert told in answer.get_json()["detail"]
    assert reader.get(CANDIDATES).text == "kept\n"


def test_a_list_that_is_too_long_is_refused(reader: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "MAX_CANDIDATES", 3)
    assert reader.put(CANDIDATES, data="a\nb\nc", content_type="text/plain").status_code == 200
    answer = reader.put(CANDIDATES, data="a\nb\nc\nd", content_type="text/plain")
    assert (answer.status_code, answer.get_json()["code"]) == (413, "too_large")
    monkeypatch.setattr(candidates, "MAX_CANDIDATES_BYTES", 5)
    answer = reader.put(CANDIDATES, data="abc\nabc", content_type="text/plain")
    assert (answer.status_code, answer.get_json()["code"]) == (413, "too_large")


def test_readiness_asks_the_store(app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.get("/readyz").get_json() == {"ok": True}
    collector_of(app).close(30)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.get_json()["code"]) == (503, "store_down")
    assert client.get("/livez").status_code == 200


def test_a_store_that_fails_is_a_503_and_says_nothing_of_itself(tmp_path: Path) -> None:
    with running(tmp_path) as app:
        client = app.test_client()
        with collector_of(app).store.engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE tally")
        answer = client.get("/v1/metrics", headers=BEARER)
        assert (answer.status_code, answer.get_json()["code"]) == (503, "store_down")
        assert "tally" not in answer.text


def shown(reader: FlaskClient) -> dict[tuple[str, ...], float]:
    """Samples of our own counters, by name and labels."""
    text = reader.get("/metrics").text
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_counters_tell_what_became_of_batches_and_reports(client: FlaskClient, reader: FlaskClient) -> None:
    good = Report("crashed", 1, today(), 0, b"\x01")
    bad = Report("crashed", 1, today(), 5, b"\x01")
    body = encode_batch(Batch(new_batch_id(), (good, bad)))
    post(client, body)
    post(client, body)
    post(client, encode_batch(Batch(new_batch_id(), (bad, bad))))
    post(client, b"nonsense")
    samples = shown(reader)
    assert samples["hubbub_batches_total", "accepted"] == 2
    assert samples["hubbub_batches_total", "duplicate"] == 1
    assert samples["hubbub_batches_total", "not_readable"] == 1
    assert samples["hubbub_reports_total", "accepted", ""] == 1
    assert samples["hubbub_reports_total", "rejected", "bad_cohort"] == 3
    assert samples["hubbub_commit_seconds_count",] == 2
    assert samples["hubbub_commit_batches_sum",] == 2
    assert samples["hubbub_queue_depth",] == 0
    assert samples["hubbub_ready",] == 1
    assert samples["hubbub_store_errors_total",] == 0


def test_the_interface_is_described_as_it_is(app: Flask, client: FlaskClient) -> None:
    described = client.get("/openapi.json").get_json()
    validate(described)
    assert described == json.loads(json.dumps(document()))
    methods = {"get", "put", "post", "delete"}
    told = {(path, method) for path, item in described["paths"].items() for method in item if method in methods}
    served = {
        (str(rule).replace("<name>", "{name}"), method.lower())
        for rule in app.url_map.iter_rules()
        for method in rule.methods or ()
        if method != "HEAD" and not rule.endpoint.startswith("dashboard.")
    }
    assert told == served | {("/v1/batches", "post")}
    for path, item in described["paths"].items():
        for method in methods & set(item):
            assert bool(item[method]["security"]) is (path not in PUBLIC), path
