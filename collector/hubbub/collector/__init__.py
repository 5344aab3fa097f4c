"""The web service: ingest, count, store, decode, show."""

from hubbub.collector.app import create_app
from hubbub.collector.tally import Tally

__all__ = ["Tally", "create_app"]
