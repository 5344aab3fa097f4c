"""What there is of each period, over all shards, in order."""

from datetime import date, timedelta

from sqlalchemy import insert, literal, select

from collector.oracle import METRIC
from collector.stores import DAY, counted
from hubbub.collector.store import Store
from hubbub.collector.store.by_period import reports_by_period, tallies_by_period
from hubbub.collector.store.schema import tally as rows


def days(number: int) -> list[date]:
    return [DAY + timedelta(days=each) for each in range(number)]


def test_shards_of_a_period_add_up(ready: Store) -> None:
    told = [counted(number, day) for number, day in enumerate(days(3))]
    ready.add(told)
    with ready.engine.begin() as connection:  # as if another replica had counted the same
        columns = [column if column.name != "shard" else literal(7) for column in rows.c]
        connection.execute(insert(rows).from_select(list(rows.c), select(*columns)))
    assert tallies_by_period(ready, METRIC, None, None, most=10) == [tally + tally for tally in told]
    key = (METRIC.name, METRIC.version)
    assert reports_by_period(ready) == {key: {day: 2 * tally.reports for day, tally in zip(days(3), told, strict=True)}}
    assert reports_by_period(ready, "another") == {}


def test_the_last_periods_are_given_within_a_span(ready: Store) -> None:
    told = [counted(number, day) for number, day in enumerate(days(5))]
    ready.add(told)
    assert tallies_by_period(ready, METRIC, None, None, most=2) == told[3:]
    assert tallies_by_period(ready, METRIC, days(5)[1], days(5)[2], most=9) == told[1:3]
    assert tallies_by_period(ready, METRIC, DAY + timedelta(days=9), None, most=9) == []
