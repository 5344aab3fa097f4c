"""Small pieces of work, in a module that other processes can import."""

import os
import signal

import numpy as np


def draw(point: int, rng: np.random.Generator) -> tuple[int, int]:
    return point, int(rng.integers(1 << 60))


def kill(point: int, rng: np.random.Generator) -> None:
    """End the process of that number, if it has one."""
    if point:
        os.kill(point, signal.SIGKILL)


def fail(point: int, rng: np.random.Generator) -> None:
    raise ArithmeticError(f"point {point} has no answer")


def end(point: int, rng: np.random.Generator) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
