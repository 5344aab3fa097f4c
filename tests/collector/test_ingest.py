"""Handing in batches: what is taken, what is refused, and what is told."""

import gzip
import tracemalloc
import zlib
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from collector.apps import BEARER, collector_of, post, running
from hubbub.collector import front, writer
from hubbub.collector.refusal import CODES
from hubbub.shared import Batch, Report, encode_batch
from hubbub.shared.period import period_of, today
from hubbub.shared.wire import JSON, MAX_BATCH_BYTES, MAX_REPORTS, MSGPACK, new_batch_id
from shared.registries import example


def a_batch(*names: str, identity: str | None = None) -> Batch:
    registry = example()
    day = today()
    reports = [
        Report(name, registry[name].version, period_of(registry[name].every, day), 0, bytes(registry[name].width))
        for name in names or registry
    ]
    return Batch(identity or new_batch_id(), tuple(reports))


def reports_of(client: FlaskClient, name: str) -> int:
    tally = client.get(f"/v1/metrics/{name}/tally", headers=BEARER).get_json()
    return sum([tally["withheld"]["reports"], *(cohort["n"] for cohort in tally["cohorts"])])


@pytest.mark.parametrize("media_type", [JSON, MSGPACK])
@pytest.mark.parametrize("compressed", [False, True])
def test_a_batch_is_taken_in_every_spelling(client: FlaskClient, media_type: str, compressed: bool) -> None:
    body = encode_batch(a_batch(), media_type)  # type: ignore[arg-type]
    headers = {"Content_Encoding": "gzip"} if compressed else {}
    for duplicate in (False, True):
        answer = post(client, gzip.compress(body) if compressed else body, media_type, **headers)
        assert (answer.status_code, answer.content_type) == (200, "application/json")
        assert answer.get_json() == {"accepted": 8, "duplicate": duplicate, "rejected": []}
    assert {reports_of(client, name) for name in example()} == {1}


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "APPLICATION/JSON", " application/json "])
def test_a_content_type_may_be_written_in_other_ways(client: FlaskClient, content_type: str) -> None:
    assert post(client, encode_batch(a_batch()), content_type).status_code == 200


def test_a_bad_report_does_not_sink_its_neighbours(client: FlaskClient) -> None:
    good, bad = a_batch("homepage", "crashed"), a_batch("theme")
    other = Report("nonsense", 1, today(), 0, b"\0")
    answer = post(client, encode_batch(Batch(good.batch, (good.reports[0], other, *bad.reports, good.reports[1]))))
    assert answer.get_json() == {
        "accepted": 3,
        "duplicate": False,
        "rejected": [{"index": 1, "reason": "unknown_metric"}],
    }
    assert [reports_of(client, name) for name in ("homepage", "crashed", "theme", "startup_ms")] == [1, 1, 1, 0]


def test_a_batch_of_which_nothing_counts_is_answered_and_not_remembered(client: FlaskClient) -> None:
    body = encode_batch(Batch(new_batch_id(), (Report("nonsense", 1, today(), 0, b"\0"),)))
    for _ in range(2):
        assert post(client, body).get_json() == {
            "accepted": 0,
            "duplicate": False,
            "rejected": [{"index": 0, "reason": "unknown_metric"}],
        }
    assert post(client, encode_batch(Batch(new_batch_id(), ()))).get_json() == {
        "accepted": 0,
        "duplicate": False,
        "rejected": [],
    }


GOOD = encode_batch(a_batch())
BOMB = gzip.compress(b'{"batch":"' + b"0" * (4 * MAX_BATCH_BYTES))


@pytest.mark.parametrize(
    ("body", "headers", "code"),
    [
        (GOOD, {"Content-Type": "text/plain"}, "media_type"),
        (GOOD, {}, "media_type"),
        (GOOD, {"Content-Type": JSON, "Content-Encoding": "br"}, "content_encoding"),
        (GOOD, {"Content-Type": JSON, "Content-Encoding": "gzip"}, "bad_gzip"),
        (gzip.compress(GOOD)[:-5], {"Content-Type": JSON, "Content-Encoding": "gzip"}, "bad_gzip"),
        (gzip.compress(GOOD) + b"more", {"Content-Type": JSON, "Content-Encoding": "gzip"}, "bad_gzip"),
        (zlib.compress(GOOD), {"Content-Type": JSON, "Content-Encoding": "gzip"}, "bad_gzip"),
        (b"", {"Content-Type": JSON}, "not_readable"),
        (b"{", {"Content-Type": JSON}, "not_readable"),
        (b"\xff", {"Content-Type": JSON}, "not_readable"),
        (b"[" * 100_000, {"Content-Type": JSON}, "not_a_batch"),
        (b"\xc1", {"Content-Type": MSGPACK}, "not_readable"),
        (b"{}", {"Content-Type": JSON}, "not_a_batch"),
        (GOOD.replace(b"}]}", b"}],"), {"Content-Type": JSON}, "not_readable"),
        (GOOD.replace(b'"cohort":0', b'"cohort":-1', 1), {"Content-Type": JSON}, "not_a_batch"),
        (GOOD.replace(b'"cohort":0', b'"cohort":0,"user":"x"', 1), {"Content-Type": JSON}, "not_a_batch"),
        (GOOD.replace(b'"bits":"', b'"bits":"+', 1), {"Content-Type": JSON}, "not_a_batch"),
        (GOOD + b" " * MAX_BATCH_BYTES, {"Content-Type": JSON}, "too_large"),
        (BOMB, {"Content-Type": JSON, "Content-Encoding": "gzip"}, "too_large"),
    ],
)
def test_a_malformed_batch_is_refused_as_a_whole(
    client: FlaskClient, body: bytes, headers: dict[str, str], code: str
) -> None:
    answer = client.post("/v1/batches", data=body, headers=headers)
    assert (answer.status_code, answer.content_type) == (CODES[code], "application/problem+json")
    told = answer.get_json()
    assert (told["code"], told["status"]) == (code, CODES[code])
    assert told["detail"]
    assert told["title"]
    assert reports_of(client, "homepage") == 0


def test_too_many_reports_make_a_batch_malformed(client: FlaskClient) -> None:
    report = a_batch("crashed").reports[0]
    body = encode_batch(Batch(new_batch_id(), (report,) * (MAX_REPORTS + 1)))
    assert post(client, body).get_json()["code"] == "not_a_batch"


def test_a_bomb_costs_nothing(client: FlaskClient) -> None:
    """A gigabyte of zeros comes as a megabyte; expanding it would take a gigabyte."""
    packer = zlib.compressobj(9, wbits=31)
    parts = [packer.compress(bytes(1 << 20)) for _ in range(1 << 10)]
    bomb = b"".join(parts) + packer.flush()
    assert len(bomb) < MAX_BATCH_BYTES * 1.1
    post(client, GOOD)
    tracemalloc.start()
    answer = post(client, bomb[:MAX_BATCH_BYTES], Content_Encoding="gzip")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.get_json()["code"] == "too_large"
    assert peak < 10 * MAX_BATCH_BYTES


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_only_post_hands_in_batches(client: FlaskClient, method: str) -> None:
    answer = client.open("/v1/batches", method=method)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


def test_an_ingest_key_is_asked_for_where_there_is_one(tmp_path: Path) -> None:
    with running(tmp_path, ingest_key="the-key-of-the-apps") as app:
        client = app.test_client()
        for shown in (
            None,
            "Bearer wrong",
            "Bearer the-key-of-the-app",
            "Basic the-key-of-the-apps",
            "the-key-of-the-apps",
        ):
            headers = {} if shown is None else {"Authorization": shown}
            answer = post(client, GOOD, **headers)
            assert (answer.status_code, answer.get_json()["code"]) == (401, "token_wrong")
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert post(client, GOOD, Authorization="Bearer the-key-of-the-apps").status_code == 200


def test_a_key_for_uploads_opens_nothing_else(tmp_path: Path) -> None:
    with running(tmp_path, ingest_key="the-key-of-the-apps") as app:
        answer = app.test_client().get("/v1/metrics", headers={"Authorization": "Bearer the-key-of-the-apps"})
        assert answer.status_code == 401


def test_a_full_queue_says_when_to_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path, queue=1) as app:
        collector = collector_of(app)
        client = app.test_client()
        monkeypatch.setattr(collector.writer, "_limit", 0)
        answer = post(client, GOOD)
        assert (answer.status_code, answer.get_json()["code"]) == (503, "queue_full")
        assert int(answer.headers["Retry-After"]) > 0


def test_a_collector_that_is_being_stopped_takes_nothing_more(app: Flask, client: FlaskClient) -> None:
    collector_of(app).close(30)
    answer = post(client, GOOD)
    assert (answer.status_code, answer.get_json()["code"]) == (503, "closing")


def test_whoever_waits_too_long_is_told_to_come_back_and_counts_once(
    client: FlaskClient, app: Flask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit goes on meanwhile, and the retry finds it."""
    taken: list[writer.Ticket] = []
    with monkeypatch.context() as patched:
        patched.setattr(collector_of(app).writer, "submit", taken.append)
        patched.setattr(front, "COMMIT_SECONDS", 0.01)
        answer = post(client, GOOD)
        assert (answer.status_code, answer.get_json()["code"]) == (503, "store_down")
    collector_of(app).writer.submit(taken[0])
    assert post(client, GOOD).get_json()["duplicate"] is True
    assert reports_of(client, "homepage") == 1


def test_a_fault_of_our_own_ends_neither_the_writer_nor_those_who_wait(
    client: FlaskClient, app: Flask, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer, "FIRST_RETRY_SECONDS", 0.01)
    with monkeypatch.context() as patched:

        def fail(*_: object) -> None:
            raise ZeroDivisionError

        patched.setattr("hubbub.collector.store.shard.count_reports", fail)
        assert post(client, GOOD).get_json()["code"] == "store_down"
    assert collector_of(app).writer.wait_until_ready(30)
    assert post(client, GOOD).get_json() == {"accepted": 8, "duplicate": False, "rejected": []}
    assert "ZeroDivisionError" in caplog.text


def test_pages_of_listed_origins_may_post_and_no_others(tmp_path: Path) -> None:
    with running(tmp_path, cors_origins=["https://app.example.org"]) as app:
        client = app.test_client()
        preflight = client.options("/v1/batches", headers={"Origin": "https://app.example.org"})
        assert preflight.status_code == 204
        assert preflight.headers["Access-Control-Allow-Origin"] == "https://app.example.org"
        assert preflight.headers["Access-Control-Allow-Methods"] == "POST"
        assert post(client, GOOD, Origin="https://app.example.org").headers["Access-Control-Allow-Origin"]
        for origin in ("https://evil.example.org", "null", ""):
            answer = post(client, GOOD, Origin=origin)
            assert "Access-Control-Allow-Origin" not in answer.headers
            assert answer.headers["Vary"] == "Origin"
        # For handing in batches only: nothing that reads can be read by another site.
        answer = client.get("/v1/registry", headers={"Origin": "https://app.example.org"})
        assert "Access-Control-Allow-Origin" not in answer.headers


def test_without_listed_origins_there_is_no_cors(client: FlaskClient) -> None:
    answer = post(client, GOOD, Origin="https://app.example.org")
    assert answer.status_code == 200
    assert not any(name.startswith("Access-Control") for name, _ in answer.headers)


def test_every_origin_may_post_where_the_operator_says_so(tmp_path: Path) -> None:
    with running(tmp_path, cors_origins=["*"]) as app:
        answer = post(app.test_client(), GOOD, Origin="https://app.example.org")
        assert answer.headers["Access-Control-Allow-Origin"] == "*"


def test_nothing_of_a_sender_is_stored_or_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("DEBUG")
    with running(tmp_path) as app:
        client = app.test_client()
        answer = client.post(
            "/v1/batches",
            data=GOOD,
            content_type=JSON,
            headers={"User-Agent": "agent-of-somebody", "X-Forwarded-For": "203.0.113.77"},
            environ_overrides={"REMOTE_ADDR": "203.0.113.77"},
        )
        assert answer.status_code == 200
        shown = client.get("/metrics", headers=BEARER).get_data()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir()) + shown
    kept += (caplog.text + "".join(capfd.readouterr())).encode()
    for secret in (b"203.0.113.77", b"agent-of-somebody"):
        assert secret not in kept
