"""Settings of `hubbub serve`: from flags, from HUBBUB_* variables, from a file, in that order; every fault is told."""

from __future__ import annotations

import ipaddress
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hubbub.collector.acceptance import DEFAULT_DAYS_AHEAD, DEFAULT_DAYS_BACK
from hubbub.collector.archive.address import check_address, shown_address
from hubbub.collector.archive.keeping import DEFAULT_HOURS, DEFAULT_REPORTS, LEAST_REPORTS
from hubbub.collector.errors import ArchiveError, SettingsError, StoreAddressError
from hubbub.collector.store import Store
from hubbub.collector.writer import DEFAULT_QUEUE
from hubbub.shared.errors import RegistryError
from hubbub.shared.planning import DEFAULT_MIN_COHORT_REPORTS
from hubbub.shared.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PREFIX = "HUBBUB_"
CONFIG = "config"
MIN_SECRET = 16
"""Characters that a token has at least."""

DAYS_PER_WEEK = 7


class _BadError(ValueError):
    """What is allowed instead."""


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise _BadError("a text")
    return value


def _address(value: object) -> str:
    host = "127.0.0.1" if value == "localhost" else value
    try:
        return str(ipaddress.ip_address(host))  # type: ignore[arg-type]
    except ValueError:
        raise _BadError("an IP address, or localhost") from None


def _secret(value: object) -> str:
    if not isinstance(value, str) or len(value) < MIN_SECRET or not value.isascii() or not value.isprintable():
        raise _BadError(f"at least {MIN_SECRET} printable ASCII characters")
    return value


def _origins(value: object) -> tuple[str, ...]:
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, (list, tuple)) or not all(isinstance(each, str) for each in given):
        raise _BadError("origins, separated by commas")
    origins = tuple(each.strip() for each in given if each.strip())
    for origin in origins:
        scheme, separator, rest = origin.partition("://")
        if origin != "*" and (scheme not in {"http", "https"} or not separator or not rest or "/" in rest):
            raise _BadError("https://HOST for each, or *")
    return origins


def _yes(value: object) -> bool:
    words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
    try:
        return words[str(value).lower()]
    except KeyError:
        raise _BadError("true or false") from None


def _whole(low: int, high: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        digits = str(value)
        if isinstance(value, bool) or not (digits.isascii() and digits.isdecimal() and low <= int(digits[:12]) <= high):
            raise _BadError(f"a whole number from {low} to {high}")
        return int(digits)

    return read


@dataclass(frozen=True)
class Setting:
    """One thing that can be set."""

    name: str
    read: Callable[[object], Any]
    default: Any
    meaning: str
    secret: bool = False
    """Secrets have no flag, because a command line can be read by everybody on the machine, and are never shown."""

    @property
    def flag(self) -> str:
        """How it is spelled on a command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """How it is spelled in the environment."""
        return PREFIX + self.name.upper()


SETTINGS = (
    Setting("registry", _text, None, "the registry of metrics, a TOML file"),
    Setting("store", _text, "sqlite:///hubbub.db", "sqlite:///FILE or postgresql://USER@HOST/DATABASE"),
    Setting("host", _address, "127.0.0.1", "address to listen on"),
    Setting("port", _whole(1, 65535), 8000, "port to listen on"),
    Setting("workers", _whole(1, 256), 1, "processes that serve"),
    Setting("threads", _whole(1, 256), 4, "threads of each process, for what is not a batch"),
    Setting("admin_token", _secret, None, "what all that reads needs; must be set unless host is loopback", True),
    Setting("ingest_key", _secret, None, "what clients need to hand in batches; without it, uploads are open", True),
    Setting("cors_origins", _origins, (), "origins whose pages may post batches, separated by commas; * for all"),
    Setting("days_back", _whole(1, 365), DEFAULT_DAYS_BACK, "days after its period that a report is accepted"),
    Setting("days_ahead", _whole(0, 7), DEFAULT_DAYS_AHEAD, "days before its period that a report is accepted"),
    Setting("keep_days", _whole(1, 36500), None, "days that tallies are kept; without it, for ever"),
    Setting(
        "min_cohort_reports",
        _whole(1, 1_000_000),
        DEFAULT_MIN_COHORT_REPORTS,
        "reports that a cohort needs in one period to appear in a tally or an export",
    ),
    Setting("archive", _text, None, "keep single reports too: a folder, or an address of fsspec"),
    Setting(
        "archive_reports",
        _whole(LEAST_REPORTS, 100_000_000),
        DEFAULT_REPORTS,
        "reports after which a file of the archive is written",
    ),
    Setting(
        "archive_hours",
        _whole(1, 168),
        DEFAULT_HOURS,
        f"hours after which it is written with fewer, though not with fewer than {LEAST_REPORTS}",
    ),
    Setting("queue", _whole(1, 1_000_000), DEFAULT_QUEUE, "batches of a process that may wait for a commit"),
    Setting("access_log", _yes, False, "log each request: time, method, path and status, never who sent it"),
)


@dataclass(frozen=True)
class Settings:
    """A configuration that can be served; the fields are those of `SETTINGS`, and the registry that was read."""

    metrics: Registry
    registry: str
    store: str
    host: str
    port: int
    workers: int
    threads: int
    admin_token: str | None
    ingest_key: str | None
    cors_origins: tuple[str, ...]
    days_back: int
    days_ahead: int
    keep_days: int | None
    min_cohort_reports: int
    archive: str | None
    archive_reports: int
    archive_hours: int
    queue: int
    access_log: bool

    def shown(self) -> list[str]:
        """Tell every setting, and of secrets only whether they are set."""
        lines = []
        for setting in SETTINGS:
            value = getattr(self, setting.name)
            if setting.secret and value is not None:
                value = "(set)"
            elif setting.name == "store":
                value = Store(value).address
            elif setting.name == "archive" and value is not None:
                value = shown_address(value)
            elif isinstance(value, tuple):
                value = ", ".join(value) or None
            lines.append(f"{setting.name} = {'(not set)' if value is None else value}")
        return lines


def read_settings(flags: Mapping[str, object], environment: Mapping[str, str]) -> Settings:
    """Put a configuration together, or raise SettingsError with everything that is wrong with it."""
    problems: list[str] = []
    file = flags.get(CONFIG) or environment.get(PREFIX + CONFIG.upper())
    written = _read_file(str(file), problems) if file else {}
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        values[setting.name] = setting.default
        places = (
            (setting.flag, flags.get(setting.name)),
            (setting.variable, environment.get(setting.variable) or None),
            (f'{file}, key "{setting.name}"', written.get(setting.name)),
        )
        place, value = next((each for each in places if each[1] is not None), ("", None))
        if value is not None:
            try:
                values[setting.name] = setting.read(value)
            except _BadError as error:
                shown = "the value" if setting.secret else f'"{value}"'
                problems.append(f"{place}: {shown} cannot be used; allowed: {error}")
    registry = _check(values, problems)
    if problems or registry is None:
        raise SettingsError(tuple(problems))
    return Settings(registry, **values)


def _read_file(name: str, problems: list[str]) -> dict[str, Any]:
    try:
        written = tomllib.loads(Path(name).expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        problems.append(f"{name}: cannot be read: {error.strerror}; allowed: a readable TOML file")
        return {}
    except (ValueError, RecursionError) as error:
        problems.append(f"{name}: is not TOML: {error}; allowed: TOML 1.0")
        return {}
    names = [setting.name for setting in SETTINGS]
    problems += [
        f'{name}, key "{key}": is not known; allowed: {", ".join(names)}' for key in written if key not in names
    ]
    return written


def _check(values: dict[str, Any], problems: list[str]) -> Registry | None:
    """Look at what single settings cannot tell."""
    registry = None
    if values["registry"] is None:
        problems.append("--registry: is missing; allowed: a TOML file of metrics, also as HUBBUB_REGISTRY")
    else:
        try:
            registry = Registry.load(values["registry"])
        except RegistryError as error:
            problems += str(error).splitlines()
    try:
        Store(values["store"])
    except StoreAddressError as error:
        problems.append(f"--{error}")
    if values["archive"] is not None:
        try:
            check_address(values["archive"])
        except ArchiveError as error:
            problems.append(f"--{error}")
    if values["admin_token"] is None and not ipaddress.ip_address(values["host"]).is_loopback:
        problems.append(
            f"HUBBUB_ADMIN_TOKEN: is not set, and {values['host']} can be reached from elsewhere; "
            "allowed: a token, or a loopback address"
        )
    if values["admin_token"] is not None and values["admin_token"] == values["ingest_key"]:
        problems.append("HUBBUB_INGEST_KEY: is the admin token, which apps would give away; allowed: another one")
    open_days = values["days_back"] + DAYS_PER_WEEK
    if values["keep_days"] is not None and values["keep_days"] < open_days:
        problems.append(
            f"--keep-days: {values['keep_days']} would purge periods that are still open; "
            f"allowed: at least days_back and a week, {open_days}"
        )
    return registry
