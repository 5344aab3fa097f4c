"""Metrics to audit, and clients that are broken on purpose."""

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import msgspec
import pytest
import requests

from hubbub.client import Client, privatize
from hubbub.shared import Metric, Registry, Secret
from hubbub.shared.instantaneous import instantaneous_response
from hubbub.shared.permanent import permanent_response, rounding_offset
from hubbub.shared.wire import Batch, Report, encode_batch, new_batch_id
from shared.registries import one_metric

DEMO = Path(__file__).parents[2] / "simulations/hubbub/simulations/demo.toml"
SURE = 1 - 1e-7
"""A confidence at which a correct client is refuted once in 10^7 audits at most."""

METRICS = {
    "string": one_metric(kind='"string"', every='"day"', bits="32", hashes="2", cohorts="8", lifetime_values="8",
                         privacy="{ report = 1.5, lifetime = 2.0 }"),
    "category": one_metric(kind='"category"', every='"day"', categories='["a", "b", "c", "d", "e"]',
                           privacy="{ report = 1.0, lifetime = 2.0 }"),
    "flag": one_metric(kind='"flag"', every='"day"', privacy="{ report = 1.0, lifetime = 2.0 }"),
    "rappor flag": one_metric(kind='"flag"', every='"day"', privacy="{ f = 0.5, p = 0.5, q = 0.75 }"),
    "mean": one_metric(kind='"mean"', every='"day"', low="-3", high="5", privacy="{ epsilon = 1.0, gamma = 0.2 }"),
    "histogram": one_metric(kind='"histogram"', every='"day"', edges="[0, 1, 2, 3, 4, 5, 6, 7, 8]", sent="6",
                            privacy="{ report = 1.0, lifetime = 2.0 }"),
    "one bucket": one_metric(kind='"histogram"', every='"day"', edges="[0, 1, 2, 3, 4]", sent="1",
                             privacy="{ epsilon = 1.0, gamma = 0.2 }"),
    "one-time string": one_metric(kind='"string"', every='"once"', bits="16", hashes="1", cohorts="4",
                                  privacy="{ epsilon = 2.0 }"),
}  # fmt: skip

every_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


def encode(metric: Metric, value: object, secret: Secret) -> tuple[int, int]:
    cohort = secret.number % metric.encoding.cohorts
    return cohort, metric.encode(value, cohort, rounding_offset(metric, secret))


def report_of(metric: Metric, secret: Secret, remembered: int, or_these: int = 0) -> Report:
    bits = instantaneous_response(metric, remembered) | or_these
    return Report(
        metric.name,
        metric.version,
        privatize(METRICS["flag"], True, secret).period,
        secret.number % metric.encoding.cohorts,
        bits.to_bytes(metric.width, "little"),
    )


def never_flips_to_zero(metric: Metric, value: object, secret: Secret) -> Report:
    cohort, encoded = encode(metric, value, secret)
    return report_of(metric, secret, permanent_response(metric, secret, cohort, encoded), or_these=encoded)


def swaps_p_and_q(metric: Metric, value: object, secret: Secret, *, of: object) -> Report:
    """Lie where the truth is due and the other way round, for one of the values."""
    cohort, encoded = encode(metric, value, secret)
    if value == of:
        encoded ^= (1 << metric.size) - 1
    return report_of(metric, secret, permanent_response(metric, secret, cohort, encoded))


def forgets(metric: Metric, value: object, secret: Secret) -> Report:
    """Draw the permanent bits anew for each report."""
    cohort, encoded = encode(metric, value, secret)
    return report_of(metric, secret, permanent_response(metric, Secret.generate(), cohort, encoded))


def forgets_its_cohort_too(metric: Metric, value: object, secret: Secret) -> Report:
    return privatize(metric, value, Secret.generate())


class BrokenClient(Client):
    """A client that keeps and sends its reports itself, so that they can be broken."""

    def __init__(
        self, collector: str, *, registry: Registry, state: Path, enabled: bool, clock: Callable[[], datetime]
    ) -> None:
        super().__init__(collector, registry=registry, state=state, enabled=enabled, clock=clock)
        [self.metric] = registry.values()
        self.url = f"{collector}/v1/batches"
        self.now = clock
        self.forget()

    def forget(self) -> None:
        super().forget()
        self.secret = Secret.generate()
        self.kept: list[Report] = []

    def bits(self, value: object) -> int:
        raise NotImplementedError

    def record(self, metric: str, value: object) -> None:
        assert metric == self.metric.name
        report = privatize(self.metric, value, self.secret, day=self.now().date())
        packed = self.bits(value).to_bytes(self.metric.width, "little")
        self.kept.append(msgspec.structs.replace(report, bits=packed))

    def flush(self, timeout: float = 1.0) -> bool:
        if self.kept:
            body = encode_batch(Batch(new_batch_id(), tuple(self.kept)))
            requests.post(self.url, body, timeout=timeout).raise_for_status()
        return True


class SendsTheTruth(BrokenClient):
    def bits(self, value: object) -> int:
        return encode(self.metric, value, self.secret)[1]


class SkipsInstantaneous(BrokenClient):
    def bits(self, value: object) -> int:
        cohort, encoded = encode(self.metric, value, self.secret)
        return permanent_response(self.metric, self.secret, cohort, encoded)


class RepeatsItsFirstReport(BrokenClient):
    def bits(self, value: object) -> int:
        report = self.kept[0] if self.kept else privatize(self.metric, value, self.secret)
        return int.from_bytes(report.bits, "little")


class SometimesSendsTheTruth(BrokenClient):
    """Send one report in three as it is."""

    def bits(self, value: object) -> int:
        if int.from_bytes(os.urandom(8), "little") % 3 == 0:
            return encode(self.metric, value, self.secret)[1]
        return int.from_bytes(privatize(self.metric, value, self.secret).bits, "little")


class IsSilentAboutFalse(Client):
    def record(self, metric: str, value: object) -> None:
        if value is not False:
            super().record(metric, value)


class ReportsTwice(BrokenClient):
    def bits(self, value: object) -> int:
        self.kept.append(privatize(self.metric, value, self.secret, day=self.now().date()))
        return 0
