"""What the response of least variance finds beside RAPPOR's own parameters, at equal epsilons."""

import os
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from benchmarks import writing
from hubbub.collector.decode import decode
from hubbub.shared import Registry
from hubbub.simulations import simulate_tally

TRIALS = 2 if os.environ.get("HUBBUB_BENCH_QUICK") else 60
PAGE = "docs/comparison.md"
WAYS = {
    "RAPPOR's f = 1/2, p = 1/2, q = 3/4, two hashes": ("{ f = 0.5, p = 0.5, q = 0.75 }", 2),
    "least variance, two hashes": ("{ report = 1.0743, lifetime = 4.3944 }", 2),
    "least variance, one hash": ("{ report = 1.0743, lifetime = 4.3944 }", 1),
}


def found(privacy: str, hashes: int, seed: int) -> int:
    """Strings found among 1,000 that follow Zipf's law, by a million reports; their bits are new in every trial."""
    text = f"""
        [metrics.it]
        description = "a string"
        kind = "string"
        every = "day"
        bits = 128
        hashes = {hashes}
        cohorts = 64
        lifetime_values = "unlimited"
        privacy = {privacy}
    """
    metric = Registry.parse(text)["it"]
    names = [f"trial {seed}, string {rank}" for rank in range(1, 1001)]
    shares = 1 / np.arange(1, 1001)
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(10**6, shares / shares.sum())
    tally = simulate_tally(metric, dict(zip(names, counts.tolist(), strict=True)), rng)
    return len(decode(metric, tally, candidates=names).detected)


def main() -> None:
    with ProcessPoolExecutor() as pool:
        numbers = {
            name: np.array(list(pool.map(found, [privacy] * TRIALS, [hashes] * TRIALS, range(TRIALS))))
            for name, (privacy, hashes) in WAYS.items()
        }
    first = next(iter(numbers.values()))
    rows = [[name, *told(each), *compared(each, first)] for name, each in numbers.items()]
    text = writing.table(["", "strings found", "± 95 %", "times RAPPOR's", "± 95 %"], rows)
    text += (
        f"\n\n1,000 strings after Zipf's law, 10^6 reports, epsilon 1.07 a report, 4.39 a lifetime; {TRIALS} trials."
    )
    print(text)
    if writing.wanted():
        writing.write_section(PAGE, "response", text)


def told(numbers: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[str]:
    return [f"{numbers.mean():.1f}", f"{1.96 * numbers.std(ddof=1) / np.sqrt(len(numbers)):.1f}"]


def compared(
    numbers: np.ndarray[tuple[int], np.dtype[np.int64]], first: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> list[str]:
    """The ratio of two means, with the error that the errors of both give it; trials share their populations."""
    if numbers is first:
        return ["1", ""]
    ratio = numbers.mean() / first.mean()
    error = (numbers - ratio * first).std(ddof=1) / first.mean() / np.sqrt(len(first))
    return [f"{ratio:.2f}", f"{1.96 * error:.2f}"]
