"""The bus: a set of communicating nodes on one clock, without global state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from roboyard.bus.context import BusContext
from roboyard.bus.executor import LATE, Executor
from roboyard.bus.log import LOG_LEVELS, LogRecord
from roboyard.bus.names import check_node_name, normalize_namespace
from roboyard.bus.node import HEALTH_LEVELS, Node
from roboyard.bus.parameter_services import to_value
from roboyard.bus.parameters import resource
from roboyard.bus.topics import Publisher
from roboyard.errors import InputError, RoboyardError, RunError, describe_exception
from roboyard.messages import deserialize, message_type, serialize, time_to_msg, to_nanoseconds
from roboyard.messages.convert import transform_to_se3

CLOCK_RATE = 10.0
HEALTH_PERIOD = 1.0

N = TypeVar("N", bound=Node)


class SystemNode(Node):
    """in: /tf /tf_static   out: /clock /rosout /diagnostics /parameter_events"""

    nodes: Callable[[], Iterable[Node]] = resource()

    def setup(self) -> None:
        """Create the standard topics."""
        self._clock_type = message_type("rosgraph_msgs/msg/Clock")
        self._clock_publisher = self.publisher("/clock", self._clock_type)
        self._log_type = message_type("rcl_interfaces/msg/Log")
        self._log_publisher: Publisher = self.publisher("/rosout", self._log_type)
        self._diagnostics_type = message_type("diagnostic_msgs/msg/DiagnosticArray")
        self._status_type = message_type("diagnostic_msgs/msg/DiagnosticStatus")
        self._key_value_type = message_type("diagnostic_msgs/msg/KeyValue")
        self._diagnostics_publisher = self.publisher("/diagnostics", self._diagnostics_type)
        self._event_type = message_type("rcl_interfaces/msg/ParameterEvent")
        self._parameter_type = message_type("rcl_interfaces/msg/Parameter")
        self._parameter_event_publisher = self.publisher("/parameter_events", self._event_type)
        tf_type = message_type("tf2_msgs/msg/TFMessage")
        self.subscribe("/tf", tf_type, self._on_tf)
        self.subscribe("/tf_static", tf_type, self._on_static_tf)
        self.timer(rate=CLOCK_RATE, callback=self._publish_clock, immediate=True, priority=LATE)
        self.timer(HEALTH_PERIOD, self.publish_health, priority=LATE)

    def _publish_clock(self) -> None:
        self._clock_publisher.publish(self._clock_type(clock=time_to_msg(self.now_ns)))

    # -- transforms ----------------------------------------------------------------------------------------------------
    def _on_tf(self, message: Any) -> None:
        self._insert_transforms(message, static=False)

    def _on_static_tf(self, message: Any) -> None:
        self._insert_transforms(message, static=True)

    def _insert_transforms(self, message: Any, *, static: bool) -> None:
        for item in message.transforms:
            header = item.header
            try:
                self.transforms.insert(
                    transform_to_se3(item.transform),
                    header.frame_id,
                    item.child_frame_id,
                    to_nanoseconds(header.stamp),
                    static,
                )
            except RoboyardError as error:  # a loop, an invalid rotation, numbers that are not finite
                self.log.error(
                    f"transform from '{header.frame_id}' to '{item.child_frame_id}' ignored: {error}", throttle=5.0
                )

    # -- reports -------------------------------------------------------------------------------------------------------
    def publish_log(self, record: LogRecord) -> None:
        """Publish a log record on /rosout."""
        self._log_publisher.publish(
            self._log_type(
                stamp=time_to_msg(record.time_ns), level=LOG_LEVELS[record.level], name=record.node, msg=record.text
            )
        )

    def publish_health(self) -> None:
        """Publish the health of every node on /diagnostics, if any node has reported it."""
        reports = [(node.full_name, node.health) for node in self.nodes() if node.health is not None]
        if not reports:
            return
        message = self._diagnostics_type()
        message.header.stamp = time_to_msg(self.now_ns)
        for name, health in reports:
            values = [self._key_value_type(key=key, value=value) for key, value in health.values]
            message.status.append(
                self._status_type(level=HEALTH_LEVELS[health.level], name=name, message=health.text, values=values)
            )
        self._diagnostics_publisher.publish(message)

    def publish_parameter(self, node: str, name: str, value: Any) -> None:
        """Publish a changed parameter on /parameter_events."""
        changed = self._parameter_type(name=name, value=to_value(value))
        self._parameter_event_publisher.publish(
            self._event_type(stamp=time_to_msg(self.now_ns), node=node, changed_parameters=[changed])
        )


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
        """Return the state of clock, nodes, transforms and latched messages as plain data.

        Call it between two calls of the executor, when no message is in transit.  A node with pending work that cannot
        be saved (an offloaded task, a goal, a one-shot timer that it does not restore itself) makes saving fail.

        Raises:
            RunError: Messages are in transit, or a node cannot be saved (the message names it).
        """
        _check_barrier(self.executor)
        return {
            "now_ns": self.now_ns,
            "nodes": {name: _save_node(node) for name, node in self.nodes.items()},
            "timer_order": _timers_in_order(self.executor, self.nodes),
            "transforms": self.transforms.save_state(),
            "latched": [
                (publisher.topic.name, publisher.node, publisher.topic.type_name, serialize(publisher.last))
                for publisher in _latched_publishers(self)
                if publisher.last is not None
            ],
            "topics": {topic.name: (topic.count, topic.first_ns, topic.last_ns) for topic in self.topics.values()},
            "delayed": self.router.delayed_delivery.save_state(),
            "inputs": self.inputs.save_state(),
            "log": self.log.save_state(),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save_state` returned, on a bus with the same setup and a clock that is not later.

        Messages that nodes published during their setup are discarded.

        Raises:
            RunError: The bus has other nodes, a node cannot load its state, or an event is scheduled before the saved
                time.
        """
        if list(self.nodes) != list(saved["nodes"]):
            raise RunError(
                f"the snapshot has the nodes {', '.join(saved['nodes'])}",
                valid=f"this bus has the nodes {', '.join(self.nodes)}",
            )
        self.executor.ready.clear()
        for name, node in self.nodes.items():
            node.load_state(saved["nodes"][name])
        for name, index in saved["timer_order"]:  # timers of one time run in the order in which they were scheduled
            timer = self.nodes[name].timers[index]
            timer.reschedule(timer.next_ns)
        self.transforms.load_state(saved["transforms"])
        self.inputs.load_state(saved["inputs"])
        publishers = {(publisher.topic.name, publisher.node): publisher for publisher in _latched_publishers(self)}
        for name, node_name, type_name, data in saved["latched"]:
            publisher = publishers.get((name, node_name))
            if publisher is not None:
                publisher.last = deserialize(data, type_name)
        for name, counters in saved["topics"].items():
            topic = self.topics.get(name)
            if topic is not None:
                topic.count, topic.first_ns, topic.last_ns = counters
        self.executor.set_time(saved["now_ns"])
        _deliver_restored_requests(self.executor)
        self.router.delayed_delivery.load_state(saved["delayed"], self.topics)
        self.log.load_state(saved["log"])

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


def _deliver_restored_requests(executor: Executor) -> None:
    """Let restored clients request the results of their goals, now that all servers are restored too."""
    while executor.ready:
        receiver, message, source = executor.ready.popleft()
        receiver.deliver(message, source)


def _check_barrier(executor: Executor) -> None:
    if executor.ready:
        raise RunError(
            f"cannot save the bus: {len(executor.ready)} messages are in transit",
            valid="save between calls of run_until()",
        )


def _timers_in_order(executor: Executor, nodes: Mapping[str, Node]) -> list[tuple[str, int]]:
    """Return (node, index) of every timer, in the order in which they were scheduled."""
    sequence = executor.event_sequence()
    timers = [(name, index, timer) for name, node in nodes.items() for index, timer in enumerate(node.timers)]
    running = [(sequence[timer.event], name, index) for name, index, timer in timers if timer.event in sequence]
    return [(name, index) for _, name, index in sorted(running)]


def _save_node(node: Node) -> Any:
    try:
        return node.save_state()
    except RoboyardError:
        raise
    except (Exception, SystemExit) as error:
        raise RunError(f"cannot be saved: {describe_exception(error)}", location=f"node {node.full_name}") from error


def _latched_publishers(bus: BusContext) -> list[Publisher]:
    return [publisher for topic in bus.topics.values() for publisher in topic.publishers if publisher.latched]
