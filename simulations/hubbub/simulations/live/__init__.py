"""Real clients and a real collector: a small population that takes the way of the product itself, over HTTP.

with LiveCollector(registry) as collector:
    first_day = collector.first_day(2)
    simulate_clients(collector, [[{"crashed": True}, {"crashed": False}]], first_day=first_day)
    yesterday_and_before = collector.tallies("crashed", first_day, 2)

Each device is a `Client` with a state file and a clock of its own. The collector is `hubbub serve` in a process of its
own, with an SQLite store. That process ends with the one that started it, however that went.
"""

from hubbub.simulations.live.clients import simulate_clients, state_file
from hubbub.simulations.live.collector import HOST, LiveCollector, free_port

__all__ = ["HOST", "LiveCollector", "free_port", "simulate_clients", "state_file"]
