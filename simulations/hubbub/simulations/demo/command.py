"""`hubbub demo`: the command."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from importlib.resources import files
from tempfile import TemporaryDirectory
from threading import Timer, main_thread
from typing import TYPE_CHECKING, Any, cast

import click
import msgspec

from hubbub.client.consent import VARIABLES, switched_off
from hubbub.collector.progress import showing
from hubbub.collector.store import Store
from hubbub.shared import Registry
from hubbub.shared.period import today
from hubbub.simulations.demo import attack, show
from hubbub.simulations.demo.crowd import CANDIDATES, DAYS, HABITS, gather
from hubbub.simulations.demo.outcome import Outcome, compare
from hubbub.simulations.demo.visit import warm
from hubbub.simulations.errors import LiveError
from hubbub.simulations.live import HOST, LiveCollector, free_port, simulate_clients
from hubbub.simulations.live.signals import ENDING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hubbub.simulations.demo.crowd import Crowd

DEFAULT_DEVICES = 200_000
FEWEST_DEVICES = 1_000
DEFAULT_CLIENTS = 200

SEND_DAYS = 10
"""Real clients send every so many days: each connection costs more than the reports that go through it."""

DAYS_BACK = DAYS + 7
"""Reports of so long ago are taken: midnight may pass meanwhile."""

AGAIN_SECONDS = 0.01
"""When a signal that was lost comes again."""


@click.command()
@click.option(
    "--devices", type=click.IntRange(FEWEST_DEVICES), default=DEFAULT_DEVICES, show_default=True, help="In the crowd."
)
@click.option(
    "--clients",
    type=click.IntRange(1),
    default=DEFAULT_CLIENTS,
    show_default=True,
    help="Devices that are real clients.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Of the hidden truth; the noise of real clients is the system's.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="Of the collector; by default any that is free.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, and end.")
@click.option("--exit", "exit_", is_flag=True, help="End when done; otherwise the dashboard stays up until Ctrl-C.")
def demo(devices: int, clients: int, seed: int, port: int | None, as_json: bool, exit_: bool) -> None:
    """Let a crowd of devices report to a real collector, and compare what is learnt with the truth."""
    _check(devices, clients, port)
    if not as_json:
        show.begin(devices, clients)
    text = files("hubbub.simulations").joinpath("demo.toml").read_text("utf-8")
    registry = Registry.parse(text, source="demo.toml")
    with _ending_in_order(), TemporaryDirectory(prefix="hubbub-demo-") as folder:
        crowd = gather(registry, devices, clients, seed, today())
        collector = LiveCollector(text, folder=folder, port=port, guarded=False, days_back=DAYS_BACK)
        _fill(collector.store, registry, crowd)
        with collector:
            outcome = _learn(collector, crowd, devices, seed)
            if as_json:
                click.echo(msgspec.json.encode(outcome))
                return
            if sys.stderr.isatty():
                click.echo(err=True)  # below the bars
            show.show(outcome)
            if not exit_:
                _stay(collector)


def _check(devices: int, clients: int, port: int | None) -> None:
    """Refuse what cannot work before anybody has waited for it."""
    if clients >= devices:
        told = f"{clients:,} of {devices:,} devices; allowed: fewer than --devices"
        raise click.BadParameter(told, param_hint="--clients")
    if switched_off():
        set_ = " and ".join(name for name in VARIABLES if name in os.environ)
        raise LiveError(
            f"{set_}: switches all clients off, and there is no demo without them; allowed: not set. What the demo "
            "sends is made up, and goes to this machine only"
        )
    if port is not None:
        free_port(port)
    # A proxy of the user's, if there is one, cannot reach this machine's own addresses.
    os.environ["no_proxy"] = ",".join(filter(None, [os.environ.get("no_proxy") or os.environ.get("NO_PROXY"), HOST]))


def _fill(address: str, registry: Registry, crowd: Crowd) -> None:
    """Put what simulated devices have sent into the store."""
    store = Store(address)
    try:
        store.prepare(registry)
        store.add(tally for told in crowd.metrics.values() for tally in told.tallies)
    finally:
        store.close()


def _learn(collector: LiveCollector, crowd: Crowd, devices: int, seed: int) -> Outcome:
    """Let the real clients send, and ask the collector what it knows, over HTTP as anybody would."""
    clients = len(crowd.lives)
    with showing(clients, f"{clients:,} real clients record and send") as advance:
        simulate_clients(collector, crowd.lives, first_day=crowd.first_day, send_every=SEND_DAYS, progress=advance)
    collector.put_candidates("homepage", CANDIDATES)
    found = {
        name: compare(told, collector.estimates(name, told.periods[0], told.periods[-1]))
        for name, told in crowd.metrics.items()
    }
    attacked = collector.registry[attack.METRIC]
    label = f"an attacker collects {attack.REPORTS[-1]:,} reports of each of {attack.DEVICES} devices"
    with showing(attack.DEVICES, label) as advance:
        attacks = attack.attack(attacked, list(HABITS[attack.METRIC].weights), seed, advance)
    return Outcome(devices, clients, seed, crowd.first_day, crowd.last_day, found, attacks)


def _stay(collector: LiveCollector) -> None:
    try:
        warm(collector.url, list(collector.registry))
        click.echo(f"\nDashboard: {collector.url}/  Ctrl-C ends it")
        collector.wait()
    except KeyboardInterrupt:
        click.echo("\nEnded; nothing is left behind.")


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Whoever ends us, by Ctrl-C or otherwise, ends the collector too; that is not to be interrupted a second time.

    A signal may come in the middle of anything, such as a lock that a library has half given back. What that breaks
    on the way out is of no interest. And it may come while Python gives up an object, where whatever is raised is lost:
    then it comes again, a moment later.
    """
    ended = False
    # Under nohup it outlives its terminal.
    signals = [each for each in ENDING if each.name != "SIGHUP" or signal.getsignal(each) != signal.SIG_IGN]

    def end(*_: Any) -> None:
        nonlocal ended
        ended = True
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    def lose(lost: Any) -> None:
        if not (ended and issubclass(lost.exc_type, KeyboardInterrupt)):
            hook(lost)
            return
        signal.signal(signal.SIGINT, end)
        Timer(AGAIN_SECONDS, _interrupt).start()

    hook, sys.unraisablehook = sys.unraisablehook, lose
    before = {each: signal.signal(each, end) for each in signals}
    try:
        yield
    except Exception:
        if ended:
            raise KeyboardInterrupt from None
        raise
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        sys.unraisablehook = hook


def _interrupt() -> None:
    """Send the main thread a signal, which wakes it too, where there is a way to."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(cast("int", main_thread().ident), signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
