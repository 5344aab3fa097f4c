"""The documentation is true: links lead somewhere, examples run, and tables say what the code says."""

import html
import importlib
import inspect
import json
import re
import tomllib
from pathlib import Path

import click
import pytest

from docs.pages import ROOT, blocks, code_words, page, rows, table
from hubbub.client import DEFAULT_MAX_EPSILON, AsyncClient, Client, outbox
from hubbub.client.client import EXIT_SECONDS
from hubbub.client.consent import VARIABLES
from hubbub.client.registries import MAX_FETCHED_VERSION
from hubbub.collector import front
from hubbub.collector.acceptance import REASONS
from hubbub.collector.candidates import MAX_CANDIDATES, MAX_CANDIDATES_BYTES, MEDIA_TYPES
from hubbub.collector.collector import CLOCK_DAYS, PURGE_SECONDS
from hubbub.collector.decode import DEFAULT_CONTROL, diagnostics
from hubbub.collector.decode.estimates import Row
from hubbub.collector.monitoring import Monitoring
from hubbub.collector.openapi import document
from hubbub.collector.refusal import CODES
from hubbub.collector.settings import MIN_SECRET, SETTINGS, read_settings
from hubbub.collector.store.schema import metadata
from hubbub.collector.writer import LINGER, MAX_GROUP, MAX_LINGER_SECONDS
from hubbub.shared import Registry, RegistryError, decode_batch
from hubbub.shared.command_line import hubbub
from hubbub.shared.encode.rounding import GRID
from hubbub.shared.kinds import EVEN_ENOUGH
from hubbub.shared.metric import COMBINE, KINDS
from hubbub.shared.planning import ALPHA, DEFAULT_MIN_COHORT_REPORTS, MIN_COHORT_DEVICES, POWER
from hubbub.shared.privacy import Promise
from hubbub.shared.promise import forms_of
from hubbub.shared.registry import DEFAULT_COMBINE, DEFAULT_VERSION
from hubbub.shared.response import MAX_EPSILON
from hubbub.shared.text import MAX_TEXT_BYTES
from hubbub.shared.wire import MAX_BATCH_BYTES, MAX_BITS, MAX_COHORTS, MAX_NAME, MAX_REPORTS, MAX_VERSION
from hubbub.simulations import gallery
from hubbub.simulations.experiments import NAMES, experiment
from test_public_names import PUBLIC


def test_registries_in_the_docs_are_good() -> None:
    for name in ("README.md", "docs/registry.md"):
        for block in blocks(name, "toml"):
            Registry.parse(block)


def test_the_gallery_shows_every_experiment_as_its_data_have_it() -> None:
    figures = ROOT / "docs" / "figures"
    assert page("docs/gallery.md") == gallery.page(figures)
    assert {path.name for path in figures.iterdir()} == {f"{name}{form}" for name in NAMES for form in gallery.KEPT}
    for name in NAMES:
        document = json.loads((figures / f"{name}.json").read_text(encoding="utf-8"))
        found = experiment(name)
        assert (document["title"], document["setting"]) == (found.title, found.setting)
        sizes = (document["devices"], document["trials"], document["seed"])
        assert sizes == (found.devices, found.trials, gallery.SEED)
        assert html.escape(document["caption"], quote=False) in (figures / f"{name}.svg").read_text(encoding="utf-8")


def test_the_analyst_is_told_every_field_and_every_diagnostic() -> None:
    page = (ROOT / "docs/analyst.md").read_text(encoding="utf-8")
    first = [cell for line in page.splitlines() if line.startswith("| `") for cell in [line.split("|")[1]]]
    told = {name for cell in first for name in re.findall(r"`(\w+)`", cell)}
    looks = set(re.findall(r'Diagnostic\(\s*"(\w+)"', inspect.getsource(diagnostics)))
    assert told == set(Row.__struct_fields__) | looks
    assert f"`{DEFAULT_CONTROL}`, the default" in page
    assert (diagnostics.EXPLAINED, diagnostics.LISTED, diagnostics.FEW_REPORTS) == (0.5, 0.9, 100)
    assert (diagnostics.ALARM, "once in 10,000 looks" in page) == (1e-4, True)


def test_the_batch_in_the_docs_is_good() -> None:
    [block] = blocks("docs/design/wire.md", "json")
    [report] = decode_batch(block.encode()).reports
    assert len(report.bits) == 16


MINIMAL = {
    "string": "bits = 8\nhashes = 1\ncohorts = 1\nlifetime_values = 1",
    "category": 'categories = ["a", "b"]',
    "flag": "",
    "mean": "low = 0\nhigh = 1",
    "histogram": "edges = [0, 1, 2]\nsent = 2",
}


def known_keys(kind: str) -> set[str]:
    """The keys that the registry itself says it knows for a kind."""
    text = f'[metrics.m]\ndescription = "m"\nkind = "{kind}"\nevery = "day"\nnonsense = 1\n{MINIMAL[kind]}\n'
    with pytest.raises(RegistryError) as caught:
        Registry.parse(text + "privacy = { report = 1, lifetime = 2 }")
    [problem] = caught.value.problems
    return set(problem.allowed.split(", "))


def test_every_registry_key_is_documented_and_no_other() -> None:
    text = page("docs/registry.md")
    common, of_kinds, *_ = text.split("\n## Keys of ")[1:]
    documented = {kind: {code_words(row[0])[0] for row in rows(common)} for kind in KINDS}
    for row in rows(of_kinds.split("\n## Privacy")[0]):
        for kind in code_words(row[0]):
            documented[kind].update(code_words(row[1]))  # type: ignore[index]
    assert documented == {kind: known_keys(kind) for kind in KINDS}


def test_every_form_of_privacy_is_documented_and_no_other() -> None:
    documented = set()
    for form, kinds, every, _ in rows(page("docs/registry.md").split("\n## Privacy")[1]):
        keys = tuple(code_words(form)[0].strip("{ }").split(", "))
        for kind in KINDS if kinds == "all" else code_words(kinds):
            for each in ("once", "day", "week") if every == "any" else code_words(every):
                documented.add((kind, each, keys))
    known = {
        (kind, every, form) for kind in KINDS for every in ("once", "day", "week") for form in forms_of(kind, every)
    }
    assert documented == known


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("docs/registry.md", f"| an integer from 1 | {DEFAULT_VERSION} |"),
        ("docs/registry.md", f"| `{DEFAULT_COMBINE}` |"),
        ("docs/registry.md", ", ".join(f"`{word}`" for word in COMBINE[:-1]) + f" or `{COMBINE[-1]}`"),
        ("docs/registry.md", f"1 to {MAX_BITS}"),
        ("docs/registry.md", f"3 to {MAX_BITS + 1} numbers"),
        ("docs/registry.md", f"a power of two from 1 to {MAX_COHORTS}"),
        ("docs/registry.md", f"each at least {EVEN_ENOUGH} times"),
        ("docs/registry.md", f"at most {MAX_EPSILON:g}"),
        ("docs/registry.md", f"1 to {MAX_NAME} of"),
        ("docs/app-developer.md", f"1 to {MAX_TEXT_BYTES} bytes"),
        ("docs/app-developer.md", f"or {DEFAULT_MAX_EPSILON:g}"),
        ("docs/app-developer.md", f"versions above {MAX_FETCHED_VERSION}"),
        ("docs/decisions/values.md", f"{MAX_TEXT_BYTES} bytes"),
        ("docs/decisions/rounding-adds-noise.md", f"above {MAX_EPSILON:g}"),
        ("docs/design/encoding.md", f"longer than {MAX_TEXT_BYTES} bytes"),
        ("docs/design/encoding.md", f"M = 2^{GRID.bit_length() - 1}"),
        ("docs/design/wire.md", f"at most {MAX_REPORTS:,}"),
        ("docs/design/wire.md", f"at most {MAX_BATCH_BYTES:,} bytes"),
        ("docs/design/wire.md", f"1 to {MAX_VERSION}"),
        ("docs/design/wire.md", f"0 to {MAX_COHORTS - 1}"),
        ("docs/design/wire.md", f"1 to {MAX_BITS // 8} bytes"),
        ("docs/operator.md", f"{MAX_BATCH_BYTES:,} bytes and {MAX_REPORTS:,} reports"),
        ("docs/operator.md", f"at most {MAX_CANDIDATES:,} of them and {MAX_CANDIDATES_BYTES >> 20} MiB"),
        ("docs/operator.md", f"took more than {front.BODY_SECONDS:g} s to arrive"),
        ("docs/operator.md", f"did not within {front.COMMIT_SECONDS:g} s"),
        ("docs/operator.md", f"at least {MIN_SECRET} characters"),
        ("docs/operator.md", {2: "refused for two days"}[CLOCK_DAYS]),
        ("docs/operator.md", {3600: "once an hour"}[int(PURGE_SECONDS)]),
        *(("docs/operator.md", f"(`{media_type}`)") for media_type in MEDIA_TYPES),
        ("docs/design/data-model.md", f"up to {MAX_GROUP},"),
        ("docs/decisions/group-commit.md", f"at most {MAX_LINGER_SECONDS * 1000:g} ms"),
        ("docs/decisions/group-commit.md", {0.5: "half the time of the\n  last commit"}[LINGER]),
        ("docs/app-developer.md", f"at most {EXIT_SECONDS:g} s"),
        ("docs/app-developer.md", f"within {outbox.MAX_AGE_SECONDS / 86400:g} days"),
        ("docs/app-developer.md", f"more than {outbox.MAX_BATCHES} batches or {outbox.MAX_BYTES >> 20} MiB"),
        ("docs/app-developer.md", f"up to {outbox.LAST_BACKOFF_SECONDS / 3600:g} hours"),
        ("docs/command-line.md", f"A cohort needs {MIN_COHORT_DEVICES} devices"),
        ("docs/command-line.md", f"at least {MIN_COHORT_DEVICES} devices in each cohort"),
        ("docs/operator.md", f"fewer than {MIN_COHORT_DEVICES} devices in a cohort"),
        ("docs/operator.md", f'"fewer than {DEFAULT_MIN_COHORT_REPORTS}"'),
        ("docs/command-line.md", f"{POWER:.0%}".replace("%", " %") + " power"),
        ("docs/command-line.md", f"a chance of {ALPHA:.0%}".replace("%", " %")),
    ],
)
def test_numbers_in_the_docs_are_those_of_the_code(name: str, words: str) -> None:
    assert words in page(name)


def leaves(command: click.Command, path: str = "hubbub") -> dict[str, click.Command]:
    if not isinstance(command, click.Group):
        return {path: command}
    found: dict[str, click.Command] = {}
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        found |= leaves(inner, f"{path} {name}")
    return found


def test_every_command_and_option_is_documented_with_its_default_and_no_other() -> None:
    sections = re.split(r"^## ", page("docs/command-line.md"), flags=re.MULTILINE)[1:]
    documented = {}
    for section in sections:
        head, _, body = section.partition("\n")
        name = " ".join(word for word in head.split() if not word.isupper())
        documented[name] = {code_words(row[0])[0]: row[2] for row in rows(body)} or dict.fromkeys(
            re.findall(r"`(--[a-z-]+)`", body), ""
        )
    commands = leaves(hubbub)
    assert set(documented) == set(commands)
    for name, command in commands.items():
        options = {option.opts[0]: option for option in command.params if isinstance(option, click.Option)}
        assert set(documented[name]) == set(options), name
        for option, told in documented[name].items():
            default = options[option].default
            if options[option].required:
                assert told == "required"
            elif isinstance(default, tuple):
                assert told == " ".join(f"{number:g}" for number in default)
            elif isinstance(default, (int, float)) and not isinstance(default, bool):
                assert told == f"{default:.10g}", option


def test_parameters_and_methods_of_the_client_are_documented() -> None:
    words = set(re.findall(r"\w+", " ".join(code_words(page("docs/app-developer.md")))))
    assert set(inspect.signature(Client).parameters) <= words
    for owner in (Client, AsyncClient):
        assert {name for name in vars(owner) if not name.startswith("_") and name != "after_fork"} <= words
    assert set(VARIABLES) <= words


def test_every_reason_of_a_loss_is_documented_and_no_other() -> None:
    source = "".join(path.read_text() for path in ROOT.glob("client/hubbub/client/*.py"))
    tables = page("docs/app-developer.md").split("| `lost`")[1].split("| `refused`")
    lost, refused = ({code_words(row[0])[0] for row in rows("| head" + table)} for table in tables)
    returned = {
        name: set(re.findall(r'return (?:.* else )?"(\w+)"', (ROOT / f"client/hubbub/client/{name}.py").read_text()))
        for name in ("recording", "ledger", "outbox")
    }
    assert refused == returned["recording"] | returned["ledger"] | set(re.findall(r'_refuse\("(\w+)"\)', source))
    known = set(re.findall(r'(?:drop\(.*|_discard\()"(\w+)"', source)) | returned["outbox"] | returned["ledger"]
    assert {reason for reason in lost if not reason.startswith(("http_", "rejected_"))} == known


def test_every_setting_is_documented_with_its_default_and_no_other() -> None:
    told = {code_words(row[0])[0]: [*row[1:4]] for row in table("docs/operator.md", "| variable |")}
    known = {}
    for setting in SETTINGS:
        flag = "none" if setting.secret else f"`{setting.flag}`"
        default = {None: "none", (): "none", False: "off"}.get(setting.default, str(setting.default))
        known[setting.name] = [flag, f"`{setting.variable}`", "required" if setting.name == "registry" else default]
    assert told == known


def test_flags_of_serve_are_documented_with_their_defaults() -> None:
    section = page("docs/command-line.md").split("## hubbub serve")[1].split("\n## ")[0]
    told = {code_words(row[0])[0]: row[2] for row in rows(section)}
    for setting in SETTINGS:
        if not setting.secret and setting.default not in (None, (), False):
            assert told[setting.flag] == str(setting.default)


def test_every_route_is_documented_and_no_other() -> None:
    told = {code_words(row[0])[0] for row in table("docs/operator.md", "| route |")}
    methods = {"get", "put", "post", "delete"}
    paths = document()["paths"]
    assert told == {f"{each.upper()} {path}" for path, item in paths.items() for each in methods & set(item)}
    for route, who, _ in table("docs/operator.md", "| route |"):
        method, path = code_words(route)[0].split()
        assert (who == "admin token") is (paths[path][method.lower()]["security"] == [{"admin": []}]), route


def test_every_reason_and_code_is_documented_and_no_other() -> None:
    assert [code_words(row[0])[0] for row in table("docs/operator.md", "| reason |")] == list(REASONS)
    told = {code_words(row[0])[0]: int(row[1]) for row in table("docs/operator.md", "| code |")}
    assert told == CODES


def test_every_counter_is_documented_with_its_labels_and_no_other() -> None:
    told = {code_words(row[0])[0]: code_words(row[1]) for row in table("docs/operator.md", "| labels |")}
    known = {}
    for each in vars(Monitoring()).values():
        if hasattr(each, "_labelnames"):
            suffix = "_total" if type(each).__name__ == "Counter" else ""
            known[each._name + suffix] = list(each._labelnames)
    assert told == known


def test_every_table_of_the_store_is_documented_and_no_other() -> None:
    told = {code_words(row[0])[0] for row in table("docs/design/data-model.md", "| table |")}
    assert told == set(metadata.tables)


def test_the_example_configuration_can_be_read(tmp_path: Path) -> None:
    text = page("docs/examples/collector/hubbub.toml").replace("/etc/hubbub/metrics.toml", f"{tmp_path}/metrics.toml")
    (tmp_path / "metrics.toml").write_text(blocks("docs/registry.md", "toml")[0])
    (tmp_path / "hubbub.toml").write_text(text)
    assert read_settings({"config": str(tmp_path / "hubbub.toml")}, {}).keep_days == 730


def test_the_example_unit_and_image_name_what_exists() -> None:
    known = {setting.variable for setting in SETTINGS} | {"HUBBUB_CONFIG"}
    for name in ("hubbub.service", "Containerfile"):
        text = page(f"docs/examples/collector/{name}")
        assert set(re.findall(r"HUBBUB_\w+", text)) <= known
        [command] = re.findall(r"hubbub[\", ]+(serve)\b", text)
        options = {option for each in leaves(hubbub)[f"hubbub {command}"].params for option in each.opts}
        assert set(re.findall(r"serve (--[a-z-]+)", text)) <= options
    unit = dict(re.findall(r"^(\w+)=(.*)$", page("docs/examples/collector/hubbub.service"), re.MULTILINE))
    assert int(unit["TimeoutStopSec"]) > 10


def test_fields_of_privacy_json_are_documented() -> None:
    words = set(code_words(page("docs/command-line.md")))
    assert {field for field in Promise.__struct_fields__ if not field.endswith("_exact")} <= words


def test_every_dependency_has_its_reason_and_no_other() -> None:
    project = tomllib.loads(page("pyproject.toml"))
    requirements = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for group in (project["project"]["optional-dependencies"], project["dependency-groups"]):
        for listed in group.values():
            requirements += listed
    declared = {re.split(r"[\[<>=;]", requirement)[0] for requirement in requirements} - {"hubbub"}
    told = [name for row in rows(page("docs/decisions/dependencies.md")) for name in row[0].split(", ")]
    assert sorted(told) == sorted(declared)


def test_changelog_has_the_headings_it_promises() -> None:
    text = page("CHANGELOG.md")
    assert "\n## [Unreleased]\n" in text
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= {
        "Added",
        "Changed",
        "Deprecated",
        "Removed",
        "Fixed",
        "Security",
    }


def test_the_reference_lists_every_public_name() -> None:
    pages = ROOT.glob("docs/reference/*.md")
    listed = [name for path in pages for name in re.findall(r"^::: (\S+)$", path.read_text(), re.MULTILINE)]
    assert len(listed) == len(set(listed))
    public = {f"{package}.{name}" for package, names in PUBLIC.items() for name in names}
    assert {name for name in listed if not name.startswith("hubbub.simulations.live.")} == public
    for name in listed:
        module, _, last = name.rpartition(".")
        assert hasattr(importlib.import_module(module), last), name


def test_every_erratum_is_on_its_page() -> None:
    told = re.split(r"^### (E\d+): ", page("docs/errata.md").partition("\n## Elsewhere")[0], flags=re.MULTILINE)
    assert told[1::2] == [f"E{number}" for number in range(1, 17)]
    for text in told[2::2]:
        assert "**Where:**" in text
        assert "**Right:**" in text
        assert re.search(r"\*\*Computed by\*\* `test_\w+`", text)


def test_every_computation_of_an_erratum_is_named_on_its_page() -> None:
    tests = re.findall(r'def (test_\w+)\([^\n]*\n    """E\d', page("tests/shared/test_errata.py"))
    assert len(tests) >= 25
    assert set(tests) <= set(code_words(page("docs/errata.md")))


def test_numbers_of_the_comparison_in_the_readme_are_those_of_its_page() -> None:
    """Each number stands in a table of the page, which a benchmark writes."""
    section = page("README.md").partition("## How it compares")[2].partition("## How fast")[0]
    numbers = [
        number
        for row in rows(section)
        for cell in row[1:5]
        for number in re.findall(r"\d+(?:\.\d+)?", cell.rstrip("*"))
    ]
    assert len(numbers) > 12
    told = set(re.findall(r"\d+(?:\.\d+)?", page("docs/comparison.md").replace(",", "")))
    assert set(numbers) <= told
