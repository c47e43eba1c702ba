"""Lazy exports import a module when one of its names is first used; the name is the exported object."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE_NAME = "package_with_lazy_exports"
PACKAGE_INIT = """
from roboyard.config.lazy import lazy_exports
__getattr__, __dir__ = lazy_exports(
    __name__, {"load": ("load", "check"), "inner.deep": ("Thing",), "roboyard.errors": ("InputError",)},
    submodules=("whole",),
)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    folder = tmp_path / PACKAGE_NAME
    (folder / "inner").mkdir(parents=True)
    (folder / "__init__.py").write_text(PACKAGE_INIT)
    (folder / "inner" / "__init__.py").touch()
    (folder / "load.py").write_text("def load(): return 'loaded'\ndef check(): return 'checked'\n")
    (folder / "inner" / "deep.py").write_text("class Thing: pass\n")
    (folder / "whole.py").write_text("x = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield PACKAGE_NAME
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE_NAME]:
        del sys.modules[name]


def imported_submodules() -> set[str]:
    return {name.removeprefix(f"{PACKAGE_NAME}.") for name in sys.modules if name.startswith(f"{PACKAGE_NAME}.")}


def test_lazy_module_is_imported_at_first_use(package: str) -> None:
    module = importlib.import_module(package)
    assert imported_submodules() == set()
    assert module.Thing.__module__ == f"{PACKAGE_NAME}.inner.deep"
    assert imported_submodules() == {"inner", "inner.deep"}
    assert module.whole.x == 3
    assert module.check() == "checked"
    assert imported_submodules() == {"inner", "inner.deep", "whole", "load"}
    assert module.Thing is module.Thing


def test_lazy_names_of_another_package_are_imported(package: str) -> None:
    from roboyard.errors import InputError

    assert importlib.import_module(package).InputError is InputError


@pytest.mark.parametrize("first", ["module", "name"])
def test_lazy_export_named_as_its_module_is_the_export(package: str, first: str) -> None:
    """An import sets the submodule as an attribute of its package; the exported function must not be replaced."""
    loaded_package = importlib.import_module(package)
    if first == "name":
        assert loaded_package.load() == "loaded"
    module = importlib.import_module(f"{package}.load")
    assert loaded_package.load() == "loaded"
    assert module.load is loaded_package.load


def test_lazy_export_named_as_its_module_can_be_replaced(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module(package)
    with monkeypatch.context() as patch:
        patch.setattr(module, "load", lambda: "replaced")
        assert module.load() == "replaced"
    assert module.load() == "loaded"


def test_lazy_package_exports_only_declared_names(package: str) -> None:
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match="has no attribute 'loads'"):
        _ = module.loads
    assert {"load", "check", "Thing", "InputError", "whole"} <= set(dir(module))
