"""Periods: one report each, when it is over, whatever the clock does."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

from client.clients import MONDAY, balanced, make
from hubbub.client import Stats
from hubbub.client.testing import FrozenClock, InMemoryCollector


def test_a_report_goes_after_its_period_and_a_random_delay(
    tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
) -> None:
    client = make(tmp_path, clock, collector.url)
    client.record("homepage", "example.org")
    assert client.flush()
    assert collector.reports == []
    clock.advance(hours=14.4)  # 23:54: the day is not over
    assert client.flush()
    assert collector.reports == []
    clock.advance(hours=6.2)  # 06:06: a quarter of a day has passed since midnight
    assert client.flush()
    [report] = collector.reports
    assert (report.metric, report.version, report.period) == ("homepage", 1, MONDAY.date())
    assert balanced(client) == Stats(recorded=1, sent=1)


def test_delays_are_spread_over_a_quarter_of_the_period(tmp_path: Path, clock: FrozenClock) -> None:
    """Of 60 clients, all draw a delay in range; the chance that all fall into one half of it is 2 * 2^-60."""
    moments = []
    for number in range(60):
        client = make(tmp_path / str(number), clock)
        client.record("crashed", True)
        with sqlite3.connect(tmp_path / str(number) / "app" / "hubbub.db") as database:
            moments += [row[0] for row in database.execute("SELECT due FROM open")]
        database.close()
    end = datetime(2026, 11, 17, tzinfo=UTC).timestamp()
    assert all(end <= moment <= end + 6 * 3600 for moment in moments)
    assert min(moments) < end + 3 * 3600 < max(moments)


def test_weeks_end_on_sunday(tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector) -> None:
    client = make(tmp_path, clock, collector.url)
    clock.advance(days=2)
    client.record("theme", "dark")
    clock.advance(days=4.5)
    client.flush()
    assert collector.reports == []
    clock.advance(days=2.5)
    client.flush()
    [report] = collector.reports
    assert report.period == MONDAY.date()


def test_one_report_a_period_however_often_it_is_recorded(
    tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
) -> None:
    client = make(tmp_path, clock, collector.url)
    for _ in range(3):
        for _ in range(5):
            client.record("homepage", "example.org")
        clock.advance(days=1)
    clock.advance(days=1)
    assert client.flush()
    assert sorted(report.period.day for report in collector.reports) == [16, 17, 18]
    assert balanced(client).recorded == 3


def test_once_is_once_for_ever(tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector) -> None:
    client = make(tmp_path, clock, collector.url)
    for _ in range(4):
        client.record("language", "eo")
        clock.advance(days=2)
        client.flush()
    clock.advance(days=900)
    client.record("language", "eo")
    client.flush()
    assert len(collector.reports) == 1
    assert balanced(client).refused == {"period_over": 4}


def test_a_clock_put_back_makes_no_second_report(
    tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
) -> None:
    client = make(tmp_path, clock, collector.url)
    client.record("crashed", True)
    clock.advance(days=2)
    client.flush()
    clock.advance(days=-2)
    client.record("crashed", True)
    clock.advance(days=2)
    client.flush()
    assert len(collector.reports) == 1
    assert balanced(client).refused == {"period_over": 1}


def test_a_clock_put_forward_loses_nothing(tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector) -> None:
    client = make(tmp_path, clock, collector.url)
    client.record("crashed", True)
    clock.advance(days=3000)
    client.record("crashed", True)
    client.flush()
    clock.advance(days=2)
    client.flush()
    assert len(collector.reports) == 2
    assert balanced(client).sent == 2


def test_a_clock_put_back_by_years_makes_no_second_report(
    tmp_path: Path, clock: FrozenClock, collector: InMemoryCollector
) -> None:
    client = make(tmp_path, clock, collector.url)
    client.record("crashed", True)
    for _ in range(2):
        clock.advance(days=900)
        client.record("crashed", True)
        client.flush()
    clock.advance(days=-1800)
    client.record("crashed", True)
    assert balanced(client).refused == {"period_over": 1}
