"""Behavior trees as text and as SVG, and their states replayed from the messages of a tree executor."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from roboyard.behavior.basic_types import IDLE, NodeStatus, NodeType
from roboyard.behavior.tree import Tree
from roboyard.behavior.tree_node import TreeNode
from roboyard.errors import InputError

_SYMBOLS: Final = {
    NodeType.ACTION: "•",
    NodeType.CONDITION: "?",
    NodeType.CONTROL: "→",
    NodeType.DECORATOR: "◇",
    NodeType.SUBTREE: "▣",
}
_FILL_COLORS: Final = {
    NodeType.ACTION: "#dcebfb",
    NodeType.CONDITION: "#fdf3d0",
    NodeType.CONTROL: "#e9e9ee",
    NodeType.DECORATOR: "#e6f4e1",
    NodeType.SUBTREE: "#f0e4f7",
}
_EDGE_COLORS: Final = {
    NodeStatus.IDLE: "#8a8f98",
    NodeStatus.RUNNING: "#e08a00",
    NodeStatus.SUCCESS: "#2e8b3d",
    NodeStatus.FAILURE: "#c22f2f",
    NodeStatus.SKIPPED: "#8a8f98",
}
_ROW, _GAP, _LETTER, _INDENT = 34, 10, 6.6, 26


def node_label(node: TreeNode) -> str:
    """Return the type of a node, and its name if it differs."""
    if node.node_type is NodeType.SUBTREE:
        return f"{node.type_name} {node.name}"
    return node.type_name if node.name == node.type_name else f"{node.type_name} {node.name!r}"


def port_texts(node: TreeNode) -> list[str]:
    """Return the texts of a node's ports, conditions and scripts."""
    connections = {**node.inputs, **node.outputs}
    return [
        *(f"{name}={text}" for name, text in connections.items()),
        *(f"{name}: {script.text}" for name, script in node.scripts.items()),
    ]


def tree_to_text(tree: Tree, *, status: bool = False) -> str:
    """Return the tree as text: a node per line, its children below it.

    Args:
        tree: The tree.
        status: Also write the status of each node that is not idle.
    """
    lines: list[str] = []

    def draw(node: TreeNode, stem: str, branch: str, below: str) -> None:
        words = [f"{_SYMBOLS[node.node_type]} {node_label(node)}", *port_texts(node)]
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


def tree_to_svg(tree: Tree) -> str:
    """Draw the tree as SVG: from left to right, one row per node, framed in the color of its status."""
    boxes: list[_Box] = []
    links: list[tuple[_Box, _Box]] = []
    y = 12.0

    def place(node: TreeNode, depth: int) -> _Box:
        nonlocal y
        title, lines = f"{_SYMBOLS[node.node_type]} {node_label(node)}", [_shorten(line) for line in port_texts(node)]
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
        center_y = child.y + 12
        path = f"M{x:.1f},{parent.y + parent.height:.1f} V{center_y:.1f} H{child.x:.1f}"
        parts.append(f'<path d="{path}" fill="none" stroke="#a9adb5"/>')
    for box in boxes:
        parts += _draw_box(box)
    return "\n".join([*parts, "</svg>", ""])


def _draw_box(box: _Box) -> list[str]:
    edge, thick = _EDGE_COLORS[box.node.status], 1 if box.node.status is IDLE else 2.5
    title = f'<text x="{box.x + 8:.1f}" y="{box.y + 16:.1f}" font-size="11.5">{escape(box.title)}</text>'
    return [
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="4" '
        f'fill="{_FILL_COLORS[box.node.node_type]}" stroke="{edge}" stroke-width="{thick}"/>',
        title,
        *(
            f'<text x="{box.x + 8:.1f}" y="{box.y + 30 + 13 * row:.1f}" font-size="9.5" fill="#4b5058">'
            f"{escape(line)}</text>"
            for row, line in enumerate(box.lines)
        ),
    ]


def _shorten(text: str, max_length: int = 90) -> str:
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


IDLE_STATUS = "IDLE"


class TreePlayback:
    """State of a tree at a time, from messages of its executor.

    Attributes:
        lines: The tree as text, one node per line, in the order of their numbers from 1.
        current_statuses: Status of each node, by its number.
        last_statuses: Last status of each node other than idle.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.current_statuses: dict[int, str] = {}
        self.last_statuses: dict[int, str] = {}

    def set_tree(self, text: str) -> None:
        """Start with another tree."""
        self.lines = text.splitlines()
        self.current_statuses.clear()
        self.last_statuses.clear()

    def apply_events(self, text: str) -> None:
        """Apply changes of nodes, JSON: ``[[number, path, before, after], …]``.

        Raises:
            InputError: it is something else.
        """
        try:
            changes = [(int(uid), str(after)) for uid, _path, _before, after in json.loads(text)]
        except (ValueError, TypeError) as error:
            raise InputError(f"these are no changes of a tree's nodes: {error}") from None
        self.apply_statuses(changes)

    def apply_statuses(self, statuses: Iterable[tuple[int, str]]) -> None:
        """Set statuses of nodes."""
        for uid, status in statuses:
            self.current_statuses[uid] = status
            if status != IDLE_STATUS:
                self.last_statuses[uid] = status

    def __str__(self) -> str:
        """Return the tree with the status of each node in brackets, or its last status in parentheses."""
        return "\n".join(f"{line}{self._mark(uid)}" for uid, line in enumerate(self.lines, 1))

    def _mark(self, uid: int) -> str:
        now = self.current_statuses.get(uid, IDLE_STATUS)
        if now != IDLE_STATUS:
            return f"  [{now}]"
        return f"  ({self.last_statuses[uid]})" if uid in self.last_statuses else ""
