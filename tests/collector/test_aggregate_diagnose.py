"""`hubbub aggregate --diagnose`: single reports of an archive that no client has made raise an alarm.

Reports are drawn with a fixed seed. Diagnostics raise a false alarm once in a million times at most, by proof.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from collector.archives import DAYS, REGISTRY, fill, put
from hubbub.collector.archive import repeats
from hubbub.collector.archive.file import Reports
from shared.registries import EXAMPLE
from told import Run, run_here

METRIC = REGISTRY["homepage"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return run_here("aggregate", capsys, monkeypatch)


def looks(run: Run, *arguments: object) -> dict[str, tuple[bool, str]]:
    told = run(*arguments, "--diagnose", "--json")
    assert told.code == 0, told.err
    found = json.loads(told.out)["diagnostics"]
    assert told.err.splitlines() == [f"! {look['sentence']}" for look in found if look["alarm"]]
    return {look["name"]: (look["alarm"], look["sentence"]) for look in found}


@pytest.mark.parametrize("name", [name for name in REGISTRY if name != "minutes_used"])
def test_honest_reports_raise_no_alarm(name: str, tmp_path: Path, run: Run, registry: Path) -> None:
    fill(tmp_path / "a", name, reports=2000)
    found = looks(run, tmp_path / "a", "--registry", registry)
    assert [alarm for alarm, _ in found.values()] == [False, False], found
    if REGISTRY[name].kind == "string":
        assert found["repeated_reports"][1].startswith("0 of 12,021 reports equal an earlier one")


def forged(kind: str, honest: Reports, rng: np.random.Generator) -> Reports:
    """A few reports that no client has made."""
    some = Reports(honest.cohorts[:40], honest.packed[:40])
    if kind == "full":
        return Reports(some.cohorts[:2], np.full_like(some.packed[:2], 255))
    if kind == "empty":
        return Reports(some.cohorts[:2], np.zeros_like(some.packed[:2]))
    if kind == "uniform":
        return Reports(some.cohorts, rng.integers(0, 256, some.packed.shape, dtype=np.uint8))
    return Reports(some.cohorts[:2], some.packed[:2])


@pytest.mark.parametrize(("kind", "alarm"), [
    ("full", "ones_per_report"), ("empty", "ones_per_report"), ("uniform", "ones_per_report"),
    ("copied", "repeated_reports"),
])  # fmt: skip
def test_reports_that_no_client_made_raise_one(
    kind: str, alarm: str, tmp_path: Path, run: Run, registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = fill(tmp_path / "a", reports=300)[DAYS[1]]
    put(tmp_path / "a", METRIC, DAYS[1], forged(kind, honest, np.random.default_rng(5)))
    monkeypatch.setattr(repeats, "HELD_BYTES", 2000)  # a period in several shares
    monkeypatch.setenv("HUBBUB_REGISTRY", str(registry))
    found = looks(run, tmp_path / "a")
    assert found[alarm][0], found
    assert str(DAYS[1]) in found[alarm][1]
    if kind == "copied":
        assert not found["ones_per_report"][0]
        assert found[alarm][1].startswith("2 of ")
    told = run(tmp_path / "a", "--diagnose")
    assert f"! {alarm}: {found[alarm][1]}" in told.out.splitlines()


def test_reports_are_not_judged_by_another_registry(tmp_path: Path, run: Run, registry: Path) -> None:
    fill(tmp_path / "a")
    registry.write_text(EXAMPLE.replace("report = 1.0, lifetime = 4.0", "report = 1.1, lifetime = 4.0"))
    told = run(tmp_path / "a", "--diagnose", "--registry", registry, "--out", tmp_path / "tally.json")
    assert (told.code, "of the registry has another meaning than the reports" in told.err) == (1, True)
    assert not (tmp_path / "tally.json").exists()
