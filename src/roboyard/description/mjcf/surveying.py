"""How a survey goes on where MuJoCo stops at the first fault: what is wrong is taken out, the rest compiled again."""

from __future__ import annotations

from roboyard.description.xml import Node

MOST = 50
"""Faults of one document that are looked for; each costs a compilation."""


class Cut:
    """A document from which what is wrong is taken out, fault by fault.

    Args:
        root: The document; it is changed in place.
    """

    def __init__(self, root: Node) -> None:
        self._root = root
        self._left = MOST
        self._cut: set[int] = set()
        self._names: set[str] = set()

    def follows(self, node: Node, message: str) -> bool:
        """Whether a fault at ``node`` may only follow of what was taken out of it, or what ``message`` names."""
        return id(node) in self._cut or any(f"'{name}'" in message for name in self._names)

    def take_out(self, node: Node) -> bool:
        """Take the faulty ``node`` out; of a body at first only its inertia. False where that cannot be.

        What is below a body would otherwise never be looked at.
        """
        above = self._way(node)
        self._left -= 1
        if not above or self._left < 0:
            return False
        if node.tag == "body" and id(node) not in self._cut:
            weight = Node("inertial", {"pos": "0 0 0", "mass": "1", "diaginertia": "1 1 1"}, node.file, node.line)
            node.children = [weight, *(child for child in node.children if child.tag != "inertial")]
            self._cut.add(id(node))
            return True
        above[-1].children = [child for child in above[-1].children if child is not node]
        self._cut.update(map(id, above))
        self._names.update(one.get("class" if one.tag == "default" else "name") for one in node.walk())
        self._names.discard("")
        return True

    def _way(self, node: Node) -> list[Node]:
        """From the root to the parent of ``node``; empty for the root and what is not in the document."""
        waiting: list[tuple[Node, list[Node]]] = [(self._root, [])]
        while waiting:
            here, above = waiting.pop()
            if here is node:
                return above
            waiting += [(child, [*above, here]) for child in here.children]
        return []
