"""The package as it is installed: four roots, one namespace, and a base that brings nothing heavy."""

import importlib.metadata
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = {"numpy", "scipy", "flask"}


def base_requirements(distribution: str) -> set[str]:
    """Everything that installing it without extras brings, followed to the end."""
    import re

    from packaging.requirements import Requirement

    found: set[str] = set()
    todo = [distribution]
    while todo:
        for text in importlib.metadata.requires(todo.pop()) or []:
            requirement = Requirement(text)
            name = re.sub(r"[-_.]+", "-", requirement.name).lower()
            if name not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
                found.add(name)
                todo.append(name)
    return found


def test_the_base_install_brings_no_numpy_scipy_or_flask() -> None:
    brought = base_requirements("hubbub")
    assert {"bitarray", "click", "mmh3", "msgspec", "requests"} <= brought
    assert not brought & HEAVY


def test_embedding_the_client_imports_nothing_heavy_or_slow() -> None:
    """What an app pays for `import hubbub.client`, and for a report, in a fresh interpreter."""
    program = """
import sys
import hubbub.client
from hubbub.shared import Registry, Secret
text = '[metrics.m]\\ndescription="m"\\nkind="flag"\\nevery="day"\\nprivacy={report=1,lifetime=2}'
hubbub.client.privatize(Registry.parse(text)["m"], True, Secret.generate())
print(*sys.modules)
"""
    # Without the variables by which a measurement of coverage would load itself, and more, into the new process.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=plain)
    loaded = set(done.stdout.split())
    assert not loaded & (HEAVY | {"requests", "click", "random", "statistics", "fractions", "asyncio", "rich"})


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [built] = folder.glob("hubbub-*.whl")
    return built


def test_the_wheel_holds_the_four_packages_and_no_namespace_file(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for package in ("shared", "client", "collector", "simulations"):
        assert f"hubbub/{package}/__init__.py" in names
        assert f"hubbub/{package}/py.typed" in names
    assert "hubbub/simulations/demo.toml" in names
    assert "hubbub/__init__.py" not in names
    assert all(name.startswith(("hubbub/", "hubbub-")) for name in names)
    sources = {path.relative_to(ROOT).as_posix().partition("/")[2] for path in ROOT.glob("*/hubbub/**/*.py")}
    assert sources == {name for name in names if name.endswith(".py")}


def test_the_wheel_holds_all_that_the_dashboard_needs(wheel: Path) -> None:
    """Whatever lies beside the code, none of it forgotten: without its pages and their looks there is no dashboard."""
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("hubbub/")}
    beside = {
        path.relative_to(ROOT).as_posix().partition("/")[2]
        for path in ROOT.glob("*/hubbub/**/*")
        if path.is_file() and path.suffix != ".py" and path.parent.name != "__pycache__"
    }
    assert {name for name in packed if not name.endswith(".py")} == beside
    dashboard = "hubbub/collector/dashboard"
    pages = ("overview.html", "metric.html", "login.html")
    assert beside >= {f"{dashboard}/templates/{page}" for page in pages}
    assert beside >= {f"{dashboard}/static/dashboard.css", f"{dashboard}/static/icon.svg"}
    assert beside >= {f"hubbub/{package}/py.typed" for package in ("shared", "client", "collector", "simulations")}


def test_the_wheel_works_when_installed_elsewhere(wheel: Path, tmp_path: Path) -> None:
    """Unpacked into a folder of its own, the four packages find each other; the checkout is not on the path."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import hubbub.client, hubbub.shared, hubbub.collector, hubbub.simulations.demo\n"
        "for module in (hubbub.client, hubbub.shared, hubbub.collector, hubbub.simulations.demo):\n"
        "    assert module.__file__.startswith(sys.argv[1]), module.__file__\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, cwd=tmp_path)
