"""What apps embed: every value is randomised on the device before anything else happens to it."""

from typing import TYPE_CHECKING

from hubbub.client.client import Client
from hubbub.client.errors import CopiedStateError, SecretLostError, StateError
from hubbub.client.ledger import DEFAULT_MAX_EPSILON, Cost
from hubbub.client.preview import Pending
from hubbub.client.privatizing import privatize
from hubbub.client.stats import Stats

if TYPE_CHECKING:
    from hubbub.client.asynchronous import AsyncClient

__all__ = [
    "DEFAULT_MAX_EPSILON",
    "AsyncClient",
    "Client",
    "CopiedStateError",
    "Cost",
    "Pending",
    "SecretLostError",
    "StateError",
    "Stats",
    "privatize",
]


def __getattr__(name: str) -> object:
    # asyncio is slow to import, and an app that does not use it should not pay for it.
    if name == "AsyncClient":
        from hubbub.client.asynchronous import AsyncClient  # noqa: PLC0415

        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
