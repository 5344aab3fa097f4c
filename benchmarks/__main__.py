"""`python -m benchmarks [NAME ...] [--write]`: all benchmarks, or those named.

`--write` puts the tables of those that have a page into it: see `writing.py`.
"""

from __future__ import annotations

import platform
import sys

from benchmarks import (
    accuracy,
    bits,
    charts,
    client,
    collector,
    dashboard,
    decoding,
    imports,
    peers,
    record,
    response,
    simulate,
    writing,
)

BENCHMARKS = {
    "client": client.main,
    "bits": bits.main,
    "imports": imports.main,
    "record": record.main,
    "collector": collector.main,
    "dashboard": dashboard.main,
    "decode": decoding.main,
    "accuracy": accuracy.main,
    "response": response.main,
    "peers": peers.main,
    "simulate": simulate.main,
    "charts": charts.main,
}


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; allowed: {', '.join(BENCHMARKS)}")
    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}")
    for name in names or BENCHMARKS:
        BENCHMARKS[name]()


main([word for word in sys.argv[1:] if word != writing.FLAG])
