"""Where all views of the dashboard are registered, and what their templates have in common."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from hubbub.collector import api
from hubbub.collector.dashboard import guard, words

dashboard = Blueprint(api.DASHBOARD, __name__, template_folder="templates")
guard.guard(dashboard)


@dashboard.app_template_global()
def form_token() -> str:
    """The hidden field of every form."""
    return guard.form_token()


@dashboard.app_context_processor
def _common() -> dict[str, Any]:
    has_token = api.collector_here().admin_token is not None
    return {"logged_in": guard.logged_in(), "open": not has_token, "words": words}
