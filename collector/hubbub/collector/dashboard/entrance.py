"""Coming in and going out, and what everybody may see."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flask import Response, make_response, redirect, render_template, request

from hubbub.collector import api
from hubbub.collector.dashboard import guard, session
from hubbub.collector.dashboard.blueprint import dashboard
from hubbub.collector.query import Query

if TYPE_CHECKING:
    from werkzeug.wrappers import Response as AnyResponse

_PAGE = re.compile(r"/metric/[a-z0-9_]+(\?[A-Za-z0-9_=&:.%+-]*)?")


@dashboard.get("/login")
@guard.unguarded
def login() -> AnyResponse:
    """Ask for the admin token."""
    query = Query(request.args, "next")
    if guard.logged_in() or api.collector_here().admin_token is None:
        return redirect("/", 303)
    return _login_page(query.read("next", str, "a page of the dashboard"))


@dashboard.post("/login")
@guard.unguarded
def log_in() -> AnyResponse:
    """Look at the admin token, and give a session for it."""
    token = api.collector_here().admin_token
    if token is None:
        return redirect("/", 303)
    following = request.form.get("next")
    if not token.opens(f"Bearer {request.form.get('token', '')}"):
        return _login_page(following, wrong=True)
    response = redirect(_safe(following), 303)
    guard.set_cookie(response, session.COOKIE, session.new_session(token), session.SESSION_SECONDS)
    response.delete_cookie(session.VISITOR)
    return response


@dashboard.post("/logout")
def log_out() -> AnyResponse:
    """Forget the session."""
    response = redirect("/login", 303)
    response.delete_cookie(session.COOKIE, httponly=True, samesite="Strict", secure=guard.secure())
    return response


@dashboard.get("/static/dashboard.css")
@guard.unguarded
def style() -> AnyResponse:
    """How it all looks."""
    return _static("dashboard.css", "text/css; charset=utf-8")


@dashboard.get("/static/icon.svg")
@guard.unguarded
def icon() -> AnyResponse:
    """The mark."""
    return _static("icon.svg", "image/svg+xml")


def _login_page(following: str | None, *, wrong: bool = False) -> AnyResponse:
    page = render_template("login.html", wrong=wrong, following=_safe(following))
    return make_response(page, 401 if wrong else 200)


def _safe(following: str | None) -> str:
    """Where to go after a login: to a page of ours, and nowhere else."""
    return following if following is not None and _PAGE.fullmatch(following) else "/"


def _static(name: str, content_type: str) -> AnyResponse:
    with dashboard.open_resource(f"static/{name}") as file:
        response = Response(file.read(), content_type=content_type)
    response.headers["Cache-Control"] = "no-cache"
    response.add_etag()
    response.make_conditional(request)
    return response
