"""The bus: a set of communicating nodes on one clock, without global state."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from roboyard.bus.context import BusContext
from roboyard.bus.log import LogRecord
from roboyard.bus.names import check_node_name, normalize_namespace
from roboyard.bus.node import HEALTH_LEVELS, Node
from roboyard.bus.snapshot import load_bus_state, save_bus_state
from roboyard.bus.system_node import SystemNode
from roboyard.errors import InputError, RoboyardError

N = TypeVar("N", bound=Node)


class Bus(BusContext):
    """Set of communicating nodes on one clock.

    Args:
        seed: Seed; each node's random generator is derived from it and the node's name.
        debug: Check after every delivery that the subscriber did not change the message (slow).
        workers: Number of threads for offloaded tasks.
        start_ns: Start time of the clock [ns], e.g. the start of a recording to replay.

    Attributes:
        nodes: Nodes by full name, in order of addition.
    """

    def __init__(self, seed: int = 0, *, debug: bool = False, workers: int = 1, start_ns: int = 0) -> None:
        super().__init__(seed, debug=debug, workers=workers, start_ns=start_ns)
        self.nodes: dict[str, Node] = {}
        self._system_node = SystemNode(nodes=lambda: self.nodes.values())
        self.add(self._system_node, "roboyard")

    # -- nodes ---------------------------------------------------------------------------------------------------------
    def add(
        self,
        node: N,
        name: str,
        *,
        namespace: str = "",
        remap: Mapping[str, str] | None = None,
        frame_prefix: str = "",
    ) -> N:
        """Add a node under a name, and call its `setup`.

        Args:
            node: A node that is not on a bus yet.
            name: Name, unique within its namespace.
            namespace: "" or e.g. "/rover"; relative names of the node resolve in it.
            remap: New names of topics, services and actions: {"scan": "front/scan"}.
            frame_prefix: Prefix of the node's own frame ids, e.g. "rover/".

        Raises:
            InputError: The name is in use or invalid.
            NodeError: `setup` failed; the node is not on the bus then.
        """
        namespace = normalize_namespace(namespace)
        full_name = f"{namespace}/{check_node_name(name)}"
        if not isinstance(node, Node) or "_resources" not in vars(node):
            problem = "has an __init__ that does not call Node.__init__" if isinstance(node, Node) else "is not a node"
            raise InputError(
                f"{node!r:.80} {problem}", location=f"node {full_name}", valid="an instance of a subclass of ry.Node"
            )
        node.check_unattached()
        if full_name in self.nodes:
            raise InputError(f"node name {full_name} is already in use", valid="another name or namespace")
        self.nodes[full_name] = node
        try:
            node.attach(self, name, namespace, dict(remap or {}), frame_prefix)
        except BaseException:
            with suppress(RoboyardError):  # report the first error; a node with an incomplete setup may fail to close
                self.remove(node)
            raise
        return node

    def remove(self, node: Node) -> None:
        """Remove a node: close its publishers, subscriptions, services and timers.

        Raises:
            InputError: The node is not on this bus.
            NodeError: The node's `close` failed; the node is removed anyway.
        """
        if all(other is not node for other in self.nodes.values()):
            raise InputError(f"{type(node).__name__} {node.full_name} is not on this bus")
        self.nodes = {name: other for name, other in self.nodes.items() if other is not node}
        node.detach()

    # -- reports of nodes ----------------------------------------------------------------------------------------------
    def write_log(self, record: LogRecord) -> None:
        """Publish a log record and pass it to the log sinks."""
        self._system_node.publish_log(record)
        for sink in self.log_sinks:
            sink(record)

    def publish_health_change(self) -> None:
        """Publish diagnostics now, because a node's level changed."""
        self._system_node.publish_health()

    def publish_parameter_change(self, node: str, name: str, value: Any) -> None:
        """Publish that parameter `name` of `node` now has the value `value`."""
        self._system_node.publish_parameter(node, name, value)

    def worst_health_level(self) -> str:
        """Return the worst level that any node reports: "ok", "warn", "error" or "stale"."""
        levels = [node.health.level for node in self.nodes.values() if node.health]
        return max(levels, key=lambda level: HEALTH_LEVELS[level], default="ok")

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the state of all nodes as plain data; call it between two calls of the executor.

        Raises:
            RunError: Messages are in transit, or a node cannot be saved (the message names it).
        """
        return save_bus_state(self, self.nodes)

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save_state` returned, on a bus with the same setup and a clock that is not later.

        Raises:
            RunError: The setup of this bus differs, or its clock is later.
        """
        load_bus_state(self, self.nodes, saved)

    # -- closing -------------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """Remove all nodes, last one first, and stop the workers.  The first error is raised after all are closed."""
        if self._is_closing:
            return
        self._is_closing = True
        first_error: Exception | None = None
        for node in reversed(list(self.nodes.values())):
            try:
                self.remove(node)
            except Exception as error:  # noqa: BLE001 - every node must get its chance to close
                first_error = first_error or error
        self.offload.close()
        if first_error is not None:
            raise first_error

    def __enter__(self) -> Bus:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
