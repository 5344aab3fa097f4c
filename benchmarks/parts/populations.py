"""Simulated populations beside the limits that were set, and how they grow: a part of `make bench`."""

from __future__ import annotations

from benchmarks.findings import LIMIT, Findings, Row, Table
from benchmarks.simulate import AT_ONCE, DAYS, MOST_ONE_BY_ONE, ONE_BY_ONE, Job
from benchmarks.sized import QUICK

CPU_LIMIT, WALL_LIMIT = 5.0, 120.0
LIVING = "they live"


def measure() -> Findings:
    """A thousand million devices at once, a million one by one, and all sizes below."""
    at_once = []
    for job in AT_ONCE:
        told = job.run()
        at_once.append([f"{job.devices:,}", f"{told['cpu']:.3f}", f"{told['peak'] / 1e6:,.0f}"])
    what = f"simulate {AT_ONCE[-1].devices:,} devices at once, CPU s"
    rows = [Row(what, "simulate", LIMIT, told["cpu"], CPU_LIMIT, better="less", wanted=1)]
    one_by_one = []
    for job in ONE_BY_ONE:
        if job.life == LIVING and job.devices <= MOST_ONE_BY_ONE:
            told = job.run()
            cost = [f"{told['cpu']:.2f}", f"{1e6 * told['cpu'] / told['reports']:.2f}", f"{told['peak'] / 1e6:,.0f}"]
            one_by_one.append([f"{job.devices:,}", f"{told['reports']:,}", *cost])
    if not QUICK:
        told = Job(MOST_ONE_BY_ONE, LIVING, workers=2).run()
        what = f"simulate {MOST_ONE_BY_ONE:,} devices one by one for {DAYS} days, 2 workers, s"
        rows.append(Row(what, "simulate", LIMIT, told["seconds"], WALL_LIMIT, better="less", wanted=1))
    tables = [
        Table("growth", "Devices simulated at once, 1,000 values:", ["devices", "CPU s", "MB"], at_once),
        Table(
            "growth",
            f"Devices simulated one by one for {DAYS} days; values change, devices come and go:",
            ["devices", "reports", "CPU s", "µs a report", "MB"],
            one_by_one,
        ),
    ]
    return Findings(rows, tables)
