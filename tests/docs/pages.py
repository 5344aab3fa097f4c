"""Reading the documentation: pages, their tables, and their blocks of code in the order of a reader."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]

INDENTED = ""
"""The language of a block that only stands further in, or of a fence that names none."""


@dataclass(frozen=True)
class Block:
    """A piece of code on a page."""

    page: str
    language: str
    text: str

    @property
    def first_line(self) -> str:
        return self.text.partition("\n")[0]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def all_blocks(name: str) -> list[Block]:
    """Every block of a page, from top to bottom."""
    return [Block(name, language, text) for language, text in _found(page(name).splitlines())]


def blocks(name: str, language: str) -> list[str]:
    return [block.text for block in all_blocks(name) if block.language == language]


def rows(text: str) -> list[list[str]]:
    """The cells of all Markdown tables of a text, without heads."""
    found = []
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        found += [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return found


def table(name: str, heading: str) -> list[list[str]]:
    """The rows of the one table under whose head a heading stands."""
    tables = re.findall(r"(?:^\|.*\n)+", page(name), re.MULTILINE)
    [found] = [each for each in tables if heading in each.splitlines()[0]]
    return rows(found)


def code_words(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


def commands(block: Block) -> list[str]:
    """The commands of a block of shell, each on one line and without comments.

    Where lines begin with `$ `, as on a terminal, the others are what was printed.
    """
    lines = block.text.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    told = [re.sub(r"(^|\s+)#\s.*$", "", line).strip() for line in lines]
    return [re.sub(r"  +", " ", line) for line in told if line]


def _found(lines: list[str]) -> Iterator[tuple[str, str]]:
    number = 0
    while number < len(lines):
        line, before = lines[number], lines[number - 1] if number else ""
        fence = re.match(r"^( *)```(\w*)", line)
        if fence:
            end = next(at for at in range(number + 1, len(lines)) if lines[at].strip() == "```")
            inside = [each.removeprefix(fence[1]) for each in lines[number + 1 : end]]
            yield fence[2], "\n".join(inside) + "\n"
            number = end + 1
        elif line.startswith("    ") and not before.strip():
            end = number
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield INDENTED, "\n".join(each[4:] for each in lines[number:end]).rstrip() + "\n"
            number = end
        else:
            number += 1
