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
def showing(length: int, label: str) -> Iterator[Callable[[], None]]:
    """Give a function that says that one more is done; several threads may call it."""
    if not (label and sys.stderr.isatty()):
        yield lambda: None
        return
    lock = threading.Lock()
    with click.progressbar(length=length, label=label, file=sys.stderr) as bar:

        def advance() -> None:
            with lock:
                bar.update(1)

        yield advance
