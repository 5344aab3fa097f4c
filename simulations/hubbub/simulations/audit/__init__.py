"""Measure epsilon from outside: guess which of two values a device holds, and count.

Epsilon says how well anyone can guess. Toss a coin, let a new device report the one value or the other, and let
somebody who sees only the reports say which it was, or pass. Under epsilon he is right at most e^epsilon times as often
as he is wrong, whatever he does: for outcomes A on which he says "first" and B on which he says "second",

    Pr[right]/Pr[wrong] = (Pr[A | first] + Pr[B | second])/(Pr[A | second] + Pr[B | first]) <= e^epsilon.

So a lower bound of these odds is a lower bound of epsilon, and nothing about the client has to be believed for it.
"""

from hubbub.simulations.audit.measure import Audit, audit

__all__ = ["Audit", "audit"]
