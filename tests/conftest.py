"""Settings for all tests."""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Linear algebra on one core: the machine is small, and tests run beside servers. Said before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples at every run, and no deadline: a test fails always or never, however slow the machine.
settings.register_profile("fixed", derandomize=True, deadline=None)
# New examples at every run: `pytest --hypothesis-profile=explore`.
settings.register_profile("explore", deadline=None, max_examples=5000, print_blob=True)
settings.load_profile("fixed")


PROCESSES = "COVERAGE_PROCESS_CONFIG"
"""Where coverage, when it measures, leaves word for the processes that are started meanwhile."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Leave a test with the mark `unmeasured` out of the coverage, and its processes too.

    The mark `no_cover` of pytest-cov would not do: a worker of xdist is measured by pytest-cov and, as a process that
    was started, by coverage itself, and it stops only the first. Where nothing is measured, a debugger may trace.
    """
    if not item.get_closest_marker("unmeasured") or PROCESSES not in os.environ:
        return (yield)
    tracing = sys.gettrace()
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv(PROCESSES)
        sys.settrace(None)
        try:
            return (yield)
        finally:
            sys.settrace(tracing)
