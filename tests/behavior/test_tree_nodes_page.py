"""The reference page of node types holds what registry and ports declare; the example of the how-to is short."""

from types import ModuleType

import pytest
from tests.project.test_docs import ROOT, blocks_of
from tests.project.test_node_pages import hooks  # noqa: F401

from roboyard.behavior.factory import TREE_NODES


def test_page_of_tree_nodes_is_generated(hooks: ModuleType) -> None:  # noqa: F811
    text = (ROOT / "docs" / "reference" / "tree-nodes.md").read_text("utf-8")
    assert text == hooks.with_tree_node_tables(text), "write tree-nodes.md anew: python tools/docs_hooks.py"


@pytest.mark.parametrize("origin", ["btcpp4", "btcpp3", "nav2", "roboyard"])
def test_page_of_tree_nodes_lists_every_node_type(origin: str, hooks: ModuleType) -> None:  # noqa: F811
    text = (ROOT / "docs" / "reference" / "tree-nodes.md").read_text("utf-8")
    nodes = hooks.list_tree_nodes()
    assert [name for name in nodes[origin] if f"| `{name}` |" not in text] == []
    documented = {*nodes["btcpp4"], *nodes["nav2"], *nodes["roboyard"]}
    assert {name for name in TREE_NODES.names() if TREE_NODES[name].__module__.startswith("roboyard.")} == documented


def test_example_node_is_short() -> None:
    page = (ROOT / "docs" / "howto" / "write-a-tree-node.md").read_text("utf-8")
    program = next(block.body for block in blocks_of(page) if block.title == "door_nodes/door_nodes.py")
    assert len(program.splitlines()) <= 40
