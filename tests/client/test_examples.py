"""The example apps of the docs, run as they would be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from client.clients import counts
from hubbub.client import Client, Stats

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
REGISTRY = EXAMPLES / "metrics.toml"

PRELOAD = """
import os, sys, threading, urllib.request
sys.path.insert(0, sys.argv[1])
from werkzeug.serving import make_server
from flask_app import app  # before the fork, as a preloading server does

with app.test_client() as warm_up:
    warm_up.get("/help")
children = []
for _ in range(3):
    child = os.fork()
    if not child:
        server = make_server("127.0.0.1", 0, app)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for page in ("/", "/search", "/nowhere"):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}{page}").read()
            except urllib.error.HTTPError:
                pass
        os._exit(0)
    children.append(child)
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
"""


def left_behind(state: Path) -> Client:
    return Client(None, registry=REGISTRY, state=state, enabled=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_flask_app_whose_workers_are_forked_after_loading(tmp_path: Path) -> None:
    environment = os.environ | {"STATE": str(tmp_path / "s.db"), "TELEMETRY": "http://127.0.0.1:1"}
    command = [sys.executable, "-W", "ignore", "-c", PRELOAD, str(EXAMPLES)]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
    client = left_behind(tmp_path / "s.db")
    with client._state.transaction() as connection:
        seen = dict(connection.execute("SELECT metric, sum(seen) FROM open GROUP BY metric").fetchall())
    assert seen == {"page": 10, "milliseconds": 10}
    stats = client.stats()
    assert stats.recorded == stats.pending >= 2  # more if midnight passed meanwhile


def test_a_command_line_tool(tmp_path: Path) -> None:
    tool = EXAMPLES / "command_line_tool.py"
    environment = os.environ | {"STATE": str(tmp_path / "s.db"), "TELEMETRY": "http://127.0.0.1:1"}
    for arguments, output in ((["greet"], "hello\n"), (["count", "a", "b"], "2\n")):
        done = subprocess.run([sys.executable, tool, *arguments], env=environment, check=True, capture_output=True)
        assert done.stdout.decode() == output
        assert not done.stderr
    before = left_behind(tmp_path / "s.db").stats()
    assert before.recorded == before.pending >= 1  # more if midnight passed meanwhile
    subprocess.run([sys.executable, tool, "greet", "--no-telemetry"], env=environment, check=True, capture_output=True)
    after = left_behind(tmp_path / "s.db").stats()
    assert counts(after) == Stats(recorded=before.recorded, lost={"opted_out": before.recorded})
