"""A process of its own that draws, and that decodes period by period: the one that serves has batches to take.

Drawing takes a tenth of a second of nothing but interpreter, and loading what draws a whole one. So it is done by one
process at low priority, which is started when the first chart is wanted, stays, and ends when its input does, however
the one that serves has ended. Messages are msgpack, each behind its length.
"""

from __future__ import annotations

import atexit
import contextlib
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import IO, TYPE_CHECKING, Literal, TypeAlias

import msgspec

from hubbub.collector.decode import Control, Estimates, decode
from hubbub.collector.decode.process import NICENESS
from hubbub.collector.refusal import Refused
from hubbub.collector.tally import Tally
from hubbub.shared.errors import HubbubError
from hubbub.shared.registry import Registry

if TYPE_CHECKING:
    from hubbub.collector.charts import Form

JOB_SECONDS = 60.0
"""The longest that one job may take; then the process is killed, and the next job starts another one."""

END_SECONDS = 5.0
KEPT_PERIODS = 1000
"""Decoded periods that the process keeps."""

_OF_ALL_CANDIDATES = {"explained", "listed", "misfit"}
"""Diagnostics that say something only where all candidates were asked about."""

_PROGRAM = f"""
import os
if hasattr(os, "nice"):
    os.nice({NICENESS})
from hubbub.collector.dashboard.workshop import main
main()
"""
_COMMAND = (sys.executable, "-P", "-c", _PROGRAM)
_SIZE = 8


class History(msgspec.Struct, frozen=True, tag=True):
    """An order: decode each of these tallies, and ask about these strings, if it is about strings."""

    registry: str
    name: str
    tallies: list[bytes]
    values: tuple[str, ...]
    confidence: float
    control: Control


class Drawing(msgspec.Struct, frozen=True, tag=True):
    """An order: draw estimates, or how they changed from period to period."""

    estimates: tuple[Estimates, ...]
    history: bool
    values: tuple[str, ...]
    candidates: int | None
    """How many strings were asked about: the estimates hold only those found."""
    form: Literal["svg", "png"]
    dark: bool


Order: TypeAlias = History | Drawing


class Done(msgspec.Struct, frozen=True):
    """What was made; or why not."""

    body: bytes = b""
    fault: str = ""


class Workshop:
    """The process, started when it is needed. One job at a time, in the order in which they came."""

    def __init__(self) -> None:
        self._queue = ThreadPoolExecutor(1, "hubbub-workshop")
        self._process: subprocess.Popen[bytes] | None = None

    def history(self, order: History) -> tuple[Estimates, ...]:
        """Decode period by period: of strings each as a job of its own, so that others need not wait for long."""
        jobs = [msgspec.structs.replace(order, tallies=[tally]) for tally in order.tallies] if order.values else [order]
        decoded = [msgspec.json.decode(self._have(job), type=tuple[Estimates, ...]) for job in jobs]
        return tuple(chain.from_iterable(decoded))

    def draw(
        self,
        estimates: tuple[Estimates, ...],
        *,
        history: bool = False,
        values: tuple[str, ...] = (),
        candidates: int | None = None,
        form: Form = "svg",
        dark: bool = False,
    ) -> bytes:
        """Draw a chart."""
        return self._have(Drawing(estimates, history, values, candidates, form, dark))

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
        if done.fault:
            raise Refused("internal", done.fault)
        return done.body

    def _do(self, message: bytes) -> Done:
        try:
            return msgspec.msgpack.decode(self._exchange(message), type=Done)
        except (OSError, EOFError, ValueError):
            self.close()
            raise Refused(
                "decoding_failed", "the process that draws ended without an answer; try again later"
            ) from None

    def _exchange(self, message: bytes) -> bytes:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(  # noqa: S603  (it is our own)
                _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        process = self._process
        assert process.stdin is not None  # noqa: S101  (both are pipes)
        assert process.stdout is not None  # noqa: S101
        watchdog = threading.Timer(JOB_SECONDS, process.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            _write(process.stdin, message)
            return _read(process.stdout)
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
            message = _read(sys.stdin.buffer)
        except EOFError:
            return
        try:
            _write(sys.stdout.buffer, msgspec.msgpack.encode(_work(msgspec.msgpack.decode(message, type=Order))))
        except BrokenPipeError:  # nobody waits any more
            return


def _work(order: Order) -> Done:
    try:
        return Done(_decode(order) if isinstance(order, History) else _draw(order))
    except HubbubError as error:
        return Done(fault=str(error))


def _decode(order: History) -> bytes:
    return msgspec.json.encode(
        [
            _decode_period(order.registry, order.name, tally, order.values, order.confidence, order.control)
            for tally in order.tallies
        ]
    )


@lru_cache(KEPT_PERIODS)
def _decode_period(
    registry: str, name: str, tally: bytes, values: tuple[str, ...], confidence: float, control: Control
) -> Estimates:
    """Decode one period. Most have ended long ago, and are the same as when they were decoded last."""
    metric = Registry.parse(registry)[name]
    estimates = decode(
        metric,
        Tally.parse(tally, metric),
        candidates=values if metric.kind == "string" else None,
        confidence=confidence,
        control=control,
        periods=1,
    )
    if metric.kind == "string":
        # Only the strings found over the whole time are asked about, so that something is left over is no news.
        looks = tuple(each for each in estimates.diagnostics if each.name not in _OF_ALL_CANDIDATES)
        estimates = msgspec.structs.replace(estimates, diagnostics=looks)
    return estimates


def _draw(order: Drawing) -> bytes:
    from hubbub.collector.charts import draw  # noqa: PLC0415  (only this process draws)
    from hubbub.collector.pictures import of_estimates, of_history  # noqa: PLC0415

    if order.history:
        figure = of_history(order.estimates, values=order.values)
    else:
        [estimates] = order.estimates
        figure = of_estimates(estimates)
        if order.candidates is not None and estimates.reports:
            told = f"{len(estimates.detected):,} of {order.candidates:,} candidates found"
            figure = replace(figure, title=f"{estimates.metric}: {told}")
    return draw(figure, order.form, dark=order.dark)


def _write(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(len(message).to_bytes(_SIZE))
    pipe.write(message)
    pipe.flush()


def _read(pipe: IO[bytes]) -> bytes:
    head = pipe.read(_SIZE)
    message = pipe.read(int.from_bytes(head)) if len(head) == _SIZE else b""
    if not message:
        raise EOFError
    return message
