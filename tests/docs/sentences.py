"""Commands that stand in a sentence or a table: found, and read as far as they can be without running them."""

import re
import shlex
import tomllib
from dataclasses import dataclass

import click

from docs.pages import ROOT, page
from docs.rules import targets
from hubbub.shared.command_line import hubbub
from hubbub.simulations.experiments import NAMES as EXPERIMENTS

PLACEHOLDER = r"[A-Z]+(\.[a-z]+)?"
"""A word that a reader replaces, such as FILE or FILE.svg."""

VARIABLES = r"(?:[A-Z_]+=\S+ )*"
PROGRAM = re.compile(rf"{VARIABLES}(?:(hubbub|make|pip) |(python -m benchmarks)\b)")
"""What a command in a sentence begins with; a name in Python, such as hubbub.client, has no blank after it."""


@dataclass(frozen=True)
class Known:
    """What there is besides commands of hubbub."""

    benchmarks: frozenset[str]
    targets: frozenset[str]
    extras: frozenset[str]

    @classmethod
    def here(cls, benchmarks: set[str]) -> "Known":
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        return cls(frozenset(benchmarks), frozenset(targets()), frozenset(project["optional-dependencies"]))


class WrongError(Exception):
    """A command that would not run as it stands."""


def sentences(name: str) -> list[str]:
    """All commands in the sentences and tables of a page; one may go on in the next line."""
    return commands_in(page(name))


def commands_in(text: str) -> list[str]:
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    paragraphs = [each for each in re.split(r"\n\s*\n", prose) if not each.startswith("    ")]
    spans = [span for each in paragraphs for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", each)]
    words = [re.sub(r"\s+", " ", span) for span in spans]
    return [word for word in words if PROGRAM.match(word)]


def read(command: str, known: Known) -> None:
    """Read a command; `WrongError` says what is."""
    match shlex.split(re.sub(rf"^{VARIABLES}", "", command)):
        case ["hubbub", *rest]:
            _read_hubbub(rest)
        case ["python", "-m", "benchmarks", *rest]:
            _read_benchmarks(rest, known)
        case ["python", "-m", module]:
            _read_module(module)
        case ["make", target, *rest]:
            _read_make(target, rest, known)
        case ["pip", "install", *rest]:
            _read_pip(rest, known)
        case _:
            raise WrongError(command)


def _read_hubbub(words: list[str]) -> None:
    command: click.Command = hubbub
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        if re.fullmatch(PLACEHOLDER, words[0]):
            return  # any command: nothing more can be said
        inner = command.get_command(click.Context(command), words[0])
        if inner is None:
            raise WrongError(f"no command {words[0]}")
        command, words = inner, words[1:]
    _read_arguments(command, words)
    if command.name == "simulate" and words and not words[0].startswith("-"):
        _read_experiment(words[0])


def _read_arguments(command: click.Command, words: list[str]) -> None:
    """Options are its own and, but for the last, have their values; arguments are not too many.

    What a sentence leaves out is left out: `hubbub preview` in a sentence need not say of which device.
    """
    options = {name: each for each in command.params if isinstance(each, click.Option) for name in each.opts}
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    places = iter(arguments)
    rest = iter(words)
    for word in rest:
        if word == "--help":
            continue
        if word.startswith("-"):
            option = options.get(word)
            if option is None:
                raise WrongError(f"no option {word}")
            for _ in range(0 if option.is_flag else option.nargs):
                _read_value(option, next(rest, None))
        else:
            argument = next(places, None)
            if argument is None and not any(each.nargs < 0 for each in arguments):
                raise WrongError(f"one argument too many: {word}")
            if argument is not None:
                _read_value(argument, word)


def _read_value(parameter: click.Parameter, word: str | None) -> None:
    """A value is of the right type; whether a file is there is nobody's business here."""
    if word is None or re.fullmatch(PLACEHOLDER, word) or isinstance(parameter.type, click.Path):
        return
    try:
        parameter.type.convert(word, parameter, None)
    except click.UsageError as error:
        raise WrongError(error.format_message()) from None


def _read_experiment(name: str) -> None:
    if name not in EXPERIMENTS and not re.fullmatch(PLACEHOLDER, name):
        raise WrongError(f"no experiment {name}")


def _read_benchmarks(words: list[str], known: Known) -> None:
    names = {word for word in words if word not in {"|", "--write"} and not re.fullmatch(PLACEHOLDER, word)}
    if names - known.benchmarks:
        raise WrongError(f"no benchmark {', '.join(sorted(names - known.benchmarks))}")


def _read_module(module: str) -> None:
    if not (ROOT / module.replace(".", "/")).with_suffix(".py").exists():
        raise WrongError(f"no module {module}")


def _read_make(target: str, words: list[str], known: Known) -> None:
    if target not in known.targets:
        raise WrongError(f"no target {target}")
    for word in words:
        name, _, values = word.partition("=")
        if name != "ARGS":
            raise WrongError(f"make does not know {word}")
        if target == "bench":
            _read_benchmarks(values.split(), known)
        elif target == "demo":
            _read_hubbub(["demo", *values.split()])
        elif target == "gallery":
            _read_experiment(values)


def _read_pip(words: list[str], known: Known) -> None:
    """From a clone: there is no release to install."""
    for word in words:
        found = re.fullmatch(r"\.(?:\[([a-z,]+)\])?", word)
        if found is None:
            raise WrongError(f"{word}: is not published; allowed: . or .[EXTRA]")
        extras = set((found[1] or "").split(",")) - {""}
        if extras - known.extras:
            raise WrongError(f"no extra {', '.join(sorted(extras - known.extras))}")
