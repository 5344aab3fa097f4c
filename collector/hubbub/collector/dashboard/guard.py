"""Who may see the dashboard, what its forms must show, and how it refuses: in pages, or as the API does."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode

from flask import Response, current_app, g, make_response, redirect, render_template, request
from werkzeug.exceptions import HTTPException

from hubbub.collector import api
from hubbub.collector.dashboard import session
from hubbub.collector.errors import StoreUnavailableError
from hubbub.collector.refusal import CODES, MAX_DETAIL, PROBLEM, Refused, problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask import Blueprint
    from werkzeug.exceptions import NotFound
    from werkzeug.wrappers import Response as AnyResponse

    View = TypeVar("View", bound=Callable[..., AnyResponse])

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; img-src 'self'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'"
    ),
    # Nothing goes to other sites; to ourselves the browser says where a form came from.
    "Referrer-Policy": "same-origin",
}
TITLES = {
    400: "That cannot be read",
    401: "Not logged in",
    403: "That form is out of date",
    404: "There is no such page",
    405: "That cannot be done here",
    409: "Something is missing",
    413: "That is too large",
    422: "That list cannot be read",
    500: "Something went wrong here",
    503: "Not now",
}
API = "/v1/"
HTML = "text/html"
MAX_FORM_BYTES = 16 << 10
MAX_TEXT_FIELD_BYTES = 512 << 10
"""The longest list that stands in a text field; a longer one comes as a file."""

_CODE_OF = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}


class ForgedFormError(Exception):
    """A form that was not made for whoever sends it."""


class StillDecodingError(Exception):
    """An answer that takes longer than a page should wait."""


def unguarded(view: View) -> View:
    """Open a page to everybody, on purpose."""
    view.unguarded = True  # type: ignore[attr-defined]
    return view


def guard(blueprint: Blueprint) -> None:
    """Have a blueprint guarded."""
    blueprint.before_request(_admit)
    blueprint.after_request(_finish)
    for error, answer in (
        (Refused, _refuse),
        (StoreUnavailableError, _store_down),
        (ForgedFormError, _forged),
        (StillDecodingError, _wait),
        (HTTPException, _fail),
    ):
        blueprint.register_error_handler(error, answer)
    blueprint.app_errorhandler(404)(_unknown)


def logged_in() -> bool:
    """Whether the request comes with a session."""
    token = api.collector_here().admin_token
    return token is not None and session.is_session(token, request.cookies.get(session.COOKIE))


def form_token() -> str:
    """Give the token that every form of this page has to carry, and remember to set the cookie it is bound to."""
    return session.form_token(api.collector_here().admin_token, _cookie() or _new_visitor())


def here() -> str:
    """Give the address of this page. Without a fragment, with which a browser would not load it again."""
    return request.full_path.rstrip("?")


def secure() -> bool:
    """Whether the browser came by TLS, to us or to the proxy before us."""
    return request.is_secure or request.headers.get("X-Forwarded-Proto", "").lower() == "https"


def set_cookie(response: AnyResponse, name: str, value: str, seconds: int | None) -> None:
    """Set a cookie that no script reads, and that no other site can have sent."""
    response.set_cookie(name, value, max_age=seconds, httponly=True, samesite="Strict", secure=secure())


def _admit() -> AnyResponse | None:
    view = current_app.view_functions[request.endpoint or ""]
    if not getattr(view, "unguarded", False):
        why = None if logged_in() else api.why_not()
        if why is not None:
            if api.collector_here().admin_token is not None and wants_pages() and request.method == "GET":
                return redirect("/login?" + urlencode({"next": here()}), 303)
            raise why
    if request.method == "POST":
        # Of a form that is no list, nobody has to read more; and a list that stands in it is read into memory.
        if request.endpoint != f"{api.DASHBOARD}.candidates":
            request.max_content_length = MAX_FORM_BYTES
        elif request.mimetype != "multipart/form-data":
            request.max_content_length = MAX_TEXT_FIELD_BYTES
        request.max_form_memory_size = MAX_TEXT_FIELD_BYTES
        token = api.collector_here().admin_token
        elsewhere = request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin"
        if elsewhere or not session.is_form_token(token, _cookie(), request.form.get("form_token")):
            raise ForgedFormError
    return None


def _finish(response: AnyResponse) -> AnyResponse:
    if "visitor" in g:
        set_cookie(response, session.VISITOR, g.visitor, None)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def _cookie() -> str | None:
    """The cookie that forms are bound to."""
    return request.cookies.get(session.COOKIE if logged_in() else session.VISITOR)


def _new_visitor() -> str:
    if "visitor" not in g:
        g.visitor = session.new_visitor()
    return str(g.visitor)


def wants_pages() -> bool:
    """Whether somebody with a browser asks; programs are answered as by the rest of the collector."""
    return request.accept_mimetypes.best_match([PROBLEM, HTML]) == HTML


def _refuse(refused: Refused) -> AnyResponse:
    if not wants_pages():
        return api.refused(refused)
    response = _page(refused.status, refused.detail)
    response.headers.extend(refused.headers)
    return response


def _store_down(error: StoreUnavailableError) -> AnyResponse:
    problem_document = api.store_down(error)  # it counts and logs
    return _page(503, "The store cannot be reached now. Try again later.") if wants_pages() else problem_document


def _forged(_: ForgedFormError) -> AnyResponse:
    sentence = "The form was not made for this browser, or is older than its session. Open the page again, and send it."
    return _page(403, sentence)


def _wait(_: StillDecodingError) -> AnyResponse:
    return make_response(render_template("waiting.html", here=here()), 202)


def _fail(error: HTTPException) -> AnyResponse:
    """Give Flask's own refusals the form of ours."""
    if not wants_pages():
        return _problem(error)
    status = CODES[_code(error)]
    too_large = "The form is too large. A long list of candidates can be given as a file."
    return _page(status, too_large if status == 413 else error.description or error.name)


def _problem(error: HTTPException) -> AnyResponse:
    code = _code(error)
    return Response(problem(CODES[code], code, error.description or error.name), CODES[code], content_type=PROBLEM)


def _code(error: HTTPException) -> str:
    return _CODE_OF.get(error.code or 500, "internal" if (error.code or 500) >= 500 else "bad_request")


def _unknown(error: NotFound) -> AnyResponse:
    """Answer to an address that nobody has: with a page and a way back, unless it looks like one of the API."""
    if request.path.startswith(API) or not wants_pages():
        return _problem(error)
    return _finish(_page(404, "Nothing is kept at this address."))


def _page(status: int, sentence: str) -> AnyResponse:
    told = sentence[:1].upper() + sentence[1:MAX_DETAIL]
    title = TITLES.get(status, "That cannot be done")
    return make_response(render_template("refused.html", title=title, sentence=told, status=status), status)
