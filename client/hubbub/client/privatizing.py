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


def encode(metric: Metric, value: object, secret: Secret) -> tuple[int, int]:
    """Tell a device's cohort in a metric, and the bits of a value there."""
    cohort = secret.number % metric.encoding.cohorts
    offset = rounding_offset(metric, secret) if metric.encoding.offsets > 1 else 0
    return cohort, metric.encode(value, cohort, offset)


def privatize(metric: Metric, value: object, secret: Secret | bytes, *, day: date | None = None) -> Report:
    """Randomise a value on the device: what comes back is safe to send, once.

    Encode, then the answer this device gives for ever, then fresh noise. `secret` is the device's own, `day` the day
    the value was seen on (today, in UTC, unless told). Calling again draws again, and spends privacy again.
    """
    device = secret if isinstance(secret, Secret) else Secret(secret)
    cohort, encoded = encode(metric, value, device)
    remembered = permanent_response(metric, device, cohort, encoded)
    packed = instantaneous_response(metric, remembered).to_bytes(metric.width, "little")
    return Report(metric.name, metric.version, period_of(metric.every, day or today()), cohort, packed)
