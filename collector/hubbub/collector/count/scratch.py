"""Memory for intermediate results, kept from one call to the next.

Fresh memory costs a page fault for every four kilobytes, and large arrays are given back to the system when they are
done with: always in workers of Dask, which tell the allocator so.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEPT_BYTES = 16 << 20
"""More than counting 128-bit reports needs. What is larger is not kept."""


class _Kept(threading.local):
    """Each thread has its own."""

    def __init__(self) -> None:
        self.memory: dict[str, NDArray[np.uint8]] = {}


_kept = _Kept()


def scratch(use: str, size: int) -> NDArray[np.uint8]:
    """Give so many bytes, with whatever is in them, that are this thread's until it asks again for the same use."""
    memory = _kept.memory.get(use)
    if memory is None or len(memory) < size:
        memory = np.empty(size, np.uint8)
        if size <= KEPT_BYTES:
            _kept.memory[use] = memory
    return memory[:size]
