"""Several collectors on one store, and in front of them a balancer: what is of a proxy's doing, and no more.

Each connection is handed on to the next collector that takes it. One that is down is passed over; one that dies takes
its connections with it.
"""

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from collector.served import START_SECONDS, Served

REPLICAS = 3
CHUNK = 1 << 16


@contextlib.contextmanager
def replicas(folder: Path, store: str, number: int = REPLICAS) -> Iterator[list[Served]]:
    """Collectors that are up, all on the same store, and are gone afterwards."""
    all_of_them = [Served(folder, store) for _ in range(number)]
    with contextlib.ExitStack() as stack:
        for served in all_of_them:
            served.start(wait=False)
            stack.callback(served.kill)
        for served in all_of_them:
            served.wait_until_ready()
        yield all_of_them


class Balancer:
    """Hands connections on, in a thread of its own; on a port that it is given."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.url = ""
        self.taken: Counter[int] = Counter()
        """How many connections each collector was handed, by its port."""
        self.passed_over = 0
        """How often one was down."""
        self._ports = ports
        self._turn = 0
        self._listening = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()
        assert self._listening.wait(START_SECONDS)

    def stop(self) -> None:
        """Cut all connections, and end."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._listening.set()
        await self._ended.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError, asyncio.CancelledError):
            behind_reader, behind_writer = await self._next()
            with contextlib.closing(behind_writer):
                there = asyncio.create_task(_pump(reader, behind_writer))
                back = asyncio.create_task(_pump(behind_reader, writer))
                try:
                    await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    there.cancel()
                    back.cancel()
                    await asyncio.gather(there, back, return_exceptions=True)

    async def _next(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the next one that is up; ConnectionError if none is, and the sender sees its connection closed."""
        for _ in self._ports:
            port = self._ports[self._turn % len(self._ports)]
            self._turn += 1
            try:
                found = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                self.passed_over += 1
            else:
                self.taken[port] += 1
                return found
        raise ConnectionError


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()


@contextlib.contextmanager
def balancing(*behind: Served) -> Iterator[Balancer]:
    """A balancer that is up, and has ended afterwards."""
    balancer = Balancer([served.port for served in behind])
    balancer.start()
    try:
        yield balancer
    finally:
        balancer.stop()
