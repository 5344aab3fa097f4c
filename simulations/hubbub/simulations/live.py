"""Real clients and a real collector: a small population that takes the way of the product itself, over HTTP.

with LiveCollector(registry) as collector:
    first_day = collector.first_day(2)
    simulate_clients(collector, [[{"crashed": True}, {"crashed": False}]], first_day=first_day)
    yesterday_and_before = collector.tallies("crashed", first_day, 2)

Each device is a `Client` with a state file and a clock of its own. The collector is `hubbub serve` in a process of its
own, with an SQLite store.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import requests

from hubbub.client import Client
from hubbub.client.testing import FrozenClock
from hubbub.collector.acceptance import DEFAULT_DAYS_BACK
from hubbub.collector.decode import Estimates
from hubbub.collector.tally import Tally
from hubbub.shared.errors import ParameterError
from hubbub.shared.period import period_of, today
from hubbub.shared.registry import Registry
from hubbub.simulations.errors import LiveError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

HOST = "127.0.0.1"
START_SECONDS = 60.0
STOP_SECONDS = 30.0
LOOK_SECONDS = 0.02
ATTEMPTS = 5
"""Ports that are tried: between finding one free and serving on it, another process may take it."""

DEFAULT_THREADS = 8
"""Devices at a time; they mostly wait for their disks."""
SEND_SECONDS = 60.0
"""How long a device goes on trying to send the reports of a period."""

NOON = time_of_day(12, tzinfo=UTC)
"""When devices record and send: by noon, whatever was recorded the day before has become sendable."""

LAST_WAIT_DAYS = 9
"""After so many days the report of any period that was running is sendable: a week, and a quarter of it for delay."""


class LiveCollector:
    """`hubbub serve` on a free port of this machine; use it in a `with` statement.

    `settings` are those of the command, as `days_back=40`. Without `folder` everything is in a temporary one, and gone
    at the end. With `guarded=False` there is no admin token: whoever is on this machine may read, and a browser here
    needs no login.
    """

    def __init__(
        self,
        registry: str,
        *,
        folder: str | os.PathLike[str] | None = None,
        port: int | None = None,
        guarded: bool = True,
        **settings: object,
    ) -> None:
        self.registry = Registry.parse(registry)
        self.token = secrets.token_hex(16) if guarded else None
        """What reading needs: the admin token."""
        self.url = ""
        """Its address, once it is up."""
        self._text = registry
        self._given = folder
        self._port = port
        self._settings = settings
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if self._given is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="hubbub-live-")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._registry_file.write_text(self._text, encoding="utf-8")
            self._start_somewhere()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def folder(self) -> Path:
        """Where its store and its log are, and the state files of devices."""
        given = self._temporary.name if self._temporary is not None else self._given
        if given is None:
            raise LiveError("collector: has not been started; allowed: `with LiveCollector(...) as collector`")
        return Path(given)

    @property
    def store(self) -> str:
        """The address of its store; with a `folder`, something can be in there before it starts."""
        return f"sqlite:///{self.folder / 'hubbub.db'}"

    def wait(self) -> None:
        """Wait until it ends by itself, which it should not do."""
        if self._process is not None:
            self._process.wait()
        raise LiveError(f"collector: has ended: {self._last_words()}; allowed: that it stays up")

    def close(self) -> None:
        """Stop it, and tidy up."""
        self._stop()
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def first_day(self, days: int) -> date:
        """The latest day from which so many days of reports are all in the past."""
        back = self._settings.get("days_back", DEFAULT_DAYS_BACK)
        if not 0 < days <= int(str(back)):
            raise ParameterError(f"days = {days}; allowed: 1 to {back}, which the collector's days_back accepts")
        return today() - timedelta(days=days)

    def tally(self, metric: str, start: date, end: date) -> Tally:
        """Read the tally of some days, as an analyst would."""
        days = {"start": start.isoformat(), "end": end.isoformat()}
        return Tally.parse(self._ask("GET", metric, "tally", params=days), self.registry[metric])

    def estimates(self, metric: str, start: date, end: date) -> Estimates:
        """Read the estimates of some days, of strings also those that were not found."""
        days = {"start": start.isoformat(), "end": end.isoformat(), "all": "true"}
        return msgspec.json.decode(self._ask("GET", metric, "estimates", params=days), type=Estimates)

    def put_candidates(self, metric: str, candidates: Iterable[str]) -> None:
        """Say which strings to ask about."""
        lines = "".join(f"{each}\n" for each in candidates).encode()
        self._ask("PUT", metric, "candidates", data=lines, headers={"Content-Type": "text/plain"})

    def tallies(self, metric: str, first_day: date, days: int) -> list[Tally]:
        """Read the tally of each period that these days fall in."""
        every = self.registry[metric].every
        periods = sorted({period_of(every, first_day + timedelta(days=number)) for number in range(days)})
        return [self.tally(metric, period, period) for period in periods]

    def _ask(
        self, method: str, metric: str, what: str, headers: Mapping[str, str] | None = None, **asked: Any
    ) -> bytes:
        url = f"{self.url}/v1/metrics/{metric}/{what}"
        told = self._authorization | dict(headers or {})
        answer = requests.request(method, url, headers=told, timeout=START_SECONDS, **asked)
        if not answer.ok:
            raise LiveError(f"collector: answered {answer.status_code} when asked for {metric}; allowed: 200")
        return answer.content

    @property
    def _authorization(self) -> dict[str, str]:
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    @property
    def _registry_file(self) -> Path:
        return self.folder / "metrics.toml"

    @property
    def _log(self) -> Path:
        return self.folder / "collector.log"

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").split("\n") if self._log.exists() else []
        return next((line for line in reversed(lines) if line.strip()), "it says nothing")

    def _start_somewhere(self) -> None:
        for _ in range(ATTEMPTS):
            if self._start(self._port or free_port()):
                return
            if self._port is not None or "--port" not in self._last_words():
                break
        raise LiveError(f"collector: does not start: {self._last_words()}")

    def _start(self, port: int) -> bool:
        """Start it on a port, and tell whether it is ready there; not if the port was taken meanwhile."""
        ours = {"registry": self._registry_file, "store": self.store, "host": HOST, "port": port}
        if self.token is not None:
            ours["admin_token"] = self.token
        # Settings of a collector that the user runs, or has run, are none of ours.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HUBBUB_")}
        environment |= {f"HUBBUB_{name.upper()}": str(value) for name, value in (ours | self._settings).items()}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from hubbub.shared.command_line import main; main()", "serve"],
                stdout=log,
                stderr=log,
                env=environment,
                cwd=self.folder,
                start_new_session=True,  # a Ctrl-C on the terminal is for us: we stop it when nobody needs it any more
            )
        self.url = f"http://{HOST}:{port}"
        deadline = time.monotonic() + START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            if self._is_ready():
                return True
            time.sleep(LOOK_SECONDS)
        self._stop()
        return False

    def _is_ready(self) -> bool:
        """Whether it answers, and is ours: another one would not know the token, if there is one."""
        try:
            if not requests.get(f"{self.url}/readyz", timeout=5).ok:
                return False
            return requests.get(f"{self.url}/v1/metrics", headers=self._authorization, timeout=5).ok
        except requests.RequestException:
            return False

    def _stop(self) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


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
    with ThreadPoolExecutor(threads) as pool:
        try:
            return sum(pool.map(live, enumerate(lives)))
        except BaseException:
            # Those that wait for their turn need not live any more; a Ctrl-C may come before all of them even wait.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


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
    lost = {reason for reason in stats.lost if reason != "lifetime_values"}
    if lost:
        raise LiveError(f"device {device}: reports are lost: {', '.join(lost)}; allowed: days that are accepted")
    return stats.sent


def free_port(wanted: int = 0) -> int:
    """Find a port that nobody listens on, or see whether the one that is wanted is such a port."""
    with socket.socket() as found:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of before may still be timing out
        try:
            found.bind((HOST, wanted))
        except OSError as error:
            raise LiveError(f"port {wanted}: cannot be used: {error.strerror}; allowed: a free one") from None
        port: int = found.getsockname()[1]
        return port


def _send(client: Client, device: int) -> None:
    if client.flush(SEND_SECONDS):
        return
    if not client.enabled:
        raise LiveError("clients: are switched off by the environment; allowed: no DO_NOT_TRACK and no HUBBUB_DISABLED")
    told = client.stats()
    raise LiveError(f"device {device}: cannot send: {told.problem or 'no answer'}; allowed: a collector that answers")
