"""A tree that runs: ticked with the time, halted, watched, saved and loaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from roboyard.behavior.blackboard import Blackboard
from roboyard.behavior.building import Builder, SubtreePart
from roboyard.behavior.checks import check_nodes
from roboyard.behavior.document import Document, read_document
from roboyard.behavior.errors import TreeError, TreeNodeError
from roboyard.behavior.factory import Factory
from roboyard.behavior.matching import matches
from roboyard.behavior.mocks import with_mocks
from roboyard.behavior.node import TreeNode, WakeUp, Watcher
from roboyard.behavior.status import FAILURE, RUNNING, SUCCESS, Status
from roboyard.behavior.timers import Timers
from roboyard.behavior.types import PortType


class Tree:
    """A tree of nodes; made by `load_tree` and `read_tree`.

    Time is an argument of the ticks: what waits (Timeout, Delay, Sleep) waits by it.

    Attributes:
        root: The topmost node.
        parts: The tree itself and its subtrees, each with its blackboard.
        nodes: All nodes, by their numbers, which begin with 1.
    """

    def __init__(self, root: TreeNode, parts: list[SubtreePart], wake_up: WakeUp, timers: Timers) -> None:
        self.root = root
        self.parts = parts
        self.nodes: dict[int, TreeNode] = {node.uid: node for part in parts for node in part.nodes}
        self._wake_up = wake_up
        self._timers = timers

    @property
    def name(self) -> str:
        """The tree's ID."""
        return self.parts[0].tree

    @property
    def blackboard(self) -> Blackboard:
        """The blackboard of the tree itself."""
        return self.parts[0].blackboard

    def tick_exactly_once(self, now_ns: int = 0) -> Status:
        """Tick the root once, at a time [ns].

        Raises:
            ExecutionError: a node failed with an error; the tree stays as it is then, and should be halted.
        """
        return self._tick(now_ns, again=False)

    def tick_once(self, now_ns: int = 0) -> Status:
        """Tick the root at a time [ns], and again as long as a node asks for that.

        Raises:
            ExecutionError: as `tick_exactly_once`.
        """
        return self._tick(now_ns, again=True)

    def _tick(self, now_ns: int, *, again: bool) -> Status:
        shared = self.blackboard.shared
        shared.now_ns = now_ns
        for uid in self._timers.due(now_ns):
            self.nodes[uid].alarm()
        root = self.root
        status = root.execute()
        while again and status is RUNNING and self._wake_up.asked:
            self._wake_up.asked = False
            status = root.execute()
        if status is SUCCESS or status is FAILURE:
            root.reset()
        return status

    @property
    def next_ns(self) -> int | None:
        """When the next node's time comes [ns]; None if none waits."""
        return self._timers.next_ns

    def halt(self) -> None:
        """Halt whatever runs."""
        self.root.halt_node()
        for node in self.walk():
            node.halt_node()
        self.root.reset()

    def close(self) -> None:
        """Have its nodes let go of what lies outside; it is not used any more."""
        for node in self.nodes.values():
            node.close()

    def walk(self) -> Iterator[TreeNode]:
        """All nodes, each before its children."""
        stack = [self.root]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def find(self, pattern: str) -> list[TreeNode]:
        """Nodes whose path is as a pattern says, in which ``*`` is any text."""
        return [node for node in self.nodes.values() if matches(node.path, pattern)]

    def watch(self, watcher: Watcher | None) -> None:
        """Have ``watcher(node, before, after)`` called at each change of a node's status."""
        for node in self.nodes.values():
            node.watch(watcher)

    def save_state(self) -> dict[str, Any]:
        """The state of the tree as plain data: nodes, blackboards, timers.

        Raises:
            NodeError: a node cannot be saved; says which.
        """
        return {
            "tree": self.name,
            "nodes": {str(uid): node.save_state() for uid, node in self.nodes.items()},
            "boards": [part.blackboard.save_state() for part in self.parts],
            "timers": self._timers.save_state(),
            "asked": self._wake_up.asked,
            "now_ns": self.blackboard.shared.now_ns,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave, on a tree of the same file.

        Raises:
            NodeError: it is another tree.
        """
        if saved["tree"] != self.name or saved["nodes"].keys() != {str(uid) for uid in self.nodes}:
            raise TreeNodeError(f"the saved tree {saved['tree']!r} is not this one, {self.name!r}")
        for uid, state in saved["nodes"].items():
            self.nodes[int(uid)].load_state(state)
        kinds: dict[str, PortType] = {
            port.type.name: port.type for node in self.nodes.values() for port in node.ports.values()
        }
        for part, entries in zip(self.parts, saved["boards"], strict=True):
            part.blackboard.load_state(entries, kinds)
        self._timers.load_state(saved["timers"])
        self._wake_up.asked = saved["asked"]
        self.blackboard.shared.now_ns = saved["now_ns"]


def load_tree(
    path: str | Path,
    factory: Factory | None = None,
    *,
    main: str | None = None,
    blackboard: Blackboard | None = None,
    mock: bool = False,
) -> Tree:
    """A tree from a file of BehaviorTree.CPP, version 4 or 3.

    Args:
        path: The file; files that it includes are found beside it.
        factory: What node types there are; those of the engine and of installed packages, if not said.
        main: Which of its trees; the one that the file says, if not said.
        blackboard: For the tree; a new one, if not said.
        mock: Put stand-ins in the place of unknown node types.

    Raises:
        TreeError: the file is wrong; says line, node, port and what would be right.
    """
    document, factory = _read(path, factory, mock=mock)
    return _built(document, factory, main or document.main_tree(), blackboard)


def load_trees(path: str | Path, factory: Factory | None = None, *, mock: bool = False) -> list[Tree]:
    """The tree that a file wants to be run; or if it says none, each of its trees.

    Raises:
        TreeError: as `load_tree`; a file that only declares node types has no tree, and that is no error.
    """
    document, factory = _read(path, factory, mock=mock)
    names = [document.main] if document.main else document.own
    return [_built(document, factory, name, None) for name in names]


def read_tree(
    text: str,
    factory: Factory | None = None,
    *,
    main: str | None = None,
    blackboard: Blackboard | None = None,
    mock: bool = False,
    source: str = "<text>",
    strict: bool = True,
) -> Tree:
    """A tree from XML, which includes nothing; see `load_tree`.

    Unless it is ``strict``, missing ports and children are found where BehaviorTree.CPP finds them: in the tick.
    """
    factory = factory or Factory(plugins=True)
    document = read_document(text, source, None, factory, mock=mock)
    if mock:
        factory = with_mocks(factory, document)
    return _built(document, factory, main or document.main_tree(), blackboard, strict=strict)


def _read(path: str | Path, factory: Factory | None, *, mock: bool) -> tuple[Document, Factory]:
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise TreeError(f"cannot be read: {error.strerror}", where=str(path), valid="a file of trees in XML") from None
    factory = factory or Factory(plugins=True)
    document = read_document(data, str(path), file.resolve().parent, factory, mock=mock)
    return document, with_mocks(factory, document) if mock else factory


def _built(
    document: Document, factory: Factory, name: str, blackboard: Blackboard | None, *, strict: bool = True
) -> Tree:
    builder = Builder(document, factory)
    root = builder.build(name, blackboard or Blackboard())
    tree = Tree(root, builder.parts, builder.wake_up, builder.timers)
    if strict:
        check_nodes(tree.nodes.values())
    return tree
