"""A tree of nodes as XML text, one tag a line, so that a line number leads back to the node."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from roboyard.description.xml import XmlNode


def to_xml_with_lines(root: XmlNode) -> tuple[str, list[XmlNode]]:
    """The text, and for each of its lines (from the first, at index 0) the node that stands there."""
    lines: list[str] = []
    nodes: list[XmlNode] = []

    def append_line(line: str, node: XmlNode) -> None:
        lines.append(line)
        nodes.append(node)

    stack: list[tuple[XmlNode, bool]] = [(root, False)]
    while stack:
        node, closing = stack.pop()
        if closing:
            append_line(f"</{node.tag}>", node)
            continue
        attributes = "".join(f" {key}={quoteattr(value)}" for key, value in node.attributes.items())
        append_line(f"<{node.tag}{attributes}{'>' if node.children else '/>'}", node)
        if node.children:
            stack.append((node, True))
            stack += [(child, False) for child in reversed(node.children)]
    return "\n".join(lines) + "\n", nodes
