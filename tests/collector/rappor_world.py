"""Files of google/rappor, drawn with fixed seeds from a population that is known."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hubbub.collector.decode.google_files import Parameters


@dataclass(frozen=True)
class World:
    """Files of google/rappor, and the truth behind them."""

    folder: Path
    shares: dict[str, float]
    map_: list[list[int]]
    strings: list[str]

    @property
    def arguments(self) -> tuple[object, ...]:
        return "--params", self.folder / "p.csv", "--counts", self.folder / "c.csv", "--map", self.folder / "m.csv"

    def rewrite(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path


def lines(rows: list[list[object]], end: str = "\n") -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator=end).writerows(rows)
    return text.getvalue()


def simulate(
    folder: Path,
    shares: dict[str, float],
    absent: int = 40,
    reports: int = 2_000_000,
    known: Parameters | None = None,
    seed: int = 1,
    empty: tuple[int, ...] = (),
) -> World:
    """Draw a random map and the counts of so many reports, bit for bit as RAPPOR's clients would make them."""
    known = known or Parameters(64, 2, 16, 0.5, 0.75, 0.5)
    k, h, m = known.k, known.h, known.m
    rng = np.random.default_rng(seed)
    strings = [*shares, *(f"absent{number}" for number in range(absent))]
    bits = rng.integers(0, k, (len(strings), m, h))
    numbers = rng.multinomial(reports, np.full(m, 1 / m))
    numbers[list(empty)] = 0
    truth = (1 - known.f / 2) * known.q + known.f / 2 * known.p
    lie = (1 - known.f / 2) * known.p + known.f / 2 * known.q
    counts: list[list[object]] = []
    for cohort in range(m):
        holding = np.zeros(k, np.int64)
        for string, number in enumerate(rng.multinomial(numbers[cohort], list(shares.values()))):
            holding[np.unique(bits[string, cohort])] += number
        ones = rng.binomial(holding, truth) + rng.binomial(numbers[cohort] - holding, lie)
        counts.append([int(numbers[cohort]), *ones.tolist()])
    indices = (bits + k * np.arange(m)[:, None] + 1).reshape(len(strings), m * h).tolist()
    world = World(folder, shares, indices, strings)
    world.rewrite("p.csv", f"k,h,m,p,q,f\n{k},{h},{m},{known.p!r},{known.q!r},{known.f!r}\n")
    world.rewrite("c.csv", lines(counts))
    world.rewrite("m.csv", lines([[string, *row] for string, row in zip(strings, indices, strict=True)]))
    return world
