"""Load: wrk posts batches as fast as a server answers, from a number of connections at a time."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

WRK = shutil.which("wrk")
BATCHES = Path(__file__).with_name("batches.lua")
METRIC = """
[metrics.homepage]
description = "string, 128 bits, 64 cohorts"
kind = "string"
every = "day"
bits = 128
hashes = 1
cohorts = 64
lifetime_values = 8
privacy = { report = 1.0, lifetime = 4.0 }
"""
"""What the batches speak of."""


def metrics(number: int) -> str:
    """A registry for batches of several reports: one metric for each, for a device reports each but once a day."""
    names = ["homepage", *(f"homepage{place}" for place in range(2, number + 1))]
    return "".join(METRIC.replace("[metrics.homepage]", f"[metrics.{name}]") for name in names)


@dataclass(frozen=True)
class Answered:
    """What wrk has seen."""

    requests: int
    seconds: float
    p50: float
    p99: float
    refused: int
    """Answers that were not 2xx."""
    broken: int
    """Connections that failed, and requests that were not answered in time."""

    @property
    def rate(self) -> float:
        return self.requests / self.seconds


def begin(url: str, concurrency: int, seconds: float, reports: int = 1) -> subprocess.Popen[str]:
    """Start wrk, with so many reports in a batch; SIGINT ends it before its time."""
    arguments = [str(random.getrandbits(32)), f"{datetime.now(UTC):%Y-%m-%d}", str(reports)]
    limits = ["--threads=1", f"--connections={concurrency}", f"--duration={seconds:g}", "--timeout=30"]
    command = [str(WRK), *limits, f"--script={BATCHES}", url, "--", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def end(wrk: subprocess.Popen[str]) -> Answered:
    """Wait for wrk, and read what it tells."""
    told, _ = wrk.communicate()
    found = re.search(r"^RESULT (.*)$", told, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"wrk did not tell a result: {told}")
    answered = Answered(**json.loads(found[1]))
    if answered.refused or answered.broken:
        raise RuntimeError(f"not every batch was answered with 2xx: {answered}")
    return answered
