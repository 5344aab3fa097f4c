"""Step three, the instantaneous response: fresh for every report, so that permanent bits do not become a name tag."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hubbub.shared.metric import Metric


def instantaneous_response(metric: Metric, remembered: int) -> int:
    """Answer with the bits to send, drawn with the operating system's randomness."""
    return metric.response.instantaneous(remembered, metric.size, os.urandom)
