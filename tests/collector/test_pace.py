"""Pages are made slowly while batches come in: after each job there is a rest, as long as the job and the load."""

import socket
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import msgspec
import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import Client

from collector.apps import collector_of
from collector.estimated import ESTIMATES
from hubbub.collector import decoding, office, relay
from hubbub.collector.dashboard import workshop
from hubbub.collector.dashboard.orders import Done, Place
from hubbub.collector.meter import METER_SECONDS, Meter
from hubbub.collector.office import ALL_BUSY, Opening, next_given
from hubbub.collector.pace import MOST_SECONDS, REST, Pace
from hubbub.collector.store import Store
from shared.registries import EXAMPLE, example


@dataclass
class Hours:
    """Time that passes only when told to, or when somebody sleeps."""

    now: float = 1000.0
    slept: list[float] = field(default_factory=list)

    def read(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def rests(busy: float, job: float, idle: float = 0.0) -> list[float]:
    """How long each of three jobs has to wait, when they take so long, and come so long after the one before."""
    hours = Hours()
    pace = Pace(hours.read, hours.sleep)
    pace.busy = busy
    for _ in range(3):
        with pace.working():
            hours.now += job
        hours.now += idle
    return hours.slept


def test_nobody_rests_while_no_batches_come() -> None:
    assert rests(0.0, 0.5) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("busy", [0.25, 1.0])
def test_a_rest_is_as_long_as_the_job_and_the_load(busy: float) -> None:
    assert rests(busy, 0.5) == pytest.approx([0.0, REST * busy * 0.5, REST * busy * 0.5])


def test_time_without_a_job_is_rest_too() -> None:
    assert rests(1.0, 0.5, idle=0.5) == pytest.approx([0.0, REST * 0.5 - 0.5, REST * 0.5 - 0.5])
    assert rests(1.0, 0.5, idle=60.0) == [0.0, 0.0, 0.0]


def test_no_rest_is_longer_than_what_a_viewer_can_stand() -> None:
    assert rests(1.0, 100.0) == pytest.approx([0.0, MOST_SECONDS, MOST_SECONDS])


def test_a_job_that_fails_is_followed_by_a_rest_too() -> None:
    hours = Hours()
    pace = Pace(hours.read, hours.sleep)
    pace.busy = 1.0

    def fail() -> None:
        with pace.working():
            hours.now += 1.0
            raise OSError("no store")

    with pytest.raises(OSError, match="no store"):
        fail()
    with pace.working():
        pass
    assert hours.slept == pytest.approx([0.0, REST])


def test_a_meter_tells_how_much_of_a_core_was_used_lately() -> None:
    hours, used = Hours(), Hours()
    meter = Meter(hours.read, used.read)
    assert meter.busy() == 0.0
    hours.now += 10 * METER_SECONDS
    used.now += 4 * METER_SECONDS
    assert meter.busy() == pytest.approx(0.4)
    hours.now += METER_SECONDS / 2  # too short to tell anything
    used.now += METER_SECONDS / 2
    assert meter.busy() == pytest.approx(0.4)
    hours.now += METER_SECONDS / 2
    used.now += 2 * METER_SECONDS  # more than one core
    assert meter.busy() == 1.0


def test_the_workshop_of_an_office_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    hours = Hours()

    def work(_: bytes) -> Done:
        hours.now += 0.5
        return Done(msgspec.msgpack.encode({}))

    monkeypatch.setattr(workshop, "_work", work)
    own = workshop.OwnWorkshop()
    own.pace = Pace(hours.read, hours.sleep)
    own.pace.busy = 1.0
    for _ in range(2):
        assert own.glance(Place("", "")) == {}
    assert hours.slept == pytest.approx([0.0, REST * 0.5])


def test_strings_that_are_decoded_apart_are_followed_by_a_rest(
    app: Flask, stocked: Store, reader: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    hours = Hours()

    def decode_apart(*_: object) -> bytes:
        hours.now += 0.5
        return b"{}"

    monkeypatch.setattr(decoding, "decode_apart", decode_apart)
    decoder = collector_of(app).decoder
    decoder.pace = Pace(hours.read, hours.sleep)
    decoder.pace.busy = 1.0
    for confidence in (0.8, 0.9, 0.9):  # the last is known already, and waits for nothing
        assert reader.get(f"{ESTIMATES}?confidence={confidence}").status_code == 200
    assert hours.slept == pytest.approx([0.0, REST * 0.5])


def test_those_who_make_the_pages_of_an_office_are_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    rest = Pace.working

    def working(pace: Pace) -> AbstractContextManager[None]:
        used.append(pace)
        return rest(pace)

    monkeypatch.setattr(Pace, "working", working)
    store.prepare(example())
    address = store.engine.url.render_as_string(hide_password=False)
    application, paces = office._application(Opening(EXAMPLE, address, None, 1, {}))
    assert Client(application).get("/", environ_base={"REMOTE_ADDR": "127.0.0.1"}).status_code == 200
    assert [pace for pace in used if pace not in paces] == []
    assert used


@pytest.mark.skipif(not relay.IS_POSSIBLE, reason="connections cannot be handed over on this system")
@pytest.mark.parametrize("busy", [0.0, 0.37, 1.0])
def test_the_office_is_told_with_every_connection(busy: float, monkeypatch: pytest.MonkeyPatch) -> None:
    serving = relay.Office(Opening("", "", None, 1, {}))
    ours, theirs = socket.socketpair()
    paces = [Pace(), Pace()]
    monkeypatch.setattr(serving, "_hatch", ours)
    monkeypatch.setattr(Meter, "busy", lambda _: busy)
    with ours, theirs, serving.connect() as here:
        [there] = next_given(theirs, paces) or []
        with there:
            there.sendall(b"a page")
            here.setblocking(True)
            assert here.recv(100) == b"a page"
        assert [each.busy for each in paces] == pytest.approx([busy, busy], abs=0.5 / ALL_BUSY)
        ours.sendall(b"!")  # the connection itself was lost, for want of room for another file
        assert next_given(theirs, paces) == []
        ours.shutdown(socket.SHUT_RDWR)
        assert next_given(theirs, paces) is None
