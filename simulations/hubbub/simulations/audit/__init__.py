"""Measure epsilon from outside: guess which of two values a device holds, and count.

Epsilon limits how well anyone can guess. Toss a coin, and let a new device report one value or the other. A guesser
sees only the reports, and names the value or passes. Under epsilon, any guesser is right at most e^epsilon times as
often as wrong: for outcomes A on which the guess is "first" and B on which it is "second",

    Pr[right]/Pr[wrong] = (Pr[A | first] + Pr[B | second])/(Pr[A | second] + Pr[B | first]) <= e^epsilon.

So a lower bound of these odds is a lower bound of epsilon, whatever the client does.
"""

from hubbub.simulations.audit.measure import Audit, audit

__all__ = ["Audit", "audit"]
