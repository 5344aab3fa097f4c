"""The client for asyncio: the same methods, none of which blocks the event loop."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from hubbub.client.client import EXIT_SECONDS, FLUSH_SECONDS, Client

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from hubbub.client.preview import Pending
    from hubbub.client.stats import Stats

Result = TypeVar("Result")


class AsyncClient:
    """A `Client` whose work is done by a thread of its own, one call after the other."""

    def __init__(self, collector: str | None, **options: Any) -> None:
        self._client = Client(collector, **options)
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="hubbub-async")

    @property
    def enabled(self) -> bool:
        """Whether values are collected."""
        return self._client.enabled

    async def set_enabled(self, decision: bool) -> None:
        """Take the user's decision; taking consent back deletes what waits."""
        await self._do(setattr, self._client, "enabled", decision)

    async def record(self, metric: str, value: object) -> None:
        """Record a value: randomised and on disk when this returns."""
        await self._do(self._client.record, metric, value)

    async def flush(self, timeout: float = FLUSH_SECONDS) -> bool:
        """Send what may be sent, now; tells whether all of it has been."""
        return await self._do(self._client.flush, timeout)

    async def stats(self) -> Stats:
        """Count everything recorded, sent, pending and lost, by reason."""
        return await self._do(self._client.stats)

    async def preview(self) -> list[Pending]:
        """List what has not been delivered."""
        return await self._do(self._client.preview)

    async def forget(self) -> None:
        """Delete the secret, the ledger and all reports that have not been sent."""
        await self._do(self._client.forget)

    async def close(self, timeout: float = EXIT_SECONDS) -> None:
        """Stop the background thread, waiting for it no longer than this. Nothing is lost."""
        await self._do(self._client.close, timeout)
        self._thread.shutdown(wait=False)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _do(self, call: Callable[..., Result], *arguments: object) -> Result:
        if self._process != os.getpid():
            self._begin()  # the thread stayed behind in the parent
        return await asyncio.get_running_loop().run_in_executor(self._thread, partial(call, *arguments))
