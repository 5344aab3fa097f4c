"""Settings: from flags, variables and a file, in that order; everything that is wrong is told at once."""

import json
import pickle
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from hubbub.collector.commands import serve as command
from hubbub.collector.errors import SettingsError
from hubbub.collector.settings import SETTINGS, Settings, read_settings
from shared.registries import EXAMPLE

TOKEN = "a-token-that-is-long-enough"


@pytest.fixture
def registry(tmp_path: Path) -> str:
    path = tmp_path / "metrics.toml"
    path.write_text(EXAMPLE)
    return str(path)


def problems(flags: dict[str, object], environment: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        read_settings(flags, environment or {})
    assert str(caught.value).splitlines() == [line for each in caught.value.problems for line in each.splitlines()]
    return list(caught.value.problems)


def test_defaults_are_those_of_the_table(registry: str) -> None:
    settings = read_settings({"registry": registry}, {})
    for setting in SETTINGS:
        if setting.name != "registry":
            assert getattr(settings, setting.name) == setting.default
    assert list(settings.metrics)


def test_a_flag_wins_over_a_variable_and_a_variable_over_a_file(registry: str, tmp_path: Path) -> None:
    file = tmp_path / "hubbub.toml"
    file.write_text(
        'port = 1001\nworkers = 2\ndays_back = 20\ncors_origins = ["https://a.example", "https://b.example"]\n'
    )
    environment = {"HUBBUB_PORT": "1002", "HUBBUB_WORKERS": "3", "HUBBUB_REGISTRY": registry}
    settings = read_settings({"port": "1003", "config": str(file)}, environment)
    assert (settings.port, settings.workers, settings.days_back) == (1003, 3, 20)
    assert settings.cors_origins == ("https://a.example", "https://b.example")
    assert read_settings({}, environment | {"HUBBUB_CONFIG": str(file)}).port == 1002


def test_every_setting_can_be_a_variable_and_a_key_of_the_file(registry: str, tmp_path: Path) -> None:
    given: dict[str, object] = {
        "registry": registry,
        "store": "sqlite:///other.db",
        "host": "::1",
        "port": 1,
        "workers": 2,
        "threads": 3,
        "admin_token": TOKEN,
        "ingest_key": TOKEN[::-1],
        "cors_origins": "*",
        "days_back": 5,
        "days_ahead": 0,
        "keep_days": 400,
        "min_cohort_reports": 25,
        "archive": str(tmp_path / "archive"),
        "archive_reports": 5000,
        "archive_hours": 2,
        "queue": 6,
        "access_log": True,
    }
    assert set(given) == {setting.name for setting in SETTINGS}
    file = tmp_path / "hubbub.toml"
    file.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in given.items()))
    variables = {f"HUBBUB_{name.upper()}": str(value) for name, value in given.items()}
    by_file, by_variable = read_settings({"config": str(file)}, {}), read_settings({}, variables)
    for settings in (by_file, by_variable):
        for name, value in given.items():
            assert getattr(settings, name) == (("*",) if name == "cors_origins" else value)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"port": "abc"}, '--port: "abc" cannot be used; allowed: a whole number from 1 to 65535'),
        ({"port": "0"}, "--port"),
        ({"port": "65536"}, "--port"),
        ({"port": "1" * 400}, "--port"),
        ({"port": "\u0661"}, "--port"),
        ({"workers": "-1"}, "--workers"),
        ({"host": "example.org"}, "an IP address, or localhost"),
        ({"store": "mysql://x"}, '--store: "mysql" is not a kind of store'),
        ({"cors_origins": "example.org"}, "https://HOST for each, or *"),
        ({"cors_origins": "https://example.org/path"}, "https://HOST for each, or *"),
        ({"keep_days": "20"}, "would purge periods that are still open; allowed: at least days_back and a week, 21"),
        ({"min_cohort_reports": "0"}, "a whole number from 1 to 1000000"),
        ({"archive": "memory://a"}, "--archive: memory://a would be gone with the process; allowed: a folder"),
        ({"archive": "nonsense://a"}, "--archive: nonsense://a cannot be used: Protocol not known: nonsense"),
        ({"archive": "gs://no-such-package-here/a"}, "--archive: gs://no-such-package-here/a cannot be used: "),
        ({"archive": "ftp://me:top-secret@[::1/a"}, "--archive: the address cannot be used"),
        ({"archive": __file__}, "is a file; allowed: a folder"),
        ({"archive_reports": "999"}, "a whole number from 1000 to 100000000"),
        ({"archive_hours": "0"}, "a whole number from 1 to 168"),
        ({"access_log": "perhaps"}, "true or false"),
        ({"host": "0.0.0.0"}, "HUBBUB_ADMIN_TOKEN: is not set, and 0.0.0.0 can be reached from elsewhere"),
        ({"host": "::"}, "HUBBUB_ADMIN_TOKEN"),
        ({"config": "/no/such/file"}, "cannot be read"),
    ],
)
def test_a_setting_that_cannot_be_used_is_told(registry: str, flags: dict[str, object], told: str) -> None:
    [problem] = problems({"registry": registry, **flags})
    assert told in problem
    assert "top-secret" not in problem


def test_an_archive_without_its_libraries_is_told_with_the_rest(registry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet", raising=False)
    told = problems({"registry": registry, "archive": "somewhere", "queue": "0"})
    assert len(told) == 2
    assert told[1] == '--archive: needs pyarrow, which is not installed: pip install "hubbub[cluster]"'


def test_the_password_of_an_archive_is_not_shown(registry: str) -> None:
    settings = read_settings({"registry": registry, "archive": "ftp://somebody:top-secret@127.0.0.1:1/a"}, {})
    assert "archive = ftp://somebody:***@127.0.0.1:1/a" in settings.shown()


def test_secrets_that_are_weak_or_the_same_are_refused_and_not_shown(registry: str) -> None:
    [problem] = problems({"registry": registry}, {"HUBBUB_ADMIN_TOKEN": "short-secret"})
    assert "HUBBUB_ADMIN_TOKEN: the value cannot be used" in problem
    assert "short-secret" not in problem
    [problem] = problems({"registry": registry}, {"HUBBUB_ADMIN_TOKEN": TOKEN, "HUBBUB_INGEST_KEY": TOKEN})
    assert "HUBBUB_INGEST_KEY: is the admin token" in problem
    assert TOKEN not in problem


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    bad = tmp_path / "metrics.toml"
    bad.write_text('[metrics.one]\nkind = "flag"\n[metrics.two]\nkind = "nonsense"\n')
    file = tmp_path / "hubbub.toml"
    file.write_text("prot = 8000\nqueue = 0\n")
    told = problems(
        {"registry": str(bad), "config": str(file), "threads": "none"}, {"HUBBUB_PORT": "tcp://10.0.0.1:80"}
    )
    for part in (
        f'{file}, key "prot": is not known; allowed: registry, store',
        f'{file}, key "queue": "0" cannot be used',
        '--threads: "none"',
        'HUBBUB_PORT: "tcp://10.0.0.1:80"',
        'metric "one", key "description"',
        'metric "two", key "kind"',
    ):
        assert any(part in each for each in told), part


def test_a_file_that_is_not_toml_is_told(registry: str, tmp_path: Path) -> None:
    file = tmp_path / "hubbub.toml"
    file.write_bytes(b"port = = 5")
    [problem] = problems({"registry": registry, "config": str(file)})
    assert "is not TOML" in problem


def test_settings_are_shown_without_secrets(registry: str) -> None:
    store = "postgresql://somebody:very-secret@db.example.org/hubbub"
    settings = read_settings({"registry": registry, "store": store}, {"HUBBUB_ADMIN_TOKEN": TOKEN})
    shown = "\n".join(settings.shown())
    assert "admin_token = (set)" in shown
    assert "ingest_key = (not set)" in shown
    assert "somebody:***@db.example.org" in shown
    assert TOKEN not in shown
    assert "very-secret" not in shown
    assert len(settings.shown()) == len(SETTINGS)


def test_settings_reach_processes_that_are_started_afresh(registry: str) -> None:
    settings = read_settings({"registry": registry}, {})
    again: Settings = pickle.loads(pickle.dumps(settings))
    assert again.shown() == settings.shown()
    assert list(again.metrics) == list(settings.metrics)


def test_an_empty_variable_counts_as_not_set(registry: str) -> None:
    assert read_settings({"registry": registry}, {"HUBBUB_PORT": "", "HUBBUB_ADMIN_TOKEN": ""}).port == 8000


def test_the_command_hands_its_flags_on(registry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Settings] = []
    monkeypatch.setattr(command, "run", served.append)
    arguments = ["--registry", registry, "--port", "1234", "--access-log", "--keep-days", "100"]
    assert CliRunner(env={}).invoke(command.serve, arguments).exit_code == 0
    [settings] = served
    assert (settings.port, settings.access_log, settings.keep_days) == (1234, True, 100)


def test_secrets_have_no_flag() -> None:
    """A command line can be read by everybody on the machine."""
    options = {name for option in command.serve.params for name in option.opts}
    assert not options & {"--admin-token", "--ingest-key"}
