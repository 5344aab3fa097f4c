"""Devices to audit: real clients that send to a collector in memory, or the pure function under the client."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

from hubbub.client.testing import FrozenClock, InMemoryCollector
from hubbub.shared.registry import Registry
from hubbub.shared.secret import Secret
from hubbub.simulations.errors import AuditError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Self, TypeAlias

    from hubbub.client import Client
    from hubbub.client.clock import Clock
    from hubbub.shared.metric import Metric
    from hubbub.shared.wire import Report

START = datetime(2001, 1, 1, 12, tzinfo=UTC)
"""When each device starts: a Monday, and earlier than a metric expires."""

PERIOD_DAYS = {"once": 1, "day": 1, "week": 7}

WAIT_DAYS = 9
"""Days after which the report of any period may be sent: a week, and a quarter of a week for the random delay."""

MEMORY_FOLDER = "/dev/shm"  # noqa: S108  (the state file of a simulated device holds no secret of anyone)
"""A folder in memory on Linux: a state file is written several times per trial."""


class Privatize(Protocol):
    """A function that turns a value into a report, as `hubbub.client.privatize` does."""

    def __call__(self, metric: Metric, value: object, secret: Secret, /) -> Report:
        """Return a report of a value."""
        ...


class ClientFactory(Protocol):
    """A function or class that makes a client, as `hubbub.client.Client` does."""

    def __call__(self, collector: str, *, registry: Registry, state: Path, enabled: bool, clock: Clock) -> Client:
        """Return a client."""
        ...


class Devices(Protocol):
    """A supply of new devices."""

    def reports(self, value: object, number: int) -> list[Report]:
        """Record a value on a new device in each of some periods, and return the reports that arrive, in order."""
        ...


OpenDevices: TypeAlias = "Callable[[Metric], AbstractContextManager[Devices]]"
"""Makes a supply of devices in the process that needs it."""


class FunctionDevices:
    """Devices without a client: a secret, and a function that makes each report."""

    def __init__(self, metric: Metric, *, client: Privatize) -> None:
        self._metric = metric
        self._client = client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def reports(self, value: object, number: int) -> list[Report]:
        """Call the function with a new secret."""
        secret = Secret.generate()
        return [self._client(self._metric, value, secret) for _ in range(number)]


class ClientDevices:
    """Devices that run a client with a state file and a clock, and send over HTTP to a collector in memory."""

    def __init__(self, metric: Metric, *, device: ClientFactory) -> None:
        self._metric = metric
        self._factory = device
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            memory = MEMORY_FOLDER if os.access(MEMORY_FOLDER, os.W_OK) else None
            folder = stack.enter_context(TemporaryDirectory(prefix="hubbub-audit-", dir=memory))
            self._clock = FrozenClock(START)
            self._collector = stack.enter_context(InMemoryCollector())
            client = self._factory(
                self._collector.url,
                registry=Registry((self._metric,), ""),
                state=Path(folder, "state.db"),
                enabled=True,
                clock=self._clock,
            )
            self._client = stack.enter_context(closing(client))
            if not self._client.enabled:
                raise AuditError("the environment switches the client off: unset DO_NOT_TRACK and HUBBUB_DISABLED")
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, traceback)

    def reports(self, value: object, number: int) -> list[Report]:
        """Delete the secret, record the value in each period, and take the reports from the collector."""
        name, days = self._metric.name, PERIOD_DAYS[self._metric.every]
        self._client.forget()
        for period in range(number):
            self._clock.advance(days=days if period else 0)
            self._client.record(name, value)
        self._clock.advance(days=days + WAIT_DAYS)
        if not self._client.flush():
            problem = self._client.stats().problem or "no answer"
            raise AuditError(f'metric "{name}": the client could not send: {problem}')
        self._clock.advance(days=-(number * days + WAIT_DAYS))
        arrived = sorted(self._collector.reports, key=lambda report: report.period)
        for log in (self._collector.batches, self._collector.attempts, self._collector.headers):
            log.clear()
        return arrived
