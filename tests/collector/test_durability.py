"""What was acknowledged survives kill -9; what was retried counts once."""

from pathlib import Path

import pytest

from collector.oracle import Oracle
from collector.served import serving

pytestmark = pytest.mark.unmeasured


def test_a_batch_is_there_after_a_kill_and_counts_once(tmp_path: Path, address: str) -> None:
    oracle = Oracle()
    with serving(tmp_path, address) as served:
        body, slots = oracle.batch()
        first = served.post(body)
        assert first.json() == {"accepted": 3, "duplicate": False, "rejected": []}
        oracle.acknowledge(slots)
        served.kill()
        served.start()
        assert served.post(body).json() == {"accepted": 3, "duplicate": True, "rejected": []}
        oracle.verify(served.tallies(oracle))
