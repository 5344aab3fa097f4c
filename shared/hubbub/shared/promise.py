"""The privacy a registry declares for a metric, and the response it means.

{ report, lifetime }   all kinds                  every = "day" or "week"   solved for least variance
{ f, p, q }            string, category, flag     every = "day" or "week"   RAPPOR's own parameters
{ epsilon, gamma }     mean, histogram            any                       Microsoft's own parameters
{ f }                  string, category, flag     every = "once"            one-time RAPPOR
{ epsilon }            all kinds                  every = "once"            solved for least variance
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hubbub.shared.errors import ParameterError
from hubbub.shared.response import MAX_EPSILON, Response

if TYPE_CHECKING:
    from hubbub.shared.declaration import Declaration
    from hubbub.shared.encode import Encoding
    from hubbub.shared.metric import Kind
    from hubbub.shared.period import Every

_RAPPOR_KINDS = ("string", "category", "flag")


def forms_of(kind: Kind, every: Every) -> tuple[tuple[str, ...], ...]:
    """List the sets of keys by which the privacy of such a metric can be declared."""
    once = every == "once"
    if kind in _RAPPOR_KINDS:
        return (("f",), ("epsilon",)) if once else (("report", "lifetime"), ("f", "p", "q"))
    return (("epsilon",), ("epsilon", "gamma")) if once else (("report", "lifetime"), ("epsilon", "gamma"))


def read_response(privacy: Declaration, kind: Kind, every: Every, encoding: Encoding) -> Response | None:
    """Read the `privacy` table of a metric; None means that problems have been noted."""
    forms = forms_of(kind, every)
    form = next((form for form in forms if privacy.keys() == set(form)), None)
    if form is None:
        allowed = " or ".join("{ " + ", ".join(form) + " }" for form in forms)
        given = "{ " + ", ".join(privacy.keys()) + " }" if privacy.keys() else "empty"
        privacy.fault(None, f"is {given}", f'{allowed} for a {kind} metric with every = "{every}"')
        return None
    numbers = {key: privacy.number(key) for key in form}
    if not privacy.sound(*form):
        return None
    try:
        match form:
            case ("report", "lifetime"):
                response = Response.least_variance(**numbers, contrasts=encoding.contrasts)
            case ("epsilon",):
                response = Response.one_time(**numbers, contrasts=encoding.contrasts)
            case ("epsilon", "gamma"):
                response = Response.flipping(**numbers, contrasts=encoding.contrasts)
            case _:
                response = Response.rappor(**numbers)
    except ParameterError as error:
        privacy.fault(None, *str(error).split("; allowed: "))
        return None
    return response if _keeps_privacy(privacy, response, every, encoding) else None


def _keeps_privacy(privacy: Declaration, response: Response, every: Every, encoding: Encoding) -> bool:
    """Check that the epsilons are within the limit of every form, and that repeated reports are noisy."""
    if every != "once" and response.is_one_time:
        privacy.fault(
            None,
            "has no instantaneous noise, so that a device would send the same bits forever",
            'gamma above 0, or p above 0 or q below 1, or every = "once"',
        )
        return False
    for name, reports in (("one report", 1), ("a lifetime", math.inf)):
        epsilon = response.epsilon(encoding.contrasts, reports)
        if epsilon > MAX_EPSILON:
            privacy.fault(None, f"has an epsilon of {epsilon:.4g} for {name}", f"at most {MAX_EPSILON:g}: more noise")
            return False
    return True
