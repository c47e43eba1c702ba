"""The pages of nodes hold what the classes declare, and the navigation has all of them."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from roboyard.bringup import catalog

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    """tools/docs_hooks.py, which is in no package."""
    spec = importlib.util.spec_from_file_location("tools_docs_hooks", ROOT / "tools" / "docs_hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(hooks: ModuleType) -> dict[str, str]:
    found: dict[str, str] = hooks.make_node_pages()
    return found


def sections(pages: dict[str, str]) -> dict[str, str]:
    """Text about each node, by its name."""
    found: dict[str, str] = {}
    for path, text in pages.items():
        if not path.endswith("/index.md"):
            for section in text.split("\n## ")[1:]:
                name, _, body = section.partition("\n")
                assert name not in found
                found[name] = body
    return found


def test_every_node_has_one_section_and_is_listed(pages: dict[str, str]) -> None:
    assert set(sections(pages)) == set(catalog.NODES.names())
    index = pages["reference/nodes/index.md"]
    for path, text in pages.items():
        for name in re.findall(r"^## (\w+)$", text, re.MULTILINE) if not path.endswith("/index.md") else ():
            assert f"[`{name}`]({Path(path).name}#{name})" in index


@pytest.mark.parametrize("name", sorted(catalog.NODES.names()))
def test_section_holds_all_declared_parameters(name: str, pages: dict[str, str], hooks: ModuleType) -> None:
    found = sections(pages)
    other = re.search(r"Its parameters are those of \[(\w+)\]", found[name])
    table = found[other[1]] if other else found[name]
    rows = {line.split("`")[1]: line for line in table.splitlines() if line.startswith("| `")}
    declared = catalog.resolve_node_class(name).parameters_declared()
    assert declared.keys() <= rows.keys()
    for key, item in declared.items():
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", rows[key])[1:-1]]
        mark = f" {hooks.RUNTIME_MARK}" if item.info.runtime else ""
        assert cells[2:] == [hooks._escape(item.describe()) + mark, hooks._escape(item.info.doc)]
    if not declared:
        assert "It has no parameters." in table


def test_navigation_has_all_pages(pages: dict[str, str]) -> None:
    listed = re.findall(r"(reference/nodes/\S+)", (ROOT / "mkdocs.yml").read_text("utf-8"))
    assert sorted(listed) == sorted(pages)


def test_only_code_is_markup(hooks: ModuleType) -> None:
    assert hooks._escape("feet/<leg> and ``a<b``, `c*d`, 2*3") == r"feet/\<leg> and ``a<b``, `c*d`, 2\*3"


def test_page_of_metrics_holds_what_collectors_declare(hooks: ModuleType) -> None:
    page = hooks.METRICS_PAGE.read_text("utf-8")
    assert page == hooks.with_metric_table(page), "write it anew: python tools/docs_hooks.py"


def test_pages_with_key_tables_hold_what_classes_declare(hooks: ModuleType) -> None:
    pages = hooks.list_pages_with_key_tables()
    assert {page.stem for page in pages} >= {"people", "vision", "costmap-layers", "navigation-behaviors", "navigator"}
    for page in pages:
        text = page.read_text("utf-8")
        assert text == hooks.with_key_tables(text), f"write {page.name} anew: python tools/docs_hooks.py"


def test_names_of_other_projects_belong_to_keys_of_a_table(hooks: ModuleType) -> None:
    """A name of another project whose key no table has would be lost when the key is renamed."""
    keys: dict[str, set[str]] = {}
    for page in hooks.list_pages_with_key_tables():
        for table in hooks.KEY_TABLE.finditer(page.read_text("utf-8")):
            if table[5] is not None:
                keys.setdefault(table[5], set()).update(re.findall(r"^\| `(\S+)` \|", table[0], re.MULTILINE))
    assert keys.keys() == hooks.PEER_NAMES.keys()
    for peer, names in hooks.PEER_NAMES.items():
        assert names.keys() <= keys[peer], f"{peer}: {sorted(names.keys() - keys[peer])}"
