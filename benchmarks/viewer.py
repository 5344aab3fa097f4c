"""Somebody who looks at the dashboard, in a process of its own as a browser would be.

`python -m benchmarks.viewer` reads lines of URL, RATE, SECONDS and NEW, looks, and tells what it saw. NEW is the share
of pages that ask what nobody has asked before.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.resources import files
from statistics import median
from typing import TYPE_CHECKING

import requests

from benchmarks import writing
from hubbub.shared import Registry

if TYPE_CHECKING:
    from typing import Self

TABS = 4
"""Pages that it waits for at one moment: those of strings may take long, and others need not wait for them."""


@dataclass(frozen=True)
class Viewed:
    """What the viewer has seen."""

    rate: float
    """Pages a second."""
    answers: dict[str, int]
    """How many, by status."""
    p50: float
    """Seconds for a page without its charts."""


class Viewer:
    """The process that looks; started once, because loading Python is no part of looking."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "benchmarks.viewer"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=writing.ROOT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def tell(self, url: str, rate: float, seconds: float, new: float) -> None:
        """Have it look."""
        assert self._process.stdin is not None
        print(url, rate, seconds, new, file=self._process.stdin, flush=True)

    def hear(self) -> Viewed:
        """Wait for what it has seen."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the viewer failed, and told why above")
        return Viewed(**json.loads(line))


def demo_registry() -> str:
    """What the collector collects that is looked at."""
    return files("hubbub.simulations").joinpath("demo.toml").read_text("utf-8")


def view(url: str, rate: float, seconds: float, new: float) -> Viewed:
    """Look at the overview and at one metric after the other; pages that are new ask for another confidence."""
    names = ["", *Registry.parse(demo_registry())]
    answers: Counter[str] = Counter()
    times: list[float] = []

    def look(number: int) -> None:
        name = names[number % len(names)]
        query = f"?confidence={random.uniform(0.8, 0.99):.6f}" if name and random.random() < new else ""
        page = f"{url}/metric/{name}" if name else f"{url}/"
        asked = time.monotonic()
        status = browser.get(page + query, timeout=60).status_code
        times.append(time.monotonic() - asked)
        answers[str(status)] += 1
        if name and status == requests.codes.ok:  # a page that says to wait has no charts
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


if __name__ == "__main__":
    for asked in sys.stdin:
        where, *numbers = asked.split()
        print(json.dumps(vars(view(where, *map(float, numbers)))), flush=True)
