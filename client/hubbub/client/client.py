"""The client that apps embed: three lines, and nothing an app has to wait for or worry about.

`record` randomises a value and has stored it safely before it returns. It does not touch the network, and by default
raises nothing: what goes wrong is counted, and told by `stats()` and one line of log. A background thread sends.
"""

from __future__ import annotations

import atexit
import logging
import os
import time
import weakref
from functools import partial
from typing import TYPE_CHECKING

from hubbub.client import outbox
from hubbub.client.clock import Clock, system_clock, utc
from hubbub.client.consent import switched_off
from hubbub.client.errors import StateError
from hubbub.client.importing import import_requests
from hubbub.client.ledger import Ledger
from hubbub.client.preview import Pending, pending
from hubbub.client.recording import record, record_defaults
from hubbub.client.registries import Registries
from hubbub.client.sender import Sender
from hubbub.client.state import State, count
from hubbub.client.stats import Stats, read_stats
from hubbub.shared.errors import UnknownMetricError, ValueRefusedError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import requests

    from hubbub.shared.metric import Metric
    from hubbub.shared.registry import Registry

EXIT_SECONDS = 0.2
"""The most that the end of an app is held up; everything is on disk already."""

FLUSH_SECONDS = 10.0

USER_AGENT = "hubbub"
"""All that a request says of the client: no version of a library, which could tell devices apart."""

_UNUSED = {
    "max_epsilon": "its values could cost more than max_epsilon leaves",
    "other_declaration": "its declaration changed and its version did not",
}

logger = logging.getLogger("hubbub.client")
_clients: weakref.WeakSet[Client] = weakref.WeakSet()


class Client:
    """Collects metrics on one device.

    Args:
        collector: The address of the collector, or None to record and preview only.
        registry: A file, a `Registry`, or None to fetch the collector's.
        state: The state file, one for each user of the app and each collector.
        enabled: The user's decision.
        max_epsilon: The most that the values of this device may ever cost, over all metrics and versions. Required if
            the registry is fetched; otherwise what the registry states, or `DEFAULT_MAX_EPSILON`.
        device: A text that no other device has, such as a machine id. It is not sent, and only a keyed digest of it is
            stored: with it the client notices a state file that was copied from another device, and does not use it.
        previous_collectors: Earlier addresses of the same collector, whose state file this one may go on with.
        strict: Raise on an unknown metric or an invalid value; for development.
        clock: The source of the time; for tests.
        ingest_key: The key that the collector asks of clients, if it asks for one.
        proxies: As `requests` has them.
        verify: As `requests` has it.
        cert: As `requests` has it.

    Raises:
        ParameterError: `max_epsilon` is missing or not above 0.
        RegistryError: The registry is invalid.

    Example:
        client = Client("https://telemetry.example.org", registry="metrics.toml", state="device.db", enabled=consent)
        client.record("homepage", "example.org")
    """

    def __init__(
        self,
        collector: str | None,
        *,
        registry: Registry | str | os.PathLike[str] | None,
        state: str | os.PathLike[str],
        enabled: bool,
        max_epsilon: float | None = None,
        device: str | None = None,
        previous_collectors: Collection[str] = (),
        strict: bool = False,
        clock: Clock = system_clock,
        ingest_key: str | None = None,
        proxies: dict[str, str] | None = None,
        verify: bool | str = True,
        cert: str | tuple[str, str] | None = None,
    ) -> None:
        self._state = State(state, collector=collector, previous=previous_collectors, device=device)
        self._registries = Registries(registry, self._state, collector, max_epsilon)
        self._strict = strict
        self._clock = clock
        self._problem: str | None = None
        self._unused: set[tuple[str, str]] = set()
        self._sender = None
        if collector is not None:
            # A function of its own, and no method: a client that is let go of is then gone at once, its file closed.
            session = partial(_make_session, ingest_key, proxies, verify, cert)
            self._sender = Sender(collector, session, self._state, self._registries, clock)
        self._enabled = False
        self.enabled = enabled
        _clients.add(self)

    @property
    def enabled(self) -> bool:
        """Whether values are collected: the user's decision, unless the environment forbids it."""
        return self._enabled

    @enabled.setter
    def enabled(self, decision: bool) -> None:
        self._enabled = bool(decision) and not switched_off()
        if self._sender is not None:
            self._sender.stop(0)
            self._sender.begin_anew()
        # Consent that is taken back, or was never given, leaves nothing behind that could still be sent.
        if not self._enabled and self._state.path.exists():
            self._discard("opted_out")
        if self._enabled:
            self._begin_period()

    def record(self, metric: str, value: object) -> None:
        """Record a value: randomised and on disk when this returns."""
        if not self._enabled:
            return
        try:
            self._record(metric, value)
        except StateError as error:
            self._report_problem(str(error))
        except UnknownMetricError:
            self._refuse("unknown_metric")
            if self._strict:
                raise
        except ValueRefusedError:
            raise  # only raised if strict, after the report without a valid value was recorded
        except Exception as error:  # noqa: BLE001  (a fault of ours must not become a fault of the app)
            # Its type alone: a message or a traceback might hold the value.
            self._report_problem(f"record failed with {type(error).__name__}")
        else:
            self._problem = None
            if self._sender is not None:
                self._sender.start()

    def _record(self, name: str, value: object) -> None:
        registry = self._registries.current()
        if registry is None:
            self._refuse("no_registry")
            return
        metric, day = registry[name], utc(self._clock).date()
        with self._state.transaction() as connection:
            secret = self._state.secret(connection)
            ledger = Ledger(connection, registry, self._registries.max_epsilon)
            record_defaults(connection, ledger, registry, secret, day)
            reason = record(connection, ledger, metric, value, secret, day)
            if reason is not None:
                count(connection, f"refused:{reason}")
        if reason == "unfit_value" and self._strict:
            metric.encode(value, 0, 0)
        elif reason in ("max_epsilon", "other_declaration"):
            self._report_unused(name, reason)

    def _begin_period(self) -> None:
        """Begin the reports of metrics with a default: this client runs in this period."""
        try:
            registry = self._registries.current()
            if registry is not None:
                if all(metric.default is None for metric in registry.values()):
                    return
                with self._state.transaction() as connection:
                    ledger = Ledger(connection, registry, self._registries.max_epsilon)
                    secret = self._state.secret(connection)
                    record_defaults(connection, ledger, registry, secret, utc(self._clock).date())
        except StateError as error:
            self._report_problem(str(error))
            return
        # Without a registry the thread fetches it, and begins the reports of its defaults.
        if self._sender is not None:
            self._sender.start()

    def flush(self, timeout: float = FLUSH_SECONDS) -> bool:
        """Send what may be sent, now; tells whether all of it has been. Reports of running periods stay."""
        if self._sender is None or not self._enabled:
            return False
        try:
            return self._sender.send_all(timeout)
        except StateError as error:
            self._report_problem(str(error))
            return False

    def close(self, timeout: float = EXIT_SECONDS) -> None:
        """Stop the background thread, waiting for it no longer than this, and let go of the file. Nothing is lost."""
        if self._sender is not None:
            self._sender.stop(timeout)
        self._state.close()

    def stats(self) -> Stats:
        """Count everything recorded, sent, pending and lost, by reason."""
        try:
            with self._state.transaction() as connection:
                return read_stats(connection, self._problem)
        except StateError as error:
            return Stats(problem=str(error))

    def preview(self) -> list[Pending]:
        """List what has not been delivered: its bits, when it may go, and what the metric has cost so far."""
        try:
            registry: Mapping[str, Metric] = self._registries.current() or {}
            with self._state.transaction() as connection:
                return pending(connection, registry)
        except StateError as error:
            self._report_problem(str(error))
            return []

    def forget(self) -> None:
        """Delete the secret, the ledger and all reports that have not been sent.

        Reports that the collector has stay there. What is recorded from now on spends privacy from the beginning.
        """
        self._state.forget()
        self._problem = None
        logger.info("the secret and everything recorded was deleted; new reports spend privacy from the beginning")

    def _discard(self, reason: str) -> None:
        try:
            with self._state.transaction() as connection:
                outbox.discard_all(connection, reason)
            self._state.scrub()
        except StateError as error:
            self._report_problem(str(error))

    def _refuse(self, reason: str) -> None:
        try:
            with self._state.transaction() as connection:
                count(connection, f"refused:{reason}")
        except StateError as error:
            self._report_problem(str(error))

    def _report_unused(self, name: str, reason: str) -> None:
        if (name, reason) not in self._unused:
            self._unused.add((name, reason))
            logger.warning("metric %s is not reported: %s", name, _UNUSED[reason])

    def _report_problem(self, problem: str) -> None:
        if self._problem is None:
            logger.warning("nothing is recorded: %s", problem)
        self._problem = problem

    def after_fork(self) -> None:
        """In a new child: no thread and no connection of the parent's is ours."""
        if self._sender is not None:
            self._sender.begin_anew()


def _make_session(
    ingest_key: str | None,
    proxies: dict[str, str] | None,
    verify: bool | str,
    cert: str | tuple[str, str] | None,
) -> requests.Session:
    session: requests.Session = import_requests().Session()
    from http.cookiejar import DefaultCookiePolicy  # noqa: PLC0415  (requests has imported it)

    session.verify, session.cert = verify, cert
    session.proxies.update(proxies or {})
    session.headers.clear()
    session.headers.update({"User-Agent": USER_AGENT, "Accept-Encoding": "gzip", "Connection": "keep-alive"})
    # No cookie is taken, because it would come back with every report and name the device.
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    # Said even where there is no key: otherwise requests would send the name and password of the user's .netrc.
    session.auth = partial(_authorize, ingest_key)
    return session


def _authorize(ingest_key: str | None, request: requests.PreparedRequest) -> requests.PreparedRequest:
    if ingest_key is not None:
        request.headers["Authorization"] = f"Bearer {ingest_key}"
    return request


def _after_fork_in_child() -> None:
    for client in list(_clients):
        client.after_fork()


def _at_exit() -> None:
    clients, end = list(_clients), time.monotonic() + EXIT_SECONDS
    for client in clients:
        client.close(0)
    for client in clients:
        client.close(max(0.0, end - time.monotonic()))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)
