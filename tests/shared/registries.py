"""Registries for tests."""

from hubbub.shared import Metric, Registry

EXAMPLE = """
[metrics.homepage]
description = "Home page the user has set"
kind = "string"
every = "day"
bits = 128
hashes = 1
cohorts = 64                                   # powers of two
lifetime_values = 8
privacy = { report = 1.0, lifetime = 4.0 }     # epsilon of one report, epsilon of all reports of one value

[metrics.homepage_classic]
description = "The same, with RAPPOR's own parameters"
kind = "string"
every = "day"
bits = 128
hashes = 2
cohorts = 64
lifetime_values = "unlimited"
privacy = { f = 0.5, p = 0.5, q = 0.75 }

[metrics.theme]
description = "Colour theme"
kind = "category"
every = "week"
categories = ["light", "dark", "system"]
privacy = { report = 1.0, lifetime = 2.0 }

[metrics.crashed]
description = "Whether the app crashed"
kind = "flag"
every = "day"
privacy = { report = 0.5, lifetime = 2.0 }

[metrics.minutes_used]
description = "Minutes of use"
kind = "mean"
every = "day"
low = 0
high = 1440
combine = "sum"
privacy = { epsilon = 1, gamma = 0.1 }

[metrics.startup_ms]
description = "Start-up time"
kind = "histogram"
every = "day"
edges = [0, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 51200]
sent = 4
privacy = { report = 1.0, lifetime = 4.0 }

[metrics.language]
description = "Language, once for each installation"
kind = "string"
every = "once"
bits = 64
hashes = 2
cohorts = 8
version = 3
owner = "localisation"
expires = 2031-12-31
privacy = { f = 0.5 }

[metrics.newcomer]
description = "Whether this is the first app of its sort"
kind = "flag"
every = "once"
privacy = { epsilon = 1.0 }
"""

VALUES = {
    "homepage": "example.org",
    "homepage_classic": "example.org",
    "theme": "dark",
    "crashed": True,
    "minutes_used": 12.5,
    "startup_ms": 432,
    "language": "eo",
    "newcomer": False,
}
"""A value for each metric of the example."""


def example() -> Registry:
    return Registry.parse(EXAMPLE)


def one_metric(**keys: str) -> Metric:
    """A registry of one metric called `it`, from TOML values by key."""
    return Registry.parse(text_of(keys))["it"]


def text_of(keys: dict[str, str]) -> str:
    """The TOML of a metric called `it`."""
    return "\n".join(["[metrics.it]", *(f"{key} = {value}" for key, value in ({"description": '"it"'} | keys).items())])
