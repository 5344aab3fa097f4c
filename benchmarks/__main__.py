"""`python -m benchmarks [NAME ...] [--write]`: those that are named; without a name `page`, which is `make bench`.

`page` runs all of its parts and writes docs/benchmarks.md: see `page.py`. `--write` puts the tables of the others that
have a page into it: see `writing.py`.
"""

from __future__ import annotations

import platform
import sys
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import (
    accuracy,
    aggregate,
    archive,
    bits,
    charts,
    client,
    collector,
    counters,
    counting,
    dashboard,
    decoding,
    imports,
    page,
    part,
    peers,
    record,
    replicas,
    response,
    servers,
    simulate,
    writing,
)

if TYPE_CHECKING:
    from collections.abc import Callable

BENCHMARKS: dict[str, Callable[[], None]] = {
    "page": page.main,
    "client": client.main,
    "bits": bits.main,
    "imports": imports.main,
    "record": record.main,
    "collector": collector.main,
    "dashboard": dashboard.main,
    "replicas": replicas.main,
    "counting": counting.main,
    "decode": decoding.main,
    "accuracy": accuracy.main,
    "response": response.main,
    "peers": peers.main,
    "simulate": simulate.main,
    "charts": charts.main,
    "aggregate": aggregate.main,
    "counters": counters.main,
    "archive": archive.main,
    **{name: partial(page.show, name) for name in part.PARTS},
}


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; allowed: {', '.join(BENCHMARKS)}")
    servers.end_when_told()
    print(f"Python {platform.python_version()}, {platform.machine()}, {platform.system()}")
    for name in names or ["page"]:
        BENCHMARKS[name]()


main([word for word in sys.argv[1:] if word != writing.FLAG])
