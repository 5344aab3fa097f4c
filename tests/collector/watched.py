"""A collector at work in this process: batches for it, and what it tells of itself meanwhile."""

import time
from collections.abc import Callable

from flask import Flask

from collector.apps import collector_of, post
from collector.oracle import Oracle
from collector.senders import HANG_SECONDS


def wait_until(condition: Callable[[], bool]) -> None:
    """Ask until something is so, which another thread or process does: there is no event to wait for."""
    deadline = time.monotonic() + HANG_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def send(app: Flask, oracle: Oracle, batches: int) -> None:
    client = app.test_client()
    for _ in range(batches):
        body, slots = oracle.batch(1)
        assert post(client, body).status_code == 200
        oracle.acknowledge(slots)


def value(app: Flask, name: str) -> float:
    shown = collector_of(app).monitoring.show().decode()
    [line] = [line for line in shown.splitlines() if line.startswith(f"{name} ")]
    return float(line.split()[1])
