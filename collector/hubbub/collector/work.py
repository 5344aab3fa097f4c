"""Workers: this process alone, several processes of this machine, or those of a Dask cluster."""

from __future__ import annotations

import importlib.metadata
import logging
import multiprocessing
import socket
from collections import deque
from concurrent.futures import CancelledError, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from hubbub.collector.errors import ClusterError
from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Self

Answer = TypeVar("Answer")

CONNECT_SECONDS = 10
"""How long a scheduler is waited for."""

WORKER_SECONDS = 30
"""How long its first worker is."""

FETCH_SECONDS = 1
"""How often answers are fetched from a cluster, until all are there: fetching one costs it as much as a task does."""

OWN_SETTINGS = {
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.worker-saturation": 1.0,
}
"""For a cluster of our own. Dask looks at itself up to a hundred times a second, for a page that nobody can open; and
it hands a busy worker one task more, which another could have begun."""


class Workers:
    """Someone to do the work; use it in a `with` statement.

    A Dask cluster does again elsewhere what a worker was doing when it was lost. A process of this machine that is
    ended from outside ends the work with an error: more often than not it was for want of memory, and would be again.
    """

    def __init__(self, number: int = 1, scheduler: str | None = None) -> None:
        if number < 1:
            raise ParameterError(f"workers: {number} is none; allowed: 1 and above")
        self.number = number
        """How many things are done at a time; of a cluster, when it was asked."""
        self._scheduler = scheduler
        self._open = ExitStack()
        self._submit: Callable[..., Iterable[Any]] = map

    def __enter__(self) -> Self:
        if self._scheduler is not None:
            with ExitStack() as opened:  # closed again unless all of it works
                self.number, self._submit = _dask(self._scheduler, opened)
                self._open = opened.pop_all()
        elif self.number > 1:
            # Spawned, not forked: this process may have threads.
            pool = ProcessPoolExecutor(self.number, multiprocessing.get_context("spawn"))
            self._open.callback(pool.shutdown, cancel_futures=True)
            self._submit = _in_processes(pool)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()
        self._submit = map

    @property
    def alone(self) -> bool:
        """Whether this process does all of it: there is nobody to share with, and nobody can be lost."""
        return self._submit is map

    def map(self, function: Callable[..., Answer], *columns: Sequence[Any]) -> Iterator[Answer]:
        """Do it for each row of the columns, and give the answers in that order, as they come.

        `function` has to be a function of a module, so that others can import it.
        """
        yield from self._submit(function, *columns)


@contextmanager
def own_cluster(number: int) -> Iterator[str]:
    """Start a Dask cluster on this machine, and give the address of its scheduler; it ends with the `with`."""
    distributed = _distributed()
    import dask  # noqa: PLC0415  (comes with it)

    with (
        dask.config.set(OWN_SETTINGS),
        distributed.LocalCluster(
            n_workers=number,
            threads_per_worker=1,
            memory_limit=0,  # it would be measured ten times a second; what is read at a time is small
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # it listens even without one, and at 8787 another cluster may be at home
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        yield cluster.scheduler_address


@cache
def own_version() -> str:
    """Tell which hubbub this process has."""
    return importlib.metadata.version("hubbub")


def do_as(function: Callable[..., Answer], version: str, *row: Any) -> Answer:
    """Do it with this very version of hubbub: a worker may have joined after all others were asked for theirs."""
    if own_version() != version:
        raise ClusterError(
            f"worker {socket.gethostname()}: has another hubbub: version {own_version()}; allowed: {version} on all of "
            "them; nothing was written"
        )
    return function(*row)


def _in_processes(pool: ProcessPoolExecutor) -> Callable[..., Iterator[Any]]:
    def submit(*columns: Any) -> Iterator[Any]:
        try:
            yield from pool.map(*columns)
        except BrokenProcessPool:
            raise ClusterError(
                "workers: a process was ended from outside, perhaps for want of memory; allowed: fewer --workers"
            ) from None

    return submit


def _dask(scheduler: str, opened: ExitStack) -> tuple[int, Callable[..., Iterator[Any]]]:
    distributed = _distributed()
    _knock(scheduler)
    try:
        client = distributed.Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
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
    _check_versions(scheduler, client)
    number = max(sum(client.nthreads().values()), 1)

    def submit(function: Callable[..., Any], *columns: Any) -> Iterator[Any]:
        try:
            asked = [function] * len(columns[0]), [own_version()] * len(columns[0])
            futures = deque(client.map(do_as, *asked, *columns, pure=False))
            while futures:
                with suppress(TimeoutError), client.as_current():
                    distributed.wait([*futures], FETCH_SECONDS)
                # All that is there is fetched at once, and then the cluster need not keep it any longer.
                done: list[Any] = []
                while futures and futures[0].done() and not (done and done[-1].status == "error"):
                    done.append(futures.popleft())  # up to the first error: of several, that one is told
                yield from client.gather(done)
        except (OSError, CancelledError, distributed.KilledWorker) as error:
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

    return number, submit


def _distributed() -> Any:
    try:
        import distributed  # noqa: PLC0415  (of an extra, and slow)
    except ModuleNotFoundError as error:
        missing = f'dask: needs {error.name}, which is not installed: pip install "hubbub[cluster]"'
        raise ClusterError(missing) from None
    return distributed


def _check_versions(scheduler: str, client: Any) -> None:
    """Ask every worker which hubbub it has: another might count otherwise, and nobody would see it."""
    own = own_version()
    try:
        told = client.run(importlib.metadata.version, "hubbub", on_error="return")
    except OSError as error:
        raise _unreachable(scheduler, str(error)) from None
    for worker, version in told.items():
        if version != own:
            found = f"version {version}" if isinstance(version, str) else "none"
            raise ClusterError(
                f"scheduler {scheduler}: worker {worker} has another hubbub: {found}; allowed: {own} on all of them"
            )


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
