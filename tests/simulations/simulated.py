"""A metric of each kind to simulate, two values of each, and metrics that are declared on the spot."""

from typing import Any

from hubbub.shared import Metric, Registry

REGISTRY = """
[metrics.string]
description = "a test"
kind = "string"
every = "day"
bits = 8
hashes = 2
cohorts = 2
lifetime_values = "unlimited"
privacy = { f = 0.75, p = 0.125, q = 0.875 }

[metrics.category]
description = "a test"
kind = "category"
every = "day"
categories = ["light", "dark", "system"]
privacy = { f = 0.25, p = 0.125, q = 0.75 }

[metrics.flag]
description = "a test"
kind = "flag"
every = "day"
privacy = { report = 1.0, lifetime = 2.0 }

[metrics.mean]
description = "a test"
kind = "mean"
every = "day"
low = 0
high = 10
combine = "last"
privacy = { epsilon = 2, gamma = 0.1 }

[metrics.histogram]
description = "a test"
kind = "histogram"
every = "day"
edges = [0, 1, 2, 3, 4]
sent = 2
privacy = { report = 2.0, lifetime = 3.0 }
"""
METRICS = Registry.parse(REGISTRY)
VALUES: dict[str, tuple[Any, Any]] = {
    "string": ("a", "b"),
    "category": ("dark", "system"),
    "flag": (True, False),
    "mean": (7.5, 2.5),
    "histogram": (0.5, 2.5),
}


def declared(kind: str, *lines: str, every: str = "day", privacy: str = "{ report = 1.0, lifetime = 2.0 }") -> Metric:
    text = ["[metrics.it]", 'description = "a test"', f'kind = "{kind}"', f'every = "{every}"', f"privacy = {privacy}"]
    return Registry.parse("\n".join([*text, *lines]))["it"]
