"""Other libraries at the jobs of `make bench`, in the environment of the peers: speed, noise, memory and randomness.

Like `peer_worker.py`, which starts it, it imports nothing of hubbub. Clients and estimators are the libraries' own,
called as their documentation shows.
"""

from __future__ import annotations

import random
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

CATEGORIES = 100
EPSILON, LIFETIME = 1.0, 2.0
F, BITS, HASHES, COHORTS = 0.5, 128, 2, 64
LOW, HIGH = 0.0, 1440.0


def clients(library: str) -> dict[str, Callable[[int], Any]]:
    """The clients of a library: each takes the number of a value, and gives a report."""
    return {"pure-ldp": _pure, "multi-freq-ldpy": _multi, "opendp": _opendp, "diffprivlib": _diffprivlib}[library]()


def _pure() -> dict[str, Callable[[int], Any]]:
    from pure_ldp.frequency_oracles.rappor import RAPPORClient, RAPPORServer  # noqa: PLC0415
    from pure_ldp.frequency_oracles.unary_encoding import UEClient  # noqa: PLC0415

    unary = UEClient(EPSILON, CATEGORIES, use_oue=True)
    server = RAPPORServer(F, BITS, HASHES, CATEGORIES, num_of_cohorts=COHORTS)
    rappor = RAPPORClient(F, BITS, server.get_hash_funcs(), num_of_cohorts=COHORTS)
    return {
        "category": lambda value: unary.privatise(value + 1),
        "string": lambda value: rappor.privatise(value + 1),
    }


def _multi() -> dict[str, Callable[[int], Any]]:
    from multi_freq_ldpy.long_freq_est.L_OSUE import L_OSUE_Client  # noqa: PLC0415
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client  # noqa: PLC0415

    return {
        "category": lambda value: UE_Client(value, CATEGORIES, EPSILON, True),
        "repeated": lambda value: L_OSUE_Client(value, CATEGORIES, LIFETIME, EPSILON),
    }


def _opendp() -> dict[str, Callable[[int], Any]]:
    import opendp.prelude as dp  # noqa: PLC0415

    dp.enable_features("contrib")
    share = np.exp(EPSILON)
    names = [f"v{value}" for value in range(CATEGORIES)]
    category = dp.m.make_randomized_response(names, prob=float(share / (share + CATEGORIES - 1)))
    flag = dp.m.make_randomized_response_bool(prob=float(share / (share + 1)))
    vector = dp.m.make_randomized_response_bitvec(dp.bitvector_domain(max_weight=HASHES), dp.discrete_distance(), f=F)
    noise = dp.m.make_laplace(
        dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=(HIGH - LOW) / EPSILON
    )
    # It hashes nothing: the bits are given.
    encoded = [
        np.packbits(np.isin(np.arange(BITS), (value, (7 * value + 1) % BITS))).tobytes() for value in range(BITS)
    ]
    return {
        "category": lambda value: category(names[value]),
        "string": lambda value: vector(encoded[value]),
        "flag": lambda value: flag(bool(value % 2)),
        "number": lambda value: noise(float(value)),
    }


def _diffprivlib() -> dict[str, Callable[[int], Any]]:
    from diffprivlib.mechanisms import Binary, Laplace  # noqa: PLC0415

    flag = Binary(epsilon=EPSILON, value0="0", value1="1")
    noise = Laplace(epsilon=EPSILON, sensitivity=HIGH - LOW)
    return {
        "flag": lambda value: flag.randomise(str(value % 2)),
        "number": lambda value: noise.randomise(float(value)),
    }


def client_rates(job: dict[str, Any]) -> dict[str, Any]:
    """Reports a second of each client."""
    return {kind: rate(partial(call, 7), job["seconds"]) for kind, call in clients(job["library"]).items()}


def rate(call: Callable[[], Any], seconds: float, rounds: int = 10) -> float:
    """Calls a second of processor time; ours and theirs are measured by this very function."""
    call()  # numba compiles here
    begin, calls = time.process_time(), 0
    while time.process_time() - begin < seconds / rounds:
        call()
        calls += 1
    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(calls):
            call()
        best = min(best, (time.process_time() - begin) / calls)
    return 1 / best


def counting_rates(job: dict[str, Any]) -> dict[str, Any]:
    """Reports of 128 bits that a library adds up, a CPU second; in the form that its own clients give."""
    rows = np.random.default_rng(1).integers(0, 2, (job["reports"], BITS), np.uint8)
    if job["library"] == "pure-ldp":
        from pure_ldp.frequency_oracles.rappor import RAPPORServer  # noqa: PLC0415

        server = RAPPORServer(F, BITS, HASHES, CATEGORIES, num_of_cohorts=COHORTS)
        reports = [(row.astype(float).tolist(), index % COHORTS) for index, row in enumerate(rows)]

        def call() -> None:
            for report in reports:
                server.aggregate(report)

    elif job["library"] == "multi-freq-ldpy":
        from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI  # noqa: PLC0415

        listed = list(rows)

        def call() -> None:
            UE_Aggregator_MI(listed, EPSILON, True)

    elif job["library"] == "opendp":
        import opendp.prelude as dp  # noqa: PLC0415

        dp.enable_features("contrib")
        packed = [row.tobytes() for row in np.packbits(rows, axis=1)]

        def call() -> None:
            dp.m.debias_randomized_response_bitvec(packed, f=F)

    else:
        raise ValueError(f"{job['library']}: has nothing that adds reports up")
    call()
    times = []
    for _ in range(job["rounds"]):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return {"rate": job["reports"] / min(times)}


def mean_errors(job: dict[str, Any]) -> dict[str, Any]:
    """Means that come out when every device adds noise to its own number, run by run."""
    noisy = clients(job["library"])["number"]
    return {"means": [float(np.mean([noisy(value) for value in job["values"]])) for _ in range(job["runs"])]}


def seeded(job: dict[str, Any]) -> dict[str, Any]:
    """Whether the generators of Python and numpy, put to one state twice, give the same reports twice."""
    found = {}
    for kind, call in clients(job["library"]).items():
        call(0)
        drawn = []
        for _ in range(2):
            random.seed(job["seed"])
            np.random.seed(job["seed"])  # the old generator is the one that libraries share
            _seed_numba(job["seed"])
            drawn.append([_plain(call(value % CATEGORIES)) for value in range(job["reports"])])
        found[kind] = drawn[0] == drawn[1]
    return found


def _seed_numba(seed: int) -> None:
    """Compiled functions have a generator of their own, which only a compiled function can seed."""
    try:
        from numba import njit  # noqa: PLC0415
    except ImportError:
        return

    def inner(number: int) -> None:
        np.random.seed(number)

    compiled: Any = njit(inner)
    compiled(seed)


def _plain(report: Any) -> str:
    """A report as text, so that any two can be compared."""
    parts = report if isinstance(report, tuple) else (report,)
    return repr([np.asarray(part).tolist() if not isinstance(part, bytes) else part for part in parts])


def averaging(job: dict[str, Any]) -> dict[str, Any]:
    """Of how many devices the value is guessed from many reports of it: the bit or the answer that came most often."""
    kind = job["kind"]
    report = clients(job["library"])[kind]
    hits = 0
    for device in range(job["devices"]):
        value = device % (2 if kind == "flag" else CATEGORIES)
        reports = [report(value) for _ in range(job["calls"])]
        hits += _guess(kind, reports) == value
    return {"share": hits / job["devices"]}


def _guess(kind: str, reports: list[Any]) -> int:
    if isinstance(reports[0], str):
        most = max(set(reports), key=reports.count)
        return int(most) if kind == "flag" else int(most.removeprefix("v"))
    return int(np.sum(reports, axis=0).argmax())
