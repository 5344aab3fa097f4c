"""Decoding in a process of its own, at low priority, so that the one that serves has its interpreter to itself.

One message goes in and one comes out, both msgpack. What comes out is spelled already, because spelling a million rows
would hold up the one that serves as well. Its input stays open for as long as somebody waits for the answer: when that
breaks, the process ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from itertools import chain
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import msgspec

from hubbub.collector.candidates import unpack
from hubbub.collector.decode import Control, Estimates, decode
from hubbub.collector.tally import Tally
from hubbub.shared.errors import HubbubError, ParameterError
from hubbub.shared.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable

DECODE_SECONDS = 600.0
"""The longest that a process may decode; then it is killed."""

NICENESS = 10
"""How much everything else goes before: 0 not at all, 19 always."""

Spelling: TypeAlias = Literal["application/json", "text/csv"]
SPELLINGS: tuple[Spelling, ...] = get_args(Spelling)

# By -c, and not by -m: that complains that the module has been imported already, and importing takes more time than
# most decoding, so that it has to be nice before. -P: nothing is imported from wherever we are.
_PROGRAM = f"""
import os
if hasattr(os, "nice"):
    os.nice({NICENESS})
from hubbub.collector.decode.process import main
main()
"""
_COMMAND = (sys.executable, "-P", "-c", _PROGRAM)
_SIZE = 8


class Order(msgspec.Struct, frozen=True):
    """What is to be decoded, and how it is to be spelled."""

    registry: str
    name: str
    tally: bytes
    """As JSON."""
    candidates: list[bytes]
    """Chunks as they are kept, compressed."""
    confidence: float
    control: Control
    strict: bool
    periods: int
    undetected: bool
    """Whether strings are told of that were not detected."""
    spelling: Spelling


class Answer(msgspec.Struct, frozen=True):
    """Estimates as they were to be spelled; or why there are none."""

    body: bytes = b""
    fault: str = ""


class DecodingFailedError(HubbubError):
    """A process that ended without an answer: it was killed, took too long, or failed by a fault of ours."""


def decode_apart(order: Order, started: Callable[[subprocess.Popen[bytes]], None] = lambda _: None) -> bytes:
    """Decode in a process of its own, and give the estimates as they were to be spelled.

    `started` is given the process, and may kill it whenever it likes to.
    """
    message = msgspec.msgpack.encode(order)
    late = threading.Event()
    with subprocess.Popen(  # noqa: S603  (it is our own)
        _COMMAND, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:

        def end() -> None:
            late.set()
            process.kill()

        watchdog = threading.Timer(DECODE_SECONDS, end)
        watchdog.daemon = True
        watchdog.start()
        try:
            started(process)
            told = _exchange(process, len(message).to_bytes(_SIZE), message)
        finally:
            watchdog.cancel()
            process.kill()  # it has nothing more to say, and whoever fails here does not wait for it
    try:
        answer = msgspec.msgpack.decode(told, type=Answer)
    except msgspec.MsgspecError:
        fault = f"took more than {DECODE_SECONDS:g} s" if late.is_set() else f"ended with {process.returncode}"
        raise DecodingFailedError(f"decoding: the process that does it {fault}; allowed: an answer") from None
    if answer.fault:
        raise ParameterError(answer.fault)
    return answer.body


def _exchange(process: subprocess.Popen[bytes], *parts: bytes) -> bytes:
    assert process.stdin is not None  # noqa: S101  (both are pipes)
    assert process.stdout is not None  # noqa: S101
    try:
        for part in parts:
            left = memoryview(part)
            while left:
                left = left[process.stdin.write(left) :]
    except BrokenPipeError:
        return b""
    return process.stdout.read()


def spell(estimates: Estimates, spelling: Spelling, *, undetected: bool) -> bytes:
    """Spell estimates; of strings only those that are there, unless the others are wanted too."""
    if estimates.kind == "string" and not undetected:
        estimates = msgspec.structs.replace(estimates, rows=estimates.detected)
    if spelling == "text/csv":
        return estimates.to_csv().encode()
    # As `to_dict`, without a dictionary for each of a million rows.
    return msgspec.json.encode(msgspec.structs.asdict(estimates) | {"alarms": estimates.alarms})


def main() -> None:
    """Be the process: read an order, decode, answer."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # of a terminal: it is for the one that serves, and we end with it
    size = int.from_bytes(sys.stdin.buffer.read(_SIZE))
    message = sys.stdin.buffer.read(size)
    if not size or len(message) < size:
        return
    threading.Thread(target=_end_with_input, daemon=True).start()
    sys.stdout.buffer.write(msgspec.msgpack.encode(_answer(msgspec.msgpack.decode(message, type=Order))))


def _end_with_input() -> None:
    """End when nobody waits any more. Read without a buffer, whose lock would be in the way of the usual end."""
    os.read(sys.stdin.fileno(), 1)
    os._exit(1)


def _answer(order: Order) -> Answer:
    try:
        metric = Registry.parse(order.registry)[order.name]
        estimates = decode(
            metric,
            Tally.parse(order.tally, metric),
            candidates=chain.from_iterable(unpack(order.candidates)),
            confidence=order.confidence,
            control=order.control,
            strict=order.strict,
            periods=order.periods,
        )
        return Answer(spell(estimates, order.spelling, undetected=order.undetected))
    except HubbubError as error:
        return Answer(fault=str(error))
