"""Metrics that are empty, that nobody has given candidates for, or whose every text is full of markup."""

import json

from browser.crowd import CANDIDATES, HABITS, METRICS, Habit

EMPTY = METRICS.replace("[metrics.", "[metrics.empty_")

MARKUP = [
    "<img src=x onerror=alert(1)>",
    "</title></svg><script>alert(2)</script>",
    "\"><svg onload='alert(3)'>&amp;",
]
ODD = f"""
[metrics.markup_theme]
description = {json.dumps(MARKUP[0] + MARKUP[1])}
owner = {json.dumps(MARKUP[2])}
kind = "category"
every = "day"
categories = {json.dumps(MARKUP)}
privacy = {{ report = 2.0, lifetime = 4.0 }}

[metrics.markup_page]
description = {json.dumps(MARKUP[1] + MARKUP[2])}
kind = "string"
every = "day"
bits = 64
hashes = 1
cohorts = 16
lifetime_values = 8
privacy = {{ report = 2.0, lifetime = 4.0 }}

[metrics.language]
description = "Language of the menus, for which nobody has given candidates yet"
kind = "string"
every = "day"
bits = 64
hashes = 1
cohorts = 16
lifetime_values = 8
privacy = {{ report = 2.0, lifetime = 4.0 }}
"""
LANGUAGES = ["Esperanto", "Klingon", "Toki Pona"]
ODD_HABITS = HABITS | {
    "markup_theme": Habit(dict.fromkeys(MARKUP, 1.0), periods=3),
    "markup_page": Habit(dict.fromkeys(MARKUP, 1.0), join=0, periods=1),
    "language": Habit(dict(zip(LANGUAGES, (4.0, 2.0, 1.0), strict=True)), join=0, periods=1),
}
ODD_CANDIDATES = {"homepage": CANDIDATES, "markup_page": MARKUP}
