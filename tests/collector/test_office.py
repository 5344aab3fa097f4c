"""The office: pages are made by a process of its own, and whoever asks for them cannot tell, whatever becomes of it."""

import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from collector.apps import BEARER, TOKEN
from collector.house import Answer, House, Receive, gone, late, never, parts
from collector.senders import HANG_SECONDS
from collector.served import TOKEN as SERVED_TOKEN
from collector.served import Served, serving
from hubbub.collector import relay
from hubbub.collector.app import create_asgi, make_flask
from hubbub.collector.collector import Collector
from hubbub.collector.dashboard import ClosedDesk, session
from hubbub.collector.decode.process import NICENESS
from hubbub.collector.office import Opening
from hubbub.collector.relay import Office, is_page
from hubbub.collector.store import Store
from hubbub.collector.store.candidates import get_revision
from hubbub.collector.token import Token
from shared.registries import EXAMPLE, example

pytestmark = pytest.mark.skipif(not relay.IS_POSSIBLE, reason="connections cannot be handed over on this system")

VISITOR = "0123456789abcdef"
LOGGING: dict[str, Any] = {"version": 1}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    store = Store(f"sqlite:///{tmp_path_factory.mktemp('office')}/hubbub.db")
    collector = Collector(example(), store, admin_token=TOKEN)
    collector.start()
    assert collector.writer.wait_until_ready(HANG_SECONDS)
    office = Office(Opening(EXAMPLE, str(store.engine.url), TOKEN, 4, LOGGING))
    with asyncio.Runner() as runner:

        async def make() -> Any:
            return create_asgi(collector, 4, office)

        yield House(runner, collector, office, runner.run(make()))
        close(runner, office)
    assert collector.close()


def close(runner: asyncio.Runner, office: Office) -> None:
    office.close()
    assert runner.run(office.has_ended())


def opened(house: House, path: str = "/", **options: Any) -> Answer:
    """Ask as somebody who shows the token, and comes back while the office is being opened."""
    deadline = time.monotonic() + HANG_SECONDS
    while (answer := house.ask(path, authorization=BEARER["Authorization"], **options)).status == 202:
        assert time.monotonic() < deadline
    return answer


def form(cookie: str, **fields: str) -> bytes:
    token = session.form_token(Token(TOKEN), cookie)
    return "&".join(f"{name}={value}" for name, value in {"form_token": token, **fields}.items()).encode()


FORM = "application/x-www-form-urlencoded"


def test_every_page_is_handed_on_and_nothing_else_is(house: House) -> None:
    app = make_flask(house.collector, ClosedDesk())
    told = {rule.rule.replace("<name>", "theme"): rule.endpoint for rule in app.url_map.iter_rules()}
    assert {path for path in told if is_page(path)} == {
        path for path, endpoint in told.items() if endpoint.startswith("dashboard.")
    }
    assert not any(map(is_page, ("/v1/batches", "/metrics", "/metric", "/loginx", "/livez", "/nothing")))


def test_pages_come_from_a_process_of_low_priority(house: House) -> None:
    answer = opened(house)
    assert answer.status == 200
    assert "<h1" in answer.text
    assert answer.headers["content-length"] == str(len(answer.body))
    assert os.getpriority(os.PRIO_PROCESS, house.pid()) >= NICENESS
    with Path(f"/proc/{house.pid()}/cmdline").open() as line:
        assert TOKEN not in line.read()
    head = opened(house, method="HEAD")
    assert (head.status, head.headers["content-length"], head.body) == (200, str(len(answer.body)), b"")
    etag = opened(house, "/static/dashboard.css").headers["etag"]
    assert opened(house, "/static/dashboard.css", if_none_match=etag).status == 304
    assert opened(house, "/metric/nothing").status == 404
    assert opened(house, "/metric/\N{PILE OF POO}\ufffd").status == 404
    assert opened(house, "/metric/theme", query="confidence=2").status == 400
    assert opened(house, "/", method="POST").status == 405


def test_what_is_no_page_is_answered_here(house: House) -> None:
    assert opened(house).status == 200
    os.kill(house.pid(), signal.SIGSTOP)
    try:
        assert house.ask("/livez").status == 200
        assert opened(house, "/v1/metrics").status == 200
        assert house.ask("/nothing").status == 404
    finally:
        os.kill(house.pid(), signal.SIGCONT)


def test_the_office_knows_who_asks(house: House) -> None:
    assert opened(house).status == 200
    answer = house.ask("/metric/theme", query="confidence=0.9")
    assert (answer.status, answer.headers["location"]) == (303, "/login?next=%2Fmetric%2Ftheme%3Fconfidence%3D0.9")
    cookie = f"{session.COOKIE}={session.new_session(Token(TOKEN))}"
    assert house.ask("/metric/theme", cookie=cookie).status == 200
    wrong = form(VISITOR, token="wrong")
    visitor = f"{session.VISITOR}={VISITOR}"
    assert house.ask("/login", "POST", parts(wrong), cookie=visitor, content_type=FORM).status == 401
    right = form(VISITOR, token=TOKEN)
    answer = house.ask("/login", "POST", parts(right[:9], right[9:]), cookie=visitor, content_type=FORM)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert any(each.startswith(f"{session.COOKIE}=") and "HttpOnly" in each for each in answer.cookies)
    assert house.ask("/login", "POST", parts(right), content_type=FORM).status == 403


def test_without_a_token_only_this_machine_sees_pages(house: House, tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/hubbub.db")
    store.prepare(example())
    store.close()
    collector = Collector(example(), store)
    office = Office(Opening(EXAMPLE, str(store.engine.url), None, 4, LOGGING))

    async def make() -> Any:
        return create_asgi(collector, 4, office)

    open_house = House(house.runner, collector, office, house.runner.run(make()))
    try:
        assert opened(open_house).status == 200
        assert opened(open_house, client="203.0.113.9").status == 401
        assert opened(open_house, x_forwarded_for="203.0.113.9").status == 401
        assert opened(open_house, host="example.org").status == 401
    finally:
        close(house.runner, office)


def listed(house: House) -> object:
    return get_revision(house.collector.store.engine, "homepage")


def upload(house: House, receive: Callable[[bytes], Receive], strings: str, **headers: str) -> Answer:
    """Send a list in a text field, as somebody who is logged in."""
    cookie = session.new_session(Token(TOKEN))
    body = form(cookie, strings=strings)
    return house.ask(
        "/metric/homepage/candidates",
        "POST",
        receive(body),
        cookie=f"{session.COOKIE}={cookie}",
        content_type=FORM,
        **headers,
    )


def test_a_long_list_arrives_and_half_a_list_does_not(house: House) -> None:
    assert opened(house).status == 200
    strings = "%0A".join(f"site-{number}.example.org" for number in range(10_000))

    def in_parts(body: bytes) -> Receive:
        return parts(*(body[at : at + 1000] for at in range(0, len(body), 1000)))

    answer = upload(house, in_parts, strings)
    assert (answer.status, answer.headers["location"]) == (303, "/metric/homepage?saved=10000#candidates")
    before = listed(house)
    for headers in ({}, {"content_length": "1000000"}):
        upload(house, lambda body: parts(body[: len(body) // 2], then=gone), strings, **headers)
        assert listed(house) == before
    answer = upload(house, lambda body: parts(body[:100], then=late), strings)
    assert (answer.status, answer.headers["content-type"]) == (408, "application/problem+json")
    assert "body_too_slow" in answer.text
    assert listed(house) == before


def test_a_refusal_does_not_wait_for_the_rest_of_a_form(house: House) -> None:
    assert opened(house).status == 200
    limit = 600 << 10
    receive = parts(b"x" * limit, then=never)
    cookie = f"{session.COOKIE}={session.new_session(Token(TOKEN))}"
    answer = house.ask(
        "/metric/homepage/candidates",
        "POST",
        receive,
        cookie=cookie,
        content_type=FORM,
        content_length=str(10 * limit),
    )
    assert answer.status == 413


def test_an_office_that_was_killed_is_opened_again(house: House) -> None:
    assert opened(house).status == 200
    before = house.pid()
    house.kill()
    assert opened(house).status == 200
    assert house.pid() != before


def killed_while_asked(house: House, monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Have the office killed once it has been given a request, so many times."""
    connect = Office.connect
    killed: list[int] = []

    def and_kill(self: Office) -> Any:
        pid = house.pid()
        doomed = len(killed) < times
        if doomed:
            os.kill(pid, signal.SIGSTOP)  # so that it has the request, and does not answer
            killed.append(pid)
        connection = connect(self)
        if doomed:
            os.kill(pid, signal.SIGKILL)
        return connection

    monkeypatch.setattr(Office, "connect", and_kill)
    return killed


def test_a_page_whose_office_is_killed_is_asked_for_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened(house).status == 200
    killed = killed_while_asked(house, monkeypatch, 1)
    assert opened(house).status == 200
    assert len(killed) == 1


def test_a_form_whose_office_is_killed_is_not_sent_twice(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened(house).status == 200
    killed = killed_while_asked(house, monkeypatch, 1)
    answer = house.ask("/login", "POST", parts(b"token=x"), content_type=FORM)
    assert (answer.status, answer.headers["content-type"]) == (503, "application/problem+json")
    assert answer.headers["retry-after"]
    assert len(killed) == 1


def test_until_the_office_is_open_pages_say_to_wait(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "COMMAND", (sys.executable, "-c", "import time; time.sleep(600)"))
    monkeypatch.setattr(relay, "PAGE_SECONDS", 0.1)
    house.kill()
    answer = house.ask("/metric/theme", authorization=BEARER["Authorization"])
    assert (answer.status, answer.headers["content-type"]) == (202, "text/html; charset=utf-8")
    assert 'http-equiv="refresh"' in answer.text
    assert house.ask("/metric/theme").status == 303, "whoever has no token learns nothing"
    assert house.ask("/login").status == 200
    monkeypatch.undo()
    house.kill()
    assert opened(house).status == 200


def test_an_office_that_cannot_open_is_told_to_the_operator(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(relay, "COMMAND", (sys.executable, "-c", "pass"))
    house.kill()
    with caplog.at_level(logging.WARNING, "hubbub.collector"):
        assert house.ask("/", authorization=BEARER["Authorization"]).status == 202
    assert "the process that makes pages ended before the first of them" in caplog.text
    monkeypatch.undo()
    assert opened(house).status == 200


def page(served: Served, path: str = "/") -> requests.Response:
    headers = {"Authorization": f"Bearer {SERVED_TOKEN}", "Accept": "text/html"}
    deadline = time.monotonic() + HANG_SECONDS
    while (answer := requests.get(served.url + path, headers=headers, timeout=HANG_SECONDS)).status_code == 202:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return answer


def children(pid: int) -> list[int]:
    """Processes that a process has started, by whichever of its threads."""
    return [int(each) for file in Path(f"/proc/{pid}/task").glob("*/children") for each in file.read_text().split()]


def test_the_office_ends_with_the_one_that_serves(tmp_path: Path) -> None:
    with serving(tmp_path, f"sqlite:///{tmp_path}/hubbub.db") as served:
        assert page(served).status_code == 200
        [worker] = served.workers()
        [office] = children(worker)
        for each in (signal.SIGTERM, signal.SIGINT):  # of a service manager, or a terminal, which tell everybody
            os.kill(office, each)
        assert page(served).status_code == 200
        assert children(worker) == [office]
        assert served.stop() == 0
        served.wait_until_gone()
        served.start()
        assert page(served).status_code == 200
        [worker] = served.workers()
        [office] = children(worker)
        os.kill(worker, signal.SIGKILL)
        wait_until_ended(office)
        served.wait_until_ready()
        assert page(served).status_code == 200, "the next process that serves has an office of its own"
        served.process.kill()
        served.wait_until_gone()


def wait_until_ended(pid: int) -> None:
    deadline = time.monotonic() + HANG_SECONDS
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
