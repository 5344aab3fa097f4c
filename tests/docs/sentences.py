"""Commands that stand in a sentence, a table or a heading: found, and read as far as they can be without running them.

`covers` tells which of them are run with another, `meant` what one stands for.
"""

import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import click

from docs.pages import ROOT, page
from docs.rules import NOT_RUN, dry_run, targets
from hubbub.shared.command_line import hubbub
from hubbub.simulations.experiments import NAMES as EXPERIMENTS

PLACEHOLDER = r"[A-Z]+(\.[a-z]+)?"
"""A word that a reader replaces, such as FILE or FILE.svg."""

VARIABLES = r"(?:[A-Z_]+=\S+ )*"
PROGRAM = re.compile(rf"{VARIABLES}(?:(hubbub|make|pip|source) |(python -m benchmarks)\b)")
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
    """All commands in the sentences, tables and headings of a page; one may go on in the next line."""
    return commands_in(page(name))


def commands_told(name: str) -> list[str]:
    """What the commands in the sentences of a page stand for."""
    return [each for command in sentences(name) for each in meant(command)]


def commands_in(text: str) -> list[str]:
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    paragraphs = [each for each in re.split(r"\n\s*\n", prose) if not each.startswith("    ")]
    spans = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    spans += [span for each in paragraphs for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", each)]
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
        case ["source", ".venv/bin/activate"]:
            pass  # every virtual environment has it
        case _:
            raise WrongError(command)


def meant(command: str) -> list[str]:
    """The commands that one in a sentence stands for: its alternatives, and what `make` would run, if it may be run."""
    first, *others = command.split(" | ")
    alternatives = [first, *(f"{first.rpartition(' ')[0]} {other}" for other in others)]
    return [_made(each) if each.startswith("make ") and each not in NOT_RUN else each for each in alternatives]


def _made(command: str) -> str:
    """The command of a target, in an environment that is there and need not be made."""
    told = dry_run("--assume-old=.venv/ready", *command.split()[1:])
    if told.returncode:
        raise WrongError(told.stderr)
    return told.stdout.strip().removeprefix(".venv/bin/")


def covers(run: str, told: str) -> bool:
    """Whether who runs the one has run the other: the same command, with the same arguments and options or more.

    A placeholder stands for anything, and an option without its value for any.
    """
    words, wanted = shlex.split(run), shlex.split(told)
    if ("--help" in words) != ("--help" in wanted):
        return False
    if words[0] != "hubbub" or wanted[0] != "hubbub":
        return len(words) >= len(wanted) and _stand_for(wanted, words[: len(wanted)])
    (path, given), (wanted_path, wanted_given) = _called(run), _called(told)
    return (
        len(path) == len(wanted_path)
        and _stand_for(wanted_path, path)
        and all(any(name == each and _stands_for(value, word) for each, word in given) for name, value in wanted_given)
    )


@cache
def _called(command: str) -> tuple[list[str], list[tuple[str | None, str | None]]]:
    """The names of a command of hubbub, and of its arguments and options, with what each is given."""
    path, found, rest = _follow(shlex.split(command)[1:])
    return path, [(parameter.name, word) for parameter, word in _pairs(found, rest)]


def _stands_for(told: str | None, word: str | None) -> bool:
    return told is None or told == word or re.fullmatch(PLACEHOLDER, told) is not None


def _stand_for(told: list[str], words: list[str]) -> bool:
    return all(_stands_for(each, word) for each, word in zip(told, words, strict=True))


def _follow(words: list[str]) -> tuple[list[str], click.Command, list[str]]:
    """The names of a command of hubbub, the command, and its arguments: none of which is known, if its name is not."""
    command: click.Command = hubbub
    path: list[str] = []
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        path.append(words[0])
        if re.fullmatch(PLACEHOLDER, words[0]):
            return path, command, []  # any command: nothing more can be said
        inner = command.get_command(click.Context(command), words[0])
        if inner is None:
            raise WrongError(f"no command {words[0]}")
        command, words = inner, words[1:]
    return path, command, words


def _read_hubbub(words: list[str]) -> None:
    """Options are its own and, but for the last, have their values; arguments are not too many.

    What a sentence leaves out is left out: `hubbub preview` in a sentence need not say of which device.
    """
    _, command, rest = _follow(words)
    for parameter, word in _pairs(command, rest):
        _read_value(parameter, word)
    if command.name == "simulate" and rest and not rest[0].startswith("-"):
        _read_experiment(rest[0])


def _pairs(command: click.Command, words: list[str]) -> Iterator[tuple[click.Parameter, str | None]]:
    """Each argument and option that is given, with its value if it has one."""
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
            if option.is_flag:
                yield option, None
            for _ in range(0 if option.is_flag else option.nargs):
                yield option, next(rest, None)
        else:
            argument = next(places, None)
            if argument is None and not any(each.nargs < 0 for each in arguments):
                raise WrongError(f"one argument too many: {word}")
            if argument is not None:
                yield argument, word


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
