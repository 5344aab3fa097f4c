"""Work gives the same results whoever does it, and says plainly when there is nobody."""

import socket
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import distributed
import numpy as np
import pytest

from clusters import cluster
from hubbub.shared.errors import ParameterError
from hubbub.simulations.errors import ClusterError
from hubbub.simulations.work import Work
from simulations.drawing import draw, end, fail, kill

POINTS = [3, 5, 8, 13]


def nowhere() -> Callable[[int, np.random.Generator], int]:
    """A function of a module that the cluster does not have."""
    module = ModuleType("of_another_version")
    exec("def work(point, rng): return point", module.__dict__)
    sys.modules[module.__name__] = module
    found: Callable[[int, np.random.Generator], int] = module.work
    return found


def test_same_seed_same_result_on_any_number_of_processes() -> None:
    alone = Work().map(draw, POINTS, seed=7)
    with Work(2) as work:
        assert work.map(draw, POINTS, seed=7) == alone
    assert [point for point, _ in alone] == POINTS
    assert len({number for _, number in alone}) == len(POINTS)
    assert Work().map(draw, POINTS, seed=8) != alone
    assert Work().map(draw, POINTS[:2], seed=7) == alone[:2]


def test_a_process_that_is_ended_is_told() -> None:
    with Work(2) as work, pytest.raises(ClusterError, match="a process was ended from outside"):
        work.map(end, POINTS, seed=7)


def test_and_on_a_cluster_whose_loss_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[list[bool]] = []

    def wait(futures: list[Any], timeout: float) -> None:
        really_wait(futures, timeout)  # an error if the time is over
        waited.append([future.done() for future in futures])

    really_wait: Any = distributed.wait
    monkeypatch.setattr(distributed, "wait", wait)
    monkeypatch.setattr("hubbub.collector.work.FETCH_SECONDS", 60)
    with cluster(2) as dask:
        with Work(scheduler=dask.address) as work:
            assert work.map(draw, POINTS, seed=7) == Work().map(draw, POINTS, seed=7)
            assert waited == [[True] * len(POINTS)]  # waited for all of them, not asked again and again
            with pytest.raises(ArithmeticError, match="point 3 has no answer"):
                work.map(fail, POINTS, seed=7)
            with pytest.raises(ClusterError, match=r"this very version of hubbub is installed"):
                work.map(nowhere(), POINTS, seed=7)
        with Work(scheduler=dask.address) as work, pytest.raises(ClusterError, match=r"was lost.*nothing was written"):
            work.map(kill, [dask.scheduler, *[0] * 50], seed=7)


def test_a_scheduler_without_workers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hubbub.collector.work.WORKER_SECONDS", 0.1)
    with cluster(0) as dask, pytest.raises(ClusterError, match=r"has had no worker for 0.1 s; allowed: one"):
        Work(scheduler=dask.address).__enter__()


@pytest.mark.parametrize(
    "address", ["", "nonsense", "tcp://", "tcp://127.0.0.1", "http://127.0.0.1:1", "tcp://h:99999"]
)
def test_what_is_no_scheduler_is_told(address: str) -> None:
    with pytest.raises(ClusterError, match=r"^scheduler .*: is not an address; allowed: .*tcp://HOST:8786"):
        Work(scheduler=address).__enter__()


def test_a_dead_scheduler_is_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        address = f"tcp://127.0.0.1:{gone.getsockname()[1]}"
    with pytest.raises(ClusterError, match=r"cannot be reached: Connection refused; allowed: "):
        Work(scheduler=address).__enter__()


def test_without_dask_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r'pip install "hubbub\[cluster\]"'):
        Work(scheduler="tcp://127.0.0.1:8786").__enter__()


def test_nobody_cannot_work() -> None:
    with pytest.raises(ParameterError, match="workers: 0 is none; allowed: 1 and above"):
        Work(0)
