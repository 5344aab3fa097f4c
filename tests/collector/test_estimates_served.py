"""Estimates of a real collector: the same numbers, and no process that outlives it."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from collector.estimated import CANDIDATES, ESTIMATES, HANG_SECONDS, STRINGS, TRUTH, detected, directly, fill, told
from collector.served import TOKEN as SERVED_TOKEN
from collector.served import Served, serving
from hubbub.collector.store import Store
from shared.registries import EXAMPLE


def ask(served: Served, query: str = "") -> requests.Response:
    shown = {"Authorization": f"Bearer {SERVED_TOKEN}"}
    return requests.get(f"{served.url}{ESTIMATES}{query}", headers=shown, timeout=HANG_SECONDS)


@contextmanager
def serving_estimates(folder: Path) -> Iterator[Served]:
    """A real collector, with reports of everything and candidates of one string metric."""
    with serving(folder, f"sqlite:///{folder}/hubbub.db", registry=EXAMPLE) as served:
        store = Store(served.store)
        fill(store)
        store.close()
        lines = {"Authorization": f"Bearer {SERVED_TOKEN}", "Content-Type": "text/plain"}
        path = f"{served.url}/v1/metrics/homepage/candidates"
        assert requests.put(path, "\n".join(CANDIDATES).encode(), headers=lines, timeout=30).status_code == 200
        yield served


def test_a_real_collector_answers_with_the_same_numbers(tmp_path: Path) -> None:
    with serving_estimates(tmp_path) as served:
        store = Store(served.store)
        for name in TRUTH:
            if name not in STRINGS:
                assert told(served.get(f"/v1/metrics/{name}/estimates")) == directly(store, name)
        assert told(ask(served)) == detected(directly(store, "homepage"))
        assert told(ask(served, "?all=true")) == directly(store, "homepage")
        store.close()
        assert served.stop() == 0


@pytest.fixture
def decoding_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that is there as soon as a process of a real collector decodes; and that takes for ever."""
    mark = tmp_path / "begun"
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(f"""
import pathlib, sys, threading
if "decode.process" in sys.orig_argv[-1]:
    from hubbub.collector.decode import process
    process._answer = lambda order: (pathlib.Path({str(mark)!r}).touch(), threading.Event().wait())
""")
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    return mark


def wait_for(mark: Path) -> None:
    """Look until a file is there: another process makes it."""
    deadline = time.monotonic() + HANG_SECONDS
    while not mark.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_stop_while_strings_are_decoded_leaves_no_process(tmp_path: Path, decoding_for_ever: Path) -> None:
    with serving_estimates(tmp_path) as served, ThreadPoolExecutor() as threads:
        asked = threads.submit(ask, served)
        wait_for(decoding_for_ever)
        assert served.stop(10) == 0
        answer = asked.result(HANG_SECONDS)
        assert (answer.status_code, answer.json()["code"]) == (503, "closing")
        served.wait_until_gone()
        assert "refused to gracefully stop" not in served.log.read_text()


def test_a_collector_that_is_killed_leaves_no_process(tmp_path: Path, decoding_for_ever: Path) -> None:
    with serving_estimates(tmp_path) as served, ThreadPoolExecutor() as threads:
        asked = threads.submit(ask, served)
        wait_for(decoding_for_ever)
        [worker] = served.workers()
        served.process.send_signal(signal.SIGKILL)
        os.kill(worker, signal.SIGKILL)
        assert isinstance(asked.exception(HANG_SECONDS), requests.RequestException)
        served.process.wait()
        served.wait_until_gone()
