"""Archives of reports that honest devices might have sent, drawn on arrays with a fixed seed."""

import os
import secrets
import signal
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hubbub.collector.archive.aggregate import Counted, How, Piece, count
from hubbub.collector.archive.file import FileHead, Reports, encode_file
from hubbub.collector.archive.place import Place
from hubbub.shared import Metric, Registry
from hubbub.shared.bernoulli import ONE
from shared.registries import EXAMPLE

DAYS = [date(2026, 11, 16), date(2026, 11, 17), date(2026, 11, 18)]
REGISTRY = Registry.parse(EXAMPLE)

VALUES: dict[str, list[object]] = {
    "string": ["example.org", "example.com", "example.net"],
    "category": ["light", "dark"],
    "flag": [True, False],
    "mean": [30, 700],
    "histogram": [50, 3000, 50000],
}


def draw(metric: Metric, reports: int, rng: np.random.Generator) -> Reports:
    """Reports of so many devices, which share three values."""
    values = VALUES[metric.kind]
    cohorts = rng.integers(0, metric.encoding.cohorts, reports)
    chosen = rng.integers(0, len(values), reports)
    encoded = [
        [metric.encode(value, cohort, 0).to_bytes(metric.width, "little") for value in values]
        for cohort in range(metric.encoding.cohorts)
    ]
    truth = np.frombuffer(b"".join(b"".join(row) for row in encoded), np.uint8).reshape(-1, len(values), metric.width)
    bits = np.unpackbits(truth[cohorts, chosen], axis=1, count=metric.size, bitorder="little")
    response = metric.response
    for set_, clear in ((response.p1, response.q1), (response.p2, response.q2)):
        bits = (rng.integers(0, ONE, bits.shape) < np.where(bits, set_, clear)).astype(np.uint8)
    return Reports(cohorts.astype(np.uint32), np.packbits(bits, axis=1, bitorder="little"))


def put(address: str | Path, metric: Metric, period: date, reports: Reports, group: int = 1 << 20) -> str:
    """Write one file of an archive, and give its name."""
    head = FileHead.of(metric, period, len(reports.cohorts))
    name = f"{head.folder}/{secrets.token_hex(8)}.parquet"
    Place(str(address)).write(name, encode_file(name, head, *reports, group=group))
    return name


def fill(
    address: str | Path, name: str = "homepage", files: int = 2, reports: int = 300, group: int = 1 << 20
) -> dict[date, Reports]:
    """Write files for each of three days, and give the reports of each day."""
    rng = np.random.default_rng(8)
    metric = REGISTRY[name]
    kept: dict[date, Reports] = {}
    for day in DAYS:
        drawn = [draw(metric, reports + 7 * number, rng) for number in range(files)]
        for each in drawn:
            put(address, metric, day, each, group)
        kept[day] = joined(drawn)
    return kept


def joined(parts: list[Reports]) -> Reports:
    return Reports(np.concatenate([part.cohorts for part in parts]), np.concatenate([part.packed for part in parts]))


def counted(metric: Metric, reports: Reports) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many reports each cohort has, and how often each bit is set: one by one, as a reader would."""
    n = np.zeros(metric.encoding.cohorts, np.int64)
    counts = np.zeros((metric.encoding.cohorts, metric.size), np.int64)
    for cohort, packed in zip(reports.cohorts, reports.packed, strict=True):
        n[cohort] += 1
        counts[cohort] += np.unpackbits(packed, count=metric.size, bitorder="little")
    return n, counts


def die_at_the_end(place: Place, pieces: Sequence[Piece], how: How) -> Counted:
    """Count, as a worker would that is killed while it counts the last day."""
    if pieces[-1].head.period == DAYS[-1]:
        os.kill(os.getpid(), signal.SIGKILL)
    return count(place, pieces, how)


def kill_once(place: Place, pieces: Sequence[Piece], how: How) -> Counted:
    """Count, but the first time the last day is met, end the process whose number is beside the archive; 0: this."""
    number = Path(place.address).parent / "kill"
    if pieces[-1].head.period == DAYS[-1]:
        try:
            victim = int(number.read_text())
            number.unlink()
        except FileNotFoundError:
            return count(place, pieces, how)
        os.kill(victim or os.getpid(), signal.SIGKILL)
    return count(place, pieces, how)
