"""A tree as text and as a picture, live or at rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from roboyard.behavior.node import TreeNode
from roboyard.behavior.status import IDLE, Kind, Status
from roboyard.behavior.tree import Tree

_MARK: Final = {
    Kind.ACTION: "•",
    Kind.CONDITION: "?",
    Kind.CONTROL: "→",
    Kind.DECORATOR: "◇",
    Kind.SUBTREE: "▣",
}
_FILL: Final = {
    Kind.ACTION: "#dcebfb",
    Kind.CONDITION: "#fdf3d0",
    Kind.CONTROL: "#e9e9ee",
    Kind.DECORATOR: "#e6f4e1",
    Kind.SUBTREE: "#f0e4f7",
}
_EDGE: Final = {
    Status.IDLE: "#8a8f98",
    Status.RUNNING: "#e08a00",
    Status.SUCCESS: "#2e8b3d",
    Status.FAILURE: "#c22f2f",
    Status.SKIPPED: "#8a8f98",
}
_ROW, _GAP, _LETTER, _INDENT = 34, 10, 6.6, 26


def label(node: TreeNode) -> str:
    """A node's type, and its name where it has one of its own."""
    if node.kind is Kind.SUBTREE:
        return f"{node.type_name} {node.name}"
    return node.type_name if node.name == node.type_name else f"{node.type_name} {node.name!r}"


def ports(node: TreeNode) -> list[str]:
    """A node's ports as they are connected, and its conditions and scripts."""
    told = {**node.inputs, **node.outputs}
    return [
        *(f"{name}={text}" for name, text in told.items()),
        *(f"{name}: {script.text}" for name, script in node.scripts.items()),
    ]


def as_text(tree: Tree, *, status: bool = False) -> str:
    """The tree as text: a node a line, its children below it.

    Args:
        tree: The tree.
        status: Also say where each node stands, if it is not idle.
    """
    lines: list[str] = []

    def draw(node: TreeNode, stem: str, branch: str, below: str) -> None:
        words = [f"{_MARK[node.kind]} {label(node)}", *ports(node)]
        if status and node.status is not IDLE:
            words.append(f"[{node.status.name}]")
        lines.append(stem + branch + "  ".join(words))
        for child in node.children:
            last = child is node.children[-1]
            draw(child, stem + below, "└─ " if last else "├─ ", "   " if last else "│  ")

    draw(tree.root, "", "", "")
    return "\n".join(lines)


@dataclass(frozen=True)
class _Box:
    node: TreeNode
    x: float
    y: float
    width: float
    title: str
    lines: list[str]

    @property
    def height(self) -> float:
        return _ROW - _GAP + 13.0 * len(self.lines)


def as_svg(tree: Tree) -> str:
    """The tree as a picture in SVG: from left to right, one row a node, framed by where each stands."""
    boxes: list[_Box] = []
    links: list[tuple[_Box, _Box]] = []
    y = 12.0

    def place(node: TreeNode, depth: int) -> _Box:
        nonlocal y
        title, lines = f"{_MARK[node.kind]} {label(node)}", [_shortened(line) for line in ports(node)]
        width = 16 + max(len(title) * _LETTER, max((len(line) * 5.6 for line in lines), default=0.0))
        box = _Box(node, 12.0 + depth * _INDENT, y, width, title, lines)
        boxes.append(box)
        y += box.height + _GAP
        links.extend([(box, place(child, depth + 1)) for child in node.children])
        return box

    place(tree.root, 0)
    width = max(box.x + box.width for box in boxes) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{y:.0f}" '
        f'viewBox="0 0 {width:.0f} {y:.0f}" font-family="DejaVu Sans, Helvetica, sans-serif">',
        f"<title>{escape(tree.name)}</title>",
        f'<rect width="{width:.0f}" height="{y:.0f}" fill="white"/>',
    ]
    for parent, child in links:
        x = parent.x + 10
        middle = child.y + 12
        path = f"M{x:.1f},{parent.y + parent.height:.1f} V{middle:.1f} H{child.x:.1f}"
        parts.append(f'<path d="{path}" fill="none" stroke="#a9adb5"/>')
    for box in boxes:
        parts += _drawn(box)
    return "\n".join([*parts, "</svg>", ""])


def _drawn(box: _Box) -> list[str]:
    edge, thick = _EDGE[box.node.status], 1 if box.node.status is IDLE else 2.5
    title = f'<text x="{box.x + 8:.1f}" y="{box.y + 16:.1f}" font-size="11.5">{escape(box.title)}</text>'
    return [
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="4" '
        f'fill="{_FILL[box.node.kind]}" stroke="{edge}" stroke-width="{thick}"/>',
        title,
        *(
            f'<text x="{box.x + 8:.1f}" y="{box.y + 30 + 13 * row:.1f}" font-size="9.5" fill="#4b5058">'
            f"{escape(line)}</text>"
            for row, line in enumerate(box.lines)
        ),
    ]


def _shortened(text: str, most: int = 90) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
