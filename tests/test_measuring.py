"""What is left out when the coverage is measured: only a run with `--cov` can fail here."""

import os
import sys

import pytest


@pytest.mark.unmeasured
def test_neither_a_test_with_the_mark_is_measured_nor_its_processes(pytestconfig: pytest.Config) -> None:
    assert "COVERAGE_PROCESS_CONFIG" not in os.environ
    assert sys.gettrace() is None or not pytestconfig.getoption("cov_source")
