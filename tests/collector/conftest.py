"""Stores of both kinds, a collector, and its dashboard."""

from collector.apps import app, client
from collector.dashboards import empty, opened, patient, visitor
from collector.stores import address, postgres, ready, store

__all__ = ["address", "app", "client", "empty", "opened", "patient", "postgres", "ready", "store", "visitor"]
