"""Other libraries at the jobs of `benchmarks.peers` and `make bench`: run by the Python of an environment of their own.

It imports nothing of hubbub, and reads a job and prints an answer as JSON. Clients and estimators are the libraries'
own, called as their documentation shows.
"""

from __future__ import annotations

import ast
import importlib
import json
import random
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import peer_rates


def main() -> None:
    """Do one job."""
    warnings.simplefilter("ignore")  # pure-ldp warns of fewer than 10,000 reports, numba of its own future
    name, job = sys.argv[1], json.loads(sys.argv[2])
    print(json.dumps(JOBS[name](job)))


def pure_category(job: dict[str, Any]) -> dict[str, Any]:
    """Optimal unary encoding of pure-ldp: its estimates, as they are and projected onto the simplex, run by run."""
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer  # noqa: PLC0415

    values = range(1, len(job["held"]) + 1)
    plain, projected = [], []
    for _ in range(job["runs"]):
        client = UEClient(job["epsilon"], len(values), use_oue=True)
        server = UEServer(job["epsilon"], len(values), use_oue=True)
        for value, number in zip(values, job["held"], strict=True):
            for _ in range(number):
                server.aggregate(client.privatise(value))
        plain.append((server.estimate_all(values, suppress_warnings=True) / server.n).tolist())
        projected.append((server.estimate_all(values, suppress_warnings=True, normalization=2) / server.n).tolist())
    return {"plain": plain, "projected": projected}


def multi_category(job: dict[str, Any]) -> dict[str, Any]:
    """Optimal unary encoding of multi-freq-ldpy, run by run."""
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client  # noqa: PLC0415

    def run() -> list[float]:
        reports = [
            UE_Client(value, len(job["held"]), job["epsilon"], True)
            for value, number in enumerate(job["held"])
            for _ in range(number)
        ]
        estimates: list[float] = UE_Aggregator_MI(reports, job["epsilon"], True).tolist()
        return estimates

    return {"plain": [run() for _ in range(job["runs"])]}


def multi_longitudinal(job: dict[str, Any]) -> dict[str, Any]:
    """L-OSUE of multi-freq-ldpy, run by run; and whose value many reports of one device give away."""
    from multi_freq_ldpy.long_freq_est.L_OSUE import L_OSUE_Aggregator_MI, L_OSUE_Client  # noqa: PLC0415

    size, lifetime, report = len(job["held"]), job["lifetime"], job["report"]

    def run() -> list[float]:
        reports = [
            L_OSUE_Client(value, size, lifetime, report)
            for value, number in enumerate(job["held"])
            for _ in range(number)
        ]
        estimates: list[float] = L_OSUE_Aggregator_MI(reports, lifetime, report).tolist()
        return estimates

    hits = 0
    for device in range(job["devices"]):
        value = device % size
        sums = sum(L_OSUE_Client(value, size, lifetime, report) for _ in range(job["calls"]))
        hits += int(np.argmax(sums)) == value
    return {"plain": [run() for _ in range(job["runs"])], "hits": hits}


def pure_rappor(job: dict[str, Any]) -> dict[str, Any]:
    """RAPPOR of pure-ldp: true bits that were ever sent as 0, what the estimates sum to, and who is singled out."""
    from pure_ldp.frequency_oracles.rappor import RAPPORClient, RAPPORServer  # noqa: PLC0415

    shape = {"f": job["f"], "m": job["bits"], "num_of_cohorts": job["cohorts"]}
    servers = [
        RAPPORServer(k=job["hashes"], d=job["candidates"], reg_const=constant, **shape) for constant in (None, 0)
    ]
    hash_functions = servers[0].get_hash_funcs()
    servers[1].hash_family = hash_functions
    client = RAPPORClient(hash_funcs=hash_functions, **shape)
    places = np.array(
        [[[f(str(value)) for f in each] for each in hash_functions] for value in range(job["candidates"])]
    )
    true_bits, cleared = 0, 0
    for device in range(job["devices"]):
        value = device % job["candidates"]
        sent, cohort = client.privatise(value + 1)
        encoded = set(places[value, cohort].tolist())
        true_bits += len(encoded)
        cleared += sum(not sent[place] for place in encoded)
        for server in servers:
            server.aggregate((sent, cohort))
    sums = [
        float(server.estimate_all(range(1, job["candidates"] + 1), suppress_warnings=True).sum()) / server.n
        for server in servers
    ]
    return {
        "true_bits": true_bits,
        "cleared": cleared,
        "sums": sums,
        "singled_out_after": [_reports_until_alone(client, places, device) for device in range(job["watched"])],
        "f_for_1": client.convert_eps_to_f(1),
        "epsilon_of_that_f": client.convert_f_to_eps(client.convert_eps_to_f(1), job["hashes"]),
    }


def _reports_until_alone(client: Any, places: Any, device: int) -> int:
    """Strike out every candidate with a bit that was sent as 0, until one is left."""
    value, possible, reports = device % len(places), np.ones(len(places), bool), 0
    while possible.sum() > 1:
        sent, cohort = client.privatise(value + 1)
        possible &= np.array(sent)[places[:, cohort]].all(axis=1)
        reports += 1
    return reports if possible[value] else -1


def pure_decode(job: dict[str, Any]) -> dict[str, Any]:
    """The decoder of pure-ldp on counts that a right client would have made; the error is over all seeds."""
    best: dict[str, Any] = {"seconds": float("inf")}
    squares = []
    for seed in range(1, job["seeds"] + 1):
        taken = _decode(job, seed)
        squares.append(taken.pop("square"))
        best = min(best, taken, key=lambda each: float(each["seconds"]))
    return best | {"error": float(np.sqrt(np.mean(squares)))}


def _decode(job: dict[str, Any], seed: int) -> dict[str, Any]:
    """Draw a population and hash functions, and decode it."""
    from pure_ldp.frequency_oracles.rappor import RAPPORServer  # noqa: PLC0415

    rng = np.random.default_rng(seed)
    random.seed(seed)
    server = RAPPORServer(job["f"], job["bits"], job["hashes"], job["candidates"], num_of_cohorts=job["cohorts"])
    held = rng.multinomial(job["reports"], 1 / np.arange(1, job["strings"] + 1) / _harmonic(job["strings"]))
    members = rng.multinomial(held, np.full(job["cohorts"], 1 / job["cohorts"]))
    for cohort, functions in enumerate(server.get_hash_funcs()):
        holding = np.zeros(job["bits"], np.int64)
        for value in range(job["strings"]):
            for place in {function(str(value)) for function in functions}:
                holding[place] += members[value, cohort]
        everyone = members[:, cohort].sum()
        sent = rng.binomial(holding, 1 - job["f"] / 2) + rng.binomial(everyone - holding, job["f"] / 2)
        server.bloom_filters[cohort], server.cohort_count[cohort] = sent.astype(float), everyone
    server.n = job["reports"]
    times = []
    for _ in range(job["rounds"]):
        server.last_estimated = 0  # or it would give the answer of the round before
        begin = time.process_time()
        estimates = server.estimate_all(range(1, job["candidates"] + 1), suppress_warnings=True)
        times.append(time.process_time() - begin)
    shares = estimates[: job["strings"]] / job["reports"]
    return {
        "seconds": min(times),
        "square": float(np.mean((shares - held / job["reports"]) ** 2)),
        "found": int((estimates > 0).sum()),
        "absent": int((estimates[job["strings"] :] > 0).sum()),
        "mass_absent": float(estimates[job["strings"] :].sum() / job["reports"]),
        "first": float(estimates[0] / job["reports"]),
        "first_true": float(held[0] / job["reports"]),
    }


def _harmonic(number: int) -> float:
    return float((1 / np.arange(1, number + 1)).sum())


def intervals(job: dict[str, Any]) -> dict[str, Any]:
    """Names of functions and parameters, in the source of a package, that speak of intervals or of variances."""
    [folder] = importlib.import_module(job["package"]).__path__
    names: set[str] = set()
    for path in Path(folder).rglob("*.py"):
        statements = ast.parse(path.read_text(encoding="utf-8")).body
        # Functions inside functions are nobody's to call.
        statements += [each for one in statements if isinstance(one, ast.ClassDef) for each in one.body]
        for each in statements:
            if isinstance(each, ast.FunctionDef):
                names |= {each.name, *(one.arg for one in each.args.args + each.args.kwonlyargs)}
    return {
        "intervals": sorted(name for name in names if any(word in name.lower() for word in ("interval", "confidence"))),
        "variances": sorted(name for name in names if name.lower().startswith("var")),
        "looked_at": len(names),
    }


JOBS = {
    each.__name__: each
    for each in (
        pure_category,
        multi_category,
        multi_longitudinal,
        pure_rappor,
        pure_decode,
        intervals,
        peer_rates.client_rates,
        peer_rates.counting_rates,
        peer_rates.mean_errors,
        peer_rates.seeded,
        peer_rates.averaging,
    )
}

if __name__ == "__main__":
    main()
