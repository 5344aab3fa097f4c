"""How far the work is, on a terminal; nothing anywhere else."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def showing(length: int, label: str) -> Iterator[Callable[..., None]]:
    """Give a function that says that one more is done, or a number more; several threads may call it."""
    if not (label and sys.stderr.isatty()):
        yield lambda number=1: None  # noqa: ARG005
        return
    lock = threading.Lock()
    with click.progressbar(length=length, label=label, file=sys.stderr) as bar:

        def advance(number: int = 1) -> None:
            with lock:
                bar.update(number)

        yield advance
