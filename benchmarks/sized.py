"""Whether a run is to be quick: HUBBUB_BENCH_QUICK=1 makes everything smaller."""

import os

QUICK = bool(os.environ.get("HUBBUB_BENCH_QUICK"))
