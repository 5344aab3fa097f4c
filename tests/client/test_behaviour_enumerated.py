"""The whole behaviour of a device, written out: what the client makes of every history of values, silence included.

The encodings come from the client's own `record`. What each is randomised to is multiplied out, over every permanent
answer and every report, and the worst ratio of any two histories is compared with the stated epsilon, to 1e-9.
"""

import math
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from client.clients import MONDAY
from client.one_metric import CATEGORY, FLAG, HISTOGRAM, MEAN, STRING, watch_encodings
from hubbub.client.ledger import Ledger, costs
from hubbub.client.recording import record
from hubbub.client.state import State
from hubbub.shared import Metric, Secret, ValueRefusedError
from hubbub.shared.budget import cost_of_changes
from hubbub.shared.encode import NULL, Rounding
from hubbub.shared.permanent import rounding_offset
from shared.brute_force import outputs, worst_ratio
from shared.registries import one_metric

OFFSETS = 4
REPORTS = 3

RAPPOR = {"privacy": "{ f = 0.5, p = 0.3, q = 0.8 }"}
MICROSOFT = {"privacy": "{ epsilon = 1, gamma = 0.2 }"}
ONCE = {"every": '"once"', "privacy": "{ epsilon = 1.5 }"}
BLOOM = {key: STRING[key] for key in ("kind", "hashes", "cohorts")} | {"bits": "2"}
THREE = {"edges": "[0, 1, 2, 3]"}

METRICS: dict[str, tuple[dict[str, str], list[object]]] = {
    "string": (STRING | {"bits": "2"}, ["a", "f", "b", "", None]),
    "string of two hashes": (STRING | {"bits": "3", "hashes": "2"}, ["a", "b", "c", "d", ""]),
    "string with RAPPOR's parameters": (STRING | {"bits": "2"} | RAPPOR, ["a", "f", "b", ""]),
    "string with little room": (STRING | {"bits": "2", "lifetime_values": "2"}, ["a", "f", "b", ""]),
    "string of one bit": (STRING | {"bits": "1"}, ["a", "b", ""]),
    "category": (CATEGORY, ["a", "b", "c"]),
    "category with little room": (CATEGORY | {"lifetime_values": "2"}, ["a", "b", "c"]),
    "category with RAPPOR's parameters": (CATEGORY | RAPPOR, ["a", "b", 3]),
    "flag": (FLAG, [True, False, "true"]),
    "flag with little room": (FLAG | {"lifetime_values": "1"}, [True, False, None]),
    "flag with RAPPOR's parameters": (FLAG | RAPPOR, [True, False, None]),
    "mean": (MEAN | {"high": "4"}, [0, 1, 2, 4, 5, math.nan]),
    "mean with Microsoft's parameters": (MEAN | {"high": "4"} | MICROSOFT, [0, 2, 4, "2"]),
    "histogram": (HISTOGRAM, [0.5, 1.5, math.nan]),
    "histogram of some buckets": (HISTOGRAM | THREE, [0.5, 1.5, 2.5, 7, None]),
    "histogram of one bucket": (HISTOGRAM | THREE | {"sent": "1"}, [0.5, 1.5, 2.5, None]),
    "histogram with Microsoft's parameters": (HISTOGRAM | MICROSOFT, [0.5, 1.5, math.inf]),
    "string, once": (BLOOM | ONCE, ["a", "f", ""]),
    "flag, once": (FLAG | ONCE, [True, False, 0]),
    "mean, once": (MEAN | {"high": "4"} | ONCE, [0, 1, 4, math.nan]),
}  # fmt: skip

Distribution = npt.NDArray[np.float64]
History = tuple[int, ...]


def metric_of(keys: dict[str, str]) -> Metric:
    metric = one_metric(**keys)
    if isinstance(metric.encoding, Rounding):
        return replace(metric, encoding=replace(metric.encoding, offsets=OFFSETS))
    return metric


def devices(metric: Metric, cohort: int) -> list[Secret]:
    """A device of a cohort for every rounding offset: all that the secret decides besides the draws."""
    found: dict[int, Secret] = {}
    number = 0
    while len(found) < metric.encoding.offsets:
        number += 1
        secret = Secret(sha256(b"%d" % number).digest())
        if secret.number % metric.encoding.cohorts == cohort:
            found.setdefault(rounding_offset(metric, secret), secret)
    return [found[offset] for offset in sorted(found)]


def reveal(state: State, metric: Metric, secret: Secret, values: tuple[object, ...], revealed: list[int]) -> History:
    """Record a value on each of some days; return the encodings that the client reports."""
    del revealed[:]
    with state.transaction() as connection:
        for table in ("open", "done", "revealed", "ledger"):
            connection.execute(f"DELETE FROM {table}")
        ledger = Ledger(connection, {metric.name: metric}, math.inf)
        for number, value in enumerate(values):
            before = len(revealed)
            record(connection, ledger, metric, value, secret, MONDAY.date() + timedelta(days=number))
            assert len(revealed) == before + 1  # a report, whatever the value
    return tuple(revealed)


def chances(metric: Metric, encodings: History) -> Distribution:
    """The probability of every sequence of reports; reports of one encoding share its permanent answer."""
    total: Distribution = np.ones((1,) * len(encodings))
    for encoding in set(encodings):
        days = [day for day, each in enumerate(encodings) if each == encoding]
        table = outputs(metric.response, metric.size, len(days))[encoding]
        shape = [1 << metric.size if day in days else 1 for day in range(len(encodings))]
        total = total * table.reshape(shape)
    return total.ravel()


@pytest.mark.parametrize("name", METRICS)
def test_stated_epsilons_are_those_of_the_whole_behaviour(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, values = METRICS[name]
    metric, revealed = metric_of(keys), watch_encodings(monkeypatch)
    state = State(tmp_path / "state.db")
    most = 1 if metric.every == "once" else REPORTS
    worst = dict.fromkeys((*range(1, most + 1), math.inf), 0.0)
    for cohort in range(metric.encoding.cohorts):
        secrets = devices(metric, cohort)
        for reports in range(1, most + 1):
            steady = [
                [reveal(state, metric, secret, (value,) * reports, revealed) for secret in secrets] for value in values
            ]
            rows = [np.mean([chances(metric, history) for history in histories], axis=0) for histories in steady]
            worst[reports] = max(worst[reports], worst_ratio(rows))
            permanent = outputs(metric.response, metric.size, 0)
            rows = [np.mean([permanent[history[0]] for history in histories], axis=0) for histories in steady]
            worst[math.inf] = max(worst[math.inf], worst_ratio(rows))
    for reports, epsilon in worst.items():
        assert epsilon == pytest.approx(metric.epsilon(reports), abs=1e-9)


@pytest.mark.parametrize("name", [name for name in METRICS if "once" not in name])
def test_values_that_change_cost_what_is_stated(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between histories that change alike: a lifetime for each encoding. Between any two: the cost of the changes."""
    keys, values = METRICS[name]
    metric, revealed = metric_of(keys), watch_encodings(monkeypatch)
    state = State(tmp_path / "state.db")
    secret = devices(metric, 0)[-1]  # one device: averaging over offsets could only hide something
    histories = {reveal(state, metric, secret, each, revealed) for each in product(values, repeat=REPORTS)}
    assert metric.encodings is not None
    alike: dict[History, list[Distribution]] = {}
    rows = []
    for history in sorted(histories):
        assert len(set(history)) <= metric.encodings
        rows.append(chances(metric, history))
        alike.setdefault(tuple(history.index(encoding) for encoding in history), []).append(rows[-1])
    for pattern, same in alike.items():
        assert worst_ratio(same) <= len(set(pattern)) * metric.epsilon(REPORTS) + 1e-9 <= metric.max_epsilon + 1e-9
    assert worst_ratio(rows) <= cost_of_changes(metric, REPORTS) + 1e-9


@pytest.mark.parametrize("first", ["string", "flag", "mean"])
def test_two_versions_and_two_declarations_cost_the_sum_in_the_ledger(first: str, tmp_path: Path) -> None:
    """The draws of two declarations are independent, so their joint distribution is the product of both."""
    keys, values = METRICS[first]
    two = [metric_of(keys), metric_of(keys | {"version": "2"}), metric_of(keys | RAPPOR_OR_OTHER[first])]
    assert len({metric.identity for metric in two}) == 3
    secret = devices(two[0], 0)[0]
    for one, other in ((two[0], two[1]), (two[0], two[2])):
        encoded = [[encode(metric, value, secret) for metric in (one, other)] for value in values]
        rows = []
        for bits, other_bits in encoded:
            first_answer, second_answer = (
                outputs(metric.response, metric.size, 0)[each] for metric, each in ((one, bits), (other, other_bits))
            )
            rows.append(np.outer(first_answer, second_answer).ravel())
        ledger_shows = one.epsilon(math.inf) + other.epsilon(math.inf)
        assert worst_ratio(rows) <= ledger_shows + 1e-9
    state = State(tmp_path / "state.db")
    with state.transaction() as connection:
        for metric in two[:2]:
            ledger = Ledger(connection, {metric.name: metric}, math.inf)
            assert record(connection, ledger, metric, values[0], secret, MONDAY.date()) is None
        ledger = Ledger(connection, {two[2].name: two[2]}, math.inf)
        assert record(connection, ledger, two[2], values[0], secret, MONDAY.date()) == "other_declaration"
        [(name, cost)] = costs(connection).items()
    assert name == "it"
    assert cost.reserved == pytest.approx(two[0].max_epsilon + two[1].max_epsilon)


RAPPOR_OR_OTHER = {"string": RAPPOR, "flag": RAPPOR, "mean": MICROSOFT}


def encode(metric: Metric, value: object, secret: Secret) -> int:
    try:
        return metric.encode(value, 0, rounding_offset(metric, secret))
    except ValueRefusedError:
        return NULL
