"""A live collector that cannot be started says why, and is tried again only where another port would help."""

from pathlib import Path

import pytest

from hubbub.shared import ParameterError
from hubbub.simulations.errors import LiveError
from hubbub.simulations.live import LiveCollector, simulate_clients
from simulations.simulated import REGISTRY


def test_a_live_collector_that_cannot_be_started_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hubbub.simulations.live.collector._COMMAND", ("false",))
    with pytest.raises(LiveError, match="collector: does not start: it says nothing"), LiveCollector(REGISTRY):
        pass
    collector = LiveCollector(REGISTRY)
    with pytest.raises(LiveError, match="has not been started"):
        _ = collector.folder
    with pytest.raises(ParameterError, match="days = 15; allowed: 1 to 14"):
        collector.first_day(15)
    with pytest.raises(ParameterError, match="threads: 0 is none"):
        simulate_clients(collector, [], first_day=collector.first_day(1), threads=0)


def test_a_port_that_was_taken_meanwhile_is_given_up_for_another(tmp_path: Path) -> None:
    tried = []

    class Unlucky(LiveCollector):
        log_line = ""

        def _start(self, port: int) -> bool:
            tried.append(port)
            (self.folder / "collector.log").write_text(self.log_line)
            return len(tried) == 3

    collector = Unlucky(REGISTRY, folder=tmp_path)
    collector.log_line = "Error: --port: 127.0.0.1 port 1 cannot be used: Address already in use; allowed: a free one\n"
    with collector:
        assert len(set(tried)) == 3
    tried.clear()
    collector.log_line = "Error: --registry: is missing\n"
    with pytest.raises(LiveError, match="does not start: Error: --registry: is missing"), collector:
        pass
    assert len(tried) == 1
