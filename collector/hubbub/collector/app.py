"""The web application: Flask, with the ingest route in front of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flask import Flask, Response
from werkzeug.exceptions import HTTPException

from hubbub.collector.api import api
from hubbub.collector.candidates import MAX_CANDIDATES_BYTES
from hubbub.collector.collector import Collector
from hubbub.collector.dashboard import ClosedDesk, Desk, dashboard
from hubbub.collector.front import SECURITY_HEADERS, AsgiFront, WsgiFront
from hubbub.collector.refusal import CODES, PROBLEM, problem
from hubbub.collector.relay import Relay
from hubbub.collector.store import Store
from hubbub.shared.registry import Registry

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from hubbub.collector.relay import Office

_CODE_OF = {404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "media_type"}


def create_app(*, registry: Registry | str | os.PathLike[str], store: Store | str, **options: Any) -> Flask:
    """Make the collector as a WSGI application, already at work.

    `registry` is a registry or a file, `store` a store or an address. `options` are those of `Collector`:
    `admin_token`, `ingest_key`, `cors_origins`, `days_back`, `days_ahead`, `keep_days`, `min_cohort_reports`,
    `archive`, `archive_reports`, `archive_hours`, `queue` and `clock`.
    `app.extensions["hubbub"]` is the collector; close it at the end.
    """
    collector = Collector(
        registry if isinstance(registry, Registry) else Registry.load(registry),
        Store(store) if isinstance(store, str) else store,
        **options,
    )
    collector.start()
    return make_flask(collector, Desk(collector))


def create_asgi(collector: Collector, threads: int, office: Office | None = None) -> Callable[..., Any]:
    """Make the collector as an ASGI application; Flask's part of it runs in some threads.

    Where there is an office, it makes the pages.
    """
    from a2wsgi import WSGIMiddleware  # noqa: PLC0415  (only a server needs it)

    flask = make_flask(collector, Desk(collector) if office is None else ClosedDesk())
    inner: Any = WSGIMiddleware(_terminated(flask.wsgi_app), workers=threads)
    return AsgiFront(collector, inner if office is None else Relay(office, inner))


def make_flask(collector: Collector, desk: Desk | ClosedDesk) -> Flask:
    """Make the API and the dashboard of a collector; what the pages show comes from a desk."""
    app = Flask("hubbub.collector", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_CANDIDATES_BYTES
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.extensions["hubbub"] = collector
    app.url_map.merge_slashes = False  # a redirect would go to whatever host the request named
    app.extensions["hubbub_dashboard"] = desk
    app.register_blueprint(api)
    app.register_blueprint(dashboard)
    app.register_error_handler(HTTPException, _refuse)
    app.after_request(_secure)
    app.wsgi_app = WsgiFront(collector, app.wsgi_app)  # type: ignore[method-assign]
    return app


def _secure(response: Response) -> Response:
    for name, value in SECURITY_HEADERS:
        response.headers.setdefault(name, value)
    return response


def _refuse(error: HTTPException) -> Response:
    """Give Flask's own refusals the form of ours."""
    status = error.code or 500
    code = _CODE_OF.get(status, "internal" if status >= 500 else "bad_request")
    headers = [line for line in error.get_headers() if line[0].lower() not in {"content-type", "content-length"}]
    return Response(
        problem(CODES[code], code, error.description or error.name), CODES[code], headers, content_type=PROBLEM
    )


def _terminated(app: Callable[..., Any]) -> Callable[..., Any]:
    """Tell Flask that a body without a length has an end all the same, as it does behind ASGI."""

    def told(environ: dict[str, Any], start_response: Any) -> Any:
        environ["wsgi.input_terminated"] = True
        return app(environ, start_response)

    return told
