"""Step two, the permanent response: memoised, so that averaging over days reveals nothing new.

The randomness is a function of the secret, the fingerprint of the metric, the cohort and the *encoded bits*. Keyed by
the fingerprint, two declarations never share a draw, even under one name and version. Keyed by the encoding and not by
the value, a number that drifts keeps its two answers, and two strings with the same bits share one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hubbub.shared.metric import Metric
    from hubbub.shared.secret import Secret


def rounding_offset(metric: Metric, secret: Secret) -> int:
    """Draw the device's offset for randomised rounding, uniform on the metric's offsets (a power of two)."""
    if metric.encoding.offsets == 1:
        return 0
    return int.from_bytes(secret.stream(b"offset\0" + metric.identity)(8), "little") % metric.encoding.offsets


def permanent_response(metric: Metric, secret: Secret, cohort: int, encoded: int) -> int:
    """Answer with the bits that this device gives for this encoding for ever."""
    # The cohort in two bytes, then the encoded bits: one integer, because each piece of the message costs time.
    question = (encoded << 16 | cohort).to_bytes(metric.width + 2, "little")
    return metric.response.permanent(encoded, metric.size, secret.stream(b"permanent\0" + metric.identity + question))
