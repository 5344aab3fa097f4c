"""Lists of operations: whatever happens in whatever order, nothing is lost and nothing counts twice.

Two replicas share one store. Hypothesis makes up what happens to them: uploads, replays to the same and to the other
one, batches that are malformed, periods that are too old or too early, purges, restarts (which also look for
migrations), days that pass, and faults of the store just before and just after a commit. A model tells what each answer
and each tally has to be. A list that fails is shrunk by Hypothesis, and belongs below as a test with a name.
"""

import itertools
import uuid
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from flask import Flask
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from sqlalchemy import select

from collector.apps import collector_of, post
from collector.oracle import BITS, METRIC, REGISTRY
from hubbub.collector import create_app, writer
from hubbub.collector.acceptance import DEFAULT_DAYS_AHEAD, DEFAULT_DAYS_BACK
from hubbub.collector.collector import CLOCK_DAYS, Collector
from hubbub.collector.store import Store
from hubbub.collector.store.schema import horizon
from hubbub.shared import Batch, Report, encode_batch

if TYPE_CHECKING:
    from collector.postgres import Postgres

pytestmark = pytest.mark.unmeasured

START = date(2026, 11, 16)
KEEP_DAYS = 40
REPLICAS = st.sampled_from([0, 1])
MOMENTS = st.sampled_from(["before", "after"])
AGES = st.sets(st.sampled_from([0, 1, 14, 15, 20, -1, -2]), min_size=1, max_size=3)
"""Few different ones, on both sides of both ends of the window, so that batches meet on the same days."""


Days = frozenset[date]


class Sent:
    """A batch, with a bit of its own in each of its reports."""

    def __init__(self, number: int, days: list[date]) -> None:
        self.number = number
        self.days = days
        cohort, bit = divmod(number, BITS)
        packed = (1 << bit).to_bytes(BITS // 8, "little")
        reports = tuple(Report("oracle", 1, day, cohort, packed) for day in days)
        self.body = encode_batch(Batch(f"{number:032x}", reports))


class Replicas(RuleBasedStateMachine):
    """Two collectors on one store, and a model of what has to be in it."""

    batches: Bundle[Sent] = Bundle("batches")

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address
        self._numbers = itertools.count()
        self.today = START
        self.fault: str | None = None
        self.counted: dict[int, Days] = {}
        """The days of each batch that are surely counted."""
        self.unknown: dict[int, list[Days]] = {}
        """Those that are counted if one of the commits that failed did happen: the next answer tells whether."""
        self.ids: dict[int, date] = {}
        """Until when the store has to remember each batch."""
        self.apps = [self._start() for _ in range(2)]

    def _start(self) -> Flask:
        app = create_app(registry=REGISTRY, store=self._address, clock=lambda: self.today, keep_days=KEEP_DAYS)
        assert collector_of(app).writer.wait_until_ready(30)
        dialect = collector_of(app).store.engine.dialect
        commit, lost = dialect.do_commit, dialect.loaded_dbapi.OperationalError

        def do_commit(connection: object) -> None:
            if self.fault == "before":
                raise lost("the connection is gone")
            commit(connection)  # type: ignore[arg-type]
            if self.fault == "after":
                raise lost("the connection is gone")

        dialect.do_commit = do_commit  # type: ignore[method-assign, assignment]
        return app

    @property
    def store(self) -> Store:
        return collector_of(self.apps[0]).store

    def _on_time(self, sent: Sent) -> Days:
        with self.store.engine.connect() as connection:
            first = connection.scalar(select(horizon.c.day))
        assert first is not None
        oldest = max(first, self.today - timedelta(days=DEFAULT_DAYS_BACK))
        return frozenset(day for day in sent.days if oldest <= day <= self.today + timedelta(days=DEFAULT_DAYS_AHEAD))

    def _upload(self, replica: int, sent: Sent) -> None:
        on_time = self._on_time(sent)
        answer = post(self.apps[replica].test_client(), sent.body)
        number = sent.number
        if answer.status_code == 503:
            assert self.fault is not None
            if number not in self.ids:
                self.unknown.setdefault(number, []).append(on_time)
            return
        told = answer.get_json()
        assert {sent.days[each["index"]] for each in told["rejected"]} == set(sent.days) - on_time
        assert told["accepted"] == len(on_time)
        if number in self.ids:
            assert told["duplicate"] is bool(on_time)
        elif told["duplicate"]:
            # Only a commit that seemed to fail can have escaped the model; the store tells which one it was.
            found = frozenset(day for each, day in self._found(sent.days) if each == number)
            before = self.counted.get(number, frozenset())
            assert found - before in self.unknown.pop(number)
            self.counted[number] = found
            self.ids[number] = max(found - before)
        elif on_time:
            self.unknown.pop(number, None)
            assert not self.counted.get(number, frozenset()) & on_time
            self.counted[number] = self.counted.get(number, frozenset()) | on_time
            self.ids[number] = max(on_time)

    @rule(target=batches, replica=REPLICAS, ages=AGES)
    def upload(self, replica: int, ages: set[int]) -> Sent:
        """Hand in a new batch."""
        return self._upload_new(replica, ages)

    def _upload_new(self, replica: int, ages: set[int]) -> Sent:
        sent = Sent(next(self._numbers), [self.today - timedelta(days=age) for age in sorted(ages)])
        self._upload(replica, sent)
        return sent

    @rule(replica=REPLICAS, sent=batches)
    def replay(self, replica: int, sent: Sent) -> None:
        """Hand a batch in again, perhaps to the other replica, perhaps days later."""
        self._upload(replica, sent)

    @rule(replica=REPLICAS, sent=batches, cut=st.integers(1, 60))
    def bad_batch(self, replica: int, sent: Sent, cut: int) -> None:
        """Hand in what is not a batch, under the id of one that is."""
        assert post(self.apps[replica].test_client(), sent.body[:-cut]).status_code in {400, 422}

    @rule(replica=REPLICAS)
    def purge(self, replica: int) -> None:
        """Let go of what is refused anyway, and of what is kept no longer."""
        collector_of(self.apps[replica]).purge()
        refused = self.today - timedelta(days=DEFAULT_DAYS_BACK + CLOCK_DAYS)
        kept = self.today - timedelta(days=KEEP_DAYS)
        self.ids = {number: until for number, until in self.ids.items() if until >= refused}
        self.counted = {number: _since(kept, days) for number, days in self.counted.items()}
        self.unknown = {number: [_since(kept, days) for days in ways] for number, ways in self.unknown.items()}

    @rule(days=st.integers(1, 10))
    def days_pass(self, days: int) -> None:
        self.today += timedelta(days=days)

    @rule(replica=REPLICAS)
    def restart(self, replica: int) -> None:
        assert collector_of(self.apps[replica]).close(30)
        self.apps[replica] = self._start()

    @rule(target=batches, replica=REPLICAS, ages=AGES, moment=MOMENTS)
    def upload_with_fault(self, replica: int, ages: set[int], moment: str) -> Sent:
        with self._failing(replica, moment):
            return self._upload_new(replica, ages)

    @rule(replica=REPLICAS, sent=batches, moment=MOMENTS)
    def replay_with_fault(self, replica: int, sent: Sent, moment: str) -> None:
        with self._failing(replica, moment):
            self._upload(replica, sent)

    def _failing(self, replica: int, moment: str) -> "_Failing":
        return _Failing(self, replica, moment)

    @invariant()
    def exact(self) -> None:
        """What was counted is there, once; what may have been is there at most once; nothing else is there."""
        sure = {(number, day) for number, days in self.counted.items() for day in days}
        perhaps = {(number, day) for number, ways in self.unknown.items() for days in ways for day in days}
        found = self._found({day for _, day in sure | perhaps})
        assert sure <= found, "lost"
        for number in {number for number, _ in found - sure}:
            assert frozenset(day for each, day in found - sure if each == number) in self.unknown[number], "half of it"
        assert self.store.tally(METRIC).reports == len(found)

    def _found(self, days: Iterable[date]) -> set[tuple[int, date]]:
        """Batches that are counted in the store, by their number, on some days."""
        found = set()
        for day in set(days):
            tally = self.store.tally(METRIC, day, day)
            assert tally.counts.max() <= 1, "counted twice"
            assert (tally.counts.sum(axis=1) == tally.n).all()
            found |= {(int(cohort) * BITS + int(bit), day) for cohort, bit in zip(*tally.counts.nonzero(), strict=True)}
        return found

    def teardown(self) -> None:
        for app in self.apps:
            assert collector_of(app).close(30)


def _since(first: date, days: Days) -> Days:
    return frozenset(day for day in days if day >= first)


class _Failing:
    """While it lasts, commits fail; afterwards the replica has found its way back."""

    def __init__(self, replicas: Replicas, replica: int, moment: str) -> None:
        self._replicas, self._replica, self._moment = replicas, replica, moment

    def __enter__(self) -> None:
        self._replicas.fault = self._moment

    def __exit__(self, *_: object) -> None:
        self._replicas.fault = None
        assert collector_of(self._replicas.apps[self._replica]).writer.wait_until_ready(30)


@pytest.fixture(params=["sqlite", "postgresql"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Replicas]:
    """Makes two replicas on a store that nobody has used."""
    monkeypatch.setattr(writer, "FIRST_RETRY_SECONDS", 0.001)
    monkeypatch.setattr(Collector, "_keep_house", lambda _: None)  # purges happen when the list says so

    def address(name: str) -> str:
        if request.param == "sqlite":
            return f"sqlite:///{tmp_path}/{name}.db"
        server: Postgres = request.getfixturevalue("postgres")
        return server.database(name)

    def make() -> Replicas:
        return Replicas(address(uuid.uuid4().hex))

    return make


def test_nothing_is_lost_and_nothing_counts_twice(fresh: Callable[[], Replicas]) -> None:
    go_through(fresh, lists=20, steps=25)


@pytest.mark.slow
@pytest.mark.parametrize(("fresh", "lists"), [("sqlite", 200), ("postgresql", 60)], indirect=["fresh"])
def test_nothing_is_lost_and_nothing_counts_twice_in_many_lists(fresh: Callable[[], Replicas], lists: int) -> None:
    go_through(fresh, lists, steps=50)


def go_through(fresh: Callable[[], Replicas], lists: int, steps: int) -> None:
    limits = settings(max_examples=lists, stateful_step_count=steps)
    run_state_machine_as_test(fresh, settings=limits)  # type: ignore[arg-type]


def listed(make: Callable[[], Replicas], *steps: Callable[[Replicas], object]) -> None:
    """Go through a list of operations, looking at everything after each."""
    replicas = make()
    for step in steps:
        step(replicas)
        replicas.exact()
    replicas.teardown()


def test_a_commit_that_seemed_to_fail_counts_once_at_the_other_replica(fresh: Callable[[], Replicas]) -> None:
    sent = Sent(7, [START])
    listed(
        fresh,
        partial(Replicas.replay_with_fault, replica=0, sent=sent, moment="after"),
        partial(Replicas.replay, replica=1, sent=sent),
        partial(Replicas.replay, replica=0, sent=sent),
    )


def test_a_commit_that_failed_is_made_good_by_the_retry(fresh: Callable[[], Replicas]) -> None:
    sent = Sent(7, [START])
    listed(
        fresh,
        partial(Replicas.replay_with_fault, replica=0, sent=sent, moment="before"),
        partial(Replicas.replay, replica=1, sent=sent),
    )


def test_a_replay_after_the_purge_of_its_id_is_refused(fresh: Callable[[], Replicas]) -> None:
    """The other replica's clock may be behind; the store's horizon is the same for both."""
    sent = Sent(7, [START])
    listed(
        fresh,
        partial(Replicas.replay, replica=0, sent=sent),
        partial(Replicas.days_pass, days=17),
        partial(Replicas.purge, replica=0),
        partial(Replicas.days_pass, days=-10),
        partial(Replicas.replay, replica=1, sent=sent),
    )


def test_a_report_that_came_too_early_may_come_again_under_another_id_only(fresh: Callable[[], Replicas]) -> None:
    early = Sent(7, [START, START + timedelta(days=2)])
    listed(
        fresh,
        partial(Replicas.replay, replica=0, sent=early),
        partial(Replicas.days_pass, days=2),
        partial(Replicas.replay, replica=1, sent=early),
    )


def test_replicas_that_take_turns_on_one_day_see_each_other_s_counts(fresh: Callable[[], Replicas]) -> None:
    sent = [Sent(number, [START]) for number in range(4)]
    listed(fresh, *(partial(Replicas.replay, replica=each.number % 2, sent=each) for each in sent))


def test_a_batch_whose_commits_fail_on_different_days_counts_by_one_of_them(fresh: Callable[[], Replicas]) -> None:
    """On the second day one more of its reports is on time; the first commit did not happen, the second one did."""
    sent = Sent(7, [START, START + timedelta(days=2)])
    listed(
        fresh,
        partial(Replicas.replay_with_fault, replica=0, sent=sent, moment="before"),
        partial(Replicas.days_pass, days=1),
        partial(Replicas.replay_with_fault, replica=0, sent=sent, moment="after"),
        partial(Replicas.replay, replica=1, sent=sent),
    )
