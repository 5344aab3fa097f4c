"""Tallies that were counted elsewhere are added to a store: all of them or none, beside what collectors count."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from sqlalchemy import select

from collector.oracle import METRIC, REGISTRY, Oracle
from collector.stores import DAY, counted, judged
from hubbub.collector import Tally
from hubbub.collector.errors import StoreRefusedError
from hubbub.collector.store import Store
from hubbub.collector.store.schema import tally as rows
from hubbub.shared import ParameterError


def test_what_is_added_is_there_and_adds_up(ready: Store) -> None:
    one, two, other = counted(1), counted(2), counted(3, DAY + timedelta(days=1))
    assert ready.add([one, two]) == one.reports + two.reports
    assert ready.add(iter([other, one])) == other.reports + one.reports
    assert ready.add([]) == 0
    assert ready.tally(METRIC, DAY, DAY) == one + two + one
    assert ready.tally(METRIC) == one + two + one + other
    assert ready.periods(METRIC) == 2


def test_a_tally_without_reports_leaves_no_period_behind(ready: Store) -> None:
    assert ready.add([Tally.empty(METRIC, DAY, DAY)]) == 0
    assert ready.periods(METRIC) == 0


def test_a_collector_that_counts_meanwhile_loses_nothing(ready: Store, address: str) -> None:
    """Its writer remembers rows: on SQLite it has to see that they changed, on PostgreSQL they have to be others."""
    oracle = Oracle()
    shard = ready.shard(REGISTRY)
    body, slots = oracle.batch(reports=1)
    shard.commit([judged(body)])
    added = counted(4, oracle.latest)
    ready.add([added])
    more, more_slots = oracle.batch(reports=1)
    shard.commit([judged(more)])
    total = ready.tally(METRIC, oracle.latest, oracle.latest)
    assert total.reports == added.reports + 2
    assert int(total.counts.sum()) == int(added.counts.sum()) + len(slots) + len(more_slots)
    with ready.engine.connect() as connection:
        shards = set(connection.scalars(select(rows.c.shard)))
    assert shards == ({0} if ready.engine.dialect.name == "sqlite" else {0, 1})
    other = Store(address)
    next_ = other.shard(REGISTRY)
    assert next_._shard == max(shards)  # nobody holds on to the one that was claimed
    for each in (shard, next_, other):
        each.close()
    for _ in range(2):
        ready.add([added])
    assert ready.tally(METRIC, oracle.latest, oracle.latest).reports == 3 * added.reports + 2


def impossible(tally: Tally) -> Tally:
    counts = tally.counts.copy()
    counts[0, 0] = tally.n[0] + 1
    return replace(tally, counts=counts)


@pytest.mark.parametrize(
    ("bad", "error", "told"),
    [
        (replace(counted(5), metric="nobody"), StoreRefusedError, "tally of nobody version 1: the store does not know"),
        (replace(counted(5), version=2), StoreRefusedError, "tally of oracle version 2: the store does not know"),
        (
            replace(counted(5), end=DAY + timedelta(days=1)),
            ParameterError,
            "2026-11-16 to 2026-11-17; allowed: one per",
        ),
        (counted(5, None), ParameterError, "covers None to None; allowed: one period"),
        (replace(counted(5), counts=np.zeros((512, 64), np.int64)), ParameterError, r"allowed: \(512, 128\)"),
        (replace(counted(5), n=-counted(5).n), ParameterError, "counts that no reports make"),
        (impossible(counted(5)), ParameterError, "counts that no reports make"),
    ],
    ids=["metric", "version", "periods", "no-period", "shape", "negative", "impossible"],
)
def test_a_bad_tally_is_refused_and_its_neighbours_with_it(
    ready: Store, bad: Tally, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        ready.add([counted(6), bad])
    assert ready.tally(METRIC).reports == 0


def test_more_than_can_be_counted_is_refused(ready: Store) -> None:
    tally = Tally.empty(METRIC, DAY, DAY)
    tally.n[3] = 1 << 62
    ready.add([tally])
    with pytest.raises(ParameterError, match="is too much for cohort 3"):
        ready.add([tally, tally])
    assert ready.tally(METRIC).reports == 1 << 62


def test_a_store_that_was_never_prepared_is_refused(store: Store) -> None:
    with pytest.raises(StoreRefusedError, match="nothing of hubbub in it"):
        store.add([counted(1)])
