"""What there is of each period, over all shards, in order; and what of it is read again."""

from collections.abc import Collection
from datetime import date, timedelta

import pytest
from sqlalchemy import delete, insert, literal, select

from collector.oracle import METRIC
from collector.stores import DAY, counted
from hubbub.collector import Tally
from hubbub.collector.store import Store, by_period
from hubbub.collector.store.by_period import KeptTallies, reports_by_period, tallies_by_period
from hubbub.collector.store.schema import tally as rows
from hubbub.shared.metric import Metric

KEY = (METRIC.name, METRIC.version)


def days(number: int) -> list[date]:
    return [DAY + timedelta(days=each) for each in range(number)]


def test_shards_of_a_period_add_up(ready: Store) -> None:
    told = [counted(number, day) for number, day in enumerate(days(3))]
    ready.add(told)
    with ready.engine.begin() as connection:  # as if another replica had counted the same
        columns = [column if column.name != "shard" else literal(7) for column in rows.c]
        connection.execute(insert(rows).from_select(list(rows.c), select(*columns)))
    twice = {tally.start: tally + tally for tally in told}
    assert tallies_by_period(ready, METRIC, days(3)) == twice
    assert reports_by_period(ready) == {KEY: {day: 2 * tally.reports for day, tally in zip(days(3), told, strict=True)}}
    assert reports_by_period(ready, "another") == {}


def test_only_the_periods_that_were_asked_for_are_given(ready: Store) -> None:
    told = [counted(number, day) for number, day in enumerate(days(5))]
    ready.add(told)
    asked = [days(5)[1], days(5)[3], DAY + timedelta(days=9)]
    assert tallies_by_period(ready, METRIC, asked) == {asked[0]: told[1], asked[1]: told[3]}
    assert tallies_by_period(ready, METRIC, []) == {}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[date]]:
    """The periods that were read, each time that some were."""
    asked: list[list[date]] = []

    def listen(store: Store, metric: Metric, periods: Collection[date]) -> dict[date, Tally]:
        asked.append(sorted(periods))
        return tallies_by_period(store, metric, periods)

    monkeypatch.setattr(by_period, "tallies_by_period", listen)
    return asked


def test_only_what_has_changed_is_read_again(ready: Store, read: list[list[date]]) -> None:
    told = [counted(number, day) for number, day in enumerate(days(4))]
    ready.add(told[:3])
    kept = KeptTallies()
    assert list(kept.read(ready, METRIC, reports_by_period(ready)[KEY]).items()) == list(
        zip(days(3), told, strict=False)
    )
    assert kept.read(ready, METRIC, reports_by_period(ready)[KEY]) == dict(zip(days(3), told, strict=False))
    ready.add([told[3], counted(9, days(3)[1])])
    again = kept.read(ready, METRIC, reports_by_period(ready)[KEY])
    assert again == {**dict(zip(days(4), told, strict=True)), days(3)[1]: told[1] + counted(9, days(3)[1])}
    assert read == [days(3), [], [days(4)[1], days(4)[3]]]


def test_periods_that_are_gone_are_given_no_more(ready: Store) -> None:
    ready.add([counted(number, day) for number, day in enumerate(days(2))])
    kept, known = KeptTallies(), reports_by_period(ready)[KEY]
    kept.read(ready, METRIC, known)
    with ready.engine.begin() as connection:
        connection.execute(delete(rows).where(rows.c.period == DAY))
    assert list(kept.read(ready, METRIC, {**known, DAY: 1})) == days(2)[1:], "counted before, and purged since"


def test_no_more_is_kept_than_there_is_room_for(
    ready: Store, read: list[list[date]], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [counted(number, day) for number, day in enumerate(days(3))]
    ready.add(told)
    monkeypatch.setattr(by_period, "KEPT_BYTES", 2 * told[0].counts.nbytes)
    kept, known = KeptTallies(), reports_by_period(ready)[KEY]
    for _ in range(2):
        assert kept.read(ready, METRIC, known) == dict(zip(days(3), told, strict=True))
    kept.read(ready, METRIC, {day: known[day] for day in days(3)[1:]})
    assert read == [days(3), days(1), []]
