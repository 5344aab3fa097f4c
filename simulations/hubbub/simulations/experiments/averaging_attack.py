"""Averaging: what an attacker learns who adds up many reports of one device.

He knows the values that the device may hold, all equally likely, and names the likeliest. No attack whatever on
reports that are E-indistinguishable names the right one of N values more often than e^E/(e^E + N - 1): the likeliest
value is at most e^E times as likely as each of the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from hubbub.client import privatize
from hubbub.collector.charts import Axis, Figure, Panel
from hubbub.collector.count import count_bits
from hubbub.collector.decode.noise import Noise
from hubbub.shared.secret import SECRET_BYTES, Secret
from hubbub.simulations.attackers import codes, evidence, remember, seeded, send, send_forgetful
from hubbub.simulations.declared import RAPPOR, category, string
from hubbub.simulations.drawing import last, per_cent, series, theory_line, where
from hubbub.simulations.experiment import Claim, Experiment, Result
from hubbub.simulations.measured import share

if TYPE_CHECKING:
    from hubbub.collector.charts import Look
    from hubbub.collector.decode.noise import Numbers
    from hubbub.shared.metric import Metric
    from hubbub.simulations.attackers import Bits, Counts
    from hubbub.simulations.drawing import Row, Rows
    from hubbub.simulations.experiment import Cell, Run

REPORTS = (1, 3, 10, 30, 100, 300, 1000)
CLIENT_REPORTS = (1, 10, 100)
"""Those of the shipped client are drawn one by one, so there are fewer."""

CATEGORIES = tuple(f"value-{number}" for number in range(20))
STRINGS = tuple(f"site-{number}.example" for number in range(100))

_MADE = (
    category(CATEGORIES, {"report": 1.0, "lifetime": 2.0}, name="category"),
    category(CATEGORIES, RAPPOR, name="category_rappor"),
    string({"report": 1.0, "lifetime": 4.0}, hashes=1, name="string"),
    string(RAPPOR, name="string_rappor"),
)
METRICS = {metric.name: metric for metric in _MADE}
_KINDS = ("category", "string")
WHO = {"remembers": "remembers", "forgets": "draws anew", "client": "shipped client"}


@dataclass(frozen=True)
class Point:
    """Devices of one metric, and what kind of client they have."""

    metric: str
    client: str
    devices: int


def run(run: Run) -> Result:
    """Attack a model of the client that remembers, one that does not, and the client that is shipped."""
    points = [
        Point(metric, client, run.trials if client == "client" else run.devices) for metric in METRICS for client in WHO
    ]
    rows = [row for some in run.map(attack, points) for row in some]
    return Result(rows, _figure(rows), _claims(rows))


def attack(point: Point, rng: np.random.Generator) -> list[Row]:
    """Guess the value of every device after more and more reports."""
    metric = METRICS[point.metric]
    values = CATEGORIES if metric.kind == "category" else STRINGS
    table = codes(metric, values)
    most = tellable(table)
    held = rng.integers(len(values), size=point.devices)
    steps = CLIENT_REPORTS if point.client == "client" else REPORTS
    if point.client == "client":
        cohort, sums = _ask_client(metric, [values[number] for number in held], rng)
    else:
        cohort = rng.integers(metric.encoding.cohorts, size=point.devices)
        sums = _ask_model(metric, table[cohort, held], memoised=point.client == "remembers", rng=rng)
    noise = Noise.of(metric.response)
    rows: list[Row] = []
    for reports, ones in zip(steps, sums, strict=True):
        speaks = evidence(reports, noise, memoised=point.client != "forgets")[ones]
        right = int((guess(speaks, table, cohort, rng) == held).sum())
        guessed = share(right, point.devices)
        spent = reports * metric.epsilon(1) if point.client == "forgets" else metric.epsilon(reports)
        rows.append(
            {
                "metric": point.metric,
                "client": point.client,
                "reports": reports,
                "devices": point.devices,
                "guessed": guessed.value,
                "low": guessed.low,
                "high": guessed.high,
                "epsilon": spent,
                "bound": guess_bound(spent, len(values)),
                "lifetime_bound": guess_bound(metric.epsilon(math.inf), len(values)),
                "collisions_allow": most,
            }
        )
    return rows


def guess_bound(epsilon: float, values: int) -> float:
    """The most often that any attack can name the right one of equally likely values."""
    return 1 / (1 + (values - 1) * math.exp(-epsilon))


def tellable(table: Bits) -> float:
    """How often someone who knows the encoded bits names the right value: some values share theirs."""
    cohorts, values, _ = table.shape
    different = sum(len({code.tobytes() for code in cohort}) for cohort in table)
    return float(different / (cohorts * values))


def guess(speaks: Numbers, table: Bits, cohort: Counts, rng: np.random.Generator) -> Counts:
    """Name the likeliest value of each device, by what each of its bits speaks for; ties are broken at random."""
    best = np.empty(len(speaks), np.int64)
    for each in range(len(table)):
        mine = cohort == each
        scores = speaks[mine] @ table[each].T.astype(float)
        best[mine] = (scores + 1e-7 * rng.random(scores.shape)).argmax(axis=1)
    return best


def _ask_model(metric: Metric, encoded: Bits, *, memoised: bool, rng: np.random.Generator) -> list[Counts]:
    """Count the ones of each bit, of the same devices, at every number of reports."""
    noise = Noise.of(metric.response)
    source, draw = (remember(encoded, noise, rng), send) if memoised else (encoded, send_forgetful)
    sums = [draw(source, REPORTS[0], noise, rng)]
    for before, now in pairwise(REPORTS):
        sums.append(sums[-1] + draw(source, now - before, noise, rng))
    return sums


def _ask_client(metric: Metric, values: list[str], rng: np.random.Generator) -> tuple[Counts, list[Counts]]:
    """The same of devices with a secret each and the client that apps embed."""
    metric = seeded(metric, rng)
    cohorts = np.empty(len(values), np.int64)
    sums = [np.empty((len(values), metric.size), np.int64) for _ in CLIENT_REPORTS]
    for device, value in enumerate(values):
        secret = Secret(rng.bytes(SECRET_BYTES))
        reports = [privatize(metric, value, secret) for _ in range(CLIENT_REPORTS[-1])]
        packed = np.frombuffer(b"".join(report.bits for report in reports), np.uint8).reshape(len(reports), -1)
        cohorts[device] = reports[0].cohort
        for some, number in zip(sums, CLIENT_REPORTS, strict=True):
            some[device] = count_bits(packed[:number], metric.size)
    return cohorts, sums


def _figure(rows: Rows) -> Figure:
    def guessed(kind: str, client: str) -> str:
        return per_cent(last(rows, "guessed", metric=kind, client=client))

    category_bound, string_bound = (per_cent(last(rows, "lifetime_bound", metric=kind)) for kind in _KINDS)
    caption = (
        f"A client that draws its noise anew gives the value away: after {REPORTS[-1]:,} reports of one device the "
        f"attacker names {guessed('category', 'forgets')} of the categories and {guessed('string', 'forgets')} of the "
        "strings (with one hash some strings share their bit; who knows all bits names "
        f"{per_cent(last(rows, 'collisions_allow', metric='string'))}). "
        f"With permanent bits it is {guessed('category', 'remembers')} and {guessed('string', 'remembers')} after as "
        f"many reports; the lifetime epsilon allows no attack more than {category_bound} and {string_bound}, however "
        "long he listens. Points are the shipped client, each device with a secret of its own. All numbers here are of "
        "hubbub's parameters."
    )
    panels = [
        _panel(rows, "category", f"A category of {len(CATEGORIES)} values"),
        _panel(rows, "string", f"A string, {len(STRINGS)} candidates"),
    ]
    return Figure("Averaging the reports of one device", caption, panels)


def _panel(rows: Rows, kind: str, title: str) -> Panel:
    lines = []
    for metric, parameters in ((kind, "hubbub"), (f"{kind}_rappor", "RAPPOR")):
        for client, told in WHO.items():
            mine = where(rows, metric=metric, client=client)
            look: Look = "points" if client == "client" else "line"
            lines.append(series(f"{parameters}, {told}", mine, "reports", "guessed", look))
            if client == "remembers":
                lines.append(theory_line(f"{parameters}, bound if it remembers", mine, "reports", "bound"))
    return Panel(
        title,
        Axis("reports of one device added up", log=True),
        Axis("values guessed right", percent=True, low=0, high=1.02),
        lines,
    )


def _claims(rows: Rows) -> list[Claim]:
    some = CLIENT_REPORTS[-1]

    def told(key: str, **cells: Cell) -> str:
        return per_cent(last(rows, key, **cells), 1)

    claims = []
    for metric in METRICS:
        model, client = ({"metric": metric, "client": who} for who in ("remembers", "client"))
        claims += [
            Claim(
                f"{metric}: values guessed right from {REPORTS[-1]:,} reports of one device",
                "the lifetime epsilon: at most e^E/(e^E + N - 1)",
                f"at most {told('lifetime_bound', metric=metric)}",
                f"{told('guessed', **model)} (without memory {told('guessed', metric=metric, client='forgets')})",
            ),
            Claim(
                f"{metric}: values guessed right from {some} reports of the shipped client",
                "our model of it",
                told("guessed", **model, reports=some),
                f"{told('guessed', **client)} ({told('low', **client)} to {told('high', **client)})",
            ),
        ]
    return claims


EXPERIMENT = Experiment(
    name="averaging-attack",
    title="Does averaging the reports of one device tell its value?",
    setting=(
        "A category of 20 values and a string among 100 candidates, with hubbub's and with RAPPOR's parameters; the "
        "attacker names the likeliest. `devices` of the model are attacked, and `trials` of the shipped client."
    ),
    devices=10_000,
    trials=400,
    run=run,
)
