"""Work that spreads: over the processes of this machine, or over a Dask cluster.

Every point of the work draws from a generator of its own, seeded by the seed and the point's number alone. So the
results are the same whatever the number of workers, and wherever they are.
"""

from __future__ import annotations

import logging
import multiprocessing
import socket
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import numpy as np

from hubbub.shared.errors import ParameterError
from hubbub.simulations.errors import ClusterError
from hubbub.simulations.progress import showing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Self

Point = TypeVar("Point")
Answer = TypeVar("Answer")

CONNECT_SECONDS = 10
"""How long a scheduler is waited for."""

WORKER_SECONDS = 30
"""How long its first worker is."""


class Work:
    """Someone to do it: this process alone, several processes, or the workers of a Dask scheduler.

    Use it in a `with` statement. `function(point, rng)` has to be a function of a module, so that others can import it.
    """

    def __init__(self, workers: int = 1, scheduler: str | None = None) -> None:
        if workers < 1:
            raise ParameterError(f"workers: {workers} is none; allowed: 1 and above")
        self._workers = workers
        self._scheduler = scheduler
        self._open = ExitStack()
        self._submit: Callable[..., Iterable[Any]] = map

    def __enter__(self) -> Self:
        if self._scheduler is not None:
            with ExitStack() as opened:  # closed again unless all of it works
                self._submit = _dask(self._scheduler, opened)
                self._open = opened.pop_all()
        elif self._workers > 1:
            # Spawned, not forked: this process may have threads.
            pool = ProcessPoolExecutor(self._workers, multiprocessing.get_context("spawn"))
            self._open.callback(pool.shutdown, cancel_futures=True)
            self._submit = _in_processes(pool)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()
        self._submit = map

    def map(
        self,
        function: Callable[[Point, np.random.Generator], Answer],
        points: Sequence[Point],
        *,
        seed: int | Sequence[int],
        label: str = "",
    ) -> list[Answer]:
        """Do it at every point, and give the answers in the order of the points."""
        seeds = np.random.SeedSequence(seed).spawn(len(points))
        answers = self._submit(_do, [function] * len(points), points, seeds)
        done = []
        with showing(len(points), label) as advance:
            for answer in answers:
                done.append(answer)
                advance()
        return done


def _do(function: Callable[[Point, np.random.Generator], Answer], point: Point, seed: np.random.SeedSequence) -> Answer:
    return function(point, np.random.default_rng(seed))


def _in_processes(pool: ProcessPoolExecutor) -> Callable[..., Iterator[Any]]:
    def submit(*columns: Any) -> Iterator[Any]:
        try:
            yield from pool.map(*columns)
        except BrokenProcessPool:
            raise ClusterError(
                "workers: a process was ended from outside, perhaps for want of memory; allowed: fewer --workers"
            ) from None

    return submit


def _dask(scheduler: str, opened: ExitStack) -> Callable[..., Iterator[Any]]:
    try:
        import distributed  # noqa: PLC0415  (of an extra, and slow)
    except ModuleNotFoundError as error:
        missing = f'scheduler: needs {error.name}, which is not installed: pip install "hubbub[cluster]"'
        raise ClusterError(missing) from None
    _knock(scheduler)
    try:
        client = distributed.Client(  # type: ignore[no-untyped-call]
            scheduler, timeout=CONNECT_SECONDS, set_as_default=False
        )
    except OSError as error:
        raise _unreachable(scheduler, str(error)) from None
    opened.callback(client.close)
    # It would log a traceback when it is lost; we say that in one line.
    own_log = logging.getLogger("distributed.client")
    opened.callback(own_log.setLevel, own_log.level)
    own_log.setLevel(logging.CRITICAL)

    try:
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError:
        raise ClusterError(
            f"scheduler {scheduler}: has had no worker for {WORKER_SECONDS} s; allowed: one at least"
        ) from None

    def submit(*columns: Any) -> Iterator[Any]:
        futures = client.map(*columns, pure=False)
        try:
            for future in futures:
                yield future.result()
        except (OSError, distributed.client.FutureCancelledError, distributed.KilledWorker) as error:
            raise ClusterError(
                f"scheduler {scheduler}: was lost, or its workers were ({type(error).__name__}); "
                "allowed: a cluster that stays up; nothing was written"
            ) from None
        except RuntimeError as error:
            if "deserialization of the task graph" not in str(error):
                raise
            raise ClusterError(
                f"scheduler {scheduler}: cannot import what it is to do; allowed: a cluster on which this very version "
                "of hubbub is installed"
            ) from None

    return submit


def _knock(scheduler: str) -> None:
    """See whether anybody is there: Dask itself would go on trying for a while, and leave a thread behind."""
    try:
        address = urlsplit(scheduler)
        host, port = address.hostname, address.port
    except ValueError:
        host, port = None, None
    if not host or not port or address.scheme not in {"tcp", "tls"}:
        raise _unreachable(scheduler, "is not an address")
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError as error:
        raise _unreachable(scheduler, str(error.strerror or error)) from None


def _unreachable(scheduler: str, fault: str) -> ClusterError:
    return ClusterError(
        f"scheduler {scheduler}: cannot be reached: {fault}; "
        "allowed: the address of a running Dask scheduler, as tcp://HOST:8786"
    )
