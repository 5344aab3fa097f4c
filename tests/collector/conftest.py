"""Stores of both kinds, a collector, its estimates and its dashboard, and places for archives."""

from collector.apps import app, client
from collector.archive_places import folder, place, registry
from collector.buckets import bucket
from collector.dashboards import empty, opened, patient, visitor
from collector.estimated import asking, processes, reader, stocked
from collector.stores import address, postgres, ready, store

__all__ = [
    "address",
    "app",
    "asking",
    "bucket",
    "client",
    "empty",
    "folder",
    "opened",
    "patient",
    "place",
    "postgres",
    "processes",
    "reader",
    "ready",
    "registry",
    "stocked",
    "store",
    "visitor",
]
