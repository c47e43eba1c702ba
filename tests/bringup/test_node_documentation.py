"""Docstrings of nodes are read from their source without importing it."""

import sys
from pathlib import Path

import pytest

from roboyard.bringup import catalog
from roboyard.bringup.node_documentation import read_docstring


@pytest.mark.parametrize("name", catalog.NODES.names())
def test_docstring_from_source_is_that_of_the_class(name: str) -> None:
    point = catalog.NODES.entry_points()[name]
    found, expected = read_docstring(point.module, point.attr), catalog.resolve_node_class(name).__doc__
    assert found is not None
    assert found.strip().split("\n")[0] == (expected or "").strip().split("\n")[0]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that fails when it is imported."""
    name = f"module_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(
        "from somewhere_else import Foreign\n"
        "class Plain(Base,\n            metaclass=Meta):  # why\n    # a comment\n"
        "    r'''Says what it is.\n\n    More.\n    '''\n"
        "class Bare:\n    x = 'no docstring'\n"
        "class Plainer:\n    'Another.'\n"
        "raise ValueError('imported')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_reading_docstrings_imports_nothing(module: str) -> None:
    assert (read_docstring(module, "Plain") or "").startswith("Says what it is.\n")
    assert read_docstring(module, "Plainer") == "Another."
    assert read_docstring(module, "Bare") == ""
    assert module not in sys.modules


def test_docstring_outside_the_source_is_none(module: str) -> None:
    assert read_docstring(module, "Absent") is None
    assert read_docstring(module, "Foreign") is None
    assert read_docstring("no_such_module_anywhere", "Plain") is None
    assert read_docstring("math", "Plain") is None
