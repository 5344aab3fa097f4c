"""Where the client's registry comes from: a file, an object, or the collector, whose answer the state file keeps."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from hubbub.client.ledger import DEFAULT_MAX_EPSILON
from hubbub.client.upload import download
from hubbub.shared.errors import ParameterError, Problem, RegistryError
from hubbub.shared.registry import Registry

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    import requests

    from hubbub.client.state import State

MAX_FETCHED_VERSION = 100
"""The highest version in a fetched registry: with its own version for each device, a collector could recognise it."""

REFRESH_SECONDS = 86400.0
"""How old the collector's registry may become before it is asked for again."""

logger = logging.getLogger("hubbub.client")


class Registries:
    """The registry in force; None until the collector's has come for the first time."""

    def __init__(
        self,
        given: Registry | str | os.PathLike[str] | None,
        state: State,
        collector: str | None,
        max_epsilon: float | None,
    ) -> None:
        if max_epsilon is None and given is None:
            raise ParameterError(
                "max_epsilon is required with registry=None, because the collector then says what a report may cost"
            )
        if max_epsilon is not None and not max_epsilon > 0:
            raise ParameterError(f"max_epsilon = {max_epsilon}; allowed: a number above 0, or math.inf")
        self._max_epsilon = max_epsilon
        self._registry = given if given is None or isinstance(given, Registry) else Registry.load(given)
        self._state = state
        self._url = f"{collector.rstrip('/')}/v1/registry" if given is None and collector is not None else None

    @property
    def max_epsilon(self) -> float:
        """The most that the values of this device may ever cost: the lower of the app's limit and the registry's."""
        stated = None if self._registry is None else self._registry.max_epsilon
        limits = [limit for limit in (self._max_epsilon, stated) if limit is not None]
        return min(limits, default=DEFAULT_MAX_EPSILON)

    def current(self) -> Registry | None:
        """The registry that was given, or the collector's as the state file has it."""
        if self._registry is None and self._url is not None and self._state.path.exists():
            with self._state.transaction() as connection:
                row = connection.execute("SELECT value FROM meta WHERE key = 'registry'").fetchone()
            # What another version of the client has kept may not be what this one understands: it will be fetched.
            with contextlib.suppress(RegistryError):
                self._registry = None if row is None else _parse(row[0].decode(), self._url)
        return self._registry

    def refresh(self, session: Callable[[], requests.Session], now: float) -> None:
        """Ask the collector if it is time to; what cannot be had or used leaves the one before in force."""
        if self._url is None or (self.current() is not None and not self._is_old(now)):
            return
        text = download(session(), self._url)
        if text is None:
            logger.info("the registry could not be fetched")
            return
        try:
            registry = _parse(text, self._url)
        except RegistryError as error:
            logger.warning("the collector's registry is not used: %s", error)
            return
        with self._state.transaction() as connection:
            for key, value in (("registry", text.encode()), ("registry_fetched", str(now).encode())):
                connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
        self._registry = registry

    def _is_old(self, now: float) -> bool:
        with self._state.transaction() as connection:
            row = connection.execute("SELECT value FROM meta WHERE key = 'registry_fetched'").fetchone()
        # A moment ahead of now was written down before the clock was put back.
        return row is None or not 0 <= now - float(row[0]) < REFRESH_SECONDS


def _parse(text: str, source: str) -> Registry:
    """Read a fetched registry, which may not use versions as names of devices."""
    registry = Registry.parse(text, source=source)
    problems = tuple(
        Problem(metric.name, "version", f"is {metric.version}", f"at most {MAX_FETCHED_VERSION} in a fetched registry")
        for metric in registry.values()
        if metric.version > MAX_FETCHED_VERSION
    )
    if problems:
        raise RegistryError(source, problems)
    return registry
