"""Stores of both kinds, and a collector."""

from collector.apps import app, client
from collector.stores import address, postgres, ready, store

__all__ = ["address", "app", "client", "postgres", "ready", "store"]
