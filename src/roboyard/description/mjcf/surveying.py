"""How a survey goes on where MuJoCo stops at the first fault: what is wrong is taken out, the rest compiled again."""

from __future__ import annotations

from roboyard.description.xml import XmlNode

MAX_FAULTS = 50
"""Faults of one document that are looked for; each costs a compilation."""


class FaultIsolator:
    """A document from which what is wrong is taken out, fault by fault.

    Args:
        root: The document; it is changed in place.
    """

    def __init__(self, root: XmlNode) -> None:
        self._root = root
        self._n_remaining = MAX_FAULTS
        self._altered: set[int] = set()
        self._removed_names: set[str] = set()

    def is_consequence(self, node: XmlNode, message: str) -> bool:
        """Whether a fault at ``node`` may only follow of what was taken out of it, or what ``message`` names."""
        return id(node) in self._altered or any(f"'{name}'" in message for name in self._removed_names)

    def remove(self, node: XmlNode) -> bool:
        """Take the faulty ``node`` out; of a body at first only its inertia. False where that cannot be.

        What is below a body would otherwise never be looked at.
        """
        ancestors = self._ancestors_of(node)
        self._n_remaining -= 1
        if not ancestors or self._n_remaining < 0:
            return False
        if node.tag == "body" and id(node) not in self._altered:
            inertial = XmlNode("inertial", {"pos": "0 0 0", "mass": "1", "diaginertia": "1 1 1"}, node.file, node.line)
            node.children = [inertial, *(child for child in node.children if child.tag != "inertial")]
            self._altered.add(id(node))
            return True
        ancestors[-1].children = [child for child in ancestors[-1].children if child is not node]
        self._altered.update(map(id, ancestors))
        self._removed_names.update(one.get("class" if one.tag == "default" else "name") for one in node.walk())
        self._removed_names.discard("")
        return True

    def _ancestors_of(self, node: XmlNode) -> list[XmlNode]:
        """From the root to the parent of ``node``; empty for the root and what is not in the document."""
        stack: list[tuple[XmlNode, list[XmlNode]]] = [(self._root, [])]
        while stack:
            current, ancestors = stack.pop()
            if current is node:
                return ancestors
            stack += [(child, [*ancestors, current]) for child in current.children]
        return []
