"""A collector that keeps an archive and is killed: forked off, again and again, by a process that has all imported.

Started with a store and a place, it reads a line for each child: "random", or the name of a step at which the child is
to kill itself. It writes "begun" when the child commits, and its signal when it is gone.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from collector.oracle import BITS, REGISTRY
from hubbub.collector.acceptance import Judged
from hubbub.collector.archive import keeping, place
from hubbub.collector.archive.libraries import library
from hubbub.collector.collector import Collector
from hubbub.collector.store import Store, files
from hubbub.collector.writer import NotTakenError, Ticket
from hubbub.shared.period import today
from hubbub.shared.wire import Report

KEEPING: Any = keeping
PLACE: Any = place
FILES: Any = files
"""What is broken on purpose."""

REPORTS_OF_A_FILE = 16
AT_ONCE = 8
"""Batches that wait for a commit at a time: so many reports come together, in one part of each period."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)  # a signal to oneself arrives at once, but nobody promises that


def dying_before(name: str) -> None:
    assert hasattr(KEEPING, name)
    setattr(KEEPING, name, lambda *_: die())


def dying_after(name: str) -> None:
    step: Callable[..., object] = getattr(KEEPING, name)

    def done_and_dead(*arguments: object) -> None:
        step(*arguments)
        die()

    setattr(KEEPING, name, done_and_dead)


def dying_in_the_middle_of_a_file() -> None:
    def half(path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(f"{path.name}.abcd.part").write_bytes(content[: len(content) // 2])
        die()

    def half_of_an_upload(to: Any, name: str, content: bytes) -> None:
        """As s3fs sends a large file: in parts, which are nothing to see until the last one."""
        bucket, key, _ = to._system.split_path(to.path(name))
        upload = to._system.call_s3("create_multipart_upload", Bucket=bucket, Key=key)["UploadId"]
        half = content[: len(content) // 2]
        to._system.call_s3("upload_part", Bucket=bucket, Key=key, UploadId=upload, PartNumber=1, Body=half)
        die()

    write = PLACE.Place.write
    PLACE.Place.write = lambda to, *given: (write if to.local else half_of_an_upload)(to, *given)
    PLACE._write_local = half


def dying_among_parts() -> None:
    """Deleting is done a part at a time, and ends after the first."""
    drop = FILES.drop_parts

    def first_only(engine: object, name: str) -> None:
        writing = FILES.writing

        def once(*arguments: object) -> object:
            FILES.writing = lambda *_: die()
            return writing(*arguments)

        FILES.writing = once
        drop(engine, name, 1)

    KEEPING.drop_parts = first_only


STEPS: dict[str, Callable[[], None]] = {
    "random": lambda: None,
    "before the seal": lambda: dying_before("seal"),
    "after the seal": lambda: dying_after("seal"),
    "before the file": lambda: dying_before("write_file"),
    "in the middle of the file": dying_in_the_middle_of_a_file,
    "after the file": lambda: dying_after("write_file"),
    "after it is noted": lambda: dying_after("mark_written"),
    "among the parts": dying_among_parts,
    "after the parts": lambda: dying_after("drop_parts"),
}


class Mailbox:
    """Lets the next batches in when those of before have been committed."""

    def __init__(self) -> None:
        self._free = threading.Semaphore(AT_ONCE)

    def wait(self) -> None:
        self._free.acquire()

    def deliver(self, tickets: list[Ticket]) -> None:
        assert not any(ticket.failed for ticket in tickets)
        self._free.release(len(tickets))


def work(store: str, archive: str, step: str) -> None:
    """Commit batches without end; each report sets one bit of a random cohort."""
    STEPS[step]()
    collector = Collector(REGISTRY, Store(store), archive=archive, archive_reports=REPORTS_OF_A_FILE)
    collector.start()
    assert collector.writer.wait_until_ready(30)
    mailbox, day = Mailbox(), today()
    for number in count():
        mailbox.wait()
        cohort, bit = number % 7, int.from_bytes(os.urandom(1)) % BITS
        report = Report("oracle", 1, day, cohort, (1 << bit).to_bytes(BITS // 8, "little"))
        try:
            collector.writer.submit(Ticket(Judged(os.urandom(16), [report], [0], [day]), mailbox))
        except NotTakenError as error:
            raise SystemExit(str(error)) from None
        if number == AT_ONCE:
            # At once: another thread may kill this process in the middle of a print.
            os.write(sys.stdout.fileno(), f"begun {os.getpid()}\n".encode())


def main(store: str, archive: str) -> None:
    library("pyarrow.parquet")
    library("s3fs")  # imported, and not connected: connections do not outlive a fork
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                work(store, archive, line.strip())
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        print("ended", os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
