"""Who may look at the dashboard, what a browser is told about it, and what cannot be forged."""

from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from collector.apps import TOKEN, collector_of, running
from collector.dashboards import POLICY, REGISTRY, Page, browser, candidates_of, log_in, page
from hubbub.collector.dashboard import session

pytestmark = pytest.mark.usefixtures("patient")


def test_those_who_are_not_logged_in_are_sent_to_the_login(app: Flask) -> None:
    client = browser(app)
    answer = client.get("/metric/homepage?start=2026-11-01")
    assert answer.status_code == 303
    assert answer.location == "/login?next=%2Fmetric%2Fhomepage%3Fstart%3D2026-11-01"
    shown = page(client, answer.location)
    assert shown.field("next") == "/metric/homepage?start=2026-11-01"
    assert client.get("/").location.startswith("/login")


def test_programs_without_a_token_are_refused(app: Flask) -> None:
    for path in ("/", "/metric/homepage", "/metric/homepage/chart.svg", "/metric/homepage/estimates.json"):
        answer = app.test_client().get(path)
        assert (answer.status_code, answer.get_json()["code"]) == (401, "token_wrong")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert app.test_client().get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert app.test_client().get("/", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def cookie_line(answer: TestResponse, name: str) -> str:
    [line] = [each for each in answer.headers.getlist("Set-Cookie") if each.startswith(f"{name}=")]
    return line


def test_the_token_opens_a_session_and_logout_ends_it(app: Flask) -> None:
    client = browser(app)
    answer = log_in(client, following="/metric/homepage?start=2026-11-01")
    assert (answer.status_code, answer.location) == (303, "/metric/homepage?start=2026-11-01")
    line = cookie_line(answer, session.COOKIE)
    assert {"HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={12 * 3600}"} <= set(line.split("; "))
    assert "Secure" not in line
    assert TOKEN not in line
    shown = page(client, "/")
    assert client.get("/login").location == "/"
    answer = client.post("/logout", data={"form_token": shown.field("form_token")})
    assert (answer.status_code, answer.location) == (303, "/login")
    assert client.get("/").status_code == 303


@pytest.mark.parametrize("headers", [{"X-Forwarded-Proto": "https"}, {}])
def test_cookies_are_secure_behind_tls(app: Flask, headers: dict[str, str]) -> None:
    client = browser(app)
    base = "http://localhost" if headers else "https://localhost"
    answer = client.get("/login", headers=headers, base_url=base)
    assert "; Secure" in cookie_line(answer, session.VISITOR)
    form = {"form_token": Page(answer).field("form_token"), "token": TOKEN}
    client.set_cookie(session.VISITOR, cookie_line(answer, session.VISITOR).partition(";")[0].partition("=")[2])
    answer = client.post("/login", data=form, headers=headers, base_url=base)
    assert "; Secure" in cookie_line(answer, session.COOKIE)


@pytest.mark.parametrize("token", ["", "not this one", TOKEN[:-1], "\N{SNOWMAN}"])
def test_a_wrong_token_is_told(app: Flask, token: str) -> None:
    client = browser(app)
    answer = log_in(client, token)
    assert answer.status_code == 401
    assert "That is not the admin token" in Page(answer).text
    assert client.get_cookie(session.COOKIE) is None
    if len(token) > 1:
        assert token not in answer.text


@pytest.mark.parametrize(
    "following", ["https://evil.example", "//evil.example", "/\\evil.example", "/metric/a\r\nX: y", "/metric//e", ""]
)
def test_a_login_leads_to_pages_of_ours_only(app: Flask, following: str) -> None:
    assert log_in(browser(app), following=following).location == "/"


def test_sessions_expire(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    client = browser(app)
    begun = session.now()
    log_in(client)
    monkeypatch.setattr(session, "now", lambda: begun + session.SESSION_SECONDS - 5)
    assert client.get("/").status_code == 200
    monkeypatch.setattr(session, "now", lambda: begun + session.SESSION_SECONDS + 5)
    assert client.get("/").status_code == 303


def test_another_token_ends_all_sessions_and_replicas_agree(app: Flask, tmp_path: Path) -> None:
    client = browser(app)
    log_in(client)
    cookie = client.get_cookie(session.COOKIE)
    assert cookie is not None
    for token, status in ((TOKEN, 200), (TOKEN + "-another", 303)):
        folder = tmp_path / token
        folder.mkdir()
        with running(folder, admin_token=token) as other:
            elsewhere = browser(other)
            elsewhere.set_cookie(session.COOKIE, cookie.value)
            assert elsewhere.get("/").status_code == status


def test_a_session_that_was_tampered_with_is_none(app: Flask) -> None:
    token = collector_of(app).admin_token
    assert token is not None
    cookie = session.new_session(token)
    assert session.is_session(token, cookie)
    expiry, number, signature = cookie.split(".")
    later = f"{int(expiry) + 1}.{number}.{signature}"
    for other in (later, f"{expiry}.{number}.{signature[:-1]}0x", f"{expiry}.{number}.", "..", "", "é", None, number):
        assert not session.is_session(token, other)
    assert not session.is_session(token, session.form_token(token, cookie))


def forms(app: Flask) -> list[str]:
    return [
        str(rule).replace("<name>", "homepage") for rule in app.url_map.iter_rules()
        if rule.endpoint.startswith("dashboard.") and "POST" in (rule.methods or ())
    ]  # fmt: skip


def test_every_form_needs_the_token_of_its_session(app: Flask) -> None:
    client, other = browser(app), browser(app)
    log_in(client)
    log_in(other)
    mine, theirs = (page(each, "/metric/homepage").field("form_token") for each in (client, other))
    assert mine != theirs
    assert set(forms(app)) == {"/login", "/logout", "/metric/homepage/candidates"}
    for path in forms(app):
        for data in ({}, {"form_token": ""}, {"form_token": theirs}, {"form_token": "é"}):
            answer = client.post(path, data={**data, "strings": "x", "token": TOKEN})
            assert answer.status_code == 403, path
            assert Page(answer).has("refused")
    answer = client.post("/logout", data={"form_token": mine}, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert client.get("/").status_code == 200
    assert candidates_of(app) == []


def test_another_site_cannot_post_to_an_open_collector(empty: FlaskClient) -> None:
    stranger = browser(empty.application)
    assert stranger.post("/metric/homepage/candidates", data={"strings": "x"}).status_code == 403
    token = page(stranger, "/metric/homepage").field("form_token")
    assert empty.post("/metric/homepage/candidates", data={"form_token": token, "strings": "x"}).status_code == 403
    assert candidates_of(empty.application) == []


def test_without_a_token_only_this_machine_may_look(visitor: FlaskClient) -> None:
    for environ, headers in (
        ({"REMOTE_ADDR": "192.0.2.1"}, {}),
        ({}, {"Host": "evil.example.org"}),
        ({}, {"X-Forwarded-For": "192.0.2.1"}),
    ):
        answer = visitor.get("/", headers=headers, environ_overrides=environ)
        assert answer.status_code == 401
        assert "no admin token" in Page(answer).text
    assert visitor.get("/login").location == "/"


def test_every_answer_has_the_headers(opened: Flask, app: Flask) -> None:
    answers: list[TestResponse] = []
    for client in (browser(opened), browser(app)):
        for rule in opened.url_map.iter_rules():
            if rule.endpoint.startswith("dashboard."):
                path = str(rule).replace("<name>", "theme")
                answers += [client.open(path, method=method) for method in sorted(rule.methods or ())]
        answers += [client.get("/metric/nonsense"), client.get("/?x=1")]
    for answer in answers:
        path = answer.request.path
        assert answer.headers["Content-Security-Policy"] == POLICY, path
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert answer.headers["X-Frame-Options"] == "DENY"
        static = path.startswith("/static/")
        assert answer.headers["Cache-Control"] == ("no-cache" if static else "no-store"), path
        assert answer.status_code < 500, path
    assert {answer.status_code for answer in answers} >= {200, 303, 400, 401, 403, 404}


def test_the_store_being_down_is_a_page_too(tmp_path: Path) -> None:
    with running(tmp_path, REGISTRY, admin_token=None) as app:
        client = browser(app)
        collector_of(app).store.engine.dispose()
        Path(tmp_path / "hubbub.db").rename(tmp_path / "gone.db")
        (tmp_path / "hubbub.db").mkdir()
        assert page(client, "/", 503).has("refused")
