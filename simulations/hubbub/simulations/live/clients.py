"""Real clients: each device is a `Client` with a state file and a clock of its own, and sends over HTTP."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from datetime import time as time_of_day
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from hubbub.client import Client
from hubbub.client.testing import FrozenClock
from hubbub.shared.errors import ParameterError
from hubbub.simulations.errors import LiveError
from hubbub.simulations.live.signals import postponed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Future
    from datetime import date
    from pathlib import Path

    from hubbub.simulations.live.collector import LiveCollector

DEFAULT_THREADS = 8
"""Devices at a time; they mostly wait for their disks."""
SEND_SECONDS = 60.0
"""How long a device goes on trying to send the reports of a period."""

NOON = time_of_day(12, tzinfo=UTC)
"""When devices record and send: by noon, whatever was recorded the day before has become sendable."""

LAST_WAIT_DAYS = 9
"""After so many days the report of any period that was running is sendable: a week, and a quarter of it for delay."""


def simulate_clients(
    collector: LiveCollector,
    lives: Iterable[Sequence[Mapping[str, Any]]],
    *,
    first_day: date,
    threads: int = DEFAULT_THREADS,
    send_every: int = 1,
    look: Callable[[int, int, Client], None] | None = None,
    progress: Callable[[], object] | None = None,
) -> int:
    """Let devices record, day by day, and send; gives the number of reports that the collector has taken.

    A device is a row of days, and a day the values it records, by their metrics; on an empty one it is not there.
    It sends after every day, or after every `send_every` of them, as one that is seldom online.
    `look` is called with the number of the device, the number of the day and the client, when a day has been recorded
    and before its reports go; `progress` whenever a device is done. Both are called by several threads.
    """
    if threads < 1:
        raise ParameterError(f"threads: {threads} is none; allowed: 1 and above")
    if send_every < 1:
        raise ParameterError(f"send_every: {send_every} is never; allowed: 1 day and above")

    def live(numbered: tuple[int, Sequence[Mapping[str, Any]]]) -> int:
        sent = _live(collector, *numbered, first_day, send_every, look)
        if progress is not None:
            progress()
        return sent

    # A device lives its whole life in one thread, and its file is closed before the next begins: however many there
    # are, a handful of files, connections and threads of clients is open.
    done: SimpleQueue[Future[int] | None] = SimpleQueue()
    with postponed(lambda: done.put(None)) as hand_on, ThreadPoolExecutor(threads) as pool:
        sent = waiting = 0
        try:
            for each in enumerate(lives):
                hand_on()
                pool.submit(live, each).add_done_callback(done.put)
                waiting += 1
            while waiting:
                future = done.get()
                hand_on()
                if future is not None:
                    sent += future.result()
                    waiting -= 1
        except BaseException:
            # Those that wait for their turn need not live any more; a Ctrl-C may come before all of them even wait.
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return sent


def state_file(collector: LiveCollector, device: int) -> Path:
    """Where a device keeps what it remembers."""
    return collector.folder / "devices" / f"{device}.db"


def _live(
    collector: LiveCollector,
    device: int,
    days: Sequence[Mapping[str, Any]],
    first_day: date,
    send_every: int,
    look: Callable[[int, int, Client], None] | None,
) -> int:
    clock = FrozenClock(datetime.combine(first_day, NOON))
    client = Client(
        collector.url,
        registry=collector.registry,
        state=state_file(collector, device),
        enabled=True,
        strict=True,
        clock=clock,
    )
    with closing(client):
        for day, values in enumerate(days):
            for metric, value in values.items():
                client.record(metric, value)
            if look is not None:
                look(device, day, client)
            clock.advance(days=1)
            if (day + 1) % send_every == 0:
                _send(client, device)
        clock.advance(days=LAST_WAIT_DAYS)
        _send(client, device)
        stats = client.stats()
    if stats.lost:
        raise LiveError(f"device {device}: reports are lost: {', '.join(stats.lost)}; allowed: days that are accepted")
    return stats.sent


def _send(client: Client, device: int) -> None:
    if client.flush(SEND_SECONDS):
        return
    if not client.enabled:
        raise LiveError("clients: are switched off by the environment; allowed: no DO_NOT_TRACK and no HUBBUB_DISABLED")
    told = client.stats()
    raise LiveError(f"device {device}: cannot send: {told.problem or 'no answer'}; allowed: a collector that answers")
