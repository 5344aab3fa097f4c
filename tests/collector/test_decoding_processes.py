"""Strings are decoded in processes of their own: one at a time, never in the way of batches, and none stays behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from collector.apps import collector_of, post, running
from collector.estimated import (
    ESTIMATES,
    HANG_SECONDS,
    REGISTRY,
    TRUTH,
    Processes,
    detected,
    directly,
    fill,
    list_candidates,
    reader_of,
    refusal,
    told,
)
from hubbub.collector import decoding
from hubbub.collector.decode import Control, process
from hubbub.collector.decode.process import NICENESS, Order, decode_apart
from hubbub.collector.store import Store
from hubbub.collector.store.backend import writing
from hubbub.shared import Batch, ParameterError, Report, encode_batch
from hubbub.shared.period import today
from hubbub.shared.wire import new_batch_id
from hubbub.simulations import simulate_tally
from shared.registries import EXAMPLE


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
