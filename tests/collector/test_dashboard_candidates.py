"""Candidates on the dashboard: searched, downloaded, uploaded and forgotten."""

import csv
import io
import re
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from collector.apps import collector_of, running
from collector.dashboards import CANDIDATES, EVIL, REGISTRY, Page, browser, candidates_of, fill, page, upload
from hubbub.collector.dashboard import desk, views

pytestmark = pytest.mark.usefixtures("patient")


def test_strings_are_searched(visitor: FlaskClient) -> None:
    shown = page(visitor, "/metric/homepage?q=EXAMPLE.org")
    assert shown.field("q") == "EXAMPLE.org"
    assert "example.org" in shown.text
    assert EVIL not in shown.text.partition("Over time")[0]
    shown = page(visitor, "/metric/homepage?q=nobody")
    assert shown.has("no-match")
    assert not shown.has("estimates-table")


def test_a_candidate_that_was_not_found_has_its_share_and_interval(opened: Flask, visitor: FlaskClient) -> None:
    everything = opened.test_client().get("/v1/metrics/homepage/estimates?all=true").get_json()
    row = next(row for row in everything["rows"] if row["value"] == "site-7")
    assert not row["detected"]
    [cells] = [cells for cells in page(visitor, "/metric/homepage?q=SITE-7").rows() if cells[0] == "site-7"]
    share, low, high = (float(each) / 100 for each in re.findall(r"(-?[0-9.]+) %", " ".join(cells[1:3])))
    for shown, told in ((share, row["share"]), (low, row["low"]), (high, row["high"])):
        assert shown == pytest.approx(told, abs=(row["high"] - row["low"]) / 20)
    assert cells[3] == "no"
    found = [cells for cells in page(visitor, "/metric/homepage?q=example").rows() if cells[0] == "example.org"]
    assert found[0][3] == "yes"


def test_only_strings_are_searched(visitor: FlaskClient) -> None:
    shown = page(visitor, "/metric/theme?q=dark")
    assert "light" in [cells[0] for cells in shown.rows()]
    assert shown.rows() == page(visitor, "/metric/theme").rows()


def test_many_matches_are_shown_in_part(visitor: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "SHOWN_ROWS", 4)
    shown = page(visitor, "/metric/homepage?q=SIte")
    assert sum(cells[0].startswith("site-") for cells in shown.rows()) == 4


def test_of_a_very_long_list_only_what_was_found_is_searched(
    visitor: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (desk, views):
        monkeypatch.setattr(module, "SEARCHED_CANDIDATES", len(CANDIDATES) - 1)

    def everything(*_: object) -> bytes:
        raise AssertionError("all candidates were decoded")

    monkeypatch.setattr(desk.Desk, "everything", everything)
    shown = page(visitor, "/metric/homepage?q=example&confidence=0.93")
    assert shown.has("found-only")
    assert "example.org" in [cells[0] for cells in shown.rows()]
    assert page(visitor, "/metric/homepage?q=site-7&confidence=0.93").has("no-match")


def test_all_candidates_can_be_downloaded(opened: Flask, visitor: FlaskClient) -> None:
    shown = page(visitor, "/metric/homepage?start=2026-11-09")
    links = {each.get("id"): each.get("href") or "" for each in shown.all("a")}
    api = opened.test_client().get("/v1/metrics/homepage/estimates?all=true&start=2026-11-09")
    answer = visitor.get(links["download-all-json"])
    assert answer.headers["Content-Disposition"] == 'attachment; filename="homepage-all.json"'
    assert answer.get_json() == api.get_json()
    assert len(answer.get_json()["rows"]) == len(CANDIDATES)
    answer = visitor.get(links["download-all-csv"])
    assert answer.headers["Content-Disposition"] == 'attachment; filename="homepage-all.csv"'
    assert len(list(csv.DictReader(io.StringIO(answer.text)))) == len(CANDIDATES)
    assert page(visitor, "/metric/homepage/estimates.csv?all=perhaps", 400).has("refused")
    assert visitor.get("/metric/theme/estimates.csv?all=true").data == visitor.get("/metric/theme/estimates.csv").data
    assert "download-all-csv" not in visitor.get("/metric/theme").text


def test_candidates_are_uploaded_replaced_and_forgotten(tmp_path: Path) -> None:
    with running(tmp_path, REGISTRY, admin_token=None) as app:
        client = browser(app)
        answer = upload(client, strings="one\r\ntwo\r\n\r\n")
        assert (answer.status_code, answer.location) == (303, "/metric/homepage?saved=2#candidates")
        assert page(client, answer.location).has("saved")
        assert candidates_of(app) == ["one", "two"]
        upload(client, file=(io.BytesIO(b"three\nfour\n"), "list.txt"), strings="")
        assert candidates_of(app) == ["three", "four"]
        upload(client, file=(io.BytesIO(b'"fi\\nve"\n'), "list.ndjson"))
        assert candidates_of(app) == ["fi\nve"]
        assert upload(client, forget="1").status_code == 303
        assert candidates_of(app) == []


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"strings": ""}, 422),
        ({"file": (b"\xff\n", "list.txt")}, 422),
        ({"file": (b"not json\n", "list.ndjson")}, 422),
        ({"strings": "x\n" * 400_000}, 413),
    ],
    ids=["nothing", "no UTF-8", "no JSON", "too much text"],
)
def test_lists_that_cannot_be_read_are_refused_in_a_sentence(
    empty: FlaskClient, fields: dict[str, object], status: int
) -> None:
    sent = {key: (io.BytesIO(each[0]), each[1]) if isinstance(each, tuple) else each for key, each in fields.items()}
    answer = upload(empty, **sent)  # type: ignore[arg-type]
    assert answer.status_code == status
    assert Page(answer).has("refused")


def test_only_strings_have_candidates(empty: FlaskClient) -> None:
    token = page(empty, "/metric/homepage").field("form_token")
    answer = empty.post("/metric/theme/candidates", data={"form_token": token, "strings": "x"})
    assert answer.status_code == 404


def test_strings_without_candidates_ask_for_them(tmp_path: Path) -> None:
    with running(tmp_path, REGISTRY, admin_token=None) as app:
        fill(collector_of(app).store)
        client = browser(app)
        assert page(client, "/metric/homepage").has("no-candidates")
        assert page(client, "/metric/homepage/chart.svg", 409).has("refused")
