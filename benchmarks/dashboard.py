"""The dashboard: how fast its pages are, and what looking at it costs ingest: `python -m benchmarks dashboard`.

The collector has the demo's registry, and a store that the demo's crowd has filled. Batches come at a third and at two
thirds of the rate that it can take, and as fast as it takes them. HUBBUB_BENCH_QUICK=1 has a smaller crowd and measures
for a shorter time.
"""

from __future__ import annotations

import contextlib
import os
import platform
import random
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import requests
from scipy.stats import binom

from benchmarks import load, writing
from benchmarks.servers import HUBBUB, RIVAL, Server, running
from benchmarks.viewer import Viewed, Viewer, demo_registry
from hubbub.collector.store import Store
from hubbub.shared import Registry
from hubbub.simulations.demo.crowd import CANDIDATES, DAYS, gather

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from benchmarks.load import Answered

QUICK = bool(os.environ.get("HUBBUB_BENCH_QUICK"))
DEVICES = 20_000 if QUICK else 200_000
ASKED = 20 if QUICK else 100
"""Times that each page is asked for."""

ROUNDS, SECONDS = (2, 2) if QUICK else (8, 3)
CONCURRENCY = 16
"""Batches at a time, where they come as fast as they are answered."""

CONNECTIONS = 64
"""Where they come at a rate: each pauses after its batch for so long that together they keep to it."""

PACED = Path(__file__).with_name("paced.lua")
VIEWS = 5.0
"""Pages a second that the viewer asks for, each with its two charts."""

WANTED_MS = 300
WARM_SECONDS = IDLE_SECONDS = 120
"""After these, something hangs."""

IDLE = 0.05
"""Of one core: a collector that uses less has nothing left to decode or to draw."""

DISK = Path("/var/tmp")
"""For files that outlive a restart; /tmp is often in memory, where syncing is free."""

PAGE = "docs/operator.md"
LOADS = {"a third": 1 / 3, "two thirds": 2 / 3, "all": None}
"""Of the batches that it can take, how many come."""

NOBODY, ELSEWHERE, DASHBOARD, CURIOUS = (
    "nobody looks",
    "viewer at another server",
    "viewer at the dashboard",
    "viewer who asks anew",
)
NEW = {ELSEWHERE: 0.0, DASHBOARD: 0.0, CURIOUS: 0.5}
"""Of the pages that a viewer asks for, how many ask what nobody has asked before."""

CASES = (NOBODY, *NEW)
QUANTITIES: dict[str, Callable[[Answered], float]] = {
    "batches a second": lambda each: each.rate,
    "p50": lambda each: each.p50,
    "p99": lambda each: each.p99,
}


@dataclass(frozen=True)
class Used:
    """Seconds of a core that a collector has used: by the processes that serve, and by those at low priority."""

    serving: float
    apart: float


@dataclass(frozen=True)
class Seen:
    """What was measured at one time: by wrk, by the viewer if there was one, and cores that the collector used."""

    answered: Answered
    viewed: Viewed | None
    used: Used


Round = dict[tuple[str, str], Seen]
"""By load and by case."""


def main() -> None:
    """Print the tables, and write them where that was asked for."""
    write = writing.wanted()
    if load.WRK is None:
        print("\nThe dashboard: not measured, because wrk is not installed; it is a package of Debian")
        return
    before = os.getloadavg()[0]
    registry = Registry.parse(demo_registry())
    with tempfile.TemporaryDirectory(dir=DISK if DISK.is_dir() else None) as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        (folder / "metrics.toml").write_text(demo_registry())
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
        most = _measure(viewer, collector, None, NOBODY, None).answered.rate
        rounds = [_round(viewer, collector, other, most) for _ in range(ROUNDS)]
    told = _told(pages, rounds, before)
    print(f"\n{told}")
    if write:
        writing.write_section(PAGE, "dashboard", told)


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


def _round(viewer: Viewer, collector: Server, other: Server, most: float) -> Round:
    found: Round = {}
    for name, share in LOADS.items():
        for case in random.sample(CASES, len(CASES)):  # in another order each time, for what one leaves to the next
            rate = None if share is None else share * most
            found[name, case] = _measure(viewer, collector, other, case, rate)
    return found


def _measure(viewer: Viewer, collector: Server, other: Server | None, case: str, rate: float | None) -> Seen:
    """Have wrk post batches, all it can or so many a second, while a viewer looks at a server, or while nobody does."""
    _settle(collector)
    before = _used(collector)
    looked_at = other if case == ELSEWHERE else collector
    if case != NOBODY and looked_at is not None:
        viewer.tell(looked_at.url, VIEWS, SECONDS, NEW[case])
    answered = load.end(_begin(collector.url, rate))
    after = _used(collector)
    viewed = None if case == NOBODY else viewer.hear()
    used = Used((after.serving - before.serving) / SECONDS, (after.apart - before.apart) / SECONDS)
    return Seen(answered, viewed, used)


def _begin(url: str, rate: float | None) -> subprocess.Popen[str]:
    if rate is None:
        return load.begin(url, CONCURRENCY, SECONDS)
    pause = 1000 * CONNECTIONS / rate
    arguments = [str(random.getrandbits(32)), f"{datetime.now(UTC):%Y-%m-%d}", "1", f"{pause:g}"]
    limits = ["--threads=1", f"--connections={CONNECTIONS}", f"--duration={SECONDS}", "--timeout=30"]
    command = [str(load.WRK), *limits, f"--script={PACED}", url, "--", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _settle(server: Server) -> None:
    """Wait until a collector has made what pages were asked for before, or it would be counted with what comes next."""
    deadline = time.monotonic() + IDLE_SECONDS
    before = _used(server)
    while time.monotonic() < deadline:
        time.sleep(0.5)
        before, last = (now := _used(server)), before
        if now.serving + now.apart - last.serving - last.apart < IDLE * 0.5:
            return
    raise RuntimeError(f"{server.name} is still at work after {IDLE_SECONDS} s without a request")


def _used(server: Server) -> Used:
    serving = apart = 0
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdecimal() and os.getpgid(int(folder.name)) == server.process.pid:
                fields = list(map(int, (folder / "stat").read_text().rpartition(")")[2].split()[1:]))
                mine, ended, nice = sum(fields[10:12]), sum(fields[12:14]), fields[15]
                apart += ended + (mine if nice > 0 else 0)  # those that have ended were decoding
                serving += 0 if nice > 0 else mine
    tick = os.sysconf("SC_CLK_TCK")
    return Used(serving / tick, apart / tick)


def _told(pages: Mapping[str, list[float]], rounds: Sequence[Round], busy: float) -> str:
    cores = os.cpu_count()
    return (
        f"Python {platform.python_version()}, {platform.machine()}, {cores} cores; the load average was {busy:.1f} "
        f"before it began. The demo's registry and\n{DEVICES:,} simulated devices over {DAYS} days. Each page was "
        f"asked for {ASKED} times once it was warm, one after the other:\n\n"
        + writing.table(["page", "median ms", "p99 ms", "wanted"], [_page_row(*each) for each in pages.items()])
        + f"\n\nIngest by wrk: at a third and at two thirds of what the collector takes, from {CONNECTIONS} "
        "connections that pause, and as\nfast as batches are answered, "
        f"{CONCURRENCY} at a time. {ROUNDS} rounds of {SECONDS} s for each case, in turn. All batches are of one\n"
        "metric, so that its page is never the same for long. The viewer is one process that wants "
        f"{VIEWS:g} pages a second,\nof the overview and of one metric after the other, each with two charts. One who "
        "asks anew has another\nconfidence on every second page, so that all of it is decoded and drawn for that page "
        "alone. The other server\nanswers with two bytes: that is what a viewer costs by being on the same machine. "
        f"Sender, viewer and collector\nshare the {cores} cores. Medians over the rounds; of cores, those that the "
        "processes that serve used, and those that\nthe ones at low priority did:\n\n"
        + writing.table(
            ["batches: viewer", "a second", "p50 ms", "p99 ms", "cores", "at low priority"],
            [_medians(name, case, rounds) for name in LOADS for case in CASES],
        )
        + "\n\nRatios within each round to the same load while nobody looks: the median over the rounds, and an "
        "interval that holds\nthe true one with 95 % or more (of order statistics). Where nobody looks, it is to the "
        "round before, and nothing\nbut noise:\n\n"
        + writing.table(["batches: viewer", *QUANTITIES], [each for name in LOADS for each in _ratios(name, rounds)])
        + "\n\nWhat the viewers got, over all rounds:\n\n"
        + writing.table(
            ["batches: viewer", "pages a second", "ms a page", "answers"],
            [_looks(name, case, rounds) for name in LOADS for case in (DASHBOARD, CURIOUS)],
        )
    )


def _page_row(shown: str, times: Sequence[float]) -> list[str]:
    p99 = times[min(round(len(times) * 0.99), len(times) - 1)]
    return [shown, f"{median(times):.1f}", f"{p99:.1f}", f"< {WANTED_MS}"]


def _medians(name: str, case: str, rounds: Sequence[Round]) -> list[str]:
    seen = [each[name, case] for each in rounds]
    rate, p50, p99 = (median(quantity(each.answered) for each in seen) for quantity in QUANTITIES.values())
    serving, apart = median(each.used.serving for each in seen), median(each.used.apart for each in seen)
    return [f"{name}: {case}", f"{rate:,.0f}", f"{p50 * 1e3:.2f}", f"{p99 * 1e3:.2f}", f"{serving:.2f}", f"{apart:.2f}"]


def _ratios(name: str, rounds: Sequence[Round]) -> Iterable[list[str]]:
    alone = [each[name, NOBODY].answered for each in rounds]
    for case in NEW:
        looking = [each[name, case].answered for each in rounds]
        yield [f"{name}: {case}", *_compared(zip(looking, alone, strict=True))]
    yield [f"{name}: {NOBODY}", *_compared(zip(alone[1:], alone, strict=False))]


def _compared(pairs: Iterable[tuple[Answered, Answered]]) -> list[str]:
    kept = list(pairs)
    found = [[quantity(one) / quantity(other) for one, other in kept] for quantity in QUANTITIES.values()]
    return [f"{median(ratios):.2f} ({_range(_middle(ratios), '.2f')})" for ratios in found]


def _middle(numbers: Sequence[float]) -> Sequence[float]:
    """Leave out the smallest and the largest, as many as leave the true median inside with 95 % or more."""
    left_out = max(int(binom.ppf(0.025, len(numbers), 0.5)) - 1, 0)
    return sorted(numbers)[left_out : len(numbers) - left_out]


def _looks(name: str, case: str, rounds: Sequence[Round]) -> list[str]:
    viewed = [each[name, case].viewed for each in rounds]
    kept = [each for each in viewed if each is not None]
    answers: Counter[str] = sum((Counter(each.answers) for each in kept), Counter())
    statuses = ", ".join(f"{status}: {number:,}" for status, number in sorted(answers.items()))
    rates, times = [each.rate for each in kept], [each.p50 * 1e3 for each in kept]
    return [f"{name}: {case}", _range(rates, ".1f"), _range(times, ".0f"), statuses]


def _range(numbers: Sequence[float], form: str) -> str:
    return f"{min(numbers):{form}} to {max(numbers):{form}}"
