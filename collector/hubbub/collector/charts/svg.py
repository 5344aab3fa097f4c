"""What matplotlib's SVG needs before a web page may hold it."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape

_STYLE = re.compile(r' style="([^"]*)"')
_TAG = re.compile(r"<[a-z][^>]*>")


def accessible(svg: str, title: str, caption: str) -> str:
    """Name and describe the picture, and turn styles into attributes, which no Content-Security-Policy forbids."""
    head, body = svg[svg.index("<svg") :].split(">", 1)
    body = re.sub(r"\s*<defs>\s*<style.*?</style>\s*</defs>", "", body, count=1, flags=re.DOTALL)
    named = f"<title>{escape(title)}</title>\n <desc>{escape(caption)}</desc>"
    # What the style element said of everything, the outermost element now hands down.
    head = f'{head} role="img" stroke-linejoin="round" stroke-linecap="butt">\n {named}'
    return head + _TAG.sub(lambda tag: _STYLE.sub(_attributes, tag[0]), body)


def _attributes(style: re.Match[str]) -> str:
    pairs = (part.split(":", 1) for part in style[1].split(";") if ":" in part)
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in pairs)
