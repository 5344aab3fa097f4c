"""What a million, a hundred million and ten thousand million reports a day need, reckoned from figures of `make bench`.

Nothing here is measured and nothing is typed in but the assumptions below; docs/design/scale.md holds the tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from textwrap import fill
from typing import TYPE_CHECKING

from benchmarks import writing
from benchmarks.findings import number
from hubbub.collector.acceptance import DEFAULT_DAYS_BACK

if TYPE_CHECKING:
    from collections.abc import Mapping

DAILY = (10**6, 10**8, 10**10)
METRICS = 10
COHORTS = 64
PEAK = 3.0
USED = 0.5
ID_DAYS = DEFAULT_DAYS_BACK + 1
TALLY_DAYS = 365
ARCHIVE_DAYS = 30
CORE_HOUR, GB_MONTH = 0.05, 0.10
DATABASE_CORES, DATABASE_GB, DATABASE_MB_S, NETWORK_MBIT_S = 16, 1_000, 500, 1_000

ASSUMED = {
    "metrics, each of 128 bits, reported once a day by every device in one batch": METRICS,
    "cohorts of each": COHORTS,
    "the busiest hour, in multiples of the average": PEAK,
    "share of what is there that may be used in that hour": USED,
    "days that ids of batches are kept (`days_back`, and the day itself)": ID_DAYS,
    "days that tallies are kept": TALLY_DAYS,
    "days that the archive is kept": ARCHIVE_DAYS,
    "price of a core-hour, dollars": CORE_HOUR,
    "price of a GB-month, dollars": GB_MONTH,
    "the database machine: cores": DATABASE_CORES,
    "the database machine: disk, GB": DATABASE_GB,
    "the database machine: what its disk writes, MB/s": DATABASE_MB_S,
    "the network into the collectors, Mbit/s": NETWORK_MBIT_S,
}

FIGURES = {
    "sqlite_rate": ("SQLite, batches/s of one process", "ingest"),
    "sqlite_collector_cpu": ("SQLite, CPU s a batch", "ingest"),
    "sqlite_written": ("SQLite, bytes written a batch", "ingest"),
    "sqlite_id_bytes": ("SQLite, bytes a batch id", "ingest"),
    "sqlite_tally_bytes": ("SQLite, bytes a row of a tally", "sizes"),
    "postgresql_rate": ("PostgreSQL, batches/s of one process", "ingest"),
    "postgresql_collector_cpu": ("PostgreSQL, CPU s a batch of the collector", "ingest"),
    "postgresql_database_cpu": ("PostgreSQL, CPU s a batch of the database", "ingest"),
    "postgresql_written": ("PostgreSQL, bytes of its log a batch", "ingest"),
    "postgresql_id_bytes": ("PostgreSQL, bytes a batch id", "ingest"),
    "postgresql_tally_bytes": ("PostgreSQL, bytes a row of a tally", "sizes"),
    "wire_json_10": ("bytes on the wire a report, JSON and gzip", "sizes"),
    "wire_msgpack_10": ("bytes on the wire a report, msgpack and gzip", "sizes"),
    "archive_bytes": ("archive, bytes a report", "sizes"),
    "archive_rate": ("archive, reports/s counted by one process", "archives"),
    "decode_10000": ("decode, CPU s for 10,000 candidates", "decodes"),
}
"""What is reckoned with: words, and the part of `make bench` that measures it."""

APART = (
    "several databases, each with collectors and an address of its own. An app keeps to one address, so that a batch "
    "that is sent again meets its own id; tallies of all add"
)
ONE_WRITER = "the one writer of SQLite"
ADVICE = {
    ONE_WRITER: "PostgreSQL, and more collectors",
    "cores of the database": APART,
    "disk for batch ids": f"accept reports for fewer days (`days_back`), or {APART}",
    "what the disk writes": APART,
    "network": "several addresses for the collectors; with gzip, msgpack saves little",
}


@dataclass(frozen=True)
class Plan:
    """What a number of reports a day needs."""

    reports: int
    figures: Mapping[str, float]

    @property
    def batches(self) -> float:
        return self.reports / METRICS

    @property
    def peak(self) -> float:
        """Batches a second in the busiest hour."""
        return self.batches * PEAK / 86_400

    @property
    def store(self) -> str:
        """SQLite as long as one process is enough for it."""
        return "SQLite" if self.peak <= USED * self.figures["sqlite_rate"] else "PostgreSQL"

    def of_store(self, figure: str) -> float:
        return self.figures.get(f"{self.store.lower()}_{figure}", 0.0)

    @property
    def processes(self) -> int:
        return ceil(self.peak / (USED * self.of_store("rate")))

    @property
    def collector_cores(self) -> float:
        return self.peak * self.of_store("collector_cpu") / USED

    @property
    def database_cores(self) -> float:
        return self.peak * self.of_store("database_cpu") / USED

    @property
    def tally_rows(self) -> int:
        """New rows a day; on SQLite all processes share one shard."""
        return METRICS * COHORTS * (1 if self.store == "SQLite" else self.processes)

    @property
    def ids(self) -> float:
        return self.batches * ID_DAYS

    @property
    def id_gb(self) -> float:
        return self.ids * self.of_store("id_bytes") / 1e9

    @property
    def tally_gb(self) -> float:
        return self.tally_rows * TALLY_DAYS * self.of_store("tally_bytes") / 1e9

    @property
    def archive_gb_a_day(self) -> float:
        return self.reports * self.figures["archive_bytes"] / 1e9

    @property
    def network_gb_a_day(self) -> float:
        return self.reports * self.figures["wire_json_10"] / 1e9

    @property
    def network_mbit(self) -> float:
        return self.network_gb_a_day * 8e3 * PEAK / 86_400

    @property
    def written_mb(self) -> float:
        """Megabytes a second that the disk writes in the busiest hour."""
        return self.peak * self.of_store("written") / 1e6

    @property
    def counting_hours(self) -> float:
        """Core-hours a day to count the day's archive once."""
        return self.reports / self.figures["archive_rate"] / 3600

    @property
    def decoding_hours(self) -> float:
        """Core-hours a day to decode each metric once."""
        return METRICS * self.figures["decode_10000"] / 3600

    @property
    def core_hours(self) -> float:
        """Core-hours a month; whole cores are paid for, by day and night."""
        cores = ceil(self.collector_cores) + ceil(self.database_cores)
        return 730 * cores + 30.4 * (self.counting_hours + self.decoding_hours)

    @property
    def gb_months(self) -> float:
        return self.id_gb + self.tally_gb + self.archive_gb_a_day * ARCHIVE_DAYS

    @property
    def loads(self) -> dict[str, float]:
        """How much of one database machine, and of the network, is used in the busiest hour; 1 is all there is."""
        shares = {
            "cores of the database": self.database_cores * USED / DATABASE_CORES,
            "disk for batch ids": self.id_gb / DATABASE_GB,
            "what the disk writes": self.written_mb / DATABASE_MB_S,
            "network": self.network_mbit / NETWORK_MBIT_S,
        }
        # SQLite has one writer at a time; on PostgreSQL there can be another process.
        return {ONE_WRITER: self.peak / self.of_store("rate") if self.store == "SQLite" else 0.0} | shares

    @property
    def first(self) -> str:
        """What is full first."""
        return max(self.loads, key=lambda name: self.loads[name])

    @property
    def databases(self) -> int:
        return ceil(self.loads[self.first] / USED)


def sections(figures: Mapping[str, float]) -> dict[str, str]:
    """The tables of the page, by the names of their places in it."""
    shown = [[words, number(value), ""] for words, value in ASSUMED.items()]
    rows = [
        [words, number(figures[name]) if name in figures else "not measured", f"`{by}`"]
        for name, (words, by) in FIGURES.items()
    ]
    texts = {
        "scale-assumed": writing.table(["assumed", ""], [row[:2] for row in shown]),
        "scale-measured": writing.table(["measured", "", "by"], rows),
    }
    missing = [words for name, (words, _) in FIGURES.items() if name not in figures]
    if missing:
        told = f"Not reckoned: the run had no figure for {'; '.join(missing)}."
        return texts | dict.fromkeys(("scale-plan", "scale-first", "scale-cost"), told)
    plans = [Plan(reports, figures) for reports in DAILY]
    header = ["reports a day", *(f"10^{len(str(plan.reports)) - 1}" for plan in plans)]
    return texts | {
        "scale-plan": writing.table(header, _plan(plans)),
        "scale-first": f"{writing.table(header, _first(plans))}\n\n{_then(plans)}",
        "scale-cost": writing.table(header, _cost(plans)),
    }


def _line(words: str, values: list[float]) -> list[str]:
    return [words, *map(number, values)]


def _plan(plans: list[Plan]) -> list[list[str]]:
    return [
        _line("devices", [plan.batches for plan in plans]),
        _line("batches/s, busiest hour", [plan.peak for plan in plans]),
        ["store", *(plan.store for plan in plans)],
        _line("collector processes", [plan.processes for plan in plans]),
        _line("cores for collectors", [plan.collector_cores for plan in plans]),
        _line("cores for the database", [plan.database_cores for plan in plans]),
        _line("rows of tallies a day: metrics x cohorts x shards", [plan.tally_rows for plan in plans]),
        _line("rows of batch ids a day", [plan.batches for plan in plans]),
        _line("rows of batch ids kept", [plan.ids for plan in plans]),
        _line("GB of batch ids", [plan.id_gb for plan in plans]),
        _line("GB of tallies", [plan.tally_gb for plan in plans]),
        _line("GB of archive a day", [plan.archive_gb_a_day for plan in plans]),
        _line("GB of archive kept", [plan.archive_gb_a_day * ARCHIVE_DAYS for plan in plans]),
        _line("GB received a day", [plan.network_gb_a_day for plan in plans]),
        _line("Mbit/s received, busiest hour", [plan.network_mbit for plan in plans]),
        _line("MB/s written by the store, busiest hour", [plan.written_mb for plan in plans]),
        _line("core-hours a day to count the archive once", [plan.counting_hours for plan in plans]),
        _line("core-hours a day to decode each metric once", [plan.decoding_hours for plan in plans]),
    ]


def _first(plans: list[Plan]) -> list[list[str]]:
    shares = [
        [f"{name}, busiest hour, of one machine", *(_share(plan.loads[name]) for plan in plans)] for name in ADVICE
    ]
    return [
        *shares,
        ["full first", *(plan.first for plan in plans)],
        _line("databases needed", [plan.databases for plan in plans]),
        _line("reports a day that one would take", [plan.reports / plan.loads[plan.first] * USED for plan in plans]),
    ]


def _then(plans: list[Plan]) -> str:
    """What to do about it, for each thing that is full first anywhere."""
    names = list(dict.fromkeys(plan.first for plan in plans))
    return "\n".join(fill(f"- {name}: {ADVICE[name]}.", 120, subsequent_indent="  ") for name in names)


def _share(share: float) -> str:
    return f"{100 * share:,.2f} %" if share else "-"


def _cost(plans: list[Plan]) -> list[list[str]]:
    money = [plan.core_hours * CORE_HOUR + plan.gb_months * GB_MONTH for plan in plans]
    return [
        _line("core-hours a month", [plan.core_hours for plan in plans]),
        _line("GB-months a month", [plan.gb_months for plan in plans]),
        _line("dollars a month", money),
        _line("dollars for a million reports", _per_million(money, plans)),
    ]


def _per_million(money: list[float], plans: list[Plan]) -> list[float]:
    return [1e6 * cost / (30.4 * plan.reports) for cost, plan in zip(money, plans, strict=True)]
