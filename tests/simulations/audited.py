"""Metrics to audit, and clients that are broken on purpose."""

from pathlib import Path

import pytest

from hubbub.client import privatize
from hubbub.client.privatizing import encode
from hubbub.shared import Metric, Secret
from hubbub.shared.instantaneous import instantaneous_response
from hubbub.shared.permanent import permanent_response
from hubbub.shared.wire import Report
from shared.registries import one_metric

DEMO = Path(__file__).parents[2] / "simulations/hubbub/simulations/demo.toml"
SURE = 1 - 1e-7
"""A confidence at which nothing is accused by chance."""

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
