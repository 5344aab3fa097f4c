"""The registry: the TOML file of metrics that client and collector both read. Strict, typed, immutable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hubbub.shared.declaration import Declaration, is_finite
from hubbub.shared.errors import Problem, RegistryError, UnknownMetricError, ValueRefusedError
from hubbub.shared.kinds import ENCODING_OF
from hubbub.shared.metric import COMBINE, KINDS, Combine, Metric
from hubbub.shared.period import EVERY
from hubbub.shared.promise import read_response
from hubbub.shared.text import canonical_text
from hubbub.shared.wire import MAX_VERSION

if TYPE_CHECKING:
    import os

    from hubbub.shared.encode import Encoding
    from hubbub.shared.period import Every

MAX_LIFETIME_VALUES = 1_000_000
UNLIMITED = "unlimited"
DEFAULT_VERSION = 1
DEFAULT_COMBINE: Combine = "last"

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_NUMERIC_KINDS = ("mean", "histogram")


class Registry(Mapping[str, Metric]):
    """Metrics by name, in the order of the file."""

    def __init__(self, metrics: tuple[Metric, ...], text: str, max_epsilon: float | None = None) -> None:
        self._metrics = {metric.name: metric for metric in metrics}
        self.max_epsilon = max_epsilon
        """The most that the values of one device may ever cost, over all metrics; None: there is no such limit."""
        self.text = text
        """The TOML that the registry was read from; parsing it again gives an equal registry."""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Registry:
        """Read a registry from a file; RegistryError tells every problem in it."""
        file = Path(path).expanduser()
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            fault = f"cannot be read: {error.strerror or type(error).__name__}"
        except UnicodeDecodeError as error:
            fault = f"is not UTF-8: byte {error.start} is 0x{error.object[error.start]:02x}"
        else:
            return cls.parse(text, source=str(path))
        raise RegistryError(str(path), (Problem(None, None, fault, "a readable TOML file in UTF-8"),))

    @classmethod
    def parse(cls, text: str, *, source: str = "registry") -> Registry:
        """Read a registry from a string; `source` is what errors call it."""
        import tomllib  # noqa: PLC0415  (an app that is handed a parsed registry never needs it)

        try:
            document = tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            # tomllib lets through plain ValueErrors too, for instance for an integer of 5,000 digits.
            problem = Problem(None, None, f"is not TOML: {error}", "TOML 1.0, each name and key once")
            raise RegistryError(source, (problem,)) from None
        problems: list[Problem] = []
        found = [_metric(name, table, problems) for name, table in _tables(document, problems).items()]
        metrics = tuple(metric for metric in found if metric is not None)
        max_epsilon = _max_epsilon(document, metrics, problems)
        if problems:
            raise RegistryError(source, tuple(problems))
        return cls(metrics, text, max_epsilon)

    def __getitem__(self, name: str) -> Metric:
        try:
            return self._metrics[name]
        except (KeyError, TypeError):
            raise UnknownMetricError(
                f'metric "{name}" is not in the registry; allowed: {", ".join(self._metrics)}'
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    def __repr__(self) -> str:
        return f"Registry({', '.join(self._metrics)})"


def _tables(document: dict[str, object], problems: list[Problem]) -> dict[str, object]:
    problems += [
        Problem(None, key, "is not known here", "max_epsilon, and [metrics.NAME] tables")
        for key in document
        if key not in ("metrics", "max_epsilon")
    ]
    tables = document.get("metrics")
    if isinstance(tables, dict) and tables:
        return tables
    problems.append(Problem(None, "metrics", "is missing, empty or not a table", "at least one [metrics.NAME] table"))
    return {}


def _max_epsilon(document: dict[str, object], metrics: tuple[Metric, ...], problems: list[Problem]) -> float | None:
    """Read the most that the values of a device may cost, and check that the metrics cannot exceed it."""
    limit = document.get("max_epsilon")
    if limit is None:
        return None
    if not is_finite(limit) or limit <= 0:  # type: ignore[operator]  # it is a number by then
        problems.append(Problem(None, "max_epsilon", "is not a number above 0", "a number above 0"))
        return None
    limit = float(limit)  # type: ignore[arg-type]
    unlimited = [metric.name for metric in metrics if metric.encodings is None]
    problems += [
        Problem(name, "lifetime_values", f'is "{UNLIMITED}", which exceeds any max_epsilon', "a number")
        for name in unlimited
    ]
    total = sum(metric.max_epsilon for metric in metrics)
    if not unlimited and total > limit:
        problems.append(
            Problem(
                None,
                "max_epsilon",
                f"is {limit:g}, and the values of one device can cost {total:.4f}",
                "the sum of lifetime epsilon times lifetime_values over all metrics, or more",
            )
        )
    return limit


def _metric(name: str, table: object, problems: list[Problem]) -> Metric | None:
    """Read one metric, or note what is wrong with it."""
    before = len(problems)
    if not _NAME.fullmatch(name):
        problems.append(
            Problem(name, None, "has a name that is not allowed", "1 to 64 of a-z, 0-9 and _, beginning with a letter")
        )
    if not isinstance(table, dict):
        problems.append(Problem(name, None, "is not a table", f"[metrics.{name}] and the metric's keys below it"))
        return None
    declared = Declaration(name, table, problems)
    description = declared.text("description", required=True)
    kind = declared.choice("kind", KINDS)
    every = declared.choice("every", EVERY)
    version = declared.integer("version", 1, MAX_VERSION, DEFAULT_VERSION)
    owner, expires = declared.text("owner"), declared.day("expires")
    if not declared.sound("kind"):
        return None  # without a kind there is no telling which of the other keys belong
    combine = declared.choice("combine", COMBINE, DEFAULT_COMBINE) if kind in _NUMERIC_KINDS else None
    encoding = ENCODING_OF[kind](declared)
    privacy = declared.table("privacy")
    response = None
    if encoding is not None and declared.sound("every", "privacy"):
        response = read_response(privacy, kind, every, encoding)
    lifetime_values = _lifetime_values(declared, every, encoding)
    default = _default(declared, encoding)
    declared.finish()
    if encoding is None or response is None or description is None or len(problems) > before:
        return None
    return Metric(
        name,
        description,
        kind,
        every,
        encoding,
        response,
        version,
        lifetime_values,
        combine,
        default,
        owner,
        expires,
    )


def _default(declared: Declaration, encoding: Encoding | None) -> str | bool | float | None:
    """Read the value of periods without one: any value of the metric itself."""
    value = declared.value("default")
    if value is None or encoding is None:
        return None
    try:
        encoding.encode(value, 0, 0)
    except ValueRefusedError as error:
        declared.fault("default", *str(error).split("; allowed: "))
        return None
    if encoding.clamps(value):
        declared.fault("default", "is outside the range", "a number inside")
    if isinstance(value, str):
        return canonical_text(value).decode()
    return value if isinstance(value, bool) else float(value)  # type: ignore[arg-type]


def _lifetime_values(declared: Declaration, every: Every, encoding: Encoding | None) -> int | None:
    """How many encodings one device may reveal: one if it reports once, else the declared or the natural number."""
    key = "lifetime_values"
    natural = encoding.natural_bound if encoding is not None else None
    every_is_known = declared.sound("every")
    if every == "once" and every_is_known:
        return 1
    if key not in declared:
        if every_is_known and encoding is not None and natural is None:
            declared.fault(key, "is missing", f'a number, or "{UNLIMITED}": a repeated string metric must decide')
        return natural
    if natural is not None:
        return declared.integer(key, 1, natural)
    return declared.integer_or(key, UNLIMITED, 1, MAX_LIFETIME_VALUES)
