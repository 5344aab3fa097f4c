"""A collector that answers as it is told."""

import socket
from collections.abc import Callable
from typing import TypeAlias

from hubbub.client.testing import InMemoryCollector

Answer: TypeAlias = tuple[int, dict[str, str], bytes]
Step: TypeAlias = Answer | Callable[[bytes], Answer]


class Scripted(InMemoryCollector):
    """Answers as its script says, and as a good collector when that is over."""

    def __init__(self) -> None:
        super().__init__()
        self.script: list[Step] = []

    def answer(self, body: bytes) -> Answer:
        if not self.script:
            return super().answer(body)
        step = self.script.pop(0)
        return step(body) if callable(step) else step


def refused() -> str:
    """An address where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"
