"""What Groot2 asks of a tree that runs, and the answers: version 2 of BehaviorTree.CPP's monitoring protocol.

A request is one or two parts, an answer two, of which the first is a header: protocol, type, number of the request, and
in answers the tree's 16 bytes.  That a breakpoint is reached is told unasked.  No socket is needed here;
`roboyard.behavior.nodes.groot_server` has two.
"""

from __future__ import annotations

import hashlib
import struct
from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from roboyard.behavior.factory import Factory
from roboyard.behavior.hooks import CHANGES, GrootError, Hooks
from roboyard.behavior.node import TreeNode
from roboyard.behavior.ports import Port
from roboyard.behavior.status import IDLE, Status
from roboyard.behavior.tree import Tree

PROTOCOL: Final = 2
PORT: Final = 1667
"""That Groot2 asks unless it is told another."""
_HEADER: Final = struct.Struct("<BBI")
_WAS: Final = 10
"""Added to the last status of a node that is idle again, so that Groot2 can show it."""
_KEPT: Final = 1000
"""Changes that are kept while Groot2 records."""


class Monitor:
    """Knows a tree's state for Groot2, and answers its requests.

    Args:
        tree: That runs.
        now_ns: The time [ns].
        hooks: On its nodes.
        change: Has a request that changes hooks carried out, ``change(kind, body)``; raises GrootError.

    Attributes:
        lock: To be held while the tree is ticked, since requests come at any time.
    """

    def __init__(self, tree: Tree, now_ns: Callable[[], int], hooks: Hooks, change: Callable[[str, str], None]) -> None:
        self.lock = Lock()
        self._hooks, self._change = hooks, change
        self._tree, self._now_ns = tree, now_ns
        self._xml = as_xml(tree)
        self._id = hashlib.blake2b(self._xml.encode(), digest_size=16).digest()
        self._statuses = {uid: node.status.value for uid, node in tree.nodes.items()}
        self._changes: deque[bytes] = deque(maxlen=_KEPT)
        self._since_us: int | None = None
        self._answers: dict[int, Callable[[Sequence[bytes]], bytes | None]] = {
            ord("T"): lambda _: self._xml.encode(),
            ord("S"): lambda _: self._status(),
            ord("B"): self._blackboards,
            ord("D"): lambda _: hooks.dump().encode(),
            ord("r"): self._record,
            ord("t"): lambda _: self._recorded(),
        }

    def note(self, node: TreeNode, before: Status, after: Status) -> None:
        """A node's status changed; the lock is held."""
        self._statuses[node.uid] = after.value if after is not IDLE else _WAS + before.value
        if self._since_us is not None:
            at = self._now_ns() // 1000 - self._since_us
            self._changes.append(at.to_bytes(6, "little") + struct.pack("<HB", node.uid, after.value))

    def answer(self, parts: Sequence[bytes]) -> list[bytes]:
        """The answer to a request's parts; an error is answered in words."""
        try:
            if not parts or len(parts[0]) != _HEADER.size:
                raise GrootError("wrong request header")
            protocol, kind, number = _HEADER.unpack(parts[0])
            if protocol != PROTOCOL:
                raise GrootError(f"protocol {protocol} is not spoken here, only {PROTOCOL}")
            body = None
            if kind in self._answers:
                with self.lock:
                    body = self._answers[kind](parts[1:])
            elif chr(kind) in CHANGES:
                self._change(chr(kind), self._second(parts) if chr(kind) in "IRU" else "")
            else:
                raise GrootError("Request not recognized")
        except GrootError as error:
            return [b"error", str(error).encode()]
        header = _HEADER.pack(protocol, kind, number) + self._id
        return [header] if body is None else [header, body]

    def _status(self) -> bytes:
        return b"".join(struct.pack("<HB", uid, status) for uid, status in self._statuses.items())

    def _blackboards(self, rest: Sequence[bytes]) -> bytes:
        wanted = self._second((b"", *rest)).split(";")
        boards = {part.path or part.tree: part.blackboard for part in self._tree.parts}
        told = [name for name in wanted if name in boards]
        return packed({name: {key: entry.value for key, entry in boards[name]} for name in told})

    def _second(self, parts: Sequence[bytes]) -> str:
        if len(parts) != 2:
            raise GrootError("must be 2 parts message")
        return parts[1].decode(errors="replace")

    def _record(self, rest: Sequence[bytes]) -> bytes | None:
        word = self._second((b"", *rest))
        self._changes.clear()
        if word == "start":
            self._since_us = self._now_ns() // 1000
            return str(self._since_us).encode()
        self._since_us = None
        return None

    def _recorded(self) -> bytes:
        found = b"".join(self._changes)
        self._changes.clear()
        return found


def packed(value: Any) -> bytes:
    """A value as MessagePack; what is no number, text, truth, list or mapping goes as text."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return b"\xd3" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, (list, tuple, deque)):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(packed, value))
    if isinstance(value, dict):
        pairs = (packed(str(key)) + packed(item) for key, item in value.items())
        return b"\xdf" + struct.pack(">I", len(value)) + b"".join(pairs)
    data = str(value).encode()
    return b"\xdb" + struct.pack(">I", len(data)) + data


def as_xml(tree: Tree) -> str:
    """A tree as Groot2 wants it: with the number of each node, the path of each subtree, and the nodes' ports."""
    root = Element("root", BTCPP_format="4", main_tree_to_execute=tree.name)
    paths = {id(part.nodes[0]): part for part in tree.parts}

    def add(parent: Element, node: TreeNode) -> None:
        said = {port: text for port, text in {**node.inputs, **node.outputs}.items() if port[:1] != "_"}
        scripts = {attribute: script.text for attribute, script in node.scripts.items()}
        named = {"name": node.name} if node.name != node.type_name else {}
        part = paths.get(id(node.children[0])) if node.children else None
        if part is not None:
            numbers = {"ID": part.tree, "_fullpath": part.path, "_uid": str(node.uid)}
            SubElement(parent, "SubTree", {**named, **said, **scripts, **numbers})
            return
        element = SubElement(parent, node.type_name, {**named, **said, **scripts, "_uid": str(node.uid)})
        for child in node.children:
            add(element, child)

    for part in tree.parts:
        add(SubElement(root, "BehaviorTree", {"ID": part.tree, "_fullpath": part.path}), part.nodes[0])
    models = SubElement(root, "TreeNodesModel")
    known = Factory().builtin
    for name, node in sorted({node.type_name: node for node in tree.walk()}.items()):
        if name not in known and name not in ("SubTree", "SubTreePlus"):
            model = SubElement(models, node.kind.value, ID=name)
            for port, about in node.ports.items():
                _add_port(model, port, about)
    indent(root)
    return tostring(root, encoding="unicode")


def _add_port(model: Element, name: str, port: Port) -> None:
    default = {} if port.default is None else {"default": port.default}
    SubElement(model, port.direction, {"name": name, "type": port.type.name, **default}).text = port.doc


def request(kind: str, number: int, *rest: str) -> list[bytes]:
    """A request as Groot2 makes it, e.g. ``T`` for the tree and ``S`` for its status."""
    return [_HEADER.pack(PROTOCOL, ord(kind), number), *(part.encode() for part in rest)]


def reached(uid: int, number: int) -> list[bytes]:
    """What is told when a node's hook is come upon."""
    return [_HEADER.pack(PROTOCOL, ord("N"), number), str(uid).encode()]


def statuses(body: bytes) -> dict[int, tuple[Status, bool]]:
    """Each node's status in an answer to ``S``, and whether it has gone back to idle since."""
    told = dict(struct.iter_unpack("<HB", body))
    return {uid: (Status(status % _WAS), status >= _WAS) for uid, status in told.items()}
