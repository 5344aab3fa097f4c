"""Who is logged in: a signed cookie that expires, and a token for every form that is bound to it.

The cookie holds a time and a random number, and a signature by a key that is derived from the admin token. So every
replica knows it, nothing has to be kept, and another admin token ends all sessions. What it cannot do is to be called
back: a cookie that was copied before a logout works until it expires.
"""

from __future__ import annotations

import hmac
import secrets
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hubbub.collector.token import Token

COOKIE = "hubbub_session"
"""Of those who are logged in."""

VISITOR = "hubbub_visitor"
"""Of everybody else: a random number, for forms to be bound to."""

SESSION_SECONDS = 12 * 3600

now = time.time
"""The clock of the sessions; tests have another."""


def new_session(token: Token) -> str:
    """Make the cookie of somebody who has shown the admin token."""
    told = f"{int(now()) + SESSION_SECONDS}.{secrets.token_hex(16)}"
    return f"{told}.{_sign(token, 'session', told)}"


def is_session(token: Token, cookie: str | None) -> bool:
    """Whether a cookie is one of ours, and has not expired."""
    told, _, signature = (cookie or "").rpartition(".")
    expiry = told.partition(".")[0]
    genuine = hmac.compare_digest(signature.encode(), _sign(token, "session", told).encode())
    return genuine and expiry.isascii() and expiry.isdecimal() and now() < int(expiry)


def new_visitor() -> str:
    """Make the cookie of somebody who is not logged in."""
    return secrets.token_hex(16)


def form_token(token: Token | None, cookie: str) -> str:
    """Make the token of the forms of whoever has a cookie; no other site can read the one, or knows the other."""
    return _sign(token, "form", cookie)


def is_form_token(token: Token | None, cookie: str | None, shown: str | None) -> bool:
    """Whether a form was made for whoever has a cookie."""
    return bool(cookie) and hmac.compare_digest((shown or "").encode(), form_token(token, cookie or "").encode())


def _sign(token: Token | None, purpose: str, text: str) -> str:
    purposes = b"hubbub dashboard " + purpose.encode()
    key = hmac.digest(b"", purposes, "sha256") if token is None else token.key(purposes)
    return hmac.digest(key, text.encode("utf-8", "surrogateescape"), "sha256").hex()
