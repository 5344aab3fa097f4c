"""The registry: what is accepted, what each mistake is told, and that nothing else can come out of it."""

import contextlib
import dataclasses
import datetime
import math
import pickle
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hubbub.client import privatize
from hubbub.shared import HubbubError, Metric, Registry, RegistryError, UnknownMetricError
from hubbub.shared.encode import Bit, Bloom, Bucket, OneHot, Rounding
from hubbub.shared.response import Response
from shared.registries import EXAMPLE, example, one_metric, text_of

STRING = {"kind": '"string"', "every": '"day"', "bits": "128", "hashes": "1", "cohorts": "64", "lifetime_values": "8"}
STRING["privacy"] = "{ report = 1.0, lifetime = 4.0 }"
CATEGORY = {"kind": '"category"', "every": '"day"', "categories": '["a", "b"]', "privacy": STRING["privacy"]}
FLAG = {"kind": '"flag"', "every": '"day"', "privacy": STRING["privacy"]}
MEAN = {"kind": '"mean"', "every": '"day"', "low": "0", "high": "10", "privacy": STRING["privacy"]}
HISTOGRAM = {"kind": '"histogram"', "every": '"day"', "edges": "[0, 1, 2]", "sent": "2", "privacy": STRING["privacy"]}
ALL = {"string": STRING, "category": CATEGORY, "flag": FLAG, "mean": MEAN, "histogram": HISTOGRAM}


def problems_of(keys: dict[str, str]) -> list[tuple[str | None, str]]:
    with pytest.raises(RegistryError) as caught:
        one_metric(**keys)
    for problem in caught.value.problems:
        assert problem.metric == "it"
        assert str(problem) in str(caught.value)
        assert "; allowed: " in str(problem)
    return [(problem.key, str(problem)) for problem in caught.value.problems]


def test_the_example_means_what_it_says() -> None:
    registry = example()
    assert list(registry) == [
        "homepage", "homepage_classic", "theme", "crashed", "minutes_used", "startup_ms", "language", "newcomer",
    ]  # fmt: skip
    assert registry["homepage"].encoding == Bloom(128, 1, 64)
    assert registry["homepage"].response == Response.least_variance(1.0, 4.0, ((1, 1),))
    assert registry["homepage"].lifetime_values == 8
    assert registry["homepage_classic"].response == Response.rappor(0.5, 0.5, 0.75)
    assert registry["homepage_classic"].lifetime_values is None
    assert registry["theme"].encoding == OneHot(("light", "dark", "system"))
    assert registry["theme"].lifetime_values == 4
    assert registry["crashed"].encoding == Bit()
    assert registry["crashed"].lifetime_values == 2
    assert registry["minutes_used"].encoding == Rounding(0.0, 1440.0)
    assert registry["minutes_used"].response == Response.flipping(1.0, 0.1, ((1, 0), (0, 1)))
    assert registry["minutes_used"].combine == "sum"
    assert isinstance(registry["startup_ms"].encoding, Bucket)
    assert registry["startup_ms"].encoding.sent == 4
    assert registry["startup_ms"].lifetime_values == 5
    assert registry["startup_ms"].combine == "last"
    language = registry["language"]
    assert (language.version, language.owner, language.expires) == (3, "localisation", datetime.date(2031, 12, 31))
    assert language.response == Response.rappor(0.5)
    assert language.lifetime_values == 1
    assert registry["newcomer"].response == Response.one_time(1.0, ((1, 0), (0, 1)))


@pytest.mark.parametrize(
    ("kind", "every", "privacy"),
    [
        ("string", "week", "{ f = 0.5, p = 0.25, q = 0.75 }"),
        ("category", "once", "{ epsilon = 2 }"),
        ("category", "day", "{ f = 0.5, p = 0.25, q = 0.75 }"),
        ("flag", "once", "{ f = 0.5 }"),
        ("mean", "week", "{ report = 0.5, lifetime = 1 }"),
        ("mean", "once", "{ epsilon = 2 }"),
        ("mean", "once", "{ epsilon = 2, gamma = 0 }"),
        ("histogram", "day", "{ epsilon = 2, gamma = 0.1 }"),
        ("histogram", "once", "{ epsilon = 2 }"),
    ],
)
def test_every_form_of_privacy(kind: str, every: str, privacy: str) -> None:
    keys = ALL[kind] | {"every": f'"{every}"', "privacy": privacy}
    if every == "once":
        keys.pop("lifetime_values", None)
    assert one_metric(**keys).every == every


@pytest.mark.parametrize(
    ("kind", "change", "key", "words"),
    [
        ("string", {"kind": '"text"'}, "kind", "allowed: string, category, flag, mean, histogram"),
        ("string", {"kind": None}, "kind", "is missing"),
        ("string", {"every": '"hour"'}, "every", "allowed: once, day, week"),
        ("string", {"description": '"  "'}, "description", "non-empty"),
        ("string", {"description": "7"}, "description", "is 7"),
        ("string", {"bits": "0"}, "bits", "an integer from 1 to 4096"),
        ("string", {"bits": "4097"}, "bits", "is 4097"),
        ("string", {"bits": "true"}, "bits", "an integer"),
        ("string", {"bits": "12.5"}, "bits", "an integer"),
        ("string", {"bits": "8", "hashes": "9"}, "hashes", "more than the 8 bits"),
        ("string", {"hashes": "0"}, "hashes", "from 1"),
        ("string", {"cohorts": "0"}, "cohorts", "from 1 to 1024"),
        ("string", {"cohorts": "1025"}, "cohorts", "from 1 to 1024"),
        ("string", {"cohorts": "48"}, "cohorts", "a power of two"),
        ("string", {"lifetime_values": None}, "lifetime_values", "must decide"),
        ("string", {"lifetime_values": "0"}, "lifetime_values", "from 1"),
        ("string", {"lifetime_values": '"many"'}, "lifetime_values", "'many'"),
        ("string", {"version": "0"}, "version", "from 1"),
        ("string", {"owner": "1"}, "owner", "string"),
        ("string", {"expires": '"soon"'}, "expires", "a date"),
        ("string", {"expires": "2030-01-01T00:00:00"}, "expires", "a date"),
        ("string", {"colour": '"red"'}, "colour", "not known here; allowed: bits, cohorts, default"),
        ("string", {"combine": '"sum"'}, "combine", "not known here"),
        ("string", {"every": '"once"', "privacy": "{ f = 0.5 }"}, "lifetime_values", "not known here"),
        ("string", {"privacy": None}, "privacy", "is missing"),
        ("string", {"privacy": "1.0"}, "privacy", "a table"),
        ("string", {"privacy": "{}"}, "privacy", "{ report, lifetime } or { f, p, q }"),
        ("string", {"privacy": "{ epsilon = 1, gamma = 0.1 }"}, "privacy", "for a string metric"),
        ("string", {"privacy": "{ report = 1 }"}, "privacy", "is { report }"),
        ("string", {"privacy": "{ report = 4, lifetime = 4 }"}, "privacy", "report = 4.0"),
        ("string", {"privacy": "{ report = 5, lifetime = 4 }"}, "privacy", "below lifetime"),
        ("string", {"privacy": "{ report = 0, lifetime = 4 }"}, "privacy", "above 0"),
        ("string", {"privacy": "{ report = nan, lifetime = 4 }"}, "privacy.report", "is nan"),
        ("string", {"privacy": "{ report = 1, lifetime = inf }"}, "privacy.lifetime", "is inf"),
        ("string", {"privacy": '{ report = "1", lifetime = 4 }'}, "privacy.report", "finite number"),
        ("string", {"privacy": "{ f = 1.0, p = 0.5, q = 0.75 }"}, "privacy", "f = 1.0"),
        ("string", {"privacy": "{ f = 0.0, p = 0.5, q = 0.75 }"}, "privacy", "f = 0.0"),
        ("string", {"privacy": "{ f = 1.5, p = 0.5, q = 0.75 }"}, "privacy", "f = 1.5"),
        ("string", {"privacy": "{ f = 0.5, p = 0.5, q = 0.5 }"}, "privacy", "q = 0.5"),
        ("string", {"privacy": "{ f = 0.5, p = -0.5, q = 0.5 }"}, "privacy", "p = -0.5"),
        ("category", {"categories": '["a"]'}, "categories", "a list of 2 to 4096"),
        ("category", {"categories": '["a", "a"]'}, "categories", "twice"),
        ("category", {"categories": '["caf\\u00e9", "cafe\\u0301"]'}, "categories", "twice"),
        ("category", {"categories": '["a", ""]'}, "categories", "none empty"),
        ("category", {"categories": '["a", 2]'}, "categories", "strings"),
        ("category", {"categories": '"ab"'}, "categories", "a list"),
        ("category", {"lifetime_values": "4"}, "lifetime_values", "from 1 to 3"),
        ("category", {"default": '"c"'}, "default", "not one of the declared categories"),
        ("flag", {"default": "0"}, "default", "allowed: True or False"),
        ("mean", {"default": "1e9"}, "default", "outside the range"),
        ("mean", {"default": "nan"}, "default", "NaN or infinite"),
        ("string", {"default": '""'}, "default", "empty"),
        ("mean", {"privacy": "{ epsilon = 1, gamma = 0 }"}, "privacy", "no instantaneous noise"),
        ("string", {"privacy": "{ f = 0.5, p = 0.0, q = 1.0 }"}, "privacy", "no instantaneous noise"),
        ("string", {"hashes": "8", "privacy": "{ f = 0.00002, p = 0.001, q = 0.999 }"}, "privacy", "for one report"),
        ("string", {"hashes": "2", "privacy": "{ f = 0.00002, p = 0.4, q = 0.6 }"}, "privacy", "for a lifetime"),
        ("flag", {"lifetime_values": '"unlimited"'}, "lifetime_values", "from 1 to 2"),
        ("flag", {"bits": "1"}, "bits", "not known here"),
        ("flag", {"privacy": "{ epsilon = 1 }"}, "privacy", 'every = "day"'),
        ("mean", {"low": "10"}, "high", "above low"),
        ("mean", {"low": "11"}, "high", "above low"),
        ("mean", {"low": "-1e308", "high": "1.7e308"}, "high", "not beyond floats"),
        ("mean", {"low": "nan"}, "low", "is nan"),
        ("mean", {"high": "inf"}, "high", "is inf"),
        ("mean", {"high": "0x" + "f" * 2000}, "high", "finite number"),
        ("mean", {"high": "0x" + "f" * 9000}, "high", "a very large int"),
        ("mean", {"combine": '"median"'}, "combine", "allowed: last, sum, max, mean"),
        ("mean", {"privacy": "{ epsilon = 1, gamma = 0.5 }"}, "privacy", "gamma = 0.5"),
        ("mean", {"privacy": "{ f = 0.5, p = 0.5, q = 0.75 }"}, "privacy", "for a mean metric"),
        ("histogram", {"edges": "[0, 2, 1]"}, "edges", "not sorted"),
        ("histogram", {"edges": "[0, 1, 1]"}, "edges", "same edge twice"),
        ("histogram", {"edges": "[0, 1]"}, "edges", "a list of 3 to 4097"),
        ("histogram", {"edges": "[0, 1, nan]"}, "edges", "finite numbers"),
        ("histogram", {"edges": "[0, 1, inf]"}, "edges", "finite numbers"),
        ("histogram", {"sent": "0"}, "sent", "from 1"),
        ("histogram", {"sent": "3"}, "sent", "more than the 2 buckets"),
        ("histogram", {"sent": "1", "cohorts": "1"}, "cohorts", "nobody observes"),
        ("histogram", {"edges": str(list(range(1100))), "sent": "1"}, "sent", "nobody observes"),
        ("histogram", {"cohorts": "3"}, "cohorts", "a power of two"),
    ],
)
def test_each_mistake_is_named(kind: str, change: dict[str, str | None], key: str, words: str) -> None:
    keys = {name: value for name, value in (ALL[kind] | change).items() if value is not None}
    [(found, message)] = problems_of(keys)
    assert found == key
    assert words in message


def test_all_problems_are_told_at_once() -> None:
    text = """
    colour = "red"
    [metrics.Bad-Name]
    description = "x"
    kind = "flag"
    every = "day"
    privacy = { report = 1, lifetime = 2 }
    [metrics.one]
    kind = "string"
    every = "hour"
    bits = 5000
    hashes = 0
    cohorts = 3
    [metrics.two]
    description = "fine"
    kind = "flag"
    every = "day"
    privacy = { report = 1, lifetime = 2 }
    """
    with pytest.raises(RegistryError) as caught:
        Registry.parse(text, source="metrics.toml")
    places = [(problem.metric, problem.key) for problem in caught.value.problems]
    assert places == [
        (None, "colour"),
        ("Bad-Name", None),
        ("one", "description"),
        ("one", "every"),
        ("one", "bits"),
        ("one", "hashes"),
        ("one", "cohorts"),
        ("one", "privacy"),
    ]
    assert all(line.startswith("metrics.toml: ") for line in str(caught.value).splitlines())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "at least one"),
        ("metrics = 3", "not a table"),
        ("[metrics]", "empty"),
        ("[metrics]\nhomepage = 3", "[metrics.homepage] and the metric's keys"),
        ("[metrics.a\n", "not TOML"),
        ("[metrics.a]\n[metrics.a]\n", "not TOML"),
        ("a = " + "9" * 5000, "not TOML"),
        ("a = " + "[" * 100_000, "not TOML"),
        ("a = 2026-13-45", "not TOML"),
    ],
)
def test_texts_that_are_no_registry(text: str, words: str) -> None:
    with pytest.raises(RegistryError) as caught:
        Registry.parse(text)
    assert words in str(caught.value)


def test_files_that_are_no_registry(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b"# caf\xe9")
    for path, words in [(tmp_path / "none.toml", "No such file"), (tmp_path, "directory"), (latin, "byte 5 is 0xe9")]:
        with pytest.raises(RegistryError, match="a readable TOML file") as caught:
            Registry.load(path)
        assert words in str(caught.value)
        assert str(caught.value).startswith(str(path))


def test_load_reads_what_parse_reads(tmp_path: Path) -> None:
    path = tmp_path / "metrics.toml"
    path.write_text(EXAMPLE)
    assert Registry.load(path) == Registry.load(str(path)) == example()
    assert Registry.parse(example().text) == example()


def test_an_unknown_metric_is_named_with_what_there_is() -> None:
    with pytest.raises(UnknownMetricError, match=r'^metric "nope" is not in the registry; allowed: homepage, '):
        example()["nope"]
    assert "nope" not in example()
    assert example().get("nope") is None
    assert repr(example()).startswith("Registry(homepage, ")


def test_metrics_cannot_be_changed() -> None:
    metric = example()["homepage"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        metric.version = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        metric.response.p1 = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        example()["homepage"] = metric  # type: ignore[index]


def test_registries_travel_to_other_processes() -> None:
    again = pickle.loads(pickle.dumps(example()))
    assert again == example()
    assert again.text == example().text
    assert privatize(again["language"], "eo", bytes(32)).bits == privatize(example()["language"], "eo", bytes(32)).bits


class TestMaxEpsilon:
    """The most that one device may spend, which the registry states for itself."""

    def test_is_read(self) -> None:
        assert example().max_epsilon is None
        limited = Registry.parse("max_epsilon = 40\n" + text_of(STRING))
        assert limited.max_epsilon == 40
        assert limited["it"].max_epsilon == pytest.approx(8 * limited["it"].epsilon(math.inf))

    @pytest.mark.parametrize(
        ("limit", "change", "expected"),
        [
            ("31", {}, "the values of one device can cost 31.99"),
            ("1e9", {"lifetime_values": '"unlimited"'}, "exceeds any max_epsilon"),
            ("0", {}, "a number above 0"),
            ("-1", {}, "a number above 0"),
            ("nan", {}, "a number above 0"),
            ("true", {}, "a number above 0"),
            ('"much"', {}, "a number above 0"),
        ],
    )
    def test_metrics_that_could_exceed_it_are_refused(self, limit: str, change: dict[str, str], expected: str) -> None:
        with pytest.raises(RegistryError, match=expected):
            Registry.parse(f"max_epsilon = {limit}\n" + text_of(STRING | change))


class TestFingerprint:
    def test_is_the_same_for_ever(self) -> None:
        """A change of these lines refuses to start every collector that has stored them: raise the version instead."""
        assert {name: metric.fingerprint[:16] for name, metric in example().items()} == {
            "homepage": "625101204f2020de",
            "homepage_classic": "28b140407ef8b896",
            "theme": "1c79175f96aada57",
            "crashed": "7d15315b320b0174",
            "minutes_used": "88777bcf1f7fc388",
            "startup_ms": "0b129597c22ecbf0",
            "language": "89571c37d6b5bac0",
            "newcomer": "c8e86d6c46e0215d",
        }

    @pytest.mark.parametrize(
        ("kind", "change"),
        [
            ("string", {"bits": "64"}),
            ("string", {"hashes": "2"}),
            ("string", {"cohorts": "32"}),
            ("string", {"lifetime_values": "9"}),
            ("string", {"privacy": "{ report = 1.0, lifetime = 4.01 }"}),
            ("string", {"every": '"week"'}),
            ("string", {"version": "2"}),
            ("category", {"categories": '["b", "a"]'}),
            ("mean", {"high": "11"}),
            ("mean", {"combine": '"max"'}),
            ("histogram", {"edges": "[0, 1, 3]"}),
            ("histogram", {"sent": "1"}),
            ("flag", {"default": "false"}),
        ],
    )
    def test_changes_with_whatever_gives_a_report_its_meaning(self, kind: str, change: dict[str, str]) -> None:
        assert one_metric(**ALL[kind] | change).fingerprint != one_metric(**ALL[kind]).fingerprint

    @pytest.mark.parametrize("change", [{"description": '"new"'}, {"owner": '"us"'}, {"expires": "2040-01-01"}])
    def test_stays_with_whatever_does_not(self, change: dict[str, str]) -> None:
        assert one_metric(**STRING | change).fingerprint == one_metric(**STRING).fingerprint


toml_values = st.recursive(
    st.one_of(
        st.integers().map(str),
        st.floats().map(repr),
        st.booleans().map(lambda truth: str(truth).lower()),
        st.text(string.ascii_letters, max_size=8).map(lambda text: f'"{text}"'),
        st.sampled_from(["2026-11-16", '"string"', '"flag"', '"mean"', '"day"', '"once"', '"unlimited"', "64", "0.5"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: "[" + ", ".join(items) + "]"),
        st.dictionaries(
            st.sampled_from(["f", "p", "q", "report", "lifetime", "epsilon", "gamma", "x"]), inner, max_size=3
        ).map(lambda table: "{ " + ", ".join(f"{key} = {value}" for key, value in table.items()) + " }"),
    ),
    max_leaves=6,
)
toml_keys = st.sampled_from(
    ["description", "kind", "every", "bits", "hashes", "cohorts", "lifetime_values", "privacy", "categories", "low",
     "high", "combine", "edges", "sent", "version", "owner", "expires", "other"]
)  # fmt: skip
toml_tables = st.dictionaries(
    st.sampled_from(["metrics.a", "metrics.b", "metrics", "other", "metrics.A"]),
    st.dictionaries(toml_keys, toml_values, max_size=9),
    max_size=3,
)


def parse_or_refuse(text: str) -> None:
    try:
        registry = Registry.parse(text)
    except HubbubError:
        return
    assert all(isinstance(metric, Metric) for metric in registry.values())


@settings(max_examples=400)
@given(toml_tables)
def test_random_toml_gives_a_registry_or_our_error(tables: dict[str, dict[str, str]]) -> None:
    lines = []
    for name, keys in tables.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in keys.items())]
    parse_or_refuse("\n".join(lines))


@settings(max_examples=300)
@given(st.text())
def test_random_text_gives_a_registry_or_our_error(text: str) -> None:
    parse_or_refuse(text)


@settings(max_examples=200)
@given(contents=st.binary())
def test_random_bytes_give_a_registry_or_our_error(contents: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "random.toml"
    path.write_bytes(contents)
    with contextlib.suppress(HubbubError):
        Registry.load(path)


@settings(max_examples=300)
@given(kind=st.sampled_from(sorted(ALL)), key=toml_keys, value=toml_values)
def test_one_random_key_in_a_good_metric_gives_a_registry_or_our_error(kind: str, key: str, value: str) -> None:
    lines = [f"{name} = {good}" for name, good in ({"description": '"it"'} | ALL[kind] | {key: value}).items()]
    parse_or_refuse("\n".join(["[metrics.it]", *lines]))
