"""``<include file="…"/>``: the children of the file's root stand in its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from roboyard.description.reading import Reading
from roboyard.description.values import fault, shown
from roboyard.description.xml import Node, parse


def expanded(reading: Reading, root: Node) -> Node:
    """The document with every include replaced by what it includes.

    Args:
        reading: Takes findings, finds files, keeps the bounds.
        root: The ``<mujoco>``.

    Raises:
        DescriptionError: a file is missing or unreadable, or files include each other in a circle.
    """
    return _expanded(reading, root, root.file)


def _expanded(reading: Reading, node: Node, main: str) -> Node:
    children: list[Node] = []
    for child in node.children:
        if child.tag == "include":
            children += _included(reading, child, main)
        else:
            children.append(_expanded(reading, child, main) if child.children else child)
    return replace(node, children=children)


def _included(reading: Reading, node: Node, main: str) -> list[Node]:
    name = node.get("file").strip()
    if not name:
        raise fault("an <include> names no file", node, '<include file="…"/>')
    path = find(reading, name, node, main)
    if isinstance(path, str):
        raise fault(f"the included {shown(name, 200)}: {path}", node)
    if str(path) in reading.stack or path == Path(main).absolute():
        raise fault(f"files include each other in a circle: {path}", node, "includes that end")
    problem = reading.resources.unreadable(path, 2**28)
    if problem:
        raise fault(f"the included {path.name}: {problem}", node)
    with reading.inside(str(path), node):
        root, findings = parse(path.read_bytes(), str(path))
        reading.add(findings)
        reading.count(node, sum(1 for _ in root.walk()))
        return _expanded(reading, root, main).children


def find(reading: Reading, name: str, node: Node, main: str) -> Path | str:
    """The file ``name``, looked for beside the file that names it, then beside the main one; or why there is none."""
    problem = ""
    for base in dict.fromkeys((node.file, main)):
        found = reading.resources.resolve(name, base)
        if found.path is not None:
            return found.path
        problem = problem or found.problem
    return problem
