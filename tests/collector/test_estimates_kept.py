"""Answers about strings are kept: decoded once, and again only when something has changed."""

from dataclasses import replace

import msgspec
import pytest
from flask import Flask
from flask.testing import FlaskClient

from collector.apps import collector_of
from collector.estimated import (
    CANDIDATES,
    ESTIMATES,
    REGISTRY,
    Processes,
    detected,
    directly,
    list_candidates,
    reader_of,
    told,
)
from hubbub.collector import Estimates, decoding
from hubbub.collector.decode import DEFAULT_CONFIDENCE, DEFAULT_CONTROL
from hubbub.collector.decoding import Manner
from hubbub.collector.refusal import Refused
from hubbub.collector.store import Store
from hubbub.collector.store.backend import writing


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
