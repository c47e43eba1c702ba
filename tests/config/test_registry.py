"""The registry finds objects of this package, of installed packages, and of files."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from roboyard.config import registry as registry_module
from roboyard.config.registry import Registry
from roboyard.errors import ConfigError, UnknownNameError


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> Registry[type]:
    """Classes of paths: one built in, and four that packages offer."""
    points = [
        EntryPoint("posix", "pathlib:PurePosixPath", "tests.paths"),
        EntryPoint("built_in", "pathlib:PureWindowsPath", "tests.paths"),
        EntryPoint("number", "builtins:int", "tests.paths"),
        EntryPoint("lost", "no_module_of_this_name:Thing", "tests.paths"),
    ]
    monkeypatch.setattr(registry_module, "entry_points", lambda group: points if group == "tests.paths" else [])
    registry_module._entry_points_on_path.cache_clear()
    yield Registry(
        "path", group="tests.paths", base=lambda: __import__("pathlib").PurePath, built_in={"built_in": Path}
    )
    registry_module._entry_points_on_path.cache_clear()


def test_names_are_those_built_in_and_of_packages(paths: Registry[type]) -> None:
    assert paths.names() == ("built_in", "lost", "number", "posix")
    assert "posix" in paths
    assert "windows" not in paths
    assert paths["posix"].__name__ == "PurePosixPath"


def test_package_cannot_take_a_built_in_name(paths: Registry[type]) -> None:
    assert paths["built_in"] is Path


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("posx", UnknownNameError, "no path 'posx'; did you mean 'posix'.*there are: built_in, lost, number, posix"),
        ("number", ConfigError, "number = builtins:int of tests.paths: is no path .a subclass of PurePath"),
        ("lost", ConfigError, "lost = no_module_of_this_name:Thing of tests.paths: cannot be loaded: ModuleNotFound"),
        ("nothing.here:Thing", UnknownNameError, "there is no nothing.here:Thing"),
        ("pathlib:Nothing", UnknownNameError, "there is no pathlib:Nothing"),
        ("builtins:int", ConfigError, "builtins:int: is no path"),
        ("no_file.py:Thing", UnknownNameError, "no file no_file.py"),
    ],
)
def test_wrong_references_say_what_would_be_right(
    paths: Registry[type], name: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        paths.resolve(name)


def test_file_is_executed_once(paths: Registry[type], tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from pathlib import PurePath\nclass Mine(PurePath):\n    pass\n")
    assert paths.resolve(f"{file}:Mine") is paths.resolve(f"{file}:Mine")
    with pytest.raises(UnknownNameError, match="no 'Yours' in"):
        paths.resolve(f"{file}:Yours")
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit(3)")
    with pytest.raises(ConfigError, match=r"broken.py: cannot be imported: called sys.exit\(3\)"):
        paths.resolve(f"{broken}:Mine")


def test_class_that_leaves_out_abstract_methods_is_refused(paths: Registry[type], tmp_path: Path) -> None:
    file = tmp_path / "half.py"
    file.write_text(
        "from abc import ABC, abstractmethod\nfrom pathlib import PurePath\nclass Half(PurePath, ABC):\n"
        "    @abstractmethod\n    def b(self): ...\n    @abstractmethod\n    def a(self): ...\n"
    )
    with pytest.raises(ConfigError, match=r"is an incomplete path: Half does not define a, b .all abstract methods"):
        paths.resolve(f"{file}:Half")
