"""A command-line tool that counts its commands: it runs for an instant, and loses nothing."""

import os
import sys
from pathlib import Path

from hubbub.client import Client

HERE = Path(__file__).parent


def main() -> None:
    client = Client(
        os.environ.get("TELEMETRY"),
        registry=HERE / "metrics.toml",
        state=os.environ["STATE"],
        enabled="--no-telemetry" not in sys.argv,
    )
    command = sys.argv[1]
    client.record("command", command)
    print("hello" if command == "greet" else len(sys.argv[2:]))


if __name__ == "__main__":
    main()
