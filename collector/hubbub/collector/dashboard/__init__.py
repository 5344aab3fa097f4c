"""The dashboard: pages for people, made on the server, without scripts. It shows what the API tells, and no more."""

from __future__ import annotations

from hubbub.collector.dashboard.desk import Desk
from hubbub.collector.dashboard.views import dashboard

__all__ = ["Desk", "dashboard"]
