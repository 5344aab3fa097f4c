"""Messages between processes of one collector: bytes, each behind its length."""

from __future__ import annotations

from typing import IO

SIZE = 8
"""Bytes of a length."""


def framed(message: bytes) -> bytes:
    """Put its length before a message."""
    return len(message).to_bytes(SIZE) + message


def write_message(pipe: IO[bytes], message: bytes) -> None:
    """Send a message at once."""
    pipe.write(framed(message))
    pipe.flush()


def read_message(pipe: IO[bytes]) -> bytes:
    """Wait for a message; EOFError: there is none, or not all of it, and nothing more will come."""
    head = pipe.read(SIZE)
    size = int.from_bytes(head)
    message = pipe.read(size) if size else b""
    if len(head) < SIZE or len(message) < size:
        raise EOFError
    return message
