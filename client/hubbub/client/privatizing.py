"""How a value becomes a report: the client's three steps in a row, with no input or output but randomness."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.shared.instantaneous import instantaneous_response
from hubbub.shared.period import period_of, today
from hubbub.shared.permanent import permanent_response, rounding_offset
from hubbub.shared.secret import Secret
from hubbub.shared.wire import Report

if TYPE_CHECKING:
    from datetime import date

    from hubbub.shared.metric import Metric


def encode(metric: Metric, value: object, secret: Secret) -> int:
    """Encode a value as this device does: in its cohort, with its rounding offset."""
    encoding = metric.encoding
    offset = rounding_offset(metric, secret) if encoding.offsets > 1 else 0
    return metric.encode(value, secret.number % encoding.cohorts, offset)


def respond(metric: Metric, encoded: int, secret: Secret, day: date) -> Report:
    """Randomise encoded bits: the answer that this device gives forever, then fresh noise."""
    cohort = secret.number % metric.encoding.cohorts
    remembered = permanent_response(metric, secret, cohort, encoded)
    packed = instantaneous_response(metric, remembered).to_bytes(metric.width, "little")
    return Report(metric.name, metric.version, period_of(metric.every, day), cohort, packed)


def privatize(metric: Metric, value: object, secret: Secret | bytes, *, day: date | None = None) -> Report:
    """Randomise a value on the device: the report is safe to send, once.

    `secret` is the device's own, `day` the day of the value (by default today, in UTC). Calling again draws fresh
    noise, and spends privacy again.
    """
    device = secret if isinstance(secret, Secret) else Secret(secret)
    return respond(metric, encode(metric, value, device), device, day or today())
