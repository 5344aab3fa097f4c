"""Watching pages for what must never happen on one."""

from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Request, WebError

LISTEN = """
document.addEventListener("securitypolicyviolation", event =>
    toldOfViolation(`${event.effectiveDirective} ${event.blockedURI}`));
"""
NOT_OK = "Failed to load resource: the server responded with a status of "
"""The browser says so about every page that is a refusal; `refusals` tells how many are expected."""


class Watch:
    """Remembers every fault of the pages of one context."""

    def __init__(self, context: BrowserContext, home: str) -> None:
        self._home = urlsplit(home).netloc
        self.faults: list[str] = []
        self.refusals = 0
        context.expose_function("toldOfViolation", self._on_violation)
        context.add_init_script(LISTEN)
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("dialog", self._on_dialog)
        context.on("request", self._on_request)

    def _on_violation(self, what: Any) -> None:
        self.faults.append(f"policy: {what}")

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.text.startswith(NOT_OK):
            self.refusals += 1
        elif message.type in {"error", "warning"}:
            self.faults.append(f"console: {message.text}")

    def _on_error(self, error: WebError) -> None:
        self.faults.append(f"error: {error.error}")

    def _on_dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _on_request(self, request: Request) -> None:
        place = urlsplit(request.url)
        if place.scheme not in {"data", "blob"} and place.netloc != self._home:
            self.faults.append(f"elsewhere: {request.url}")
