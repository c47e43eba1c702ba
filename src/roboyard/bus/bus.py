"""The bus: brings nodes, topics, services, transforms and the clock together.  Nothing about it is global."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from roboyard.bus import state
from roboyard.bus.disturbance import DelayedDelivery
from roboyard.bus.executor import Executor
from roboyard.bus.health import HEALTH_LEVELS
from roboyard.bus.housekeeping import SystemNode
from roboyard.bus.inputs import ExternalInputQueue
from roboyard.bus.log import Logger, LogRecord
from roboyard.bus.meter import CallbackTimer
from roboyard.bus.names import check_node_name, normalize_namespace
from roboyard.bus.node import Node
from roboyard.bus.offload import Offload
from roboyard.bus.services import Service, ServiceClient, check_service
from roboyard.bus.topics import CheckedSubscription, MessageObserver, Publisher, Subscription, Topic
from roboyard.bus.transforms import TransformBuffer
from roboyard.errors import InputError, RoboyardError

N = TypeVar("N", bound=Node)


class Bus:
    """One world of communicating nodes.

    Args:
        seed: Every node's random generator derives from it and the node's name.
        debug: Check after every delivery that the subscriber did not change the message (slow).
        workers: Threads for offloaded work.
        start_ns: Where the clock begins [ns], e.g. the start of a recording to replay.

    Attributes:
        executor: The clock and the queue of events.
        nodes: By full name, in order of joining.
        topics: By name, in order of first use.
        services: By name.
        transforms: Where every frame was, from /tf and /tf_static.
        inputs: The port for everything from outside.
        offload: The workers.
        delayed_delivery: What is under way on topics that somebody disturbs.
        message_observers: See every message as it is published (recorder, bridges).
        log_sinks: See every log record (the console).
        log: The bus's own log.
    """

    session = ""
    """Tells apart buses of other processes that take part in the same run."""

    def __init__(self, seed: int = 0, *, debug: bool = False, workers: int = 1, start_ns: int = 0) -> None:
        self.seed = seed
        self.executor = Executor()
        self.executor.set_time(start_ns)
        self.nodes: dict[str, Node] = {}
        self.topics: dict[str, Topic] = {}
        self.services: dict[str, Service] = {}
        self.transforms = TransformBuffer()
        self.inputs = ExternalInputQueue(self)
        self.offload = Offload(self, workers)
        self.delayed_delivery = DelayedDelivery(self)
        self.message_observers: list[MessageObserver] = []
        self.log_sinks: list[Callable[[LogRecord], None]] = []
        self.log = Logger("/roboyard", lambda: self.executor.now_ns, self.write_log)
        self._subscription_type = CheckedSubscription if debug else Subscription
        self._is_closing = False
        self.executor.process_inputs = self.inputs.process_next
        self._system_node = SystemNode()
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

    def random(self, name: str) -> np.random.Generator:
        """A generator for the part called ``name``: the same for the same seed and name, whatever else exists."""
        words = np.frombuffer(hashlib.sha256(name.encode()).digest()[:16], dtype=np.uint32)
        return np.random.default_rng(np.random.SeedSequence([self.seed, *words.tolist()]))

    # -- ends of topics and services; nodes use their own methods, which call these --------------------------------
    def topic(self, name: str, message_type: type, node: str) -> Topic:
        """The topic ``name``, made on first use.

        Raises:
            MessageError: it carries another type.
        """
        topic = self.topics.get(name)
        if topic is None:
            topic = self.topics[name] = Topic(name, message_type)
        topic.check_type(message_type, node)
        return topic

    def publisher(self, name: str, message_type: type, node: str, *, latched: bool = False) -> Publisher:
        """A publisher on the absolute topic ``name`` in the name of ``node``."""
        topic = self.topic(name, message_type, node)
        publisher = Publisher(self, topic, node, latched)
        topic.publishers.append(publisher)
        topic.latched = topic.latched or latched
        return publisher

    def subscribe(
        self, name: str, message_type: type, node: str, callback_timer: CallbackTimer, *, with_source: bool = False
    ) -> Subscription:
        """A subscription of ``node`` to the absolute topic ``name``; latched messages follow at once."""
        topic = self.topic(name, message_type, node)
        subscription = self._subscription_type(topic, node, callback_timer, with_source)
        topic.subscriptions.append(subscription)
        for publisher in topic.publishers:
            if publisher.last is not None:
                self.executor.ready.append((subscription, publisher.last, publisher.node))
        return subscription

    def serve(self, name: str, service_type: Any, node: str, callback_timer: CallbackTimer) -> Service:
        """Serve the absolute service ``name``.

        Raises:
            InputError: somebody serves it already.
        """
        check_service(service_type, node)
        if name in self.services:
            raise InputError(f"service {name} is served by {self.services[name].node} already", location=f"node {node}")
        service = self.services[name] = Service(self, name, service_type, node, callback_timer)
        return service

    def service_client(self, name: str, service_type: Any, node: str) -> ServiceClient:
        """A client of the absolute service ``name``.

        Raises:
            MessageError: ``service_type`` is no service.
        """
        check_service(service_type, node)
        return ServiceClient(self, name, service_type, node)

    @property
    def is_closing(self) -> bool:
        """Whether the end has come."""
        return self._is_closing

    # -- for code beside the bus -----------------------------------------------------------------------------------
    @property
    def now_ns(self) -> int:
        """Simulated time [ns]."""
        return self.executor.now_ns

    def add_message_observer(self, observer: MessageObserver) -> Callable[[], None]:
        """Have ``observer(topic, message, node, time_ns)`` see every message as it is published.

        Returns:
            A function that takes the tap off.
        """
        self.message_observers.append(observer)
        return lambda: self.message_observers.remove(observer)

    # -- what nodes report -----------------------------------------------------------------------------------------
    def write_log(self, record: LogRecord) -> None:
        """Publish a log record and show it to the sinks."""
        self._system_node.publish_log(record)
        for sink in self.log_sinks:
            sink(record)

    def publish_health_change(self, node: Node) -> None:
        """Publish diagnostics now, since a node's level changed."""
        self._system_node.publish_health()

    def publish_parameter_change(self, node: Node, name: str, value: Any) -> None:
        """Publish a parameter event."""
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
        return state.save(self)

    def load_state(self, saved: dict[str, Any]) -> None:
        """Go on from what ``save`` gave, on a bus set up the same way whose clock is not beyond that moment.

        Raises:
            RunError: this bus was set up otherwise, or its clock is further.
        """
        state.load(self, saved)

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
