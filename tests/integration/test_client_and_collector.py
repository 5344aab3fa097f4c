"""The real client and the real collector, over real HTTP."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests

from collector.served import TOKEN, Served, serving
from hubbub.client import Client
from hubbub.client.testing import FrozenClock
from hubbub.collector import Tally
from shared.registries import EXAMPLE, VALUES, example

pytestmark = pytest.mark.unmeasured

DEVICES = 12


def now() -> datetime:
    """The moment the test begins at; the collector's clock is the system's, so clients' clocks start there, too."""
    return datetime.now(UTC)


def record_everything(folder: Path, url: str, clock: FrozenClock, **options: object) -> Client:
    """A client that has recorded a value of every metric, at some time when they can all be sent by now."""
    earlier = FrozenClock(clock() - timedelta(days=9))
    recorder = Client(None, registry=example(), state=folder / "state.db", enabled=True, clock=earlier)
    for name, value in VALUES.items():
        recorder.record(name, value)
    recorder.close()
    return Client(url, registry=example(), state=folder / "state.db", enabled=True, clock=clock, **options)  # type: ignore[arg-type]


def tallies(served: Served) -> dict[str, Tally]:
    registry = example()
    return {name: Tally.parse(served.get(f"/v1/metrics/{name}/tally").content, registry[name]) for name in registry}


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    made = [tmp_path / f"device-{number}" for number in range(DEVICES)]
    for folder in made:
        folder.mkdir()
    return made


def test_what_devices_record_is_what_the_collector_adds_up(tmp_path: Path, folders: list[Path], address: str) -> None:
    clock = FrozenClock(now())
    with serving(tmp_path, address, registry=EXAMPLE) as served:
        for folder in folders:
            with closing(record_everything(folder, served.url, clock)) as client:
                client.flush()
                stats = client.stats()
                assert (stats.sent, stats.pending, dict(stats.lost)) == (len(VALUES), 0, {})
        found = tallies(served)
    assert {name: tally.reports for name, tally in found.items()} == dict.fromkeys(VALUES, DEVICES)


def test_a_collector_that_is_killed_and_started_again_loses_and_doubles_nothing(
    tmp_path: Path, folders: list[Path], address: str
) -> None:
    clock = FrozenClock(now())
    with serving(tmp_path, address, registry=EXAMPLE) as served:
        clients = [record_everything(folder, served.url, clock) for folder in folders]
        for number, client in enumerate(clients):
            if number % 3 == 2:
                served.kill()
                client.flush()  # nobody is there
                assert client.stats().sent == 0
                served.start()
        clock.advance(hours=7)  # whatever was put off may be tried again
        for client in clients:
            client.flush()
            assert client.stats().sent == len(VALUES)
            client.close()
        assert {tally.reports for tally in tallies(served).values()} == {DEVICES}


def test_a_client_takes_the_registry_and_shows_the_key(tmp_path: Path) -> None:
    key = "the-key-that-is-in-the-app"
    clock = FrozenClock(now() - timedelta(days=9))
    state = tmp_path / "state.db"
    with serving(tmp_path, f"sqlite:///{tmp_path}/hubbub.db", registry=EXAMPLE, ingest_key=key) as served:
        client = Client(
            served.url, registry=None, state=state, enabled=True, clock=clock, ingest_key=key, max_epsilon=100
        )
        with closing(client):
            client.flush()  # fetches the registry
            client.record("crashed", True)
            clock.advance(days=9)
            client.flush()
            assert client.stats().sent == 1
        refused = requests.post(f"{served.url}/v1/batches", data=b"{}", timeout=30)
        assert refused.status_code == 401
        assert served.get("/v1/metrics/crashed/tally").json()["cohorts"][0]["n"] == 1


def test_reports_that_the_collector_rejects_are_told_by_their_reason(tmp_path: Path) -> None:
    """The collector has moved on to version 2 of a metric; the app has not been updated."""
    moved_on = EXAMPLE.replace('kind = "flag"\nevery = "day"', 'kind = "flag"\nevery = "day"\nversion = 2')
    clock = FrozenClock(now())
    with (
        serving(tmp_path, f"sqlite:///{tmp_path}/hubbub.db", registry=moved_on) as served,
        closing(record_everything(tmp_path, served.url, clock)) as client,
    ):
        client.flush()
        assert dict(client.stats().lost) == {"rejected_unknown_version": 1}
        assert client.stats().sent == len(VALUES) - 1
        assert TOKEN not in served.log.read_text()
