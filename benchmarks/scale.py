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
from hubbub.collector.collector import CLOCK_DAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DAILY = (10**6, 10**8, 10**10)
METRICS = 10
COHORTS = 64
PEAK = 3.0
USED = 0.5
COMES_LATER = 1
"""Days after its own that a day's batch arrives: it is sent when the day is over."""

ID_DAYS = DEFAULT_DAYS_BACK + CLOCK_DAYS + 1 - COMES_LATER
"""Ids of the periods from so many days ago to today are there; those of today are not yet."""

TALLY_DAYS = 365
ARCHIVE_DAYS = 30
CORE_HOUR, GB_MONTH = 0.05, 0.10
DATABASE_CORES, DATABASE_GB, DISK_MB_S, NETWORK_MBIT_S = 16, 1_000, 500, 1_000

ASSUMED = {
    "metrics, each of 128 bits, reported once a day by every device": METRICS,
    "cohorts of each": COHORTS,
    "the busiest hour, in multiples of the average": PEAK,
    "share of what is there that may be used in that hour": USED,
    f"days that ids of batches are kept (`days_back` {DEFAULT_DAYS_BACK} and {CLOCK_DAYS} for clocks)": ID_DAYS,
    "days that tallies are kept": TALLY_DAYS,
    "days that the archive is kept": ARCHIVE_DAYS,
    "price of a core-hour, dollars": CORE_HOUR,
    "price of a GB-month, dollars": GB_MONTH,
    "a database machine: cores": DATABASE_CORES,
    "a database machine: disk, GB": DATABASE_GB,
    "what a disk reads or writes, MB/s": DISK_MB_S,
    "the network into the collectors, Mbit/s": NETWORK_MBIT_S,
}

BATCHED = {METRICS: f"One batch a day with all {METRICS} reports:", 1: "A batch for each report:"}
"""How a device may send: as well as it can, and as badly."""


def _end(in_batch: int) -> str:
    """What the names of figures end with; those of batches with all reports have none."""
    return "" if in_batch == METRICS else f"_{in_batch}"


def _reports(in_batch: int) -> str:
    return f"{in_batch} report{'s' if in_batch > 1 else ''} a batch"


OF_STORES = {
    "rate": ("{store}, batches/s of one process", "ingest"),
    "collector_cpu": ("{store}, CPU s a batch of the collector", "ingest"),
    "database_cpu": ("{store}, CPU s a batch of the database", "ingest"),
    "written": ("{store}, bytes a batch that are written to its disk", "ingest"),
    "id_bytes": ("{store}, bytes a batch id", "ingest"),
}
FIGURES = {
    **{
        f"{store.lower()}_{name}{_end(number)}": (f"{words.format(store=store)}, {_reports(number)}", by)
        for number in BATCHED
        for store in ("SQLite", "PostgreSQL")
        for name, (words, by) in OF_STORES.items()
        if (store, name) != ("SQLite", "database_cpu")  # there the collector is all there is
    },
    "several": ("collectors on one PostgreSQL, the most that were measured", "ingest"),
    "several_collector_cpu": ("times the CPU of one that a batch then costs a collector", "ingest"),
    "several_database_cpu": ("times the CPU of one that a batch then costs the database", "ingest"),
    "sqlite_tally_bytes": ("SQLite, bytes a row of a tally", "sizes"),
    "postgresql_tally_bytes": ("PostgreSQL, bytes a row of a tally", "sizes"),
    **{
        f"wire_{form.lower()}_{number}": (f"bytes on the wire a report, {form}, {_reports(number)}", "sizes")
        for number in BATCHED
        for form in ("JSON", "msgpack")
    },
    "archive_bytes": ("archive, bytes a report", "sizes"),
    "archive_slower": ("times as long that a commit takes with an archive", "archives"),
    "archive_cpu": ("times the CPU that a commit takes with an archive", "archives"),
    "archive_rate": ("archive, reports/s counted by one process, read from memory", "archives"),
    "decode_10000": ("decode, CPU s for 10,000 candidates", "decodes"),
}
"""What is reckoned with: words, and the part of `make bench` that measures it."""

APART = (
    "several databases, each with collectors and an address of its own. An app keeps to one address, so that a batch "
    "that is sent again meets its own id; tallies of all add"
)
ONE_WRITER, NETWORK, IDS = "the one writer of SQLite", "network", "disk for batch ids"
ADVICE = {
    ONE_WRITER: "PostgreSQL, and more collectors",
    "cores of the database": APART,
    IDS: f"accept reports for fewer days (`days_back`), or {APART}",
    "what the disk writes": APART,
    NETWORK: "several addresses for the collectors; with gzip, msgpack saves little",
}


@dataclass(frozen=True)
class Plan:
    """What a number of reports a day needs, with an archive."""

    reports: int
    figures: Mapping[str, float]
    in_batch: int = METRICS
    """Reports in a batch."""

    @property
    def batches(self) -> float:
        return self.reports / self.in_batch

    @property
    def peak(self) -> float:
        """Batches a second in the busiest hour."""
        return self.batches * PEAK / 86_400

    @property
    def store(self) -> str:
        """SQLite as long as one process is enough for it."""
        return "SQLite" if self.peak <= USED * self._alone("sqlite") else "PostgreSQL"

    def _alone(self, store: str) -> float:
        """Batches a second of a process that is the only one, and keeps an archive."""
        return self.figures[f"{store}_rate{_end(self.in_batch)}"] / self.figures["archive_slower"]

    def of_store(self, figure: str) -> float:
        return self.figures.get(f"{self.store.lower()}_{figure}{_end(self.in_batch)}", 0.0)

    def crowded(self, part: str) -> float:
        """Times the CPU that a batch costs where several collectors share a database: smaller commits, and waiting."""
        alone = self._alone(self.store.lower())
        several = self.store == "PostgreSQL" and self.peak > USED * alone
        return max(1.0, self.figures[f"several_{part}_cpu"]) if several else 1.0

    @property
    def rate(self) -> float:
        """Batches a second of one process; it takes as many fewer as each costs it more."""
        return self._alone(self.store.lower()) / self.crowded("collector")

    @property
    def processes(self) -> int:
        return ceil(self.peak / (USED * self.rate))

    @property
    def batch_cpu(self) -> float:
        """CPU seconds a batch of the collector."""
        return self.of_store("collector_cpu") * self.figures["archive_cpu"] * self.crowded("collector")

    @property
    def collector_cores(self) -> float:
        return self.peak * self.batch_cpu / USED

    @property
    def database_cores(self) -> float:
        """Cores in all; what an archive costs PostgreSQL is taken to be what it costs a commit on SQLite."""
        cpu = self.of_store("database_cpu") * self.figures["archive_cpu"] * self.crowded("database")
        return self.peak * cpu / USED

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
        return self.tally_rows * TALLY_DAYS * self.figures[f"{self.store.lower()}_tally_bytes"] / 1e9

    @property
    def archive_gb_a_day(self) -> float:
        return self.reports * self.figures["archive_bytes"] / 1e9

    @property
    def network_gb_a_day(self) -> float:
        return self.reports * self.figures[f"wire_json_{self.in_batch}"] / 1e9

    @property
    def network_mbit(self) -> float:
        return self.network_gb_a_day * 8e3 * PEAK / 86_400

    @property
    def written_mb(self) -> float:
        """Megabytes a second that the store writes in the busiest hour; reports wait in it for their file."""
        waiting = self.in_batch * self.figures["archive_bytes"]
        return self.peak * (self.of_store("written") + waiting) / 1e6

    @property
    def counting_hours(self) -> float:
        """Core-hours a day to count the day's archive once, from a disk."""
        of_disk = DISK_MB_S * 1e6 / self.figures["archive_bytes"]
        return self.reports / min(self.figures["archive_rate"], of_disk) / 3600

    @property
    def decoding_hours(self) -> float:
        """Core-hours a day to decode each metric once."""
        return METRICS * self.figures["decode_10000"] / 3600

    @property
    def loads(self) -> dict[str, float]:
        """How much of one database machine, and of the network, is used; 1 is all there is."""
        shares = {
            "cores of the database": self.database_cores * USED / DATABASE_CORES,
            IDS: self.id_gb / DATABASE_GB,
            "what the disk writes": self.written_mb / DISK_MB_S,
            NETWORK: self.network_mbit / NETWORK_MBIT_S,
        }
        # SQLite has one writer at a time; on PostgreSQL there can be another process.
        return {ONE_WRITER: self.peak / self.rate if self.store == "SQLite" else 0.0} | shares

    @property
    def first(self) -> str:
        """What is full first."""
        return max(self.loads, key=lambda name: self.loads[name])

    @property
    def databases(self) -> int:
        return ceil(max(load for name, load in self.loads.items() if name != NETWORK) / USED)

    @property
    def links(self) -> int:
        return ceil(self.loads[NETWORK] / USED)

    @property
    def paid_cores(self) -> int:
        """Whole cores of collectors, and whole database machines; SQLite is in the process that collects."""
        return ceil(self.collector_cores) + (self.databases * DATABASE_CORES if self.store == "PostgreSQL" else 0)

    @property
    def core_hours(self) -> float:
        """Core-hours a month, by day and night."""
        return 730 * self.paid_cores + 30.4 * (self.counting_hours + self.decoding_hours)

    @property
    def store_gb(self) -> float:
        """Gigabytes that are paid for: the disks of database machines are, full or not."""
        return self.databases * DATABASE_GB if self.store == "PostgreSQL" else self.id_gb + self.tally_gb

    @property
    def gb_months(self) -> float:
        return self.store_gb + self.archive_gb_a_day * ARCHIVE_DAYS


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
        told = fill(f"Not reckoned: the run had no figure for {'; '.join(missing)}.", 120)
        return texts | dict.fromkeys(("scale-plan", "scale-first", "scale-cost"), told)
    plans = {in_batch: [Plan(reports, figures, in_batch) for reports in DAILY] for in_batch in BATCHED}
    header = ["reports a day", *(f"10^{len(str(reports)) - 1}" for reports in DAILY)]

    def tables(rows: Callable[[list[Plan]], list[list[str]]]) -> str:
        both = [f"{BATCHED[each]}\n\n{writing.table(header, rows(some))}" for each, some in plans.items()]
        return "\n\n".join(both)

    return texts | {
        "scale-plan": tables(_plan),
        "scale-first": f"{tables(_first)}\n\n{_then([plan for some in plans.values() for plan in some])}",
        "scale-cost": tables(_cost),
    }


def _line(words: str, values: list[float]) -> list[str]:
    return [words, *map(number, values)]


def _plan(plans: list[Plan]) -> list[list[str]]:
    return [
        _line("devices", [plan.reports / METRICS for plan in plans]),
        _line("batches/s, busiest hour", [plan.peak for plan in plans]),
        ["store", *(plan.store for plan in plans)],
        _line("batches/s that one process takes", [plan.rate for plan in plans]),
        _line("collector processes", [plan.processes for plan in plans]),
        _line("of a core that a process uses when it takes so many", [plan.rate * plan.batch_cpu for plan in plans]),
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
    shares = [[_of_what(name), *(_share(plan.loads[name]) for plan in plans)] for name in ADVICE]
    return [
        *shares,
        ["full first", *(plan.first for plan in plans)],
        _line("databases needed", [plan.databases for plan in plans]),
        _line("networks needed", [plan.links for plan in plans]),
        _line("reports a day that one of each would take", [_one_takes(plan) for plan in plans]),
    ]


def _of_what(name: str) -> str:
    """Ids are there day and night; of all else the busiest hour counts."""
    return f"{name}, of one machine" if name == IDS else f"{name}, busiest hour, of one"


def _one_takes(plan: Plan) -> float:
    return plan.reports / plan.loads[plan.first] * USED


def _then(plans: list[Plan]) -> str:
    """What to do about it, for each thing that is full first anywhere."""
    names = list(dict.fromkeys(plan.first for plan in plans))
    return "\n".join(fill(f"- {name}: {ADVICE[name]}.", 120, subsequent_indent="  ") for name in names)


def _share(share: float) -> str:
    return f"{100 * share:,.2f} %" if share else "-"


def _cost(plans: list[Plan]) -> list[list[str]]:
    money = [plan.core_hours * CORE_HOUR + plan.gb_months * GB_MONTH for plan in plans]
    return [
        _line("whole cores of collectors", [ceil(plan.collector_cores) for plan in plans]),
        _line("cores of database machines", [plan.paid_cores - ceil(plan.collector_cores) for plan in plans]),
        _line("core-hours a month", [plan.core_hours for plan in plans]),
        _line("GB of the store", [plan.store_gb for plan in plans]),
        _line("GB-months a month, with the archive", [plan.gb_months for plan in plans]),
        _line("dollars a month", money),
        _line("dollars for a million reports", _per_million(money, plans)),
    ]


def _per_million(money: list[float], plans: list[Plan]) -> list[float]:
    return [1e6 * cost / (30.4 * plan.reports) for cost, plan in zip(money, plans, strict=True)]
