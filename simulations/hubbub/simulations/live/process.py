"""The process of a live collector: `hubbub serve`, for as long as somebody holds the other end of its input."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from hubbub.shared import command_line

STOP_SECONDS = 10.0
"""What stopping in order may take; the collector itself ends within that."""


def main() -> None:
    """Serve until told to stop, or until whoever started us is gone."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    sys.argv = ["hubbub", "serve"]
    command_line.main()


def _end_with_input() -> None:
    """Stop when the input ends: the pipe is closed by its owner, or by the system when that is killed.

    Read without a buffer, whose lock would be in the way of the usual end.
    """
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(STOP_SECONDS)  # this thread ends with the process, and that is mostly at once
    os._exit(1)
