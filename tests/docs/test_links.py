"""Whoever follows the documentation arrives: links, pages, and the files and tests that are named."""

import re
from pathlib import Path

import pytest

from docs.pages import PAGES, ROOT, page


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            assert (path.parent / target).exists(), target


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        path = todo.pop()
        if path in seen or path.suffix != ".md":
            continue
        seen.add(path)
        links = re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8"))
        todo += [(path.parent / target).resolve() for target in links]
    assert set(ROOT.glob("docs/**/*.md")) - seen <= {ROOT / "docs/README.md"}  # the same index, for the folder itself


def test_files_and_tests_that_are_named_exist() -> None:
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for named in re.findall(r"`(tests/[^`]+\.py|shared/vectors[^`]*|benchmarks/[^`]+\.py)`", text):
            assert (ROOT / named).exists(), named
        for test in re.findall(r"`(test_\w+)`", text):
            assert any(f"def {test}(" in file.read_text() for file in ROOT.glob("tests/**/*.py")), test


def test_every_decision_is_listed() -> None:
    listed = set(re.findall(r"\]\(([^)]+)\)", page("docs/decisions/README.md")))
    assert listed == {path.name for path in ROOT.glob("docs/decisions/*.md")} - {"README.md"}


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    listed = re.findall(r"([\w/-]+\.md)$", page("mkdocs.yml"), re.MULTILINE)
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert len(listed) == len(set(listed))
    assert set(listed) == pages | {"about.md", "changelog.md", "contributing.md"}
