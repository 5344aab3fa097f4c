"""Metrics of each kind, as keys of a registry, and a look at the encodings that a client reveals of them."""

from collections.abc import Callable
from typing import Any

import pytest

from hubbub.client import recording
from hubbub.client.privatizing import respond
from hubbub.shared import Metric, Secret

STRING = {"kind": '"string"', "every": '"day"', "bits": "16", "hashes": "1", "cohorts": "1", "lifetime_values": "4"}
STRING["privacy"] = "{ report = 1, lifetime = 2 }"
CATEGORY = {"kind": '"category"', "every": '"day"', "categories": '["a", "b"]', "privacy": STRING["privacy"]}
FLAG = {"kind": '"flag"', "every": '"day"', "privacy": STRING["privacy"]}
MEAN = {"kind": '"mean"', "every": '"day"', "low": "0", "high": "10", "privacy": STRING["privacy"]}
HISTOGRAM = {"kind": '"histogram"', "every": '"day"', "edges": "[0, 1, 2]", "sent": "2", "privacy": STRING["privacy"]}
SUM = MEAN | {"combine": '"sum"'}


def watch(monkeypatch: pytest.MonkeyPatch, see: Callable[[Metric, int, Secret], object]) -> None:
    """Call a function with every encoding that is made into a report."""

    def watched(metric: Metric, encoded: int, secret: Secret, day: Any) -> Any:
        see(metric, encoded, secret)
        return respond(metric, encoded, secret, day)

    monkeypatch.setattr(recording, "respond", watched)


def watch_encodings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    encodings: list[int] = []
    watch(monkeypatch, lambda _, encoded, __: encodings.append(encoded))
    return encodings
