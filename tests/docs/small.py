"""Benchmarks in small: `python small.py NAME ...` runs `python -m benchmarks NAME` for each, in this one process.

What takes long to import is then imported once. Only the sizes are other than those of a quick run, and all are here.
The last line tells, as JSON, how each has ended and what it has printed.
"""

import contextlib
import importlib
import io
import json
import runpy
import sys
import traceback
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Small:
    """How a benchmark is made small."""

    shows: str
    """What has to be in its output, as a pattern."""
    sizes: dict[str, object] = field(default_factory=dict)
    """Names in the modules of `benchmarks`, and what they are instead."""


FEW: dict[str, object] = {"ratios.fastest.__defaults__": (2, 2)}
"""Rounds and calls, where a benchmark does not say how many."""

SMALLER = {
    "imports": Small(r"import hubbub\.client +\d", {"imports.ROUNDS": 1}),
    "bits": Small(r"128 random bits, 16 digits", FEW),
    "client": Small(r"histogram, 4 of 10 buckets +\d", FEW),
    "record": Small(r"Ending the process", {"record.CALLS": 5, "record.ROUNDS": 1, "record.EXITS": 1}),
    "archive": Small(r"(?m)^  32 +\d", {"archive.SIZES": {1: 3, 32: 3}}),
    "counters": Small(
        r"numba, 64 cohorts +\| +\d",
        {
            "counters.FILES": (1000, 2500),
            "counters.REPORTS": 5000,
            "counting.fastest.__defaults__": (1,),
        },
    ),
    "counting": Small(
        r"numba, mixed cohorts +\| +\d",
        {
            "counting.REPORTS": 10_000,
            "counting.FILE": 5_000,
            "counting.UNPACKED": 1_000,
            "counting.WIDTHS": (8, 128),
            "counting.FEW": ((50, 10),),
            "counting.fastest.__defaults__": (1,),
        },
    ),
}
"""Those that are run."""

NO_WRK = Small("not measured, because wrk is not installed", {"load.WRK": None})
STARTED = {
    "collector": NO_WRK,
    "dashboard": NO_WRK,
    "replicas": NO_WRK,
    "charts": Small("not measured: it ended", {"charts.PYTHON": "false", "charts.WAYS": ("altair",)}),
}
"""Those that take long however small they are: what they need is taken away, and they have to say so."""


def run(name: str) -> tuple[int, str]:
    """How a benchmark has ended, and what it has printed."""
    for path, size in (SMALLER | STARTED)[name].sizes.items():
        module, *between, last = path.split(".")
        owner: object = importlib.import_module(f"benchmarks.{module}")
        for each in between:
            owner = getattr(owner, each)
        setattr(owner, last, size)
    sys.argv = ["benchmarks", name]
    code = 0
    with contextlib.redirect_stdout(io.StringIO()) as told:
        try:
            runpy.run_module("benchmarks", run_name="__main__")
        except (Exception, SystemExit):  # noqa: BLE001  (whatever it is, it is told, and the next one is run)
            traceback.print_exc(file=told)
            code = 1
    return code, told.getvalue()


if __name__ == "__main__":
    print(json.dumps({name: run(name) for name in sys.argv[1:]}))
