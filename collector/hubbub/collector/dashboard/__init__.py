"""The dashboard: pages for people, made on the server, without scripts. It shows what the API tells, and no more."""

from __future__ import annotations

from hubbub.collector.dashboard import entrance, views  # noqa: F401  (they register themselves)
from hubbub.collector.dashboard.blueprint import dashboard
from hubbub.collector.dashboard.desk import ClosedDesk, Desk

__all__ = ["ClosedDesk", "Desk", "dashboard"]
