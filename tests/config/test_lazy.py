"""Lazy exports: a module is imported when one of its names is first used, and the name means the exported object."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

NAME = "package_with_lazy_exports"
INIT = """
from roboyard.config.lazy import lazy_exports
__getattr__, __dir__ = lazy_exports(
    __name__, {"load": ("load", "check"), "inner.deep": ("Thing",), "roboyard.errors": ("InputError",)},
    submodules=("whole",),
)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    folder = tmp_path / NAME
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text(INIT)
    (folder / "inner" / "__init__.py").touch()
    (folder / "load.py").write_text("def load(): return 'loaded'\ndef check(): return 'checked'\n")
    (folder / "inner" / "deep.py").write_text("class Thing: pass\n")
    (folder / "whole.py").write_text("x = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield NAME
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]


def imported() -> set[str]:
    return {name.removeprefix(f"{NAME}.") for name in sys.modules if name.startswith(f"{NAME}.")}


def test_lazy_module_is_imported_at_first_use(package: str) -> None:
    found = importlib.import_module(package)
    assert imported() == set()
    assert found.Thing.__module__ == f"{NAME}.inner.deep"
    assert imported() == {"inner", "inner.deep"}
    assert found.whole.x == 3
    assert found.check() == "checked"
    assert imported() == {"inner", "inner.deep", "whole", "load"}
    assert found.Thing is found.Thing


def test_lazy_names_of_another_package_are_imported(package: str) -> None:
    from roboyard.errors import InputError

    assert importlib.import_module(package).InputError is InputError


@pytest.mark.parametrize("first", ["module", "name"])
def test_lazy_export_named_as_its_module_is_the_export(package: str, first: str) -> None:
    """Python puts a submodule into its package when it is imported; the exported function must stay in its place."""
    found = importlib.import_module(package)
    if first == "name":
        assert found.load() == "loaded"
    module = importlib.import_module(f"{package}.load")
    assert found.load() == "loaded"
    assert module.load is found.load


def test_lazy_export_named_as_its_module_can_be_replaced(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.import_module(package)
    with monkeypatch.context() as patch:
        patch.setattr(found, "load", lambda: "replaced")
        assert found.load() == "replaced"
    assert found.load() == "loaded"


def test_lazy_package_has_no_other_names(package: str) -> None:
    found = importlib.import_module(package)
    with pytest.raises(AttributeError, match="has no attribute 'loads'"):
        _ = found.loads
    assert {"load", "check", "Thing", "InputError", "whole"} <= set(dir(found))
