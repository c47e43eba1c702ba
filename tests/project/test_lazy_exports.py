"""A package that imports its modules lazily names its exports three times; the three agree, and every name is there."""

import ast
import importlib
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
LAZY = sorted(path for path in SOURCE.rglob("__init__.py") if "lazy_exports(" in path.read_text("utf-8"))


def package_of(path: Path) -> str:
    return ".".join(path.parent.relative_to(SOURCE).parts)


def exports_of(path: Path) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Module of each name: by the imports for type checkers, and as given to lazy_exports; and ``__all__``."""
    package, checked, given, listed = package_of(path), {}, {}, []
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for part in ast.walk(node):
                if isinstance(part, ast.ImportFrom):
                    checked |= {alias.asname or alias.name: str(part.module) for alias in part.names}
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            listed = ast.literal_eval(node.value)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            assert ast.unparse(node.value.func) == "lazy_exports"
            for module, names in ast.literal_eval(node.value.args[1]).items():
                full = module if module.startswith("roboyard.") else f"{package}.{module}"
                given |= dict.fromkeys(names, full)
            for keyword in node.value.keywords:
                given |= dict.fromkeys(ast.literal_eval(keyword.value), package)
    return checked, given, listed


def test_lazy_packages_are_found() -> None:
    assert len(LAZY) > 50


@pytest.mark.parametrize("path", LAZY, ids=package_of)
def test_all_and_lazy_table_and_type_imports_agree(path: Path) -> None:
    checked, given, listed = exports_of(path)
    assert checked == given
    assert set(given) == set(listed)


@pytest.mark.parametrize("path", LAZY, ids=package_of)
def test_every_lazy_name_can_be_imported(path: Path) -> None:
    package = importlib.import_module(package_of(path))
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
