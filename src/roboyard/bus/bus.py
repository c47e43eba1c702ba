"""The bus: a set of communicating nodes on one clock.  Nothing about it is global."""

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
    """One world of communicating nodes.

    Args:
        seed: Every node's random generator derives from it and the node's name.
        debug: Check after every delivery that the subscriber did not change the message (slow).
        workers: Threads for offloaded work.
        start_ns: Where the clock begins [ns], e.g. the start of a recording to replay.

    Attributes:
        nodes: By full name, in order of joining.
    """

    def __init__(self, seed: int = 0, *, debug: bool = False, workers: int = 1, start_ns: int = 0) -> None:
        super().__init__(seed, debug=debug, workers=workers, start_ns=start_ns)
        self.nodes: dict[str, Node] = {}
        self._system_node = SystemNode(nodes=lambda: self.nodes.values())
        self.add(self._system_node, "roboyard")

    # -- nodes -----------------------------------------------------------------------------------------------------
    def add(
        self,
        node: N,
        name: str,
        *,
        namespace: str = "",
        remap: Mapping[str, str] | None = None,
        frame_prefix: str = "",
    ) -> N:
        """Let ``node`` join under ``name``, and set it up.

        Args:
            node: A node that is on no bus yet.
            name: Unique within its namespace.
            namespace: "" or e.g. "/rover"; relative names of the node resolve in it.
            remap: Other names for topics, services and actions: {"scan": "front/scan"}.
            frame_prefix: Put before the node's own frame ids, e.g. "rover/".

        Raises:
            InputError: the name is taken or not valid.
            NodeError: ``setup`` failed; the node is not on the bus then.
        """
        namespace = normalize_namespace(namespace)
        full_name = f"{namespace}/{check_node_name(name)}"
        if not isinstance(node, Node) or "_resources" not in vars(node):
            problem = "whose __init__ does not call Node's" if isinstance(node, Node) else "is no node"
            raise InputError(
                f"{node!r:.80} {problem}", location=f"node {full_name}", valid="an instance of a subclass of ry.Node"
            )
        node.check_unattached()
        if full_name in self.nodes:
            raise InputError(f"a node {full_name} is on the bus already", valid="another name or namespace")
        self.nodes[full_name] = node
        try:
            node.attach(self, name, namespace, dict(remap or {}), frame_prefix)
        except BaseException:
            with suppress(RoboyardError):  # what went wrong first matters; half set up, it may not close well either
                self.remove(node)
            raise
        return node

    def remove(self, node: Node) -> None:
        """Take ``node`` off the bus: its publishers, subscriptions, services and timers close.

        Raises:
            InputError: it is not on this bus.
            NodeError: its ``close`` failed; it is off the bus all the same.
        """
        if all(other is not node for other in self.nodes.values()):
            raise InputError(f"{type(node).__name__} {node.full_name} is not on this bus")
        self.nodes = {name: other for name, other in self.nodes.items() if other is not node}
        node.detach()

    # -- what nodes report -----------------------------------------------------------------------------------------
    def write_log(self, record: LogRecord) -> None:
        """Publish a log record and show it to the sinks."""
        self._system_node.publish_log(record)
        for sink in self.log_sinks:
            sink(record)

    def publish_health_change(self) -> None:
        """Publish diagnostics now, since a node's level changed."""
        self._system_node.publish_health()

    def publish_parameter_change(self, node: str, name: str, value: Any) -> None:
        """Publish that the parameter ``name`` of ``node`` has the value ``value`` now."""
        self._system_node.publish_parameter(node, name, value)

    def worst_health_level(self) -> str:
        """The worst level any node reports: "ok", "warn", "error" or "stale"."""
        levels = [node.health.level for node in self.nodes.values() if node.health]
        return max(levels, key=lambda level: HEALTH_LEVELS[level], default="ok")

    # -- state -----------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Everything the nodes need to go on from here, as plain data; between two calls of the executor's.

        Raises:
            RunError: messages are on their way, or a node cannot be saved; names it.
        """
        return save_bus_state(self, self.nodes)

    def load_state(self, saved: dict[str, Any]) -> None:
        """Go on from what ``save`` gave, on a bus set up the same way whose clock is not beyond that moment.

        Raises:
            RunError: this bus was set up otherwise, or its clock is further.
        """
        load_bus_state(self, self.nodes, saved)

    # -- end -------------------------------------------------------------------------------------------------------
    def close(self) -> None:
        """Take all nodes off, last one first, and stop the workers.  The first error is raised after all are closed."""
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
