"""Public names are pinned: one more or one less is a decision, and this is where it shows."""

import importlib
import pkgutil

import pytest

PUBLIC = {
    "hubbub.shared": {
        "Batch", "HubbubError", "Metric", "ParameterError", "Problem", "Registry", "RegistryError", "Report",
        "Response", "Secret", "UnknownMetricError", "UnreadableError", "ValueRefusedError", "WireError", "decode_batch",
        "encode_batch",
    },
    "hubbub.client": {
        "AsyncClient", "Client", "CopiedStateError", "Cost", "DEFAULT_MAX_EPSILON", "Pending", "SecretLostError",
        "StateError", "Stats", "privatize",
    },
    "hubbub.client.testing": {"FrozenClock", "InMemoryCollector"},
    "hubbub.collector": {"Estimates", "Tally", "create_app", "decode"},
    "hubbub.collector.charts": {"Axis", "Figure", "Form", "Look", "Panel", "Series", "draw"},
    "hubbub.simulations.audit": {"Audit", "audit"},
    "hubbub.simulations": {"Devices", "Life", "Simulated", "Work", "simulate_devices", "simulate_tally"},
}  # fmt: skip


@pytest.mark.parametrize("package", list(PUBLIC))
def test_exports_are_pinned(package: str) -> None:
    module = importlib.import_module(package)
    assert set(module.__all__) == PUBLIC[package]
    assert all(hasattr(module, name) for name in module.__all__)


def test_every_module_imports_on_its_own() -> None:
    """Each in turn, whatever was imported before: no module may rely on another's side effects."""
    import hubbub

    names = [module.name for module in pkgutil.walk_packages(hubbub.__path__, "hubbub.")]
    assert {"hubbub.shared.permanent", "hubbub.shared.instantaneous", "hubbub.shared.encode.bloom"} <= set(names)
    for name in names:
        importlib.import_module(name)


def test_every_error_is_a_hubbub_error() -> None:
    import inspect

    from hubbub.shared import errors

    tree = errors.__doc__ or ""
    for name, error in inspect.getmembers(errors, inspect.isclass):
        if issubclass(error, Exception):
            assert issubclass(error, errors.HubbubError)
            assert name in tree
