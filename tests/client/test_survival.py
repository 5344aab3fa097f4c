"""Survival: real processes, really killed, forked and ended, and the state file they leave behind."""

import contextlib
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from client.clients import counts
from hubbub.client import Client, Stats, outbox
from hubbub.client.testing import FrozenClock, InMemoryCollector
from shared.registries import example

pytestmark = pytest.mark.unmeasured

MONDAY = datetime(2026, 11, 16, 9, 30, tzinfo=UTC)

WORKER = """
import sys
import requests  # beforehand, or most processes would be killed while they import it
from datetime import UTC, datetime
from hubbub.client import Client, outbox
from hubbub.client.testing import FrozenClock

outbox.MAX_AGE_SECONDS = 1e9  # days fly by here, and two weeks of them are no reason to give up
url, registry, state, start = sys.argv[1:]
clock = FrozenClock(datetime(2026, 11, 16, 9, 30, tzinfo=UTC))
clock.advance(days=int(start))
client = Client(url, registry=registry, state=state, enabled=True, clock=clock)
print("ready", flush=True)
for day in range(int(start), 100_000):
    for _ in range(3):
        client.record("crashed", True)
        client.record("startup_ms", 5)
    print(day, flush=True)
    clock.advance(days=1)
    client.flush(1.0)
"""


class DropsAnswers(InMemoryCollector):
    """Takes every batch, and fails to say so every third time."""

    def answer(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        taken = super().answer(body)
        return taken if len(self.attempts) % 3 else (503, {}, b"")


def assert_sound(path: Path) -> None:
    database = sqlite3.connect(path)
    try:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        database.close()


def kill_at_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, seed: int) -> None:
    """Each (metric, period) that a killed process had recorded arrives, and arrives once."""
    registry, state = tmp_path / "metrics.toml", tmp_path / "state.db"
    registry.write_text(example().text)
    rng = random.Random(seed)
    day, recorded_days = 0, set()
    with DropsAnswers() as collector:
        for _ in range(times):
            command = [sys.executable, "-c", WORKER, collector.url, str(registry), str(state), str(day)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
                assert worker.stdout is not None
                worker.stdout.readline()
                time.sleep(rng.random() * 0.1)
                worker.send_signal(signal.SIGKILL)
                for line in worker.stdout:
                    if line.endswith("\n"):
                        recorded_days.add(int(line))
                        day = int(line)
            day += 1
            assert_sound(state)
        monkeypatch.setattr(outbox, "MAX_AGE_SECONDS", 1e9)
        clock = FrozenClock(MONDAY)
        clock.advance(days=day + 2)
        client = Client(collector.url, registry=registry, state=state, enabled=True, clock=clock)
        for _ in range(20):
            client.flush()
            clock.advance(seconds=100)  # past the claims of those that were killed
        stats = client.stats()
        assert (stats.pending, stats.lost) == (0, {})
        assert stats.recorded == stats.sent + sum(stats.lost.values())
        arrived = [(report.metric, report.period) for report in collector.reports]
        assert len(arrived) == len(set(arrived))
        expected = {MONDAY.date() + timedelta(days=number) for number in recorded_days}
        for metric in ("crashed", "startup_ms"):
            assert expected <= {period for name, period in arrived if name == metric}
        # A batch that came again came with the same bytes.
        bodies = {json.loads(body)["batch"]: body for body in collector.attempts}
        assert len(collector.attempts) > len(bodies)
        assert set(collector.attempts) == set(bodies.values())


def test_kill_9_at_random_moments_loses_nothing_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_at_random_moments(tmp_path, monkeypatch, times=15, seed=1)


@pytest.mark.slow
def test_kill_9_three_hundred_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kill_at_random_moments(tmp_path, monkeypatch, times=300, seed=2)


def test_os_exit_right_after_record_keeps_what_was_recorded(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import os, sys
        from hubbub.client import Client
        client = Client(None, registry=sys.argv[1], state=sys.argv[2], enabled=True)
        client.record("crashed", True)
        os._exit(0)
    """)
    registry = tmp_path / "metrics.toml"
    registry.write_text(example().text)
    subprocess.run([sys.executable, "-c", program, registry, tmp_path / "s.db"], check=True)
    stats = Client(None, registry=registry, state=tmp_path / "s.db", enabled=True).stats()
    assert (stats.recorded, stats.pending) == (1, 1)


def test_a_copy_of_the_file_and_its_log_at_any_moment_opens_and_is_consistent(tmp_path: Path) -> None:
    """The writer is stopped wherever it happens to be, file and log are copied, and each copy opens and balances."""
    registry, state = tmp_path / "metrics.toml", tmp_path / "live" / "state.db"
    registry.write_text(example().text)
    command = [sys.executable, "-c", WORKER, "http://127.0.0.1:1", str(registry), str(state), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        worker.stdout.readline()
        for number in range(25):
            worker.stdout.readline()
            copy = tmp_path / f"copy-{number}"
            copy.mkdir()
            worker.send_signal(signal.SIGSTOP)
            os.waitpid(worker.pid, os.WUNTRACED)
            for name in ("state.db-wal", "state.db"):
                (copy / name).write_bytes((state.parent / name).read_bytes())
            worker.send_signal(signal.SIGCONT)
            assert_sound(copy / "state.db")
            stats = Client(None, registry=registry, state=copy / "state.db", enabled=True).stats()
            assert stats.problem is None
            assert stats.recorded == stats.sent + stats.pending + sum(stats.lost.values())
            assert stats.recorded >= 2
        worker.kill()


RECORDER = """
import os, sys, threading
from datetime import UTC, datetime
from hubbub.client import Client
from hubbub.client.testing import FrozenClock

def use(client):
    threads = [threading.Thread(target=record, args=(client,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.stats().problem is None, client.stats().problem

def record(client):
    for _ in range(5):
        client.record("theme", "dark")

clock = FrozenClock(datetime(2026, 11, 16, 9, 30, tzinfo=UTC))
client = Client(None, registry=sys.argv[1], state=sys.argv[2], enabled=True, clock=clock)
if sys.argv[3] == "fork":
    children = [os.fork() or (use(client), os._exit(0)) for _ in range(3)]
use(client)
if sys.argv[3] == "fork":
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
"""


@pytest.mark.parametrize("method", ["separate", "fork"])
def test_many_threads_of_several_processes_make_one_report(tmp_path: Path, method: str) -> None:
    registry, path = tmp_path / "metrics.toml", tmp_path / "s.db"
    registry.write_text(example().text)
    command = [sys.executable, "-W", "ignore", "-c", RECORDER, str(registry), str(path), method]
    processes = [subprocess.Popen(command) for _ in range(4 if method == "separate" else 1)]
    assert [process.wait(120) for process in processes] == [0] * len(processes)
    client = Client(None, registry=example(), state=path, enabled=True, clock=FrozenClock(MONDAY))
    assert counts(client.stats()) == Stats(recorded=1, pending=1)
    with client._state.transaction() as connection:
        assert connection.execute("SELECT seen FROM open").fetchall() == [(4 * 8 * 5,)]


FAIR = """
import sys, threading
from datetime import UTC, datetime
from hubbub.client import Client
from hubbub.client.testing import FrozenClock

registry, state, process, days = sys.argv[1:]

def record(number):
    clock = FrozenClock(datetime(2026, 11, 16, 9, 30, tzinfo=UTC))
    client = Client(None, registry=registry, state=state, enabled=True, clock=clock)
    for _ in range(int(days)):
        client.record("choice", f"c{8 * int(process) + number}")
        clock.advance(days=1)

threads = [threading.Thread(target=record, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


@pytest.mark.slow
def test_the_report_is_chosen_fairly_among_threads_and_processes(tmp_path: Path) -> None:
    """8 threads of 4 processes record a category of their own on 256 days: each is kept on 8 of them, on average.

    Chi-square with 31 degrees of freedom, failing at a p-value of 1e-8: with 8 expected in a cell its tail is a little
    heavier than it says, and still less than one in a million.
    """
    from scipy.stats import chi2

    from hubbub.client.recording import encoding_tag
    from hubbub.shared import Registry

    registry, path, days = tmp_path / "metrics.toml", tmp_path / "s.db", 256
    names = [f"c{number}" for number in range(32)]
    registry.write_text(
        f'[metrics.choice]\ndescription = "choice"\nkind = "category"\nevery = "day"\n'
        # One category is never recorded, and the null encoding is not either: so encodings are counted, by tags.
        f"categories = {[*names, 'unused']}\nlifetime_values = 33\nprivacy = {{ report = 1, lifetime = 2 }}\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", FAIR, str(registry), str(path), str(number), str(days)])
        for number in range(4)
    ]
    assert [process.wait(300) for process in processes] == [0] * 4
    client = Client(None, registry=registry, state=path, enabled=True)
    secret, metric = client._state.secret(), Registry.load(registry)["choice"]
    with client._state.transaction() as connection:
        kept = connection.execute("SELECT seen, tag FROM open").fetchall()
    assert [seen for seen, _ in kept] == [32] * days
    tags = [tag for _, tag in kept]
    kept_names = [tags.count(encoding_tag(metric, metric.encode(name, 0, 0), secret)) for name in names]
    assert sum(kept_names) == days
    assert chi2.sf(sum((number - days / 32) ** 2 / (days / 32) for number in kept_names), 31) > 1e-8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_after_use_works_in_parent_and_child(tmp_path: Path) -> None:
    """As under a preloading server: the client is made and used before the fork, and used on both sides after it."""
    program = textwrap.dedent("""
        import os, sys, warnings
        from datetime import UTC, datetime
        from hubbub.client import Client
        from hubbub.client.testing import FrozenClock
        clock = FrozenClock(datetime(2026, 11, 16, 9, 30, tzinfo=UTC))
        client = Client(sys.argv[3], registry=sys.argv[1], state=sys.argv[2], enabled=True, clock=clock)
        client.record("crashed", True)
        children = []
        for number in range(4):
            child = os.fork()
            if not child:
                assert client._state._connection is None  # SQLite forbids to use a connection from before a fork
                clock.advance(days=number + 1)
                for _ in range(10):
                    client.record("crashed", True)
                assert client.stats().problem is None
                clock.advance(days=30)
                client.flush()
                os._exit(0)
            children.append(child)
        for _ in range(10):
            client.record("crashed", True)
        for child in children:
            assert os.waitpid(child, 0)[1] == 0
        clock.advance(days=30)
        client.flush()
        assert client.stats().problem is None
        print(client.stats().sent, client.stats().pending)
    """)
    registry = tmp_path / "metrics.toml"
    registry.write_text(example().text)
    with InMemoryCollector() as collector:
        command = [sys.executable, "-W", "ignore", "-c", program, str(registry), str(tmp_path / "s.db"), collector.url]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        assert done.stdout.split() == ["5", "0"]
        assert sorted(report.period.day for report in collector.reports) == [16, 17, 18, 19, 20]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_in_the_middle_of_the_sender_s_import_leaves_a_child_that_can_send() -> None:
    """The child would have waited for ever for a module that a thread of its parent was importing."""
    program = textwrap.dedent("""
        import os, signal, sys, threading
        from hubbub.client.importing import import_requests
        begun, go_on = threading.Event(), threading.Event()
        class Slow:
            def find_spec(self, name, path=None, target=None):
                if name == "requests":
                    begun.set()
                    go_on.wait()
        sys.meta_path.insert(0, Slow())
        threading.Thread(target=import_requests).start()
        begun.wait()
        threading.Timer(0.1, go_on.set).start()  # while the fork below waits
        child = os.fork()
        if not child:
            signal.alarm(60)
            import_requests().Session()
            os._exit(0)
        sys.exit(os.waitpid(child, 0)[1])
    """)
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=120)


def drip(connection: socket.socket) -> None:
    """Answer so slowly that no reader's patience between two bytes ever ends."""
    with contextlib.suppress(OSError):  # ends when it notices that nobody listens any more
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + bytes(10_000):
            connection.sendall(bytes([byte]))
            time.sleep(0.05)


@pytest.mark.parametrize("server", ["refused", "silent", "slow"])
def test_exit_is_not_held_up_by_a_collector_that_does_not_answer(tmp_path: Path, server: str) -> None:
    """A process that waited for its upload would end after 15 s, and be ended here before; `make bench` measures it."""
    program = textwrap.dedent("""
        import sys
        from datetime import UTC, datetime
        from hubbub.client import Client
        from hubbub.client.testing import FrozenClock
        clock = FrozenClock(datetime(2026, 11, 16, 9, 30, tzinfo=UTC))
        client = Client(sys.argv[3], registry=sys.argv[1], state=sys.argv[2], enabled=True, clock=clock)
        client.record("crashed", True)
        clock.advance(days=2)
        client.close()
        client.enabled = True  # a new thread, with something to send at once
        client.record("theme", "dark")
        sys.stdin.readline()  # until the thread is in the middle of its upload
    """)
    registry = tmp_path / "metrics.toml"
    registry.write_text(example().text)
    with contextlib.ExitStack() as opened:
        listening = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        listening.settimeout(120)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        if server == "refused":
            listening.close()
        command = [sys.executable, "-c", program, str(registry), str(tmp_path / "s.db"), address]
        process = opened.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE))
        assert process.stdin is not None
        if server != "refused":
            connection = opened.enter_context(listening.accept()[0])
        if server == "slow":
            dripping = threading.Thread(target=drip, args=(connection,), daemon=True)
            dripping.start()
            opened.callback(dripping.join)
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.wait(14) == 0
    stats = Client(None, registry=registry, state=tmp_path / "s.db", enabled=True).stats()
    assert (stats.recorded, stats.pending) == (2, 2)
