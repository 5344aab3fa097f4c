"""A process of its own that works for the pages: the one that serves has batches to take.

Reading and adding up tallies, decoding and drawing take a tenth of a second and more of nothing but interpreter. So
they are done by one process at low priority, with a connection of its own to the store. It is started when somebody
looks for the first time, stays, and ends when its input does, however the one that serves has ended. Messages are
msgpack, each behind its length.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING

import msgspec

from hubbub.collector.dashboard.orders import Done, Glance, Glimpse, Looked, Order
from hubbub.collector.decode import Estimates
from hubbub.collector.decode.process import NICENESS
from hubbub.collector.errors import StoreUnavailableError
from hubbub.collector.messages import read_message, write_message
from hubbub.collector.pace import Pace
from hubbub.collector.refusal import Refused
from hubbub.shared.errors import HubbubError

if TYPE_CHECKING:
    from hubbub.collector.dashboard.orders import Drawing, History, Look, Place

JOB_SECONDS = 300.0
"""The longest that one job may take, where others need the cores; then the process is killed, and the next job starts
another one."""

TRIES = 2
"""A job whose process was killed by somebody else is begun once more."""

END_SECONDS = 5.0
_PROGRAM = f"""
import os
if hasattr(os, "nice"):
    os.nice({NICENESS})
from hubbub.collector.dashboard.workshop import main
main()
"""
_COMMAND = (sys.executable, "-P", "-c", _PROGRAM)


class Workshop:
    """The process, started when it is needed. One job at a time, in the order in which they came."""

    def __init__(self) -> None:
        self._queue = ThreadPoolExecutor(1, "hubbub-workshop")
        self._process: subprocess.Popen[bytes] | None = None

    def glance(self, place: Place) -> dict[str, Glimpse]:
        """Tell what there is of every metric."""
        return msgspec.msgpack.decode(self._have(Glance(place)), type=dict[str, Glimpse])

    def look(self, order: Look) -> Looked:
        """Read one metric, and decode it unless it is about strings."""
        return msgspec.msgpack.decode(self._have(order), type=Looked)

    def history(self, order: History) -> tuple[Estimates, ...]:
        """Decode period by period: of strings each as a job of its own, so that others need not wait for long."""
        jobs = [order]
        if order.values:
            jobs = [msgspec.structs.replace(order, counted=dict([each])) for each in order.counted.items()]
        decoded = [msgspec.msgpack.decode(self._have(job), type=tuple[Estimates, ...]) for job in jobs]
        return tuple(chain.from_iterable(decoded))

    def draw(self, order: Drawing) -> bytes:
        """Draw a chart."""
        return self._have(order)

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):  # what could not be written to it before
                        pipe.close()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _have(self, order: Order) -> bytes:
        try:
            done = self._queue.submit(self._do, msgspec.msgpack.encode(order)).result()
        except RuntimeError:  # nothing can be begun any more
            raise Refused("closing", "the collector is being stopped; try again later") from None
        if done.store_is_down:
            raise StoreUnavailableError(done.fault)
        if done.fault:
            raise Refused("internal", done.fault)
        return done.body

    def _do(self, message: bytes) -> Done:
        """Have a job done; by another process where the first one was killed."""
        for _ in range(TRIES):
            late = threading.Event()
            try:
                return msgspec.msgpack.decode(self._exchange(message, late), type=Done)
            except (OSError, EOFError, ValueError):
                self.close()
                if late.is_set():
                    break
        raise Refused("decoding_failed", "the process that draws ended without an answer; try again later")

    def _exchange(self, message: bytes, late: threading.Event) -> bytes:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(  # noqa: S603  (it is our own)
                _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        process = self._process
        assert process.stdin is not None  # noqa: S101  (both are pipes)
        assert process.stdout is not None  # noqa: S101

        def end() -> None:
            late.set()
            process.kill()

        watchdog = threading.Timer(JOB_SECONDS, end)
        watchdog.daemon = True
        watchdog.start()
        try:
            write_message(process.stdin, message)
            return read_message(process.stdout)
        finally:
            watchdog.cancel()


class OwnWorkshop(Workshop):
    """Does the jobs in this very process, which has low priority itself, and may be replaced as well."""

    def __init__(self) -> None:
        super().__init__()
        self.pace = Pace()

    def _do(self, message: bytes) -> Done:
        with self.pace.working():
            watchdog = threading.Timer(JOB_SECONDS, os._exit, [1])
            watchdog.daemon = True
            watchdog.start()
            try:
                return _work(message)
            finally:
                watchdog.cancel()


WORKSHOP = Workshop()
"""One for all who ask a process that serves."""

atexit.register(WORKSHOP.close)


def main() -> None:
    """Be the process: do one job after the other, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # of a terminal: it is for the one that serves, and we end with it
    while True:
        try:
            message = read_message(sys.stdin.buffer)
        except EOFError:
            return
        try:
            write_message(sys.stdout.buffer, msgspec.msgpack.encode(_work(message)))
        except BrokenPipeError:  # nobody waits any more
            return


def _work(message: bytes) -> Done:
    from hubbub.collector.dashboard.jobs import work  # noqa: PLC0415  (not for the one that serves)

    try:
        return Done(work(msgspec.msgpack.decode(message, type=Order)))
    except StoreUnavailableError as error:
        return Done(fault=str(error), store_is_down=True)
    except HubbubError as error:
        return Done(fault=str(error))
