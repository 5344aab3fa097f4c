"""The machine that was measured, in words. Its name is nobody's business, and not told."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import numpy as np


def describe() -> dict[str, str]:
    """What a reader needs to know to judge the numbers."""
    return {
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "processor": _found("/proc/cpuinfo", r"^model name\s*:\s*(.+)$") or platform.processor() or "unknown",
        "architecture": platform.machine(),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": np.__version__,
    }


def _memory() -> str:
    kibibytes = _found("/proc/meminfo", r"^MemTotal:\s*(\d+) kB$")
    return f"{int(kibibytes) / 2**20:.0f} GiB" if kibibytes else "unknown"


def _found(path: str, pattern: str) -> str:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(pattern, text, re.MULTILINE)
    return found[1].strip() if found else ""
