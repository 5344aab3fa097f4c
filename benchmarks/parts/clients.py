"""Reports a second that a client makes, beside the clients of the peers: a part of `make bench`."""

from __future__ import annotations

import datetime
import hmac
import os
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import client, imports
from benchmarks.findings import LIMIT, Findings, Row
from benchmarks.peer_environment import PEERS, PeerError, Peers, label
from benchmarks.peer_rates import rate
from benchmarks.ratios import fastest
from benchmarks.sized import QUICK
from hubbub.client import privatize
from hubbub.shared import Registry, Secret

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 0.3 if QUICK else 2.0
CATEGORIES = ", ".join(f'"v{value}"' for value in range(100))
REGISTRY = f"""
[metrics.category]
description = "one of 100 categories, once, epsilon 1"
kind = "category"
every = "once"
categories = [{CATEGORIES}]
privacy = {{ epsilon = 1.0 }}

[metrics.repeated]
description = "one of 100 categories, daily, epsilon 1 and 2"
kind = "category"
every = "day"
categories = [{CATEGORIES}]
privacy = {{ report = 1.0, lifetime = 2.0 }}

[metrics.string]
description = "a string, 128 bits, 2 hashes, once, f = 1/2"
kind = "string"
every = "once"
bits = 128
hashes = 2
cohorts = 64
privacy = {{ f = 0.5 }}

[metrics.flag]
description = "a flag, once, epsilon 1"
kind = "flag"
every = "once"
privacy = {{ epsilon = 1.0 }}

[metrics.number]
description = "a number, once, epsilon 1"
kind = "mean"
every = "once"
low = 0
high = 1440
privacy = {{ epsilon = 1.0 }}
"""
VALUES = {"category": "v7", "repeated": "v7", "string": "example.org", "flag": True, "number": 7.0}
WAYS = {
    ("pure-ldp", "category"): "OUE",
    ("pure-ldp", "string"): "RAPPOR",
    ("multi-freq-ldpy", "category"): "OUE, compiled",
    ("multi-freq-ldpy", "repeated"): "L-OSUE, compiled",
    ("opendp", "category"): "randomized response",
    ("opendp", "string"): "bits given, not hashed",
    ("opendp", "flag"): "randomized response",
    ("opendp", "number"): "Laplace",
    ("diffprivlib", "flag"): "Binary",
    ("diffprivlib", "number"): "Laplace",
}
"""What each peer does for the job; those not here it has nothing for."""


def measure() -> Findings:
    """Ours and theirs; each in a process of one thread, in processor time."""
    registry = Registry.parse(REGISTRY)
    secret, day = Secret.generate(), datetime.date(2026, 11, 16)

    ours = {
        name: rate(partial(privatize, registry[name], value, secret, day=day), SECONDS)
        for name, value in VALUES.items()
    }
    peers = Peers.find()
    theirs: dict[tuple[str, str], float] = {}
    faults: dict[str, str] = {}
    for library in PEERS:
        try:
            told = peers.do("client_rates", {"library": library, "seconds": SECONDS})
        except PeerError as error:
            faults[library] = f"failed: {peers.failed.get(library, error)}"
        else:
            theirs |= {(library, kind): rate for kind, rate in told.items()}
    rows = [
        Row(
            what=f"client, reports/s: {registry[name].description}",
            by="clients",
            beside=f"{label(library)}, {way}",
            ours=ours[name],
            theirs=theirs.get((library, name)),
            fault=faults.get(library, ""),
        )
        for name in VALUES
        for (library, kind), way in WAYS.items()
        if kind == name
    ]
    hmacs = _in_hmacs()
    figures = {f"hmacs_{name}": number for name, number in hmacs.items()}
    return Findings([*rows, *_limits(hmacs), _imported()], figures=figures | {"client_rate": ours["string"]})


def _in_hmacs() -> dict[str, float]:
    """One report in multiples of the cheapest thing that an app knows to be cheap; all take turns."""
    registry = Registry.parse(client.REGISTRY)
    key, message = os.urandom(32), os.urandom(48)
    secret, day = Secret.generate(), datetime.date(2026, 11, 16)
    contestants: dict[str, Callable[[], object]] = {
        name: partial(privatize, metric, client.VALUES[name], secret, day=day) for name, metric in registry.items()
    }
    best = fastest({"hmac": lambda: hmac.new(key, message, "sha256").digest(), **contestants})
    return {name: best[name] / best["hmac"] for name in contestants}


def _limits(hmacs: dict[str, float]) -> list[Row]:
    registry = Registry.parse(client.REGISTRY)
    return [
        Row(
            what=f"client, HMACs a report: {registry[name].description}",
            by="client",
            beside=LIMIT,
            ours=hmacs[name],
            theirs=limit,
            better="less",
            wanted=1,
        )
        for name, limit in client.WANTED.items()
    ]


def _imported() -> Row:
    """What an app pays when it starts, beside a library that many apps have."""
    took = imports.measure()
    return Row(
        what=f"client, `{imports.OURS}` in a fresh interpreter, s",
        by="imports",
        beside=f"`{imports.THEIRS}`",
        ours=took[imports.OURS],
        theirs=took[imports.THEIRS],
        better="less",
        wanted=1 / imports.WANTED,
    )
