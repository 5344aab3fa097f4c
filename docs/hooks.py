"""What `make docs` does beside rendering: pages from the top of the repository, and a look at what the site loads.

README.md, CHANGELOG.md and CONTRIBUTING.md stand beside docs/, where people look for them, and become pages, too. Links
between the two places are rewritten, because the site has one folder for both.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

TOP = {"README.md": "about.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Files beside docs/, and the page that each becomes."""

_LINK = re.compile(r"(?P<before>\]\(|(?:src|srcset|href)=\")(?P<target>[^)\"#\s]+)")
_LOADED = re.compile(r"<(?:script|img|iframe|source|link)\b[^>]*?\s(?:src|srcset|href)=\"([^\" ]+)")

_log = logging.getLogger("mkdocs.hooks.hubbub")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from the top of the repository."""
    top = Path(config.config_file_path).parent
    for name, page in TOP.items():
        text = (top / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_LINK.sub(_from_the_top, text)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let links that lead out of docs/ lead to those pages."""
    depth = page.file.src_uri.count("/")

    def to_the_top(link: re.Match[str]) -> str:
        up, _, name = link["target"].rpartition("../")
        inside = (up + "../").count("../") == depth + 1 and name in TOP
        return link["before"] + ("../" * depth + TOP[name] if inside else link["target"])

    return _LINK.sub(to_the_top, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Warn, and so fail, where a page loads what is missing, or is elsewhere: that place would see every reader."""
    site = Path(config.site_dir)
    for path in sorted(site.rglob("*.html")):
        for target in _LOADED.findall(path.read_text(encoding="utf-8")):
            address = urlsplit(target)
            folder = site if address.path.startswith("/") else path.parent
            here = not address.scheme and not address.netloc and (folder / address.path.lstrip("/")).exists()
            if not here and address.scheme != "data":
                _log.warning("%s loads %s; allowed: what is in the site", path.relative_to(site), target)


def _from_the_top(link: re.Match[str]) -> str:
    target = link["target"]
    return link["before"] + TOP.get(target, target.removeprefix("docs/"))
