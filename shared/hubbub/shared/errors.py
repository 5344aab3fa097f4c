"""Every error hubbub raises.

    HubbubError
    ├── RegistryError        a registry file that cannot be used; `.problems` lists every fault in it
    ├── ParameterError       numbers that no response, epsilon or plan can be built from
    ├── UnknownMetricError   a name that the registry does not hold
    ├── ValueRefusedError    a value that a metric cannot encode; the message never contains the value
    └── WireError            bytes that are not a batch
        └── UnreadableError  bytes that are not even JSON or msgpack

A message names the thing, what was wrong with it and what is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass


class HubbubError(Exception):
    """The root of the tree: catching it catches everything hubbub raises on purpose."""


@dataclass(frozen=True)
class Problem:
    """One fault in a registry: where it is, what is wrong and what is allowed."""

    metric: str | None
    key: str | None
    fault: str
    allowed: str

    def __str__(self) -> str:
        place = [f'metric "{self.metric}"'] if self.metric is not None else []
        place += [f'key "{self.key}"'] if self.key is not None else []
        where = ", ".join(place)
        return f"{where + ': ' if where else ''}{self.fault}; allowed: {self.allowed}"


class RegistryError(HubbubError):
    """A registry with faults: all of them, not only the first."""

    def __init__(self, source: str, problems: tuple[Problem, ...]) -> None:
        self.source = source
        self.problems = problems
        super().__init__("\n".join(f"{source}: {problem}" for problem in problems))


class ParameterError(HubbubError, ValueError):
    """Numbers outside the range that keeps the promise, or the mathematics, alive."""


class UnknownMetricError(HubbubError, KeyError):
    """A metric name that the registry does not hold."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which would put quotes around our sentence.
        return str(self.args[0])


class ValueRefusedError(HubbubError, ValueError):
    """A value that a metric cannot encode. The value itself is never part of the message."""


class WireError(HubbubError, ValueError):
    """Bytes that do not spell a batch."""


class UnreadableError(WireError):
    """Bytes that are neither JSON nor msgpack, whatever they were meant to spell."""
