"""The two libraries that could draw our figures, and our own way, on the same figure: `python -m benchmarks charts`.

Each runs in processes of its own: in this Python, or the libraries in the one that HUBBUB_BENCH_CHARTS names. One that
is not installed there is reported as such.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUICK = bool(os.environ.get("HUBBUB_BENCH_QUICK"))
ROUNDS = 2 if QUICK else 5
PROCESSES = 1 if QUICK else 3
PYTHON = os.environ.get("HUBBUB_BENCH_CHARTS", sys.executable)
DISTRIBUTIONS = {
    "matplotlib": ["matplotlib"],
    "altair": ["altair", "vl-convert-python"],
    "hubbub": ["matplotlib"],
}

TITLE = "One figure, two panels"
SIZES = [10**exponent for exponent in range(3, 9)]
EPSILONS = (0.5, 1.0, 2.0, 4.0)


def numbers() -> Iterator[tuple[str, list[float], list[float], list[float], list[float]]]:
    """Four series: label, theory, measured, and the ends of its error bars."""
    for place, epsilon in enumerate(EPSILONS):
        theory = [1 / (epsilon * size**0.5) for size in SIZES]
        measured = [value * (1 + 0.05 * ((place + step) % 3 - 1)) for step, value in enumerate(theory)]
        yield f"epsilon = {epsilon:g}", theory, measured, [y * 0.8 for y in measured], [y * 1.25 for y in measured]


def with_matplotlib(form: str) -> bytes:
    """Draw without pyplot, and so without anything shared between threads."""
    mpl, figures = importlib.import_module("matplotlib"), importlib.import_module("matplotlib.figure")
    # Once for all: settings that come and go would be seen by other threads.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "hubbub"})
    figure = figures.Figure(figsize=(9, 4), layout="constrained")
    figure.suptitle(TITLE)
    for axes in figure.subplots(1, 2):
        for label, theory, measured, low, high in numbers():
            reach = [
                [y - end for y, end in zip(measured, low, strict=True)],
                [end - y for y, end in zip(measured, high, strict=True)],
            ]
            axes.errorbar(SIZES, measured, yerr=reach, marker="o", capsize=3, label=label)
            axes.plot(SIZES, theory, "--", linewidth=0.8)
        axes.set(xscale="log", yscale="log", xlabel="devices", ylabel="standard error")
        axes.legend()
    out = io.BytesIO()
    figure.savefig(out, format=form, metadata={"Date": None} if form == "svg" else None)
    return out.getvalue()


def with_altair(form: str) -> bytes:
    """Draw a specification, which vl-convert's own JavaScript engine turns into a picture."""
    alt, vl_convert = importlib.import_module("altair"), importlib.import_module("vl_convert")

    rows = [
        {"label": label, "devices": size, "theory": theory, "measured": measured, "low": low, "high": high}
        for label, *columns in numbers()
        for size, theory, measured, low, high in zip(SIZES, *columns, strict=True)
    ]
    log = alt.Scale(type="log")
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("devices:Q", scale=log, title="devices"), color=alt.Color("label:N")
    )
    bars = base.mark_errorbar(ticks=True).encode(
        y=alt.Y("low:Q", scale=log, title="standard error"), y2=alt.Y2("high:Q")
    )
    line = base.mark_line(point=True).encode(y=alt.Y("measured:Q", scale=log))
    theory = base.mark_line(strokeDash=[4, 3], size=0.8).encode(y=alt.Y("theory:Q", scale=log))
    panel = (bars + line + theory).properties(width=320, height=260)
    specification = (panel | panel).properties(title=TITLE).to_dict()
    if form == "png":
        return bytes(vl_convert.vegalite_to_png(specification))
    return str(vl_convert.vegalite_to_svg(specification)).encode()


def with_hubbub(form: str) -> bytes:
    """Draw as we do: with matplotlib, our own places and our own ticks."""
    charts = importlib.import_module("hubbub.collector.charts")
    devices, error = charts.Axis("devices", log=True), charts.Axis("standard error", log=True)
    series = [charts.Series(label, SIZES, measured, low, high) for label, _, measured, low, high in numbers()]
    series += [charts.Series(f"theory, {label}", SIZES, theory, look="theory") for label, theory, *_ in numbers()]
    drawn: bytes = charts.draw(charts.Figure(TITLE, "", [charts.Panel("", devices, error, series)] * 2), form)
    return drawn


WAYS: dict[str, Callable[[str], bytes]] = {
    "matplotlib": with_matplotlib,
    "altair": with_altair,
    "hubbub": with_hubbub,
}


def measure(name: str) -> dict[str, Any]:
    """What one process tells: the first picture with all imports, later ones, and what the pictures are like."""
    draw = WAYS[name]
    begin = time.process_time()
    first = draw("svg")
    told: dict[str, Any] = {"first": time.process_time() - begin}
    for form in ("svg", "png"):
        draw(form)
        told[form] = min(_seconds(draw, form) for _ in range(ROUNDS))
        told[f"{form} bytes"] = len(draw(form))
    told["pause"] = min(_pause(draw) for _ in range(ROUNDS))
    with ThreadPoolExecutor(4) as threads:
        told["same in threads"] = set(threads.map(draw, ["svg"] * 4)) == {first}
    svg = first.decode()
    told["style elements"] = len(re.findall("<style", svg))
    told["style attributes"] = len(re.findall(r"\sstyle=\"", svg))
    told["text as text"] = f">{TITLE}<" in svg
    told["digest"] = hashlib.sha256(first).hexdigest()
    told["peak"] = _peak()
    return told


def _seconds(draw: Callable[[str], bytes], form: str) -> float:
    """Of the processor, by all threads: other work on the machine disturbs it little."""
    begin = time.process_time()
    draw(form)
    return time.process_time() - begin


def _pause(draw: Callable[[str], bytes]) -> float:
    """The longest time for which another thread, that wants to run every millisecond, does not."""
    done = threading.Event()
    longest = 0.0

    def run() -> None:
        nonlocal longest
        last = time.perf_counter()
        while not done.is_set():
            time.sleep(0.001)
            last, before = time.perf_counter(), last
            longest = max(longest, last - before)

    thread = threading.Thread(target=run)
    thread.start()
    draw("svg")
    done.set()
    thread.join()
    return longest


def _peak() -> int:
    """Bytes of memory at their highest, as Linux tells them; 0 where it does not."""
    status = Path("/proc/self/status")
    [kibibytes] = re.findall(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.MULTILINE) if status.exists() else ["0"]
    return int(kibibytes) * 1024


def installed(names: list[str], known: frozenset[str] = frozenset()) -> dict[str, int]:
    """Bytes on disk of some distributions and of all they need, except of those we have anyway."""
    sizes: dict[str, int] = {}
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if name in sizes or name in known:
            continue
        distribution = importlib.metadata.distribution(name)
        files = [Path(str(distribution.locate_file(file))) for file in distribution.files or []]
        sizes[name] = sum(file.stat().st_size for file in files if file.is_file())
        for needed in distribution.requires or []:
            if ";" not in needed or "extra" not in needed:
                [bare] = re.findall(r"^[\w.-]+", needed)
                names += [bare] if _present(bare) else []
    return sizes


def _present(name: str) -> bool:
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _ask(*words: str, **environment: str) -> dict[str, Any] | None:
    """Start the Python that has the libraries; None when it has not got this one."""
    command = [sys.executable if "hubbub" in words else PYTHON, __file__, *words]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"} | environment,
    )
    if done.returncode:
        print(f"  not measured: {(done.stderr.strip().splitlines() or ['it ended'])[-1]}")
        return None
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _rows(name: str) -> dict[str, str] | None:
    with tempfile.TemporaryDirectory() as empty:
        new = _ask("measure", name, MPLCONFIGDIR=empty, XDG_CACHE_HOME=empty)
    runs = [told for _ in range(PROCESSES) if new and (told := _ask("measure", name))]
    sizes = _ask("installed", name) if new else None
    if not new or not runs or not sizes:
        return None
    best = {
        key: min(run[key] for run in runs) for key in ("first", "svg", "png", "pause", "peak", "svg bytes", "png bytes")
    }
    return {
        "version": sizes["version"],
        "first SVG without a cache, CPU ms": f"{new['first'] * 1e3:.0f}",
        "first SVG of a process, CPU ms": f"{best['first'] * 1e3:.0f}",
        "each further SVG, CPU ms": f"{best['svg'] * 1e3:.0f}",
        "each further PNG, CPU ms": f"{best['png'] * 1e3:.0f}",
        "longest pause of other threads, ms": f"{best['pause'] * 1e3:.0f}",
        "SVG, kB": f"{best['svg bytes'] / 1e3:.0f}",
        "PNG, kB": f"{best['png bytes'] / 1e3:.0f}",
        "memory at its highest, MB": f"{best['peak'] / 1e6:.0f}",
        "installed with all it needs, MB": f"{sizes['all'] / 1e6:.0f}",
        "installed beyond numpy, MB": f"{sizes['more'] / 1e6:.0f}",
        "same bytes in every process": _word(len({run["digest"] for run in [new, *runs]}) == 1),
        "same bytes in threads": _word(all(run["same in threads"] for run in runs)),
        "text stays text": _word(runs[0]["text as text"]),
        "<style> elements": str(runs[0]["style elements"]),
        "style attributes": str(runs[0]["style attributes"]),
    }


def _word(fact: bool) -> str:
    return "yes" if fact else "no"


def main() -> None:
    """Print what was measured, side by side."""
    print("\nA figure of two panels, log axes, error bars and a legend")
    columns = {}
    for name in WAYS:
        print(f"  {name} ...")
        if rows := _rows(name):
            columns[name] = rows
    if columns:
        print(f"  {'':36}" + "".join(f"{name:>20}" for name in columns))
        for key in next(iter(columns.values())):
            print(f"  {key:36}" + "".join(f"{rows[key]:>20}" for rows in columns.values()))


def _answer(job: str, name: str) -> dict[str, Any]:
    if job == "measure":
        return measure(name)
    every = installed(list(DISTRIBUTIONS[name]))
    more = installed(list(DISTRIBUTIONS[name]), frozenset({"numpy"}))
    version = ", ".join(importlib.metadata.version(each) for each in DISTRIBUTIONS[name])
    return {"version": version, "all": sum(every.values()), "more": sum(more.values())}


if __name__ == "__main__":
    if missing := [each for each in DISTRIBUTIONS[sys.argv[2]] if not _present(each)]:
        sys.exit(f"{', '.join(missing)} is not installed in {sys.executable}")
    print(json.dumps(_answer(*sys.argv[1:3])))
