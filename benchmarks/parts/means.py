"""The error of a mean, beside noise that each device adds to its number: a part of `make bench`.

No peer has the piecewise mechanism, nor any other one-bit mean; what they have is Laplace noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.findings import Findings, Row
from benchmarks.parts.clients import REGISTRY
from benchmarks.peer_environment import PeerError, Peers, label
from benchmarks.sized import QUICK
from hubbub.client import privatize
from hubbub.collector import Tally, decode
from hubbub.shared import Registry, Secret

if TYPE_CHECKING:
    from hubbub.collector import Estimates

DEVICES = 500
RUNS = 40 if QUICK else 800
SEED = 20170524


def measure() -> Findings:
    """Root mean square errors over runs, the same devices in each, all with new noise."""
    metric = Registry.parse(REGISTRY)["number"]
    values = np.random.default_rng(SEED).gamma(2.0, 60.0, DEVICES).clip(0, 1440).round(1)
    truth = float(values.mean())
    means = []
    for _ in range(RUNS):
        tally = Tally.of(metric, (privatize(metric, float(value), Secret.generate()) for value in values))
        means.append(_mean(decode(metric, tally)))
    ours = _error(means, truth)
    peers = Peers.find()
    job = {"values": values.tolist(), "runs": RUNS}
    rows = []
    what = f"mean of {DEVICES} numbers of 0 to 1440, epsilon 1 each, root mean square error"
    for library in ("opendp", "diffprivlib"):
        beside = f"{label(library)}, Laplace"
        try:
            theirs = _error(peers.do("mean_errors", job | {"library": library})["means"], truth)
        except PeerError as error:
            fault = f"failed: {peers.failed.get(library, error)}"
            rows.append(Row(what, "means", beside, ours, better="less", fault=fault))
        else:
            rows.append(Row(what, "means", beside, ours, theirs, better="less"))
    return Findings(rows)


def _error(means: list[float], truth: float) -> float:
    return float(np.sqrt(np.mean((np.array(means) - truth) ** 2)))


def _mean(estimates: Estimates) -> float:
    assert estimates.mean is not None
    return estimates.mean.estimate
