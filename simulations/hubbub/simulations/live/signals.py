"""Signals that wait for a good moment.

A Ctrl-C raises wherever the main thread happens to be. Where that is in Python's own locks and thread pools, one of
them may stay taken, and the other threads wait for it for ever.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

ENDING: list[signal.Signals] = [
    getattr(signal, name) for name in ("SIGHUP", "SIGBREAK", "SIGTERM", "SIGINT") if hasattr(signal, name)
]
"""The signals that end a program, as far as the system has them."""


@contextmanager
def postponed(wake: Callable[[], object]) -> Iterator[Callable[[], None]]:
    """Keep back the signals that end a program and that somebody handles; `wake` is called whenever one comes.

    Gives a function that hands on those that have come, and may raise what their handlers raise. The end does so too.
    """
    if current_thread() is not main_thread():  # no other thread is ever interrupted
        yield lambda: None
        return
    came: list[tuple[int, FrameType | None]] = []

    def postpone(number: int, frame: FrameType | None) -> None:
        came.append((number, frame))
        wake()

    def hand_on() -> None:
        while came:
            number, frame = came.pop(0)
            handlers[number](number, frame)

    handlers: dict[int, Any] = {each: found for each in ENDING if callable(found := signal.getsignal(each))}
    try:
        for each in handlers:
            signal.signal(each, postpone)
        yield hand_on
    finally:
        for each, handler in handlers.items():
            if signal.getsignal(each) is postpone:  # a handler may have put another in its place
                signal.signal(each, handler)
        hand_on()
