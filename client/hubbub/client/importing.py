"""Importing requests late, and never across a fork.

It is the slowest import of the client, and only the sender needs it, so the sender's thread imports it. A process that
forks in the middle of that leaves the child with half a module, behind a lock whose owner is not there: the child would
wait for it for ever. So a fork waits until the import is done; after that nothing is imported late any more.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

_lock = threading.RLock()


def import_requests() -> ModuleType:
    """Give the module."""
    with _lock:
        # parsedate_to_datetime of email.utils reads the dates of servers; requests itself brings it along.
        import requests  # noqa: PLC0415

        return requests


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
