"""Servers to be compared, each in processes of its own.

`python -m benchmarks.servers NAME PORT THREADS` serves one of those that are not a collector, on the server that
`hubbub serve` uses, by the interface that Flask has.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from wsgiref.types import StartResponse, WSGIEnvironment

HUBBUB = ["-c", "from hubbub.shared.command_line import main; main()", "serve"]
RIVAL = ["-m", "benchmarks.servers"]
HUBBUB_ONE = ["-m", "benchmarks.one_commit", "serve"]
START_SECONDS = 30


def end_when_told() -> None:
    """Let this process, when it is told to end, end the servers that it has started, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))


def bare(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Read a body, and answer."""
    environ["wsgi.input"].read()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", "2")])
    return [b"{}"]


def flask() -> Any:
    """Make an application that parses JSON, and answers."""
    from flask import Flask, request  # noqa: PLC0415  (not for those who only start servers)

    app = Flask("flask")

    @app.post("/v1/batches")
    def take() -> dict[str, object]:
        batch = request.get_json()
        return {"accepted": len(batch["reports"]), "duplicate": False, "rejected": []}

    return app


class Server:
    """One that runs, on a port of its own."""

    def __init__(self, name: str, log: Path, process: subprocess.Popen[bytes], port: int) -> None:
        self.name = name
        self.process = process
        self.url = f"http://127.0.0.1:{port}"
        self._log = log

    def wait_until_up(self, path: str) -> None:
        """Ask until it answers."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            with contextlib.suppress(requests.RequestException):
                if requests.get(self.url + path, timeout=5).status_code in {200, 405}:
                    return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} does not answer: {self._log.read_text()}")
            time.sleep(0.02)

    def resident(self) -> int:
        """Bytes of memory that all its processes hold."""
        pages = 0
        for folder in self._processes():
            with contextlib.suppress(OSError):
                pages += int((folder / "statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE")

    def cpu(self) -> float:
        """Seconds of processor time that all its processes have taken."""
        return sum(cpu_of(folder) for folder in self._processes())

    def written(self) -> int:
        """Bytes that all its processes have handed to the disk."""
        total = 0
        for folder in self._processes():
            with contextlib.suppress(OSError):
                found = re.search(r"^write_bytes: (\d+)$", (folder / "io").read_text(), re.MULTILINE)
                total += int(found[1]) if found else 0
        return total

    def _processes(self) -> Iterator[Path]:
        for folder in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if folder.name.isdecimal() and os.getpgid(int(folder.name)) == self.process.pid:
                    yield folder


def cpu_of(process: Path) -> float:
    """Seconds of processor time that a process has taken, by its folder in /proc; none if it is gone."""
    try:
        told = (process / "stat").read_text()
    except OSError:
        return 0.0
    user, system = told.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def running(name: str, folder: Path, arguments: Sequence[str], path: str, **settings: object) -> Iterator[Server]:
    """Start a server; all of its processes are gone afterwards. `{port}` among the arguments becomes its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = {f"HUBBUB_{setting.upper()}": str(value) for setting, value in (settings | {"port": port}).items()}
    log = folder / f"log-{port}"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *(argument.format(port=port) for argument in arguments)],
            stdout=output,
            stderr=output,
            env=os.environ | variables,
            start_new_session=True,
        )
    try:
        server = Server(name, log, process, port)
        server.wait_until_up(path)
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _load(name: str) -> Callable[..., Any]:
    return bare if name == "bare" else flask()


def _serve(name: str, port: int, threads: int) -> None:
    from granian import Granian  # noqa: PLC0415
    from granian.constants import HTTPModes, Interfaces  # noqa: PLC0415

    server: Any = Granian(
        name,
        port=port,
        interface=Interfaces.WSGI,
        http=HTTPModes.http1,
        websockets=False,
        blocking_threads=threads,
        backpressure=1024,
        log_enabled=False,
    )
    server.serve(target_loader=partial(_load, name), wrap_loader=False)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
