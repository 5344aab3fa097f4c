"""What a report costs on a device, in HMACs: `python -m benchmarks client`."""

from __future__ import annotations

import datetime
import hmac
import os
from typing import TYPE_CHECKING

from benchmarks.ratios import fastest, show
from hubbub.client import privatize
from hubbub.shared import Metric, Registry, Secret

if TYPE_CHECKING:
    from collections.abc import Callable

REGISTRY = """
[metrics.classic]
description = "string, 128 bits, RAPPOR's f, p, q"
kind = "string"
every = "day"
bits = 128
hashes = 2
cohorts = 64
lifetime_values = "unlimited"
privacy = { f = 0.5, p = 0.5, q = 0.75 }

[metrics.solved]
description = "string, 128 bits, { report, lifetime }"
kind = "string"
every = "day"
bits = 128
hashes = 1
cohorts = 64
lifetime_values = 8
privacy = { report = 1.0, lifetime = 4.0 }

[metrics.category]
description = "category, 8 of them"
kind = "category"
every = "day"
categories = ["a", "b", "c", "d", "e", "f", "g", "h"]
privacy = { report = 1.0, lifetime = 4.0 }

[metrics.flag]
description = "flag"
kind = "flag"
every = "day"
privacy = { report = 1.0, lifetime = 4.0 }

[metrics.mean]
description = "mean"
kind = "mean"
every = "day"
low = 0
high = 1440
privacy = { report = 1.0, lifetime = 4.0 }

[metrics.histogram]
description = "histogram, 4 of 10 buckets"
kind = "histogram"
every = "day"
edges = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
sent = 4
privacy = { report = 1.0, lifetime = 4.0 }
"""
VALUES = {
    "classic": "example.org",
    "solved": "example.org",
    "category": "c",
    "flag": True,
    "mean": 7.5,
    "histogram": 7.5,
}
WANTED = {"classic": 4.0, "solved": 6.0}


def _report(metric: Metric, value: object) -> Callable[[], object]:
    secret, day = Secret.generate(), datetime.date(2026, 11, 16)
    return lambda: privatize(metric, value, secret, day=day)


def main() -> None:
    """Print the table."""
    registry = Registry.parse(REGISTRY)
    key, message = os.urandom(32), os.urandom(48)
    contestants: dict[str, Callable[[], object]] = {"hmac": lambda: hmac.new(key, message, "sha256").digest()}
    names = {}
    for name, metric in registry.items():
        names[name] = metric.description
        contestants[metric.description] = _report(metric, VALUES[name])
    limits = {names[name]: limit for name, limit in WANTED.items()}
    show("One report, permanent and instantaneous step, OS randomness", "hmac", fastest(contestants), limits)
