"""A year with a collector that is hostile in every way it can be: no device exceeds what its app allowed.

The collector is modest for three months, and then serves another registry every day: versions raised daily, ranges,
categories, edges and probabilities changed under one version, versions as name tags, and epsilons beyond the limit. It
sets cookies, and refuses to answer now and then. The app records values that change, and invalid ones.

Each device counts for itself: of every encoding it has revealed, the logarithm of the likelihood ratio of all reports
that were made of it, against the encoding that the reports speak for or against most. The sum over encodings, versions
and metrics is what an observer who keeps every report can have learned about the values.
"""

import math
import random
from collections import defaultdict
from datetime import date
from pathlib import Path

import pytest

from client.clients import MONDAY
from hubbub.client import Client, recording
from hubbub.client.privatizing import respond
from hubbub.client.testing import FrozenClock, InMemoryCollector
from hubbub.shared import Metric, Report, Secret
from hubbub.shared.bernoulli import ONE
from hubbub.shared.encode import Bloom

DAYS = 365
MODEST_DAYS = 90
MAX_EPSILON = 25.0

VALUES: dict[str, list[object]] = {
    "page": [f"site-{number}.example" for number in range(30)] + ["", None, "x" * 9000],
    "theme": ["light", "dark", "system", "undeclared"],
    "crashed": [True, False, "yes"],
    "minutes": [0, 12.5, 480, 1e9, math.nan, "many"],
    "startup": [5, 150, 1e6, math.inf],
}


class Hostile(InMemoryCollector):
    """Serves a registry of today's mood, sets cookies, and answers two uploads of three."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng

    def answer(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        status, headers, answer = super().answer(body)
        if not self._rng.randrange(3):
            return 503, {"Set-Cookie": "again=1"}, b""
        return status, {**headers, "Set-Cookie": f"device={self._rng.random()}; Max-Age=99999999"}, answer

    def change_registry(self, day: int) -> None:
        rng, modest = self._rng, day < MODEST_DAYS
        if modest:
            rng = random.Random(7)

        def version() -> int:
            if modest:
                return 1
            return rng.choice([1, 1, 2, 1 + day // 30, min(day + 1, 100), 10**6 if not rng.randrange(40) else 3])

        def privacy() -> str:
            lifetime = 0.5 if modest else rng.choice([0.04, 0.5, 1.0, 2.0, 4.0, 8.0, 19.9])
            return f"{{ report = {lifetime * rng.choice([0.2, 0.5, 0.9])}, lifetime = {lifetime} }}"

        classic = rng.choice(["{ f = 0.5, p = 0.5, q = 0.75 }", "{ f = 0.00002, p = 0.001, q = 0.999 }", privacy()])
        classic = privacy() if modest else classic
        high, sent = rng.choice([10, 480, 481, 1440]), rng.choice([1, 2, 3])
        categories = rng.choice([["light", "dark", "system"], ["dark", "light", "system"], ["light", "dark"]])
        self.registry = f"""
        [metrics.page]
        description = "a"
        kind = "string"
        every = "day"
        version = {version()}
        bits = {rng.choice([32, 64, 128])}
        hashes = {rng.choice([1, 2])}
        cohorts = {rng.choice([1, 64, 1024])}
        lifetime_values = {rng.choice(['"unlimited"', "2", "8", "1000000"])}
        privacy = {classic}
        [metrics.theme]
        description = "a"
        kind = "category"
        every = "day"
        version = {version()}
        categories = {categories}
        privacy = {privacy()}
        [metrics.crashed]
        description = "a"
        kind = "flag"
        every = "{rng.choice(["day", "day", "week"])}"
        version = {version()}
        {rng.choice(["default = true", "default = false", ""])}
        privacy = {privacy()}
        [metrics.minutes]
        description = "a"
        kind = "mean"
        every = "day"
        version = {version()}
        low = {rng.choice([0, -1, 5])}
        high = {high}
        combine = "{rng.choice(["last", "sum", "max", "mean"])}"
        privacy = {privacy()}
        [metrics.startup]
        description = "a"
        kind = "histogram"
        every = "day"
        version = {version()}
        edges = [0, 100, {rng.choice([200, 300])}, 1000]
        sent = {sent}
        privacy = {privacy()}
        """


class Witness:
    """Sees every report that the client makes, with the encoding behind it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reports: list[tuple[Metric, int, Report]] = []

        def watched(metric: Metric, encoded: int, secret: Secret, day: date) -> Report:
            report = respond(metric, encoded, secret, day)
            self.reports.append((metric, encoded, report))
            return report

        monkeypatch.setattr(recording, "respond", watched)

    def loss(self, sent: list[Report]) -> float:
        """The sum of the likelihood ratios of all encodings whose reports have been sent."""
        behind = {(report.metric, report.version, report.period, report.cohort, report.bits): (metric, encoded)
                  for metric, encoded, report in self.reports}  # fmt: skip
        groups: dict[tuple[str, int], list[bytes]] = defaultdict(list)
        metrics = {}
        for report in sent:
            metric, encoded = behind[report.metric, report.version, report.period, report.cohort, report.bits]
            metrics[metric.fingerprint] = metric
            groups[metric.fingerprint, encoded].append(report.bits)
        versions = {(metric.name, metric.version) for metric in metrics.values()}
        assert len(versions) == len(metrics)  # one meaning of each version
        return sum(largest_ratio(metrics[name], encoded, bits) for (name, encoded), bits in groups.items())


def largest_ratio(metric: Metric, encoded: int, reports: list[bytes]) -> float:
    """The largest log-likelihood ratio between an encoding and any other, given all reports of it."""
    response = metric.response
    p1, q1, p2, q2 = (part / ONE for part in (response.p1, response.q1, response.p2, response.q2))
    for_set = []
    for bit in range(metric.size):
        ones = sum(report[bit // 8] >> bit % 8 & 1 for report in reports)
        one, zero = p2**ones * (1 - p2) ** (len(reports) - ones), q2**ones * (1 - q2) ** (len(reports) - ones)
        for_set.append(math.log((p1 * one + (1 - p1) * zero) / (q1 * one + (1 - q1) * zero)))
    mine = sum(ratio for bit, ratio in enumerate(for_set) if encoded >> bit & 1)
    others = sorted(ratio for bit, ratio in enumerate(for_set) if not encoded >> bit & 1)
    most = metric.encoding.hashes if isinstance(metric.encoding, Bloom) else 1
    least = sum(min(ratio, 0.0) for ratio in others[:most])
    largest = sum(max(ratio, 0.0) for ratio in others[-most:])
    return max(abs(mine - least), abs(mine - largest), abs(mine))


@pytest.mark.unmeasured
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_no_device_exceeds_its_max_epsilon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng, clock, witness = random.Random(seed), FrozenClock(MONDAY), Witness(monkeypatch)
    with Hostile(rng) as collector:
        client = Client(
            collector.url, registry=None, state=tmp_path / "s.db", enabled=True, clock=clock, max_epsilon=MAX_EPSILON
        )
        for day in range(DAYS):
            collector.change_registry(day)
            for name, values in VALUES.items():
                for _ in range(rng.choice([1, 1, 3])):
                    client.record(name, rng.choice(values))
            clock.advance(days=1)
            client.flush()
        clock.advance(days=9)
        for _ in range(50):
            clock.advance(hours=7)
            if client.flush():
                break
        stats = client.stats()
        client.close()
    assert stats.problem is None
    assert len(collector.reports) == stats.sent > 100
    assert witness.loss(collector.reports) <= MAX_EPSILON
    assert sum(cost.spent for cost in stats.ledger.values()) <= MAX_EPSILON
    assert sum(cost.reserved for cost in stats.ledger.values()) <= MAX_EPSILON
    assert stats.refused["max_epsilon"] > 0
    assert stats.refused["other_declaration"] > 0
    assert all("Cookie" not in headers for headers in collector.headers)
    assert all(report.version <= 100 for report in collector.reports)
    assert (tmp_path / "s.db").stat().st_size < 300_000


def test_the_witness_counts_what_a_device_without_a_ceiling_gives_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the test above can fail: without a ceiling the same year costs many times as much."""
    rng, clock, witness = random.Random(1), FrozenClock(MONDAY), Witness(monkeypatch)
    with Hostile(rng) as collector:
        client = Client(
            collector.url, registry=None, state=tmp_path / "s.db", enabled=True, clock=clock, max_epsilon=math.inf
        )
        for day in range(MODEST_DAYS, MODEST_DAYS + 60):
            collector.change_registry(day)
            for name, values in VALUES.items():
                client.record(name, rng.choice(values))
            clock.advance(days=1)
            client.flush()
        client.close()
    assert witness.loss(collector.reports) > 2 * MAX_EPSILON
