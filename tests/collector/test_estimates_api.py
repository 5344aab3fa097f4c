"""Estimates over HTTP: the numbers of the decoder, decoded apart, once, and never in the way of batches."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import msgspec
import pytest
import requests
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from collector.apps import BEARER, TOKEN, collector_of, post, running
from collector.served import TOKEN as SERVED_TOKEN
from collector.served import Served, serving
from hubbub.collector import Estimates, decode, decoding
from hubbub.collector.decode import DEFAULT_CONFIDENCE, DEFAULT_CONTROL, Control, process
from hubbub.collector.decode.process import NICENESS, Order, decode_apart
from hubbub.collector.decoding import Manner
from hubbub.collector.refusal import Refused
from hubbub.collector.store import Store
from hubbub.collector.store.backend import writing
from hubbub.collector.store.bulk import put_tallies
from hubbub.collector.store.shard import COUNTS
from hubbub.shared import Batch, ParameterError, Report, encode_batch
from hubbub.shared.period import today
from hubbub.shared.wire import new_batch_id
from hubbub.simulations import simulate_tally
from shared.registries import EXAMPLE, example

HANG_SECONDS = 300
"""Waiting for longer than this is a failure, also on a busy machine, of which decoding gets what others leave."""

SHARD = 99
"""Not that of any writer."""

REGISTRY = example()
STRINGS = [name for name, metric in REGISTRY.items() if metric.kind == "string"]
DAYS = [date(2026, 11, 2), date(2026, 11, 9), date(2026, 11, 16)]
CANDIDATES = ["example.org", "example.com", "eo", "ünïcödé", "with, a comma", *(f"site-{n}" for n in range(45))]
ESTIMATES = "/v1/metrics/homepage/estimates"

TRUTH: dict[str, dict[str | bool | float, int]] = {
    "homepage": {"example.org": 6000, "example.com": 3000, "with, a comma": 1500, "nobody asks about this": 500},
    "homepage_classic": {"example.org": 9000, "ünïcödé": 4000},
    "theme": {"light": 500, "dark": 1200, "system": 10},
    "crashed": {True: 70, False: 900},
    "minutes_used": {0.0: 400, 12.5: 300, 1440.0: 20},
    "startup_ms": {50.0: 500, 432.0: 2000, 60000.0: 3},
    "language": {"eo": 3000, "tlh": 200},
    "newcomer": {True: 40, False: 60},
}


def fill(store: Store, *names: str) -> None:
    """Put tallies of three periods into a store, as many reports would have made them."""
    rows = []
    for name in names or TRUTH:
        for seed, day in enumerate(DAYS):
            tally = simulate_tally(REGISTRY[name], TRUTH[name], seed)
            for cohort, (n, counts) in enumerate(zip(tally.n.tolist(), tally.counts, strict=True)):
                rows.append((name, tally.version, day, cohort, n, counts.astype(COUNTS).tobytes()))
    with writing(store.engine) as connection:
        put_tallies(connection, SHARD, rows)


def list_candidates(client: FlaskClient, name: str = "homepage", strings: list[str] = CANDIDATES) -> None:
    path = f"/v1/metrics/{name}/candidates"
    answer = client.put(path, data="\n".join(strings), content_type="text/plain", headers=BEARER)
    assert answer.status_code == 200


def directly(store: Store, name: str, start: date | None = None, end: date | None = None, **how: object) -> Estimates:
    """What the decoder itself says about what is in a store."""
    metric = REGISTRY[name]
    asked = {"candidates": CANDIDATES} if metric.kind == "string" else {}
    periods = 1 if metric.every == "once" else store.periods(metric, start, end)
    return decode(metric, store.tally(metric, start, end), periods=periods, **asked, **how)  # type: ignore[arg-type]


def detected(estimates: Estimates) -> Estimates:
    return msgspec.structs.replace(estimates, rows=estimates.detected)


def told(answer: TestResponse | requests.Response) -> Estimates:
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    body = answer.data if isinstance(answer, TestResponse) else answer.content
    estimates = msgspec.json.decode(body, type=Estimates)
    assert json.loads(body) == json.loads(msgspec.json.encode(estimates.to_dict()))
    return estimates


@pytest.fixture
def stocked(app: Flask, reader: FlaskClient) -> Store:
    """The store of the app, with tallies of everything and candidates for one metric."""
    store = collector_of(app).store
    fill(store)
    list_candidates(reader)
    return store


@pytest.fixture
def reader(app: Flask) -> FlaskClient:
    """A client that shows the admin token with every request."""
    return reader_of(app)


def reader_of(app: Flask) -> FlaskClient:
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {TOKEN}"
    return client


class Processes:
    """The processes that decode: how many there were, and the last of them, stopped if it was to be held up."""

    def __init__(self) -> None:
        self.number = 0
        self.holding = False
        self.quick: bytes | None = None
        """What to answer in place of decoding, where only the number of times matters."""
        self.begun = threading.Event()
        self.last: subprocess.Popen[bytes] | None = None

    def decode_apart(self, order: Order, started: Callable[[subprocess.Popen[bytes]], None]) -> bytes:
        def begin(each: subprocess.Popen[bytes]) -> None:
            started(each)
            self.number += 1
            self.last = each
            if self.holding:
                each.send_signal(signal.SIGSTOP)
            self.begun.set()

        if self.quick is None:
            return decode_apart(order, begin)
        self.number += 1
        return self.quick

    def signal(self, number: signal.Signals) -> None:
        assert self.last is not None
        self.last.send_signal(number)

    @property
    def returncode(self) -> int | None:
        assert self.last is not None
        return self.last.returncode


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Processes:
    """What is decoded apart from now on."""
    watched = Processes()
    monkeypatch.setattr(decoding, "decode_apart", watched.decode_apart)
    return watched


@pytest.fixture
def asking(app: Flask) -> Iterator[Callable[..., Future[TestResponse]]]:
    """Ask from threads of their own."""
    with ThreadPoolExecutor() as threads:
        yield lambda path=ESTIMATES: threads.submit(lambda: reader_of(app).get(path))


def refusal(answer: TestResponse) -> tuple[int, str]:
    assert answer.content_type == "application/problem+json"
    if answer.status_code == 503:
        assert int(answer.headers["Retry-After"]) > 0
    return answer.status_code, answer.get_json()["code"]


@pytest.mark.parametrize("name", [name for name in TRUTH if name not in STRINGS])
def test_numbers_are_those_of_the_decoder(stocked: Store, reader: FlaskClient, processes: Processes, name: str) -> None:
    path = f"/v1/metrics/{name}/estimates"
    assert told(reader.get(path)) == directly(stocked, name)
    some = reader.get(f"{path}?start={DAYS[1]}&end={DAYS[2]}&confidence=0.5&control=family-wise:0.01&all=true")
    how = {"confidence": 0.5, "control": "family-wise:0.01"}
    assert told(some) == directly(stocked, name, DAYS[1], DAYS[2], **how)
    assert processes.number == 0, "this takes microseconds"


@pytest.mark.parametrize("name", STRINGS)
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


def test_what_was_decoded_before_is_not_decoded_again(
    stocked: Store, reader: FlaskClient, processes: Processes
) -> None:
    first = reader.get(ESTIMATES)
    again = reader.get(f"{ESTIMATES}?confidence=0.95&control=fdr:0.1&strict=false&all=false")
    assert (again.data, again.headers["ETag"]) == (first.data, first.headers["ETag"])
    assert processes.number == 1
    assert reader.get(f"{ESTIMATES}?control=fdr:0.1000001").headers["ETag"] != first.headers["ETag"]
    assert processes.number == 2, "it is spelled as fdr:0.1, and is not the same"


def test_what_has_changed_is_decoded_again(stocked: Store, reader: FlaskClient, processes: Processes) -> None:
    assert reader.get(ESTIMATES).status_code == 200
    list_candidates(reader)
    assert reader.get(ESTIMATES).status_code == 200
    assert processes.number == 2, "another list"
    with writing(stocked.engine) as connection:
        connection.exec_driver_sql("DELETE FROM tally WHERE cohort = 0")
    assert told(reader.get(ESTIMATES)) == detected(directly(stocked, "homepage"))
    assert processes.number == 3, "other reports"


def test_few_answers_are_kept_and_those_asked_for_last(
    stocked: Store, reader: FlaskClient, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes.quick = b"an answer: "
    monkeypatch.setattr(decoding, "CACHE_ENTRIES", 2)
    first, second, third = (f"{ESTIMATES}?confidence=0.{digit}" for digit in (7, 8, 9))
    for path in (first, second, first, third, first):
        assert reader.get(path).data == processes.quick
    assert processes.number == 3
    assert reader.get(second).status_code == 200
    assert processes.number == 4
    monkeypatch.setattr(decoding, "CACHE_BYTES", 10)
    for _ in range(2):
        assert reader.get(third).status_code == 200
    assert processes.number == 6, "too large to be kept"


def test_who_has_the_answer_already_is_told_so_and_nothing_is_decoded(
    stocked: Store, reader: FlaskClient, processes: Processes
) -> None:
    manner = Manner(DEFAULT_CONFIDENCE, DEFAULT_CONTROL, False, False, "application/json")
    etag = decoding.Decoder(REGISTRY, stocked).question(REGISTRY["homepage"], None, None, manner).etag
    for shown in (f'"{etag}"', f'W/"{etag}"', f'"other", "{etag}"'):
        answer = reader.get(ESTIMATES, headers={"If-None-Match": shown})
        assert (answer.status_code, answer.data, answer.headers["ETag"]) == (304, b"", f'"{etag}"')
    assert processes.number == 0
    answer = reader.get(ESTIMATES, headers={"If-None-Match": '"other"'})
    assert (answer.status_code, answer.headers["ETag"]) == (200, f'"{etag}"')


def test_an_answer_is_about_the_candidates_that_it_was_decoded_with(app: Flask, stocked: Store) -> None:
    decoder = collector_of(app).decoder
    manner = Manner(DEFAULT_CONFIDENCE, DEFAULT_CONTROL, False, True, "application/json")
    question = decoder.question(REGISTRY["homepage"], None, None, manner)
    list_candidates(reader_of(app), strings=["example.org"])
    answered, body = decoder.answer(question)
    assert (question.revision, answered.revision) == ((1, len(CANDIDATES)), (2, 1))
    assert [row.value for row in msgspec.json.decode(body, type=Estimates).rows] == ["example.org"]
    assert answered.etag == decoder.question(REGISTRY["homepage"], None, None, manner).etag != question.etag
    reader_of(app).delete("/v1/metrics/homepage/candidates")
    with pytest.raises(Refused, match="has no candidates"):
        decoder.answer(replace(question, periods=7))


def test_a_process_that_is_killed_is_a_503_and_the_next_one_works(
    stocked: Store, reader: FlaskClient, processes: Processes, asking: Callable[..., Future[TestResponse]]
) -> None:
    processes.holding = True
    asked = asking()
    assert processes.begun.wait(HANG_SECONDS)
    processes.signal(signal.SIGKILL)
    assert refusal(asked.result(HANG_SECONDS)) == (503, "decoding_failed")
    assert processes.returncode == -signal.SIGKILL
    processes.holding = False
    assert told(reader.get(ESTIMATES)) == detected(directly(stocked, "homepage"))


def test_a_process_that_takes_too_long_is_killed(
    stocked: Store, reader: FlaskClient, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "DECODE_SECONDS", 0.1)
    processes.holding = True
    answer = reader.get(ESTIMATES)
    assert refusal(answer) == (503, "decoding_failed")
    assert "took more than 0.1 s" in answer.get_json()["detail"]
    assert processes.returncode == -signal.SIGKILL


def test_a_process_that_fails_is_a_503(stocked: Store, reader: FlaskClient) -> None:
    with writing(stocked.engine) as connection:
        connection.exec_driver_sql("UPDATE candidate_chunk SET strings = x'00'")
    assert refusal(reader.get(ESTIMATES)) == (503, "decoding_failed")


@pytest.mark.parametrize("name", ["homepage", "crashed"])
def test_a_tally_that_no_reports_can_have_made_is_told_so(stocked: Store, reader: FlaskClient, name: str) -> None:
    with writing(stocked.engine) as connection:
        connection.exec_driver_sql("UPDATE tally SET n = 1")
    answer = reader.get(f"/v1/metrics/{name}/estimates")
    assert refusal(answer) == (500, "internal")
    assert answer.get_json()["detail"].startswith("tally: ")


def test_batches_are_taken_while_strings_are_decoded(
    stocked: Store, client: FlaskClient, processes: Processes, asking: Callable[..., Future[TestResponse]]
) -> None:
    processes.holding = True
    expected = detected(directly(stocked, "homepage"))
    asked = asking()
    assert processes.begun.wait(HANG_SECONDS)
    for _ in range(50):
        report = Report("homepage", 1, today(), 0, bytes(16))
        answer = post(client, encode_batch(Batch(new_batch_id(), (report,))))
        assert (answer.status_code, answer.get_json()["accepted"]) == (200, 1)
    assert client.get("/readyz").status_code == 200
    assert told(reader_of(client.application).get("/v1/metrics/theme/estimates")).reports
    assert not asked.done()
    processes.signal(signal.SIGCONT)
    assert told(asked.result(HANG_SECONDS)) == expected, "what there was when it was asked for"


def test_those_who_ask_the_same_at_once_wait_for_one_process(
    stocked: Store, processes: Processes, asking: Callable[..., Future[TestResponse]]
) -> None:
    processes.holding = True
    asked = [asking() for _ in range(3)]
    assert processes.begun.wait(HANG_SECONDS)
    processes.signal(signal.SIGCONT)
    answers = {each.result(HANG_SECONDS).data for each in asked}
    assert len(answers) == processes.number == 1


def test_nobody_waits_for_too_long_or_behind_too_many(
    stocked: Store,
    reader: FlaskClient,
    processes: Processes,
    asking: Callable[..., Future[TestResponse]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(decoding, "TURN_SECONDS", 0.01)
    processes.holding = True
    asked = asking()
    assert processes.begun.wait(HANG_SECONDS)
    late = reader.get(f"{ESTIMATES}?all=true")
    assert (refusal(late), "more than 0.01 s" in late.get_json()["detail"]) == ((503, "busy"), True)
    monkeypatch.setattr(decoding, "MAX_WAITING", 0)
    monkeypatch.setattr(decoding, "TURN_SECONDS", HANG_SECONDS)
    behind = reader.get(f"{ESTIMATES}?all=true")
    assert (refusal(behind), "allowed: 0" in behind.get_json()["detail"]) == ((503, "busy"), True)
    processes.signal(signal.SIGCONT)
    assert asked.result(HANG_SECONDS).status_code == 200
    processes.holding = False
    assert reader.get(f"{ESTIMATES}?all=true").status_code == 200


def test_a_stop_ends_the_process_and_nobody_starts_another(tmp_path: Path, processes: Processes) -> None:
    with ThreadPoolExecutor() as threads, running(tmp_path) as app:
        fill(collector_of(app).store, "homepage")
        list_candidates(reader_of(app))
        processes.holding = True
        asked = [threads.submit(reader_of(app).get, f"{ESTIMATES}?confidence=0.{digit}") for digit in (7, 8, 9)]
        assert processes.begun.wait(HANG_SECONDS)
        assert collector_of(app).close(HANG_SECONDS)
        for each in asked:
            assert refusal(each.result(HANG_SECONDS)) == (503, "closing")
        assert processes.returncode == -signal.SIGKILL
        assert refusal(reader_of(app).get(ESTIMATES)) == (503, "closing")
    assert processes.number == 1


def order(name: str = "homepage") -> Order:
    tally = simulate_tally(REGISTRY["homepage"], TRUTH["homepage"], 1).json()
    control = Control("fdr", 0.1)
    return Order(EXAMPLE, name, tally, [], 0.95, control, False, 1, undetected=False, spelling="application/json")


def test_what_the_decoder_refuses_is_raised_again() -> None:
    with pytest.raises(ParameterError, match="candidates: the list is empty"):
        decode_apart(order())
    with pytest.raises(ParameterError, match='metric "nonsense" is not in the registry'):
        decode_apart(order("nonsense"))


def child(program: str, given: bytes) -> subprocess.Popen[bytes]:
    """A process that decodes, as far as it is changed by a program, and what it is given to begin with."""
    text = f"import os, sys, threading\nfrom hubbub.collector.decode import process\n{program}\nprocess.main()"
    begun = subprocess.Popen([sys.executable, "-c", text], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert begun.stdin is not None
    begun.stdin.write(given)
    return begun


def message() -> bytes:
    body = msgspec.msgpack.encode(order())
    return len(body).to_bytes(8) + body


def test_a_process_ends_by_itself_when_nobody_waits_any_more() -> None:
    never = "process._answer = lambda order: (os.write(1, b'begun'), threading.Event().wait())"
    with child(never, message()) as begun:
        assert begun.stdin is not None
        assert begun.stdout is not None
        assert begun.stdout.read(5) == b"begun"
        begun.stdin.close()
        assert begun.wait(HANG_SECONDS) == 1


@pytest.mark.parametrize("part", [3, 100])
def test_a_process_ends_by_itself_when_its_order_does_not_come_to_an_end(part: int) -> None:
    with child("", message()[:part]) as begun:
        assert begun.communicate(timeout=HANG_SECONDS)[0] == b""
        assert begun.returncode == 0


def test_a_process_lets_all_others_go_first() -> None:
    wanted = min(os.nice(0) + NICENESS, 19)

    def look(begun: subprocess.Popen[bytes]) -> None:
        while os.getpriority(os.PRIO_PROCESS, begun.pid) != wanted:
            assert begun.poll() is None, "it waits for its order"

    with pytest.raises(ParameterError):
        decode_apart(order(), look)


def ask(served: Served, query: str = "") -> requests.Response:
    shown = {"Authorization": f"Bearer {SERVED_TOKEN}"}
    return requests.get(f"{served.url}{ESTIMATES}{query}", headers=shown, timeout=HANG_SECONDS)


@contextmanager
def serving_estimates(folder: Path) -> Iterator[Served]:
    """A real collector, with reports of everything and candidates of one string metric."""
    with serving(folder, f"sqlite:///{folder}/hubbub.db", registry=EXAMPLE) as served:
        store = Store(served.store)
        fill(store)
        store.close()
        lines = {"Authorization": f"Bearer {SERVED_TOKEN}", "Content-Type": "text/plain"}
        path = f"{served.url}/v1/metrics/homepage/candidates"
        assert requests.put(path, "\n".join(CANDIDATES).encode(), headers=lines, timeout=30).status_code == 200
        yield served


def test_a_real_collector_answers_with_the_same_numbers(tmp_path: Path) -> None:
    with serving_estimates(tmp_path) as served:
        store = Store(served.store)
        for name in TRUTH:
            if name not in STRINGS:
                assert told(served.get(f"/v1/metrics/{name}/estimates")) == directly(store, name)
        assert told(ask(served)) == detected(directly(store, "homepage"))
        assert told(ask(served, "?all=true")) == directly(store, "homepage")
        store.close()
        assert served.stop() == 0


@pytest.fixture
def decoding_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is there as soon as a process of a real collector decodes; and that takes for ever."""
    mark = tmp_path / "begun"
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(f"""
import pathlib, sys, threading
if "decode.process" in sys.orig_argv[-1]:
    from hubbub.collector.decode import process
    process._answer = lambda order: (pathlib.Path({str(mark)!r}).touch(), threading.Event().wait())
""")
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    return mark


def wait_for(mark: Path) -> None:
    """Look until a file is there: another process makes it."""
    deadline = time.monotonic() + HANG_SECONDS
    while not mark.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_stop_while_strings_are_decoded_leaves_no_process(tmp_path: Path, decoding_for_ever: Path) -> None:
    with serving_estimates(tmp_path) as served, ThreadPoolExecutor() as threads:
        asked = threads.submit(ask, served)
        wait_for(decoding_for_ever)
        assert served.stop(10) == 0
        answer = asked.result(HANG_SECONDS)
        assert (answer.status_code, answer.json()["code"]) == (503, "closing")
        served.wait_until_gone()
        assert "refused to gracefully stop" not in served.log.read_text()


def test_a_collector_that_is_killed_leaves_no_process(tmp_path: Path, decoding_for_ever: Path) -> None:
    with serving_estimates(tmp_path) as served, ThreadPoolExecutor() as threads:
        asked = threads.submit(ask, served)
        wait_for(decoding_for_ever)
        [worker] = served.workers()
        served.process.send_signal(signal.SIGKILL)
        os.kill(worker, signal.SIGKILL)
        assert isinstance(asked.exception(HANG_SECONDS), requests.RequestException)
        served.process.wait()
        served.wait_until_gone()


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
