"""Behavior trees: loaded, checked, ticked at given times, halted, monitored, saved and restored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from roboyard.behavior.basic_types import BUILTIN_TYPES, FAILURE, RUNNING, SUCCESS, NodeStatus, PortType
from roboyard.behavior.blackboard import Blackboard
from roboyard.behavior.errors import InvalidTreeError, TreeNodeError
from roboyard.behavior.factory import NodeFactory, matches_pattern
from roboyard.behavior.tree_builder import SubtreeInfo, TreeBuilder, add_mocks
from roboyard.behavior.tree_file import TreeDocument, read_document
from roboyard.behavior.tree_node import StatusChangeCallback, TimerQueue, TreeNode, WakeUpSignal, describe_node


def check_nodes(nodes: Iterable[TreeNode]) -> None:
    """Check that each node has the ports and the children that it needs.

    Raises:
        InvalidTreeError: one has not; says file, line, node, port and what would be right.
    """
    for node in nodes:
        _check_ports(node)
        _check_children(node)


def _check_ports(node: TreeNode) -> None:
    for name, port in node.ports.items():
        if port.is_required and name not in node.inputs:
            raise InvalidTreeError(
                f"the port [{name}] is missing" + (f": {port.doc.removesuffix('.')}" if port.doc else ""),
                location=f"{node.location}: {describe_node(node)}, port {name}",
                valid=f'{name}="{{entry}}"'
                + (f" or a constant of type {port.type.name}" if port.type.is_strong else ""),
            )


def _check_children(node: TreeNode) -> None:
    if node.arity is None:
        return
    low, high = node.arity
    if not low <= len(node.children) <= high:
        expected = f"{low}" if low == high else f"{low} to {high}"
        raise InvalidTreeError(
            f"it has {len(node.children)} children",
            location=f"{node.location}: {describe_node(node)}",
            valid=f"{expected} of them",
        )


class Tree:
    """A tree of nodes, created by `load_tree` and `read_tree`.

    Ticks take the time as an argument: Timeout, Delay and Sleep measure by it.

    Attributes:
        root: Root node.
        subtrees: The tree itself and its subtrees, each with its blackboard.
        nodes: All nodes, by their numbers, from 1.
    """

    def __init__(self, root: TreeNode, subtrees: list[SubtreeInfo], wake_up: WakeUpSignal, timers: TimerQueue) -> None:
        self.root = root
        self.subtrees = subtrees
        self.nodes: dict[int, TreeNode] = {node.uid: node for part in subtrees for node in part.nodes}
        self._wake_up = wake_up
        self._timers = timers

    @property
    def name(self) -> str:
        """Return the ID of the tree."""
        return self.subtrees[0].tree_id

    @property
    def blackboard(self) -> Blackboard:
        """Return the blackboard of the main tree."""
        return self.subtrees[0].blackboard

    def tick_exactly_once(self, now_ns: int = 0) -> NodeStatus:
        """Tick the root once, at a time [ns].

        Raises:
            ExecutionError: a node failed with an error; the tree stays as it is then, and should be halted.
        """
        return self._tick(now_ns, repeats=False)

    def tick_once(self, now_ns: int = 0) -> NodeStatus:
        """Tick the root at a time [ns], and again as long as a node requests it.

        Raises:
            ExecutionError: as `tick_exactly_once`.
        """
        return self._tick(now_ns, repeats=True)

    def _tick(self, now_ns: int, *, repeats: bool) -> NodeStatus:
        shared = self.blackboard.shared
        shared.now_ns = now_ns
        for uid in self._timers.pop_due(now_ns):
            self.nodes[uid].on_timer()
        root = self.root
        status = root.execute_tick()
        while repeats and status is RUNNING and self._wake_up.requested:
            self._wake_up.requested = False
            status = root.execute_tick()
        if status is SUCCESS or status is FAILURE:
            root.reset_status()
        return status

    @property
    def next_timer_ns(self) -> int | None:
        """Time of the next timer [ns]; None without one."""
        return self._timers.next_ns

    def halt(self) -> None:
        """Halt all nodes."""
        self.root.halt_node()
        for node in self.walk():
            node.halt_node()
        self.root.reset_status()

    def close(self) -> None:
        """Release the resources of all nodes; the tree must not be used any more."""
        for node in self.nodes.values():
            node.close()

    def walk(self) -> Iterator[TreeNode]:
        """Yield all nodes, each before its children."""
        stack = [self.root]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def find(self, pattern: str) -> list[TreeNode]:
        """Return the nodes whose path matches a pattern, in which ``*`` is any text."""
        return [node for node in self.nodes.values() if matches_pattern(node.path, pattern)]

    def set_status_callback(self, callback: StatusChangeCallback | None) -> None:
        """Call ``callback(node, previous, status)`` at each change of a node's status; None: no more."""
        for node in self.nodes.values():
            node.set_status_callback(callback)

    def save_state(self) -> dict[str, Any]:
        """Return the state of the tree as plain data: nodes, blackboards, timers.

        Raises:
            TreeNodeError: a node cannot be saved; says which.
        """
        return {
            "tree": self.name,
            "nodes": {str(uid): node.save_state() for uid, node in self.nodes.items()},
            "blackboards": [part.blackboard.save_state() for part in self.subtrees],
            "timers": self._timers.save_state(),
            "wake_up_requested": self._wake_up.requested,
            "now_ns": self.blackboard.shared.now_ns,
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the result of `save_state`, on a tree of the same file.

        Raises:
            TreeNodeError: The state is of another tree.
        """
        if saved["tree"] != self.name or saved["nodes"].keys() != {str(uid) for uid in self.nodes}:
            raise TreeNodeError(f"the saved tree {saved['tree']!r} is not this one, {self.name!r}")
        for uid, state in saved["nodes"].items():
            self.nodes[int(uid)].load_state(state)
        declared_types = {port.type.name: port.type for node in self.nodes.values() for port in node.ports.values()}
        port_types: dict[str, PortType] = {**BUILTIN_TYPES, **declared_types}
        for part, entries in zip(self.subtrees, saved["blackboards"], strict=True):
            part.blackboard.load_state(entries, port_types)
        self._timers.load_state(saved["timers"])
        self._wake_up.requested = saved["wake_up_requested"]
        self.blackboard.shared.now_ns = saved["now_ns"]


def load_tree(
    path: str | Path,
    factory: NodeFactory | None = None,
    *,
    main: str | None = None,
    blackboard: Blackboard | None = None,
    mock: bool = False,
) -> Tree:
    """Load a tree from a file of BehaviorTree.CPP, version 4 or 3.

    Args:
        path: The file; files that it includes are found beside it.
        factory: What node types there are; those of the engine and of installed packages, if not said.
        main: Which of its trees; the one that the file says, if not said.
        blackboard: For the tree; a new one, if not said.
        mock: Put stand-ins in the place of unknown node types.

    Raises:
        InvalidTreeError: the file is wrong; says line, node, port and what would be right.
    """
    document, factory = _read_file(path, factory, mock=mock)
    return _build_tree(document, factory, main or document.main_tree(), blackboard)


def load_trees(path: str | Path, factory: NodeFactory | None = None, *, mock: bool = False) -> list[Tree]:
    """Load the main tree of a file; if the file names none, each of its trees.

    Raises:
        InvalidTreeError: as `load_tree`; a file that only declares node types has no tree, and that is no error.
    """
    document, factory = _read_file(path, factory, mock=mock)
    names = [document.main_tree_id] if document.main_tree_id else document.local_trees
    return [_build_tree(document, factory, name, None) for name in names]


def read_tree(
    text: str,
    factory: NodeFactory | None = None,
    *,
    main: str | None = None,
    blackboard: Blackboard | None = None,
    mock: bool = False,
    source: str = "<text>",
    strict: bool = True,
) -> Tree:
    """Read a tree from XML without includes; see `load_tree`.

    Unless it is ``strict``, missing ports and children are found where BehaviorTree.CPP finds them: in the tick.
    """
    factory = factory or NodeFactory(plugins=True)
    document = read_document(text, source, None, factory, uses_mocks=mock)
    if mock:
        factory = add_mocks(factory, document)
    return _build_tree(document, factory, main or document.main_tree(), blackboard, strict=strict)


def _read_file(path: str | Path, factory: NodeFactory | None, *, mock: bool) -> tuple[TreeDocument, NodeFactory]:
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InvalidTreeError(
            f"cannot be read: {error.strerror}", location=str(path), valid="a file of trees in XML"
        ) from None
    factory = factory or NodeFactory(plugins=True)
    document = read_document(data, str(path), file.resolve().parent, factory, uses_mocks=mock)
    return document, add_mocks(factory, document) if mock else factory


def _build_tree(
    document: TreeDocument, factory: NodeFactory, name: str, blackboard: Blackboard | None, *, strict: bool = True
) -> Tree:
    builder = TreeBuilder(document, factory)
    root = builder.build(name, blackboard or Blackboard())
    tree = Tree(root, builder.subtrees, builder.wake_up, builder.timers)
    if strict:
        check_nodes(tree.nodes.values())
    return tree
