"""A real collector in a process of its own, as an operator would start it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import requests

from collector.oracle import METRIC, TEXT, Oracle
from collector.postgres import free_port, hold, wait_until_gone
from hubbub.collector import Tally

START_SECONDS = 60
TOKEN = "an-admin-token-for-tests"
PROGRAM = "from hubbub.shared.command_line import main; main()"


class Served:
    """`hubbub serve`, on a port of its own. It can be stopped, killed and started again on the same port and store."""

    def __init__(
        self, folder: Path, store: str, registry: str = TEXT, *, program: str = PROGRAM, **settings: object
    ) -> None:
        self.folder = folder
        self._program = program
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.store = store
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = {"store": store, "port": self.port, "admin_token": TOKEN, "min_cohort_reports": 1, **settings}
        self.registry = folder / f"metrics-{self.port}.toml"
        self.registry.write_text(registry)
        self.log = folder / f"log-{self.port}"

    def start(self, *, wait: bool = True) -> None:
        """Start it, and wait until it is ready."""
        environment = os.environ | {f"HUBBUB_{name.upper()}": str(value) for name, value in self._settings.items()}
        environment["HUBBUB_REGISTRY"] = str(self.registry)
        environment["TMPDIR"] = str(self.folder)  # a collector that is killed cannot tidy up
        with self.log.open("ab") as log:
            hold(log)
            self._process = subprocess.Popen(
                [sys.executable, "-c", self._program, "serve"],
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,  # so that all of its processes can be killed at one stroke
            )
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Ask until it says that it is ready: there is no other way to know."""
        self._wait_until(lambda: self._says_yes("/readyz"))

    def wait_until_alive(self) -> None:
        """Ask until it answers, ready or not."""
        self._wait_until(lambda: self._says_yes("/livez"))

    def wait_for_log(self, words: str) -> None:
        """Read its log until something is there."""
        self._wait_until(lambda: words in self.log.read_text())

    def _says_yes(self, path: str) -> bool:
        try:
            return requests.get(self.url + path, timeout=5).status_code == 200
        except requests.RequestException:
            return False

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not condition():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.02)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def kill(self) -> None:
        """End all of its processes at once, wherever they are."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.wait_until_gone()

    def wait_until_gone(self) -> None:
        """Wait until all of its processes have ended, those whose parent was killed included."""
        wait_until_gone(self.log)

    def workers(self) -> list[int]:
        """The processes that serve."""
        main = self.process.pid
        return [int(child) for child in Path(f"/proc/{main}/task/{main}/children").read_text().split()]

    def stop(self, timeout: float = 30) -> int:
        """Ask it to stop, and give its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def post(self, body: bytes, timeout: float = 30, **headers: str) -> requests.Response:
        """Hand in a batch."""
        sent = {"Content-Type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
        return requests.post(f"{self.url}/v1/batches", data=body, headers=sent, timeout=timeout)

    def get(self, path: str) -> requests.Response:
        """Read something, with the token."""
        return requests.get(self.url + path, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)

    def tallies(self, oracle: Oracle) -> dict[date, Tally]:
        """The tally of each period that the oracle's slots speak of, as the API tells it."""
        found = {}
        for period in oracle.periods():
            answer = self.get(f"/v1/metrics/oracle/tally?start={period}&end={period}")
            assert answer.status_code == 200, answer.text
            found[period] = Tally.parse(answer.content, METRIC)
        return found


@contextlib.contextmanager
def serving(folder: Path, store: str, **options: object) -> Iterator[Served]:
    """A collector that is up, and is gone afterwards."""
    served = Served(folder, store, **options)  # type: ignore[arg-type]
    try:
        served.start()
        yield served
    finally:
        served.kill()
