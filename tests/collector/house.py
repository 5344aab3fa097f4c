"""A collector with its office, spoken to without a network, and bodies that arrive whole, in part, or never."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from collector.senders import HANG_SECONDS
from hubbub.collector.collector import Collector
from hubbub.collector.relay import Office


@dataclass
class Answer:
    """What an ASGI application has sent."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    cookies: list[str] = field(default_factory=list)
    body: bytes = b""

    async def take(self, message: dict[str, Any]) -> None:
        self.status = message.get("status", self.status)
        self.headers |= {name.decode(): value.decode("latin-1") for name, value in message.get("headers", ())}
        self.cookies += [value.decode() for name, value in message.get("headers", ()) if name == b"set-cookie"]
        self.body += message.get("body", b"")

    @property
    def text(self) -> str:
        return self.body.decode()


Receive = Callable[[], Awaitable[dict[str, Any]]]


@dataclass
class House:
    """A collector with its office, spoken to without a network."""

    runner: asyncio.Runner
    collector: Collector
    office: Office
    app: Any

    def ask(
        self,
        path: str,
        method: str = "GET",
        receive: Receive | None = None,
        client: str = "127.0.0.1",
        query: str = "",
        **headers: str,
    ) -> Answer:
        answer = Answer()
        given = {"host": "localhost:80", "accept": "text/html"} | headers
        scope = {
            "type": "http",
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()],
            "server": ("127.0.0.1", "80"),
            "client": (client, "1234"),
        }
        self.runner.run(asyncio.wait_for(self.app(scope, receive or parts(), answer.take), HANG_SECONDS))
        return answer

    def kill(self) -> None:
        """Kill the office, and wait until it is dead."""
        assert self.office._process is not None
        self.office._process.kill()
        self.office._process.wait()

    def pid(self) -> int:
        assert self.office._process is not None
        return self.office._process.pid


def parts(*bodies: bytes, then: Receive | None = None) -> Receive:
    """A body in parts; what comes after them, if it does not end there."""
    left = list(bodies)

    async def receive() -> dict[str, Any]:
        if left:
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left) or then is not None}
        if then is not None:
            return await then()
        return {"type": "http.request", "body": b"", "more_body": False}

    return receive


async def gone() -> dict[str, Any]:
    return {"type": "http.disconnect"}


async def late() -> dict[str, Any]:
    raise TimeoutError


async def never() -> dict[str, Any]:
    await asyncio.Event().wait()
    raise AssertionError
