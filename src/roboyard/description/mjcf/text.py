"""A tree of nodes as XML text, one tag a line, so that a line number leads back to the node."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from roboyard.description.xml import Node


def written(root: Node) -> tuple[str, list[Node]]:
    """The text, and for each of its lines (from the first, at index 0) the node that stands there."""
    lines: list[str] = []
    nodes: list[Node] = []

    def put(line: str, node: Node) -> None:
        lines.append(line)
        nodes.append(node)

    waiting: list[tuple[Node, bool]] = [(root, False)]
    while waiting:
        node, closing = waiting.pop()
        if closing:
            put(f"</{node.tag}>", node)
            continue
        attributes = "".join(f" {key}={quoteattr(value)}" for key, value in node.attributes.items())
        put(f"<{node.tag}{attributes}{'>' if node.children else '/>'}", node)
        if node.children:
            waiting.append((node, True))
            waiting += [(child, False) for child in reversed(node.children)]
    return "\n".join(lines) + "\n", nodes
