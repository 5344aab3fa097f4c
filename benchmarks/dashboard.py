"""The dashboard: how fast its pages are, and what looking at it costs ingest: `python -m benchmarks dashboard`.

The collector has the demo's registry, and a store that the demo's crowd has filled. HUBBUB_BENCH_QUICK=1 has a smaller
crowd and measures for a shorter time. `python -m benchmarks.dashboard` is the viewer, in a process of its own as
a browser would be: it reads lines of URL, RATE and SECONDS, and tells what it saw.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import requests

from benchmarks import load, writing
from benchmarks.servers import HUBBUB, RIVAL, Server, running
from hubbub.collector.store import Store
from hubbub.shared import Registry
from hubbub.simulations.demo.crowd import CANDIDATES, DAYS, gather

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Self

    from benchmarks.load import Answered

QUICK = bool(os.environ.get("HUBBUB_BENCH_QUICK"))
DEVICES = 20_000 if QUICK else 200_000
ASKED = 20 if QUICK else 100
"""Times that each page is asked for."""

CONCURRENCY = 16
ROUNDS, SECONDS = (2, 2) if QUICK else (6, 4)
VIEWS = 5.0
"""Pages a second that the viewer asks for, each with its two charts."""

TABS = 4
"""Pages that it waits for at one moment: those of strings may take long, and others need not wait for them."""

WANTED_MS = 300
WARM_SECONDS = IDLE_SECONDS = 120
"""After these, something hangs."""

IDLE = 0.05
"""Of one core: a collector that uses less has nothing left to decode or to draw."""

DISK = Path("/var/tmp")
"""For files that outlive a restart; /tmp is often in memory, where syncing is free."""

PAGE = "docs/operator.md"
NOBODY, DASHBOARD, ELSEWHERE = "nobody looks", "viewer at the dashboard", "viewer at another server"
CASES = (NOBODY, ELSEWHERE, DASHBOARD)
QUANTITIES: dict[str, Callable[[Answered], float]] = {
    "batches a second": lambda each: each.rate,
    "p50": lambda each: each.p50,
    "p99": lambda each: each.p99,
}


@dataclass(frozen=True)
class Viewed:
    """What the viewer has seen."""

    rate: float
    """Pages a second."""
    answers: dict[str, int]
    """How many, by status."""
    p50: float
    """Seconds for a page without its charts."""


@dataclass(frozen=True)
class Round:
    """What wrk has seen in each case, and what the viewer of the dashboard has."""

    answered: dict[str, Answered]
    viewed: Viewed


class Viewer:
    """The process that looks; started once, because loading Python is no part of looking."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "benchmarks.dashboard"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=writing.ROOT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def tell(self, line: str) -> None:
        """Have it look."""
        assert self._process.stdin is not None
        print(line, file=self._process.stdin, flush=True)

    def hear(self) -> Viewed:
        """Wait for what it has seen."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the viewer failed, and told why above")
        return Viewed(**json.loads(line))


def main() -> None:
    """Print the tables, and write them where that was asked for."""
    write = writing.wanted()
    if load.WRK is None:
        print("\nThe dashboard: not measured, because wrk is not installed; it is a package of Debian")
        return
    before = os.getloadavg()[0]
    registry = Registry.parse(_demo())
    with tempfile.TemporaryDirectory(dir=DISK if DISK.is_dir() else None) as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        (folder / "metrics.toml").write_text(_demo())
        store = f"sqlite:///{folder}/dashboard.db"
        _fill(store, registry)
        settings = {"store": store, "registry": folder / "metrics.toml"}
        collector = stack.enter_context(running("hubbub serve", folder, HUBBUB, "/readyz", **settings))
        other = stack.enter_context(running("another", folder, [*RIVAL, "bare", "{port}", "1"], "/v1/batches"))
        viewer = stack.enter_context(Viewer())
        _upload(collector)
        for metric in registry:
            _warm(collector, f"/metric/{metric}")
        pages = _pages(collector, registry)
        rounds = [_take_turns(viewer, collector, other) for _ in range(ROUNDS)]
    told = _told(pages, rounds, before)
    print(f"\n{told}")
    if write:
        writing.write_section(PAGE, "dashboard", told)


def view(url: str, rate: float, seconds: float) -> Viewed:
    """Look at one metric after the other; every second page asks for another confidence, so that all is made anew."""
    names = list(Registry.parse(_demo()))
    answers: Counter[str] = Counter()
    times: list[float] = []

    def look(number: int) -> None:
        query = f"?confidence={random.uniform(0.8, 0.99):.6f}" if number % 2 else ""
        page = f"{url}/metric/{names[number % len(names)]}"
        asked = time.monotonic()
        status = browser.get(page + query, timeout=60).status_code
        times.append(time.monotonic() - asked)
        answers[str(status)] += 1
        if status == requests.codes.ok:  # a page that says to wait has no charts
            for chart in ("chart.svg", "history.svg"):
                answers[str(browser.get(f"{page}/{chart}{query}", timeout=60).status_code)] += 1

    with requests.Session() as browser, ThreadPoolExecutor(TABS) as tabs:
        browser.headers["Accept"] = "text/html"
        begin = time.monotonic()
        looks = []
        for number in range(round(rate * seconds)):
            time.sleep(max(begin + number / rate - time.monotonic(), 0))
            looks.append(tabs.submit(look, number))
        time.sleep(max(begin + seconds - time.monotonic(), 0))
        looks = [each for each in looks if not each.cancel()]  # those that all tabs were too busy for
        for each in looks:
            each.result()
    return Viewed(len(times) / seconds, dict(answers), median(times))


def _demo() -> str:
    return files("hubbub.simulations").joinpath("demo.toml").read_text("utf-8")


def _fill(address: str, registry: Registry) -> None:
    """Put what the demo's crowd has sent into a store."""
    crowd = gather(registry, DEVICES, 0, 1, datetime.now(UTC).date())
    store = Store(address)
    try:
        store.prepare(registry)
        store.add(tally for told in crowd.metrics.values() for tally in told.tallies)
    finally:
        store.close()


def _upload(server: Server) -> None:
    lines = "".join(f"{each}\n" for each in CANDIDATES)
    address = f"{server.url}/v1/metrics/homepage/candidates"
    requests.put(address, lines.encode(), headers={"Content-Type": "text/plain"}, timeout=30).raise_for_status()


def _warm(server: Server, path: str) -> None:
    """Ask until a page and its charts are there."""
    deadline = time.monotonic() + WARM_SECONDS
    for each in (path, f"{path}/chart.svg", f"{path}/history.svg"):
        while (answer := _get(server, each)).status_code != requests.codes.ok:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{each} is not there after {WARM_SECONDS} s: {answer.status_code} {answer.text}")
            time.sleep(0.1)


def _get(server: Server, path: str) -> requests.Response:
    return requests.get(server.url + path, headers={"Accept": "text/html"}, timeout=60)


def _pages(server: Server, registry: Registry) -> dict[str, list[float]]:
    """Milliseconds of each page, in order, once warm."""
    paths = {"`/`": "/"}
    for name, metric in registry.items():
        paths[f"`/metric/{name}` ({metric.kind})"] = f"/metric/{name}"
        paths[f"`/metric/{name}/chart.svg`"] = f"/metric/{name}/chart.svg"
    _settle(server)
    found: dict[str, list[float]] = {}
    with requests.Session() as browser:
        browser.headers["Accept"] = "text/html"
        for shown, path in paths.items():
            times = []
            for _ in range(ASKED):
                begin = time.perf_counter()
                answer = browser.get(server.url + path, timeout=60)
                times.append((time.perf_counter() - begin) * 1e3)
                if answer.status_code != requests.codes.ok:
                    raise RuntimeError(f"{path} is warm, and was answered with {answer.status_code}")
            found[shown] = sorted(times)
    return found


def _take_turns(viewer: Viewer, collector: Server, other: Server) -> Round:
    alone, _ = _measure(viewer, collector)
    looking, viewed = _measure(viewer, collector, collector, VIEWS)
    assert viewed is not None
    # As often as the dashboard let it: where pages take long, that is less than was wanted.
    elsewhere, _ = _measure(viewer, collector, other, viewed.rate)
    return Round({NOBODY: alone, DASHBOARD: looking, ELSEWHERE: elsewhere}, viewed)


def _measure(
    viewer: Viewer, collector: Server, seen: Server | None = None, rate: float = 0.0
) -> tuple[Answered, Viewed | None]:
    """Have wrk post batches while a viewer looks at a server, or while nobody does."""
    _settle(collector)
    if seen is not None:
        viewer.tell(f"{seen.url} {rate} {SECONDS}")
    answered = load.end(load.begin(collector.url, CONCURRENCY, SECONDS))
    return answered, None if seen is None else viewer.hear()


def _settle(server: Server) -> None:
    """Wait until a collector has made what pages were asked for before, or it would be counted with what comes next."""
    deadline = time.monotonic() + IDLE_SECONDS
    before = _cpu_seconds(server)
    while time.monotonic() < deadline:
        time.sleep(0.5)
        before, last = (now := _cpu_seconds(server)), before
        if now - last < IDLE * 0.5:
            return
    raise RuntimeError(f"{server.name} is still at work after {IDLE_SECONDS} s without a request")


def _cpu_seconds(server: Server) -> float:
    """Of all its processes that run."""
    ticks = 0
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdecimal() and os.getpgid(int(folder.name)) == server.process.pid:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _told(pages: Mapping[str, list[float]], rounds: Sequence[Round], busy: float) -> str:
    cores = os.cpu_count()
    viewed = [each.viewed for each in rounds]
    answers: Counter[str] = sum((Counter(each.answers) for each in viewed), Counter())
    statuses = ", ".join(f"{status} {number:,} times" for status, number in sorted(answers.items()))
    return (
        f"Python {platform.python_version()}, {platform.machine()}, {cores} cores; the load average was {busy:.1f} "
        f"before it began. The demo's registry and\n{DEVICES:,} simulated devices over {DAYS} days. Each page was "
        f"asked for {ASKED} times once it was warm, one after the other:\n\n"
        + writing.table(["page", "median ms", "p99 ms", "wanted"], [_page_row(*each) for each in pages.items()])
        + f"\n\nIngest by wrk, {CONCURRENCY} batches at a time, as fast as they are answered; {ROUNDS} rounds of "
        f"{SECONDS} s for each case, in turn. The viewer\nis one process that wants {VIEWS:g} pages a second, of one "
        "metric after the other, each with two charts. Every second\npage has another confidence, so that all is "
        f"decoded and drawn anew. It got {_range([each.rate for each in viewed], '.1f')} pages a second, a page\n"
        f"in {_range([each.p50 * 1e3 for each in viewed], '.0f')} ms at the median of a round, and these answers: "
        f"{statuses}. The other server\nanswers with two bytes, and is asked for as many pages: that is what a viewer "
        f"costs by being on the same machine.\nSender, viewer and collector share the {cores} cores. Medians over the "
        "rounds:\n\n"
        + writing.table(["", "batches a second", "p50 ms", "p99 ms"], [_medians(case, rounds) for case in CASES])
        + "\n\nRatios within each round: the median, and the range over the rounds. The last line is nothing but noise:"
        "\n\n" + writing.table(["", *QUANTITIES], list(_ratios(rounds)))
    )


def _page_row(shown: str, times: Sequence[float]) -> list[str]:
    p99 = times[min(round(len(times) * 0.99), len(times) - 1)]
    return [shown, f"{median(times):.1f}", f"{p99:.1f}", f"< {WANTED_MS}"]


def _medians(case: str, rounds: Sequence[Round]) -> list[str]:
    found = [each.answered[case] for each in rounds]
    rate, p50, p99 = (median(quantity(each) for each in found) for quantity in QUANTITIES.values())
    return [case, f"{rate:,.0f}", f"{p50 * 1e3:.2f}", f"{p99 * 1e3:.2f}"]


def _ratios(rounds: Sequence[Round]) -> Iterable[list[str]]:
    for case, beside in ((DASHBOARD, NOBODY), (DASHBOARD, ELSEWHERE), (ELSEWHERE, NOBODY)):
        yield [f"{case} / {beside}", *_compared((each.answered[case], each.answered[beside]) for each in rounds)]
    alone = [each.answered[NOBODY] for each in rounds]
    yield [f"{NOBODY} / {NOBODY}, the round before", *_compared(zip(alone[1:], alone, strict=False))]


def _compared(pairs: Iterable[tuple[Answered, Answered]]) -> list[str]:
    kept = list(pairs)
    found = [[quantity(one) / quantity(other) for one, other in kept] for quantity in QUANTITIES.values()]
    return [f"{median(ratios):.2f} ({_range(ratios, '.2f')})" for ratios in found]


def _range(numbers: Sequence[float], form: str) -> str:
    return f"{min(numbers):{form}} to {max(numbers):{form}}"


if __name__ == "__main__":
    for asked in sys.stdin:
        where, often, long = asked.split()
        print(json.dumps(vars(view(where, float(often), float(long)))), flush=True)
