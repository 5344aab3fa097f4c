"""`python -m benchmarks [NAME ...]`: all benchmarks, or those named."""

from __future__ import annotations

import platform
import sys

from benchmarks import bits, client, collector, imports, record

BENCHMARKS = {
    "client": client.main,
    "bits": bits.main,
    "imports": imports.main,
    "record": record.main,
    "collector": collector.main,
}


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; allowed: {', '.join(BENCHMARKS)}")
    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}")
    for name in names or BENCHMARKS:
        BENCHMARKS[name]()


main(sys.argv[1:])
