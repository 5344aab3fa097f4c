"""A web app that counts its pages. Made before a server forks its workers, the one client serves them all."""

import os
import time
from pathlib import Path

from flask import Flask, Response, g, request

from hubbub.client import Client

HERE = Path(__file__).parent
PAGES = {"/": "front", "/search": "search", "/help": "help"}

app = Flask(__name__)
telemetry = Client(
    os.environ.get("TELEMETRY"),
    registry=HERE / "metrics.toml",
    state=os.environ["STATE"],
    enabled=True,
)


@app.before_request
def begin() -> None:
    g.begin = time.perf_counter()


@app.after_request
def count(response: Response) -> Response:
    telemetry.record("page", PAGES.get(request.path, "other"))
    telemetry.record("milliseconds", 1000 * (time.perf_counter() - g.begin))
    return response


@app.get("/")
def front() -> str:
    return "hello"
