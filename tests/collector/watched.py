"""A collector at work in this process: batches for it, and what it tells of itself meanwhile."""

import threading
from collections.abc import Callable

from flask import Flask

from collector.apps import collector_of, post
from collector.oracle import Oracle


def wait_until(condition: Callable[[], bool]) -> None:
    """Ask until something is so, which another thread does."""
    for _ in range(6000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError


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
