"""Monitoring by Groot2: its requests and replies (version 2 of BehaviorTree.CPP's protocol), breakpoints, and replaced
results of nodes.

A request has one or two parts, a reply two, of which the first is a header: protocol, type, number of the request,
and in replies the tree's 16 bytes. A reached breakpoint is published without a request.
`roboyard.behavior.nodes.groot_server` has the sockets. As in BehaviorTree.CPP 4.10 a hook is executed before or
after a node's tick. At a breakpoint a tree waits until it is unlocked, and continues with the node's own
status, or the one given when it was unlocked.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from threading import Lock
from typing import Any, Final, TypeVar
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from roboyard.behavior.basic_types import IDLE, SKIPPED, NodeStatus
from roboyard.behavior.factory import NodeFactory
from roboyard.behavior.ports import Port
from roboyard.behavior.tree import Tree
from roboyard.behavior.tree_node import TreeNode


class HookPosition(IntEnum):
    """When a hook is executed, with Groot2's numbers."""

    PRE_TICK = 0
    POST_TICK = 1


class HookMode(IntEnum):
    """What a hook does, with Groot2's numbers: hold the tree, or replace the status of the node."""

    BREAKPOINT = 0
    REPLACE = 1


HOOK_REQUESTS: Final = "IRUAXE"
"""Requests that change hooks: insert, remove, unlock, remove all, disable all; ``E``, enable all, is not Groot2's."""


class GrootError(Exception):
    """A request that cannot be carried out; the message gives the reason."""


@dataclass
class GrootHook:
    """A hook of one node.

    Attributes:
        enabled: Whether it is active.
        uid: Number of the node.
        mode: What it does.
        once: Whether it is removed when it is reached.
        desired_status: Status instead of the node's own; other than SUCCESS and FAILURE: none.
        position: When it is executed.
    """

    enabled: bool
    uid: int
    mode: HookMode
    once: bool
    desired_status: str
    position: HookPosition


HookKey = tuple[HookPosition, int]
"""Position of a hook, and number of its node."""


class GrootHooks:
    """Hooks of the nodes of a tree.

    Attributes:
        wait: Called at a breakpoint; returns when a request has arrived.
        on_reached: Called with a node's number when its hook is reached.
        paused_at: Path of the node at whose breakpoint the tree waits; "" if it does not.
    """

    def __init__(self, tree: Tree, wait: Callable[[], None], on_reached: Callable[[int], None]) -> None:
        self._nodes = tree.nodes
        self._wait, self._on_reached = wait, on_reached
        self._hooks: dict[HookKey, GrootHook] = {}
        self._unlocked: set[HookKey] = set()
        self.paused_at = ""

    def __bool__(self) -> bool:
        return bool(self._hooks)

    def dump(self) -> str:
        """Return all hooks as JSON, those before ticks first."""
        hooks = sorted(self._hooks.items(), key=lambda item: item[0][0])
        return json.dumps([asdict(hook) for _, hook in hooks], separators=(",", ":"), sort_keys=True)

    def change(self, request_type: str, body: str) -> None:
        """Carry out a request; see `HOOK_REQUESTS`.

        Raises:
            GrootError: it is none, or about a hook that there is not.
        """
        if request_type in "XE":
            for hook in self._hooks.values():
                hook.enabled = request_type == "E"
            return
        if request_type == "A":
            for key in list(self._hooks):
                self._remove(key)
            return
        try:
            requests = json.loads(body)
            for request in requests if isinstance(requests, list) else [requests]:
                if request_type == "I":
                    self._insert(request)
                    continue
                key = (_parse_enum(HookPosition, request["position"]), int(request["uid"]))
                if key not in self._hooks:
                    raise GrootError("Node ID not found")
                if request_type == "R":
                    self._remove(key)
                else:
                    self._unlock(key, str(request["desired_status"]), bool(request["remove_when_done"]))
        except KeyError as error:
            raise GrootError(f"the key {error} is missing") from None
        except (ValueError, TypeError, AttributeError) as error:
            raise GrootError(f"no request: {error}") from None

    # -- changes -------------------------------------------------------------------------------------------------------
    def _insert(self, request: Mapping[str, Any]) -> None:
        hook = GrootHook(
            enabled=bool(request["enabled"]),
            uid=int(request["uid"]),
            mode=_parse_enum(HookMode, request["mode"]),
            once=bool(request["once"]),
            desired_status=str(request["desired_status"]),
            position=_parse_enum(HookPosition, request["position"]),
        )
        if hook.desired_status not in NodeStatus.__members__:
            raise GrootError(f"{hook.desired_status!r} is no status; valid: {', '.join(NodeStatus.__members__)}")
        if hook.uid not in self._nodes:
            return  # as BehaviorTree.CPP does
        key = (hook.position, hook.uid)
        existing = self._hooks.setdefault(key, hook)
        if existing is hook:
            self._attach(hook.uid)
            return
        if existing.mode is HookMode.BREAKPOINT and hook.mode is HookMode.REPLACE:
            self._unlocked.add(key)
        vars(existing).update(vars(hook))

    def _unlock(self, key: HookKey, status: str, remove: bool) -> None:
        hook = self._hooks[key]
        hook.desired_status = status if status in ("SUCCESS", "FAILURE") else "SKIPPED"
        hook.once = hook.once or remove
        if hook.mode is HookMode.BREAKPOINT:
            self._unlocked.add(key)

    def _remove(self, key: HookKey) -> None:
        self._hooks.pop(key).enabled = False
        self._unlocked.discard(key)
        self._attach(key[1])

    def _attach(self, uid: int) -> None:
        """Set the tick callbacks of a node to its hooks."""
        pre_tick, post_tick = (self._hooks.get((position, uid)) for position in HookPosition)
        self._nodes[uid].set_tick_callbacks(
            None if pre_tick is None else lambda node: self._on_hook_reached(pre_tick, node),
            None if post_tick is None else lambda node: self._on_hook_reached(post_tick, node),
        )

    # -- ticks ---------------------------------------------------------------------------------------------------------
    def _on_hook_reached(self, hook: GrootHook, node: TreeNode) -> NodeStatus:
        if not hook.enabled:
            return SKIPPED
        self._on_reached(node.uid)
        key = (hook.position, hook.uid)
        if hook.mode is HookMode.BREAKPOINT:
            self.paused_at = node.path
            while hook.enabled and key not in self._unlocked:
                self._wait()
            self.paused_at = ""
            self._unlocked.discard(key)
        return self._hook_status(hook)

    def _hook_status(self, hook: GrootHook) -> NodeStatus:
        if not hook.enabled:  # meanwhile
            return SKIPPED
        if hook.once:
            self._remove((hook.position, hook.uid))
        return NodeStatus[hook.desired_status]


_E = TypeVar("_E", bound=IntEnum)


def _parse_enum(kind: type[_E], value: Any) -> _E:
    if value not in tuple(kind):
        raise GrootError("mode and position are 0 or 1")
    return kind(value)


PROTOCOL: Final = 2
DEFAULT_PORT: Final = 1667
"""That Groot2 asks unless it is told another."""
_HEADER: Final = struct.Struct("<BBI")
_IDLE_STATUS_OFFSET: Final = 10
"""Added to the last status of a node that is idle again, so that Groot2 can show it."""
_MAX_RECORDED_CHANGES: Final = 1000
"""Changes that are kept while Groot2 records."""


class GrootRequestHandler:
    """Keeps a tree's state for Groot2, and handles its requests.

    Args:
        tree: The tree that is executed.
        now_ns: Returns the time [ns].
        hooks: Hooks of its nodes.
        change_hooks: Carries out a request that changes hooks, ``change_hooks(request_type, body)``; raises
            GrootError.

    Attributes:
        lock: Held while the tree is ticked, since requests come at any time.
    """

    def __init__(
        self, tree: Tree, now_ns: Callable[[], int], hooks: GrootHooks, change_hooks: Callable[[str, str], None]
    ) -> None:
        self.lock = Lock()
        self._hooks, self._change_hooks = hooks, change_hooks
        self._tree, self._now_ns = tree, now_ns
        self._xml = tree_to_xml(tree)
        self._tree_id = hashlib.blake2b(self._xml.encode(), digest_size=16).digest()
        self._statuses = {uid: node.status.value for uid, node in tree.nodes.items()}
        self._changes: deque[bytes] = deque(maxlen=_MAX_RECORDED_CHANGES)
        self._recording_start_us: int | None = None
        self._handlers: dict[int, Callable[[Sequence[bytes]], bytes | None]] = {
            ord("T"): lambda _: self._xml.encode(),
            ord("S"): lambda _: self._encode_statuses(),
            ord("B"): self._dump_blackboards,
            ord("D"): lambda _: hooks.dump().encode(),
            ord("r"): self._set_recording,
            ord("t"): lambda _: self._pop_recorded_changes(),
        }

    def record(self, node: TreeNode, before: NodeStatus, after: NodeStatus) -> None:
        """Record a change of a node's status; the caller holds the lock."""
        self._statuses[node.uid] = after.value if after is not IDLE else _IDLE_STATUS_OFFSET + before.value
        if self._recording_start_us is not None:
            time_us = self._now_ns() // 1000 - self._recording_start_us
            self._changes.append(time_us.to_bytes(6, "little") + struct.pack("<HB", node.uid, after.value))

    def handle_request(self, parts: Sequence[bytes]) -> list[bytes]:
        """Return the reply to the parts of a request; an error is replied as text."""
        try:
            if not parts or len(parts[0]) != _HEADER.size:
                raise GrootError("wrong request header")
            protocol, request_type, number = _HEADER.unpack(parts[0])
            if protocol != PROTOCOL:
                raise GrootError(f"protocol {protocol} is not spoken here, only {PROTOCOL}")
            body = None
            if request_type in self._handlers:
                with self.lock:
                    body = self._handlers[request_type](parts[1:])
            elif chr(request_type) in HOOK_REQUESTS:
                self._change_hooks(chr(request_type), self._second_part(parts) if chr(request_type) in "IRU" else "")
            else:
                raise GrootError("Request not recognized")
        except GrootError as error:
            return [b"error", str(error).encode()]
        header = _HEADER.pack(protocol, request_type, number) + self._tree_id
        return [header] if body is None else [header, body]

    def _encode_statuses(self) -> bytes:
        return b"".join(struct.pack("<HB", uid, status) for uid, status in self._statuses.items())

    def _dump_blackboards(self, parts: Sequence[bytes]) -> bytes:
        requested_names = self._second_part((b"", *parts)).split(";")
        blackboards = {part.path or part.tree_id: part.blackboard for part in self._tree.subtrees}
        names = [name for name in requested_names if name in blackboards]
        return encode_message({name: {key: entry.value for key, entry in blackboards[name]} for name in names})

    def _second_part(self, parts: Sequence[bytes]) -> str:
        if len(parts) != 2:
            raise GrootError("must be 2 parts message")
        return parts[1].decode(errors="replace")

    def _set_recording(self, parts: Sequence[bytes]) -> bytes | None:
        command = self._second_part((b"", *parts))
        self._changes.clear()
        if command == "start":
            self._recording_start_us = self._now_ns() // 1000
            return str(self._recording_start_us).encode()
        self._recording_start_us = None
        return None

    def _pop_recorded_changes(self) -> bytes:
        found = b"".join(self._changes)
        self._changes.clear()
        return found


def encode_message(value: Any) -> bytes:
    """Encode a value as MessagePack; values other than numbers, texts, booleans, lists and mappings are encoded as
    text."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return b"\xd3" + struct.pack(">q", value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, (list, tuple, deque)):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(encode_message, value))
    if isinstance(value, dict):
        pairs = (encode_message(str(key)) + encode_message(item) for key, item in value.items())
        return b"\xdf" + struct.pack(">I", len(value)) + b"".join(pairs)
    data = str(value).encode()
    return b"\xdb" + struct.pack(">I", len(data)) + data


def tree_to_xml(tree: Tree) -> str:
    """Return a tree as XML for Groot2, with numbers and ports of nodes and paths of subtrees."""
    root = Element("root", BTCPP_format="4", main_tree_to_execute=tree.name)
    subtrees_by_root = {id(part.nodes[0]): part for part in tree.subtrees}

    def add(parent: Element, node: TreeNode) -> None:
        port_texts = {port: text for port, text in {**node.inputs, **node.outputs}.items() if port[:1] != "_"}
        scripts = {attribute: script.text for attribute, script in node.scripts.items()}
        name_attribute = {"name": node.name} if node.name != node.type_name else {}
        part = subtrees_by_root.get(id(node.children[0])) if node.children else None
        if part is not None:
            subtree_attributes = {"ID": part.tree_id, "_fullpath": part.path, "_uid": str(node.uid)}
            SubElement(parent, "SubTree", {**name_attribute, **port_texts, **scripts, **subtree_attributes})
            return
        element = SubElement(parent, node.type_name, {**name_attribute, **port_texts, **scripts, "_uid": str(node.uid)})
        for child in node.children:
            add(element, child)

    for part in tree.subtrees:
        add(SubElement(root, "BehaviorTree", {"ID": part.tree_id, "_fullpath": part.path}), part.nodes[0])
    models = SubElement(root, "TreeNodesModel")
    builtin_names = NodeFactory().builtin_names
    for name, node in sorted({node.type_name: node for node in tree.walk()}.items()):
        if name not in builtin_names and name not in ("SubTree", "SubTreePlus"):
            model = SubElement(models, node.node_type.value, ID=name)
            for port, port_spec in node.ports.items():
                _add_port(model, port, port_spec)
    indent(root)
    return tostring(root, encoding="unicode")


def _add_port(model: Element, name: str, port: Port) -> None:
    default = {} if port.default is None else {"default": port.default}
    SubElement(model, port.direction, {"name": name, "type": port.type.name, **default}).text = port.doc


def encode_request(request_type: str, number: int, *parts: str) -> list[bytes]:
    """Encode a request as Groot2 does, e.g. ``T`` for the tree and ``S`` for its status."""
    return [_HEADER.pack(PROTOCOL, ord(request_type), number), *(part.encode() for part in parts)]


def encode_breakpoint_reached(uid: int, number: int) -> list[bytes]:
    """Encode the notification that a node's hook is reached."""
    return [_HEADER.pack(PROTOCOL, ord("N"), number), str(uid).encode()]


def decode_statuses(body: bytes) -> dict[int, tuple[NodeStatus, bool]]:
    """Decode a reply to ``S``: the last status of each node, and whether the node is idle now."""
    values = dict(struct.iter_unpack("<HB", body))
    return {
        uid: (NodeStatus(status % _IDLE_STATUS_OFFSET), status >= _IDLE_STATUS_OFFSET) for uid, status in values.items()
    }
