"""The state file: private, durable, and never papered over."""

import os
import sqlite3
import stat
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from client.clients import balanced, make
from hubbub.client import StateError, Stats
from hubbub.client.testing import FrozenClock
from shared.registries import EXAMPLE


def test_modes_of_file_and_folder(tmp_path: Path, clock: FrozenClock) -> None:
    os.umask(0o022)
    client = make(tmp_path, clock)
    client.record("crashed", True)
    folder = tmp_path / "app"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    names = {path.name for path in folder.iterdir()}
    assert "hubbub.db" in names
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_secret_survives(tmp_path: Path, clock: FrozenClock) -> None:
    first = make(tmp_path, clock)._state.secret().key
    assert make(tmp_path, clock)._state.secret().key == first


@pytest.mark.parametrize("damage", ["DELETE FROM meta", "UPDATE meta SET value = x'00'"])
def test_a_lost_secret_is_told_and_not_papered_over(
    tmp_path: Path, clock: FrozenClock, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    client = make(tmp_path, clock)
    client.record("crashed", True)
    client._state.close()
    with sqlite3.connect(tmp_path / "app" / "hubbub.db") as database:
        database.execute(damage)
    database.close()
    again = make(tmp_path, clock)
    for _ in range(3):
        again.record("crashed", False)
    assert "secret is missing or damaged" in (again.stats().problem or "")
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("damage", ["garbage", "other program", "newer", "folder"])
def test_an_unusable_file_hurts_nobody_and_is_left_alone(
    tmp_path: Path, clock: FrozenClock, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "app" / "hubbub.db"
    path.parent.mkdir()
    if damage == "garbage":
        path.write_bytes(b"not a database" * 1000)
    elif damage == "folder":
        path.mkdir()
    else:
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE mine (x)")
            if damage == "newer":
                database.execute("PRAGMA application_id = 1752523362")
                database.execute("PRAGMA user_version = 99")
        database.close()
    before = path.read_bytes() if path.is_file() else b""
    client = make(tmp_path, clock)
    for _ in range(3):
        client.record("crashed", True)
    assert client.stats().problem
    assert not client.flush()
    assert len(caplog.messages) == 1
    client._state.close()
    assert (path.read_bytes() if path.is_file() else b"")[100:] == before[100:]


def test_a_problem_that_passes_is_forgotten(tmp_path: Path, clock: FrozenClock) -> None:
    blocker = tmp_path / "app"
    blocker.write_text("a file where the folder should be")
    client = make(tmp_path, clock)
    client.record("crashed", True)
    assert client.stats().problem
    blocker.unlink()
    client.record("crashed", True)
    assert balanced(client) == Stats(recorded=1, pending=1)


FULL_DISK = """
import resource, signal, sys
from hubbub.client import Client

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
client = Client(None, registry=sys.argv[1], state=sys.argv[2], enabled=True)
client.record("crashed", True)
assert client.stats().recorded == 1
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))  # no file may grow any more
for _ in range(3):
    client.record("theme", "dark")
assert client.stats().problem, client.stats()
assert client.preview() == [] or len(client.preview()) == 1
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
client.record("theme", "dark")
stats = client.stats()
assert (stats.recorded, stats.pending, stats.problem) == (2, 2, None), stats
"""

READ_ONLY = """
import os, sys
from hubbub.client import Client

client = Client("http://127.0.0.1:1", registry=sys.argv[1], state=sys.argv[2], enabled=True)
if os.geteuid() == 0:
    os.setuid(65534)  # nobody: root may write everywhere
client.record("crashed", True)
client.record("theme", "dark")
assert client.stats().problem
assert client.flush() is False
client.close()
"""


@pytest.mark.parametrize("program", [FULL_DISK, READ_ONLY], ids=["full disk", "not ours to write"])
def test_a_disk_that_takes_nothing_hurts_nobody(tmp_path: Path, program: str) -> None:
    registry = tmp_path / "metrics.toml"
    registry.write_text(EXAMPLE)
    folder = tmp_path / "place"
    folder.mkdir()
    if program is READ_ONLY:
        folder.chmod(0o500)
    command = [sys.executable, "-c", program, str(registry), str(folder / "hubbub.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    folder.chmod(0o700)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("nothing is recorded") == 1


def test_with_a_state_that_cannot_be_used_every_method_says_so(tmp_path: Path, clock: FrozenClock) -> None:
    (tmp_path / "app" / "hubbub.db").mkdir(parents=True)
    client = make(tmp_path, clock, "http://127.0.0.1:1")
    client.record("crashed", True)
    client.record("nope", True)
    assert not client.flush()
    assert client.preview() == []
    client.enabled = False
    assert client.stats().problem
    with pytest.raises(StateError):
        client.forget()


def test_a_client_that_is_let_go_of_leaves_no_open_file(tmp_path: Path, clock: FrozenClock) -> None:
    client = make(tmp_path, clock, "http://127.0.0.1:1")
    assert client.stats().problem is None
    state = weakref.ref(client._state)
    del client
    assert state() is None  # at once, without the help of the garbage collector
