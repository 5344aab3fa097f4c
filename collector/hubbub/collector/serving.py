"""Serving: the collector on granian, in as many processes as the operator wants."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import logging.config
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from functools import partial
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

from granian import Granian
from granian.constants import HTTPModes, Interfaces, Loops
from granian.http import HTTP1Settings

from hubbub.collector import relay
from hubbub.collector.app import create_asgi
from hubbub.collector.collector import Collector
from hubbub.collector.errors import SettingsError, StoreUnavailableError
from hubbub.collector.monitoring import SHARED_FOLDER
from hubbub.collector.office import Opening
from hubbub.collector.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from hubbub.collector.settings import Settings

MAX_CONNECTIONS = 16_384
"""Connections of one process; idle and slow ones cost a few kilobytes each."""

SWITCH_SECONDS = 0.001
"""Reading requests and committing take turns in one interpreter; the usual 5 ms is longer than a commit."""

YOUNG_OBJECTS = 10_000
"""So many new ones there are before rubbish is looked for; the usual 700 are those of a few requests, all in use."""

HEADER_MILLISECONDS = 30_000
STOP_SECONDS = 7
"""After that a process that still has not ended is killed: only half a request can hold it up for so long."""

LOOK_SECONDS = 1.0
"""How often a process looks whether the one that started it is still there."""

_OPTIONS = (
    "admin_token",
    "ingest_key",
    "cors_origins",
    "days_back",
    "days_ahead",
    "keep_days",
    "min_cohort_reports",
    "archive",
    "archive_reports",
    "archive_hours",
    "queue",
)
"""Settings that the collector itself is given."""

_ACCESS = '[%(time)s] "%(method)s %(path)s" %(status)d %(dt_ms).1f ms'
logger = logging.getLogger("hubbub.collector")


def serve(settings: Settings) -> None:
    """Serve until told to stop."""
    _look_at_port(settings)
    logging.config.dictConfig(_LOGGING)
    for line in settings.shown():
        logger.info("%s", line)
    _look_at_store(settings)
    _allow_many_connections()
    with contextlib.ExitStack() as stack:
        if settings.workers > 1:
            os.environ[SHARED_FOLDER] = stack.enter_context(tempfile.TemporaryDirectory(prefix="hubbub-"))
        _server(settings).serve(target_loader=partial(_load, settings), wrap_loader=False)


def _server(settings: Settings) -> Any:
    return Granian(
        "hubbub",
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGI,
        http=HTTPModes.http1,
        loop=Loops.auto,
        websockets=False,
        workers=settings.workers,
        backpressure=MAX_CONNECTIONS,
        http1_settings=HTTP1Settings(header_read_timeout=HEADER_MILLISECONDS),
        respawn_failed_workers=True,
        respawn_interval=0.1,
        workers_kill_timeout=STOP_SECONDS,
        log_dictconfig=_LOGGING,
        log_access=settings.access_log,
        log_access_format=_ACCESS,
    )


def _look_at_port(settings: Settings) -> None:
    """Refuse a port that cannot be had. The server itself would share it with whoever has it already."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of before may still be timing out
        try:
            tried.bind((settings.host, settings.port))
        except OSError as error:
            place = f"{settings.host} port {settings.port}"
            raise SettingsError((f"--port: {place} cannot be used: {error.strerror}; allowed: a free one",)) from None


def _look_at_store(settings: Settings) -> None:
    """Refuse to start on a store that must not be written to; one that cannot be reached yet is waited for."""
    store = Store(settings.store)
    try:
        store.prepare(settings.metrics)
    except StoreUnavailableError as error:
        logger.warning("%s; starting all the same, and not ready before it answers", error)
    finally:
        store.close()


def _load(settings: Settings) -> Callable[..., Any]:
    """Make the application, in the process that serves it."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # until the server listens to it, there is nothing to be saved
    sys.setswitchinterval(SWITCH_SECONDS)
    options = {name: getattr(settings, name) for name in _OPTIONS}
    collector = Collector(settings.metrics, Store(settings.store), **options)
    collector.start()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    office = _office(settings, collector) if relay.IS_POSSIBLE else None
    asyncio.get_event_loop().call_soon(_end_decoding_at_stop, collector)
    application = create_asgi(collector, settings.threads, office)
    # What is there now stays for ever. To look through it for rubbish takes tens of milliseconds, all requests waiting.
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, *gc.get_threshold()[1:])
    return application


def _office(settings: Settings, collector: Collector) -> relay.Office:
    address = collector.store.engine.url.render_as_string(hide_password=False)
    return relay.Office(Opening(collector.registry.text, address, settings.admin_token, settings.threads, _LOGGING))


def _end_decoding_at_stop(collector: Collector) -> None:
    """End a decoding process at the signal itself, before the server, which lets every request be answered first."""

    def ending_before(served: Any) -> Callable[[int, Any], None]:
        def handle(number: int, frame: Any) -> None:
            collector.decoder.close()
            if callable(served):
                served(number, frame)

        return handle

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, ending_before(signal.getsignal(each)))


def _end_with_parent() -> None:
    """Stop when the process that started us is gone, however it went: nobody else would."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    # Both are asked: a process that was forked after this one holds the sentinel open.
    while os.getppid() == parent.pid and not wait([parent.sentinel], LOOK_SECONDS):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_SECONDS)  # this thread ends with the process, and that is mostly at once
    os._exit(1)


def _allow_many_connections() -> None:
    """Ask for as many open files as the system lets us have."""
    if sys.platform != "win32":
        import resource  # noqa: PLC0415  (not everywhere)

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MAX_CONNECTIONS + 1024 if hard == resource.RLIM_INFINITY else min(hard, MAX_CONNECTIONS + 1024)
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


_HANDLER = {"class": "logging.StreamHandler", "formatter": "line", "stream": "ext://sys.stderr"}
_LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(message)s"}, "bare": {"format": "%(message)s"}},
    "handlers": {"console": _HANDLER, "access": {**_HANDLER, "formatter": "bare"}},
    "loggers": {
        "hubbub": {"handlers": ["console"], "level": "INFO", "propagate": False},
        "_granian": {"handlers": ["console"], "level": "WARNING", "propagate": False},
        "granian.access": {"handlers": ["access"], "level": "INFO", "propagate": False},
    },
}
