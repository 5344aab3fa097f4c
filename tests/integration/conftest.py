"""Stores of both kinds."""

from collector.stores import address, postgres, store

__all__ = ["address", "postgres", "store"]
