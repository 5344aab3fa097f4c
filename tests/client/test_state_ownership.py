"""The state file: nothing deleted stays in it, and it serves one collector, one secret and one device."""

import sqlite3
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from client.clients import balanced
from client.one_metric import CATEGORY, FLAG, STRING, SUM, device, watch
from client.scripted import Scripted
from hubbub.client import CopiedStateError, StateError
from hubbub.client.testing import FrozenClock, InMemoryCollector
from shared.registries import text_of


class TestResidue:
    def files(self, tmp_path: Path) -> bytes:
        return b"".join(path.read_bytes() for path in (tmp_path / "app").iterdir())

    def test_a_number_is_gone_when_its_report_is_made(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        number = 3.141592653589793
        client = device(tmp_path, clock, collector.url, SUM)
        client.record("it", number)
        assert struct.pack(">d", number) in self.files(tmp_path)
        clock.advance(days=2)
        assert client.flush()
        assert struct.pack(">d", number) not in self.files(tmp_path)

    def test_a_number_is_gone_when_consent_is(self, tmp_path: Path, clock: FrozenClock) -> None:
        number = 2.718281828459045
        client = device(tmp_path, clock, None, SUM)
        client.record("it", number)
        client.enabled = False
        assert struct.pack(">d", number) not in self.files(tmp_path)

    def test_a_forgotten_secret_is_gone(self, tmp_path: Path, clock: FrozenClock) -> None:
        client = device(tmp_path, clock, None, FLAG)
        client.record("it", True)
        secret = client._state.secret().key
        assert secret in self.files(tmp_path)
        client.forget()
        assert secret not in self.files(tmp_path)

    def test_what_a_killed_process_left_in_the_log_is_gone_at_the_next_start(
        self, tmp_path: Path, clock: FrozenClock
    ) -> None:
        (tmp_path / "metrics.toml").write_text(text_of(SUM))
        program = (
            "import os, sys; from hubbub.client import Client, outbox; from hubbub.client.state import State\n"
            "client = Client(None, registry=sys.argv[1], state=sys.argv[2], enabled=True)\n"
            "client.record('it', 1.4142135623730951)\n"
            "with client._state.transaction() as connection: outbox.discard_all(connection, 'opted_out')\n"
            "os._exit(9)\n"
        )
        (tmp_path / "app").mkdir()
        state = str(tmp_path / "app" / "hubbub.db")
        subprocess.run([sys.executable, "-c", program, str(tmp_path / "metrics.toml"), state], check=False)
        assert struct.pack(">d", 1.4142135623730951) in self.files(tmp_path)
        device(tmp_path, clock, None, SUM).stats()
        assert struct.pack(">d", 1.4142135623730951) not in self.files(tmp_path)

    @pytest.mark.parametrize(("keys", "expected"), [(FLAG, 0), (CATEGORY, 0), (STRING, 1)])
    def test_tags_are_kept_only_where_a_bound_can_bind(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted, keys: dict[str, str], expected: int
    ) -> None:
        client = device(tmp_path, clock, collector.url, keys)
        client.record("it", True if keys is FLAG else "a")
        clock.advance(days=2)
        assert client.flush()
        with client._state.transaction() as connection:
            assert connection.execute("SELECT count(*) FROM revealed").fetchone() == (expected,)


class TestOneFile:
    def test_a_report_for_one_collector_does_not_go_to_another(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        first = device(tmp_path, clock, collector.url, FLAG)
        first.record("it", True)
        first.close()
        clock.advance(days=2)
        with InMemoryCollector() as other:
            client = device(tmp_path, clock, other.url, FLAG)
            assert not client.flush()
            client.record("it", True)
            assert "belongs to another collector" in (client.stats().problem or "")
            assert other.attempts == []
        again = device(tmp_path, clock, collector.url, FLAG)
        assert again.flush()
        assert len(collector.reports) == 1

    def test_a_file_that_another_collector_took_over_is_not_used_on(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        first = device(tmp_path, clock, collector.url, FLAG)
        first.record("it", True)
        second = device(tmp_path, clock, "https://other.example", FLAG)
        second.forget()
        second.record("it", True)
        first.record("it", True)
        assert "belongs to another collector" in (first.stats().problem or "")
        clock.advance(days=2)
        assert not first.flush()
        assert collector.attempts == []

    def test_a_collector_that_moved_is_the_same_one(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        old = "https://old.example"
        first = device(tmp_path, clock, old, FLAG)
        first.record("it", True)
        first.close()
        clock.advance(days=2)
        client = device(tmp_path, clock, collector.url + "/", FLAG, previous_collectors=[old + "/"])
        assert client.flush()
        assert device(tmp_path, clock, collector.url, FLAG).stats().problem is None

    def test_after_forget_every_client_of_the_file_has_the_new_secret(
        self, tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        secrets: list[bytes] = []
        watch(monkeypatch, lambda _, __, secret: secrets.append(secret.key))
        first, second = (device(tmp_path, clock, None, STRING) for _ in range(2))
        first.record("it", "a")
        clock.advance(days=1)
        second.record("it", "b")
        second.forget()
        clock.advance(days=1)
        first.record("it", "a")
        assert secrets[0] == secrets[1] != secrets[2] == second._state.secret().key

    def test_a_copied_file_is_noticed_and_not_used(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        device(tmp_path, clock, None, FLAG, device="mine").record("it", True)
        copy = device(tmp_path, clock, collector.url, FLAG, device="another")
        clock.advance(days=2)
        copy.record("it", True)
        assert not copy.flush()
        assert "copied from another device" in (copy.stats().problem or "")
        with pytest.raises(CopiedStateError):
            copy._state.secret()
        assert issubclass(CopiedStateError, StateError)
        copy.forget()
        copy.record("it", True)
        assert balanced(copy).problem is None
        assert balanced(copy).recorded == 1
        assert collector.attempts == []

    def test_the_name_of_the_device_is_not_on_the_disk(self, tmp_path: Path, clock: FrozenClock) -> None:
        device(tmp_path, clock, None, FLAG, device="sesame-machine").record("it", True)
        assert b"sesame" not in TestResidue().files(tmp_path)

    def test_a_restored_backup_shows_by_its_counts(
        self, tmp_path: Path, clock: FrozenClock, collector: Scripted
    ) -> None:
        """`recorded` never falls while the file is the same one: an app that keeps it elsewhere notices."""
        client = device(tmp_path, clock, collector.url, FLAG)
        client.record("it", True)
        file, backup = tmp_path / "app" / "hubbub.db", tmp_path / "backup.db"
        with sqlite3.connect(file) as source, sqlite3.connect(backup) as target:
            source.backup(target)
        source.close()
        target.close()
        clock.advance(days=1)
        client.record("it", True)
        seen = client.stats().recorded
        client.close()
        file.write_bytes(backup.read_bytes())
        assert device(tmp_path, clock, collector.url, FLAG).stats().recorded < seen
