"""A live collector and live clients: they say what is wrong, and none outlives whoever started it."""

import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import requests

from hubbub.shared import ParameterError
from hubbub.shared.period import today
from hubbub.simulations.errors import LiveError
from hubbub.simulations.live import LiveCollector, simulate_clients
from hubbub.simulations.live.signals import postponed

TEXT = files("hubbub.simulations").joinpath("demo.toml").read_text("utf-8")
SECONDS = 60

SCRIPT = """
import sys
from pathlib import Path
from hubbub.simulations.live import LiveCollector
with LiveCollector(Path(sys.argv[1]).read_text()) as collector:
    print(collector.url, flush=True)
    collector.wait()
"""

INTERRUPTED = """
import concurrent.futures.thread, signal, sys, threading
from datetime import date
from hubbub.simulations.live import clients, signals

clients._live = lambda *_: 1
ours = {clients.__file__, signals.__file__}
pools = {threading.__file__, concurrent.futures.thread.__file__, concurrent.futures._base.__file__}

def interrupted(step):
    seen = 0

    def look(frame, event, _):
        nonlocal seen
        if frame.f_code.co_filename not in ours | pools:
            return None
        seen += frame.f_code.co_filename in pools
        if seen == step:
            sys.settrace(None)
            signal.raise_signal(signal.SIGINT)
        return look

    sys.settrace(look)
    try:
        sent = clients.simulate_clients(None, [[]] * 3, first_day=date.today(), threads=2)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
        assert threading.active_count() == 1
    assert sent == 3
    assert seen < step
    return False

step = 1
while interrupted(step):
    step += 1
print(step)
"""


def processes_of(folder: Path) -> list[int]:
    """All processes that inherited the name of a folder for what is temporary."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"TMPDIR={folder}\0".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            pass  # it has ended, or is not ours
    return found


def end(running: list[int]) -> None:
    """End what should have ended by itself, if the test has failed."""
    for each in running:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(each, signal.SIGKILL)
        os.close(each)


def test_a_collector_ends_when_its_owner_is_killed(tmp_path: Path) -> None:
    """The owner has no time to stop anybody; the system tells when a process has ended, so nothing is waited out."""
    registry = tmp_path / "metrics.toml"
    registry.write_text(TEXT)
    command = [sys.executable, "-c", SCRIPT, str(registry)]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with ExitStack() as stack:
        owner = stack.enter_context(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE))
        stack.callback(owner.kill)
        assert owner.stdout is not None
        url = owner.stdout.readline().decode().strip()
        assert requests.get(f"{url}/readyz", timeout=SECONDS).status_code == 200
        others = set(processes_of(tmp_path)) - {owner.pid}
        assert len(others) >= 2  # the one that was started, and the one that serves
        running = [os.pidfd_open(each) for each in others]
        stack.callback(end, running)
        owner.kill()
        for each in running:
            assert select.select([each], [], [], SECONDS)[0], "a process of the collector goes on"
    assert processes_of(tmp_path) == []
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{url}/readyz", timeout=SECONDS)


def test_devices_that_wait_do_not_hold_up_a_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes while devices are still being lined up: those behind the first two never live."""
    released, lived = threading.Event(), []

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            released.set()
            super().shutdown(wait=wait)

    def live(_: LiveCollector, device: int, *__: object) -> int:
        released.wait(SECONDS)
        lived.append(device)
        return 0

    def lives() -> Iterator[list[dict[str, Any]]]:
        yield from [[]] * 20
        raise KeyboardInterrupt

    monkeypatch.setattr("hubbub.simulations.live.clients.ThreadPoolExecutor", Pool)
    monkeypatch.setattr("hubbub.simulations.live.clients._live", live)
    with pytest.raises(KeyboardInterrupt):
        simulate_clients(LiveCollector(TEXT, folder=tmp_path), lives(), first_day=today(), threads=2)
    assert len(lived) <= 2


@pytest.mark.unmeasured  # it looks at each step itself
def test_a_ctrl_c_at_any_step_of_the_thread_pool_ends_it() -> None:
    """Raised in there it would leave a lock taken now and then, and threads that wait for it."""
    script = [sys.executable, "-c", INTERRUPTED]
    told = subprocess.run(script, capture_output=True, check=False, text=True, timeout=SECONDS)
    assert (told.returncode, told.stderr) == (0, "")
    assert int(told.stdout) > 100


def test_signals_are_handed_on_to_whoever_handles_them() -> None:
    """Each to its own handler, once; what is ignored stays ignored, and everything is as before in the end."""
    told: list[object] = []
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        ours = signal.getsignal(signal.SIGTERM)
        with postponed(lambda: told.append("wake")) as hand_on:
            hand_on()
            for each in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
                signal.raise_signal(each)
            assert told == ["wake", "wake"]
            hand_on()
            assert told == ["wake", "wake", signal.SIGTERM, signal.SIGTERM]
            signal.raise_signal(signal.SIGTERM)
        assert told[4:] == ["wake", signal.SIGTERM]
        assert [signal.getsignal(each) for each in before] == [ours, signal.SIG_IGN]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt), postponed(lambda: told.append("later")):
            signal.raise_signal(signal.SIGINT)
        assert told[-1] == "later"
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def test_a_live_collector_says_what_is_wrong(tmp_path: Path) -> None:
    collector = LiveCollector(TEXT, folder=tmp_path)
    with pytest.raises(LiveError, match="collector: has ended: it says nothing"):
        collector.wait()
    with pytest.raises(ParameterError, match="send_every: 0 is never"):
        simulate_clients(collector, [], first_day=today(), send_every=0)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LiveError, match=f"--port: 127.0.0.1 port {port} cannot be used"):
            LiveCollector(TEXT, folder=tmp_path, port=port).__enter__()
