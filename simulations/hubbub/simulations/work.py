"""Work that spreads: over the processes of this machine, or over a Dask cluster.

Every point of the work draws from a generator of its own, seeded by the seed and the point's number alone. So the
results are the same whatever the number of workers, and wherever they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from hubbub.collector.progress import showing
from hubbub.collector.work import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

Point = TypeVar("Point")
Answer = TypeVar("Answer")


class Work:
    """Someone to do it: this process alone, several processes, or the workers of a Dask scheduler.

    Use it in a `with` statement. `function(point, rng)` has to be a function of a module, so that others can import it.
    """

    def __init__(self, workers: int = 1, scheduler: str | None = None) -> None:
        self._workers = Workers(workers, scheduler)

    def __enter__(self) -> Self:
        self._workers.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._workers.__exit__(kind, error, traceback)

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
        done = []
        with showing(len(points), label) as advance:
            for answer in self._workers.map(_do, [function] * len(points), points, seeds):
                done.append(answer)
                advance()
        return done


def _do(function: Callable[[Point, np.random.Generator], Answer], point: Point, seed: np.random.SeedSequence) -> Answer:
    return function(point, np.random.default_rng(seed))
