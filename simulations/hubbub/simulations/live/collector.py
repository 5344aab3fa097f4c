"""A real collector for as long as a script needs one: `hubbub serve` in a process of its own, with an SQLite store."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import requests

from hubbub.collector.acceptance import DEFAULT_DAYS_BACK
from hubbub.collector.decode import Estimates
from hubbub.collector.tally import Tally
from hubbub.shared.errors import ParameterError
from hubbub.shared.period import period_of, today
from hubbub.shared.registry import Registry
from hubbub.simulations.errors import LiveError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import Self

HOST = "127.0.0.1"
START_SECONDS = 60.0
STOP_SECONDS = 30.0
LOOK_SECONDS = 0.02
ATTEMPTS = 5
"""Ports that are tried: between finding one free and serving on it, another process may take it."""

_COMMAND = (sys.executable, "-P", "-c", "from hubbub.simulations.live.process import main; main()")


class LiveCollector:
    """`hubbub serve` on a free port of this machine; use it in a `with` statement.

    `settings` are those of the command, as `days_back=40`. Tallies include small cohorts unless `min_cohort_reports` is
    set. Without `folder` everything is in a temporary one, and gone at the end. With `guarded=False` there is no admin
    token: whoever is on this machine may read, and a browser here needs no login.
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
        ours["min_cohort_reports"] = 1  # no real device reports here, and scripts need every count
        if self.token is not None:
            ours["admin_token"] = self.token
        # Settings of a collector that the user runs, or has run, are none of ours.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HUBBUB_")}
        environment |= {f"HUBBUB_{name.upper()}": str(value) for name, value in (ours | self._settings).items()}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603  (it is our own)
                _COMMAND,
                stdin=subprocess.PIPE,  # nothing is written to it: it is closed when we end, however we end
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
        with self._process as process:  # which closes its input, too
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        self._process = None


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
