"""`hubbub demo` tells the truth about its crowd."""

import json
import subprocess
import sys
from pathlib import Path

HUBBUB = Path(sys.executable).with_name("hubbub")


def test_the_demo_finds_what_is_true() -> None:
    """Every estimate within 6.5 standard errors of the truth: 24 nearly normal ones, each beyond it once in 10^10."""
    done = subprocess.run([HUBBUB, "demo", "--devices", "20000", "--json", "--exit"], capture_output=True, check=True)
    results = json.loads(done.stdout)
    assert list(results) == ["homepage", "theme", "crashed", "minutes_used", "startup_ms"]
    for rows in results.values():
        for row in rows:
            assert abs(row["estimate"] - row["truth"]) < 6.5 * row["standard_error"]
            assert row["low"] < row["estimate"] < row["high"]


def test_tables_and_a_closing_line() -> None:
    done = subprocess.run([HUBBUB, "demo", "--devices", "1000"], capture_output=True, text=True, check=True)
    assert "site-01.example" in done.stdout
    assert "epsilon 1.00 a report, 4.00 a lifetime" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("The crowd is heard all the same.")


def test_too_few_devices_is_an_error() -> None:
    done = subprocess.run([HUBBUB, "demo", "--devices", "1"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--devices" in done.stderr
