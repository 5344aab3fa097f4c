"""The outbox: bounded, claimed by one process at a time, and patient."""

import math
from pathlib import Path

import pytest

from client.clients import balanced, with_reports
from client.scripted import Scripted
from hubbub.client import Client, Stats, outbox
from hubbub.client.ledger import Ledger
from hubbub.client.testing import FrozenClock
from shared.registries import example


def form(client: Client, clock: FrozenClock) -> None:
    secret = client._state.secret()
    with client._state.transaction() as connection:
        ledger = Ledger(connection, example(), math.inf)
        outbox.form_batches(connection, ledger, example(), secret, clock().timestamp())


def test_backoff_grows_and_survives_restarts(tmp_path: Path, clock: FrozenClock, collector: Scripted) -> None:
    client = with_reports(collector.url, tmp_path, clock)
    collector.script = [(503, {}, b"")] * 6
    for _ in range(6):
        client.flush()
    with client._state.transaction() as connection:
        [(attempts, not_before)] = connection.execute("SELECT attempts, not_before FROM outbox").fetchall()
    assert attempts == 6
    assert clock().timestamp() <= not_before <= clock().timestamp() + outbox.FIRST_BACKOFF_SECONDS * 2**5
    with client._state.transaction() as connection:
        connection.execute("UPDATE outbox SET not_before = ?", (clock().timestamp() + 100,))
        assert outbox.claim(connection, clock().timestamp()) is None
        assert outbox.claim(connection, clock().timestamp() + 101) is not None


class TestBounds:
    def fill(self, client: Client, number: int, clock: FrozenClock) -> None:
        for _ in range(number):
            client.record("crashed", True)
            clock.advance(days=1)
            form(client, clock)

    def test_the_oldest_go_first_when_there_are_too_many(
        self, tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(outbox, "MAX_BATCHES", 3)
        client = Client(None, registry=example(), state=tmp_path / "s.db", enabled=True, clock=clock)
        self.fill(client, 7, clock)
        assert balanced(client) == Stats(recorded=7, pending=3, lost={"overflow": 4})

    def test_a_size_is_a_bound_too(self, tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(outbox, "MAX_BYTES", 400)
        client = Client(None, registry=example(), state=tmp_path / "s.db", enabled=True, clock=clock)
        self.fill(client, 7, clock)
        assert balanced(client).lost["overflow"] >= 3

    def test_what_is_too_old_is_dropped(self, tmp_path: Path, clock: FrozenClock) -> None:
        client = Client(None, registry=example(), state=tmp_path / "s.db", enabled=True, clock=clock)
        self.fill(client, 2, clock)
        clock.advance(days=15)
        self.fill(client, 1, clock)
        assert balanced(client).lost == {"too_old": 2}


def test_a_claimed_batch_is_not_sent_by_another_process(
    client: Client, clock: FrozenClock, collector: Scripted
) -> None:
    form(client, clock)
    with client._state.transaction() as connection:
        assert outbox.claim(connection, clock().timestamp()) is not None
        assert outbox.claim(connection, clock().timestamp(), despite_backoff=True) is None
    assert not client.flush()  # it is not sent yet, and another process may fail at it
    assert collector.attempts == []
    clock.advance(seconds=outbox.CLAIM_SECONDS + 1)
    assert client.flush()
    assert balanced(client) == Stats(recorded=3, sent=3)
