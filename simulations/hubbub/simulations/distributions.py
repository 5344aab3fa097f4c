"""How values are spread over a population: the usual shapes, and a user's own CSV."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from hubbub.shared.errors import ParameterError

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

    Shares = NDArray[np.float64]

DISTRIBUTIONS = ("uniform", "gauss", "normal", "exponential", "zipf", "zipf1.5")
"""Over ranks: of strings, of categories, or of places between the lowest and the highest number."""

MAX_COUNT = 2**63 - 1


def shares(name: str, number: int) -> Shares:
    """Spread a population over so many values.

    `normal` is normal(50, 10) where there are a hundred; the other shapes are those of google/rappor's regression test.
    """
    if number < 1:
        raise ParameterError(f"distribution {name}: {number} values are none; allowed: 1 and above")
    rank = np.arange(1, number + 1)
    if name == "uniform":
        weights = np.ones(number)
    elif name == "gauss":
        weights = np.exp(-(((rank - number / 2) / (number / 6)) ** 2) / 2)
    elif name == "normal":
        weights = normal_shares(number / 2, number / 10, number)
    elif name == "exponential":
        weights = np.exp(-rank / (number / 5))
    elif name == "zipf":
        weights = 1 / rank
    elif name == "zipf1.5":
        weights = 1 / rank**1.5
    else:
        raise ParameterError(f'distribution: "{name}" is none; allowed: {", ".join(DISTRIBUTIONS)}, or a CSV file')
    return np.asarray(weights / weights.sum(), np.float64)


def normal_shares(mean: float = 50.0, deviation: float = 10.0, values: int = 100) -> Shares:
    """Spread it over the whole numbers from 0 on as a normal distribution rounded to them; RAPPOR's own example."""
    edges = (np.arange(values + 1) - 0.5 - mean) / deviation
    inside = np.diff(ndtr(edges))
    return np.asarray(inside / inside.sum(), np.float64)


def counts_of(spread: Shares, devices: int) -> NDArray[np.int64]:
    """Give every value its whole number of devices; they sum to `devices`, the largest remainders get what is left."""
    exact = spread * devices
    counts = np.floor(exact).astype(np.int64)
    left = devices - int(counts.sum())
    counts[np.argsort(counts - exact, kind="stable")[:left]] += 1
    return counts


def read_truth(path: str | PathLike[str]) -> dict[str, int]:
    """Read a CSV of value,count, with that line as its head."""
    truth: dict[str, int] = {}
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as stream:
            lines = csv.reader(stream, strict=True)
            head = next(lines, None)
            if head is None or [cell.strip() for cell in head] != ["value", "count"]:
                raise ParameterError(f"{path}: line 1: is not the head; allowed: value,count")
            for line in lines:
                if line:
                    _take(truth, line, f"{path}: line {lines.line_num}")
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read: {error.strerror}; allowed: a CSV of value,count") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ParameterError(f"{path}: is not a CSV in UTF-8: {error}; allowed: a CSV of value,count") from None
    if sum(truth.values()) > MAX_COUNT:
        raise ParameterError(f"{path}: the counts do not sum up to a number of devices; allowed: up to 2**63 - 1")
    if not any(truth.values()):
        raise ParameterError(f"{path}: holds no device; allowed: at least one count above 0")
    return truth


def _take(truth: dict[str, int], line: list[str], place: str) -> None:
    if len(line) != 2:
        raise ParameterError(f"{place}: has {len(line)} cells; allowed: a value and a count")
    value, text = line
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise ParameterError(f"{place}: the count is not a whole number from 0 on; allowed: how many devices hold it")
    if value in truth:
        raise ParameterError(f"{place}: the value was there before; allowed: each value once")
    truth[value] = number
