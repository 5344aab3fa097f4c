"""The web service: ingest, count, store, decode, show."""

from typing import TYPE_CHECKING

from hubbub.collector.decode import Estimates, decode
from hubbub.collector.tally import Tally

if TYPE_CHECKING:
    from hubbub.collector.app import create_app

__all__ = ["Estimates", "Tally", "create_app", "decode"]


def __getattr__(name: str) -> object:
    """Import the web service when it is asked for: whoever only decodes needs neither Flask nor a database."""
    if name == "create_app":
        from hubbub.collector.app import create_app  # noqa: PLC0415

        return create_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
