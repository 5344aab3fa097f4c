"""Metrics of each kind, as keys of a registry, and a look at the encodings that a client reveals of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from client.clients import make
from hubbub.client import Client, recording
from hubbub.client.privatizing import respond
from hubbub.client.testing import FrozenClock
from hubbub.shared import Metric, Registry, Secret
from shared.registries import text_of

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


def device(tmp_path: Path, clock: FrozenClock, url: str | None, keys: dict[str, str], **options: Any) -> Client:
    """A client with one metric, called `it`."""
    return make(tmp_path, clock, url, registry=Registry.parse(text_of(keys)), **options)
