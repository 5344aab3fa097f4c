"""The interface does what its description says, also to those who do not do what it says."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from openapi_spec_validator import validate
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.hooks import HookContext

from collector.served import TOKEN, Served, serving
from shared.registries import EXAMPLE

pytestmark = pytest.mark.unmeasured

SEED = 20311231
FEW, MANY = 6, 150
"""Examples of each operation, besides those that each word of the description asks for."""

HTTP_ITSELF = {"connection", "content-length", "expect", "host", "te", "transfer-encoding", "upgrade"}
"""Headers that the server answers to before the collector sees the request; `test_hostile.py` sends these."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A collector for all tests of this file."""
    folder = tmp_path_factory.mktemp("served")
    with serving(folder, f"sqlite:///{folder}/hubbub.db", registry=EXAMPLE) as up:
        yield up


def configured(examples: int, token: str | None) -> SchemathesisConfig:
    settings: dict[str, Any] = {
        "seed": SEED,
        "cache": {"enabled": False},
        "generation": {"deterministic": True, "max-examples": examples, "database": "none"},
        # Not all that fits the schemas is taken: a schema cannot say that start is not after end, or that 1.0 is no 1.
        "checks": {"positive_data_acceptance": {"enabled": False}},
    }
    if token is not None:
        settings["headers"] = {"Authorization": f"Bearer {token}"}
    return SchemathesisConfig.from_dict(settings)


def without_http_itself(context: HookContext, headers: Any) -> Any:
    return headers and {name: value for name, value in headers.items() if name.lower() not in HTTP_ITSELF}


def faults(served: Served, examples: int, token: str | None) -> tuple[list[str], Counter[int]]:
    """Send what the description brings to mind, and give what was wrong, and how often each status was answered."""
    schema = schemathesis.openapi.from_url(f"{served.url}/openapi.json", config=configured(examples, token))
    schema.hook("map_headers")(without_http_itself)
    found: list[str] = []
    statuses: Counter[int] = Counter()
    for event in from_schema(schema).execute():
        if isinstance(event, events.NonFatalError | events.FatalError):
            found.append(repr(event))
        if isinstance(event, events.ScenarioFinished):
            recorder = event.recorder
            answers = [each.response for each in recorder.interactions.values()]
            statuses.update(answer.status_code for answer in answers if answer is not None)
            failures = [check.failure_info for checks in recorder.checks.values() for check in checks]
            found += [f"{recorder.label}: {each.failure}\n{each.code_sample}" for each in failures if each is not None]
    return found, statuses


def test_the_description_is_openapi(served: Served) -> None:
    validate(served.get("/openapi.json").json())


@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_answers_are_as_described_with_the_token(served: Served, examples: int) -> None:
    found, statuses = faults(served, examples, TOKEN)
    assert not found, "\n\n".join(found)
    assert {200, 204, 400, 404, 415, 422} <= statuses.keys()
    assert max(statuses) < 500


@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_answers_are_as_described_without_the_token(served: Served, examples: int) -> None:
    found, statuses = faults(served, examples, None)
    assert not found, "\n\n".join(found)
    assert {200, 401, 415, 422} <= statuses.keys()
    assert max(statuses) < 500
