"""``<include file="…"/>``: the children of the file's root stand in its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from roboyard.description.reading import ReaderContext
from roboyard.description.values import error_at, quote
from roboyard.description.xml import XmlNode, parse_xml


def expand_includes(context: ReaderContext, root: XmlNode) -> XmlNode:
    """The document with every include replaced by what it includes.

    Args:
        context: Takes findings, finds files, keeps the bounds.
        root: The ``<mujoco>``.

    Raises:
        DescriptionError: a file is missing or unreadable, or files include each other in a circle.
    """
    return _expand_node(context, root, root.file)


def _expand_node(context: ReaderContext, node: XmlNode, main_file: str) -> XmlNode:
    children: list[XmlNode] = []
    for child in node.children:
        if child.tag == "include":
            children += _read_include(context, child, main_file)
        else:
            children.append(_expand_node(context, child, main_file) if child.children else child)
    return replace(node, children=children)


def _read_include(context: ReaderContext, node: XmlNode, main_file: str) -> list[XmlNode]:
    name = node.get("file").strip()
    if not name:
        raise error_at("an <include> names no file", node, '<include file="…"/>')
    path = find_included_file(context, name, node, main_file)
    if isinstance(path, str):
        raise error_at(f"the included {quote(name, 200)}: {path}", node)
    if str(path) in context.stack or path == Path(main_file).absolute():
        raise error_at(f"files include each other in a circle: {path}", node, "includes that end")
    problem = context.resources.explain_unreadable(path, 2**28)
    if problem:
        raise error_at(f"the included {path.name}: {problem}", node)
    with context.nested(str(path), node):
        root, warnings = parse_xml(path.read_bytes(), str(path))
        context.add_warnings(warnings)
        context.count_elements(node, sum(1 for _ in root.walk()))
        return _expand_node(context, root, main_file).children


def find_included_file(context: ReaderContext, name: str, node: XmlNode, main_file: str) -> Path | str:
    """The file ``name``, looked for beside the file that names it, then beside the main one; or why there is none."""
    problem = ""
    for base in dict.fromkeys((node.file, main_file)):
        resolved = context.resources.resolve(name, base)
        if resolved.path is not None:
            return resolved.path
        problem = problem or resolved.problem
    return problem
