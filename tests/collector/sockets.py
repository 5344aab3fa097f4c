"""Which process of a collector has which connections.

All of them listen on one socket, and whoever wakes first takes what has come: it may be everything.
"""

import contextlib
from pathlib import Path

ESTABLISHED = "01"


def connections(process: int, port: int) -> int:
    """How many connections to a port this process has accepted."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    # Of a row: its own address and port in hexadecimal, the state and the inode.
    accepted = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{port:04X}") and row[3] == ESTABLISHED}
    return len(accepted & _opened(process))


def _opened(process: int) -> set[str]:
    """What the files of a process are, by the system's names of them."""
    opened = set()
    for file in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed since they were listed
            opened.add(str(file.readlink()))
    return opened
