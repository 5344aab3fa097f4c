"""What other pages quote from `make bench`: written into them by the script, so that no figure has two values."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

from benchmarks import client, imports, writing
from benchmarks.findings import number
from hubbub.shared import Registry

if TYPE_CHECKING:
    from benchmarks.page import Measured

SHOWN = ("classic", "solved", "flag", "mean")
"""Metrics of `client.py` that the README tells of."""

README, OPERATOR = "README.md", "docs/operator.md"
NOTHING = "not measured"


def sections(measured: Measured) -> dict[tuple[str, str], str]:
    """Texts by page and place."""
    return {(README, "fast"): _fast(measured), (OPERATOR, "decoding"): _decoding(measured, "benchmarks.md")}


def write(measured: Measured) -> None:
    """Put them there."""
    for (page, name), text in sections(measured).items():
        writing.write_section(page, name, text)


def _fast(measured: Measured) -> str:
    machine = ", ".join(f"{measured.machine[each]}" for each in ("processor", "system", "Python"))
    registry = Registry.parse(client.REGISTRY)
    reports = [[registry[name].description, _figure(measured, f"hmacs_{name}")] for name in SHOWN]
    return "\n\n".join(
        [
            _filled(
                f"One run of `make bench`, {measured.day}: {machine}, {measured.machine['cores']} cores. "
                "[docs/benchmarks.md](docs/benchmarks.md) has all of it. What a report costs a device "
                '(`python -m benchmarks client`), in calls of `hmac.new(key, message, "sha256").digest()`:'
            ),
            writing.table(["one report, permanent and instantaneous step", "HMACs"], reports),
            _imported(measured),
            _decoding(measured, "docs/benchmarks.md"),
            _ingest(measured),
        ]
    )


def _decoding(measured: Measured, page: str) -> str:
    names = ("decode_1000", "decode_1000000", "decode_1000000_bytes")
    if not all(name in measured.figures for name in names):
        return f"Decoding (`python -m benchmarks decode`): {NOTHING}."
    few, many, memory = (measured.figures[name] for name in names)
    return _filled(
        f"A thousand candidates for a string metric are decoded in {number(few)} CPU seconds, a million in "
        f"{number(many)} and {memory / 1e9:.1f} GB of memory (`python -m benchmarks decode`; [the run]({page}))."
    )


def _ingest(measured: Measured) -> str:
    tables = [table for each in measured.parts.values() for table in each.tables if table.section == "ingest"]
    if not tables:
        return f"Durable ingest (`python -m benchmarks collector`): {NOTHING}."
    [table] = tables
    title = f"Durable ingest (`python -m benchmarks collector`, which needs `wrk`). {table.title}"
    return f"{_filled(title)}\n\n{writing.table(table.header, table.rows)}"


def _imported(measured: Measured) -> str:
    rows = [row for each in measured.parts.values() for row in each.rows if row.by == "imports"]
    ratios = [row.ours / row.theirs for row in rows if row.ours and row.theirs]
    if not ratios:
        return f"`{imports.OURS}` (`python -m benchmarks imports`): {NOTHING}."
    took = f"takes {ratios[0]:.2f} of the time of `{imports.THEIRS}`"
    return f"`{imports.OURS}` {took} (`python -m benchmarks imports`)."


def _figure(measured: Measured, name: str) -> str:
    value = measured.figures.get(name)
    return NOTHING if value is None else number(value)


def _filled(text: str) -> str:
    return fill(text, 120, break_long_words=False, break_on_hyphens=False)
