"""Interface of the bus for its nodes: clock, topics, services, transforms, external inputs, offloaded tasks and log.

Nodes depend on the context; only the bus depends on the nodes.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from roboyard.bus.callback_timer import CallbackTimer
from roboyard.bus.executor import Executor
from roboyard.bus.external_inputs import ExternalInputQueue
from roboyard.bus.log import Logger, LogRecord
from roboyard.bus.offload import Offload
from roboyard.bus.services import Service, ServiceClient, ServiceRegistry
from roboyard.bus.topics import MessageObserver, MessageRouter, Publisher, Subscription
from roboyard.bus.transforms import TransformBuffer


class BusContext(ABC):
    """Interface of the bus for its nodes; `Bus` adds the management of nodes.

    Args:
        seed: Seed; each node's random generator is derived from it and the node's name.
        debug: Check after every delivery that the subscriber did not change the message (slow).
        workers: Number of threads for offloaded tasks.
        start_ns: Start time of the clock [ns], e.g. the start of a recording to replay.

    Attributes:
        executor: Clock and event queue.
        router: Delivers messages from publishers to subscriptions.
        topics: Topics by name, in order of first use.
        service_registry: Services and their clients.
        services: Services by name.
        transforms: Poses of all frames over time, from /tf and /tf_static.
        inputs: Queue of all external inputs.
        offload: Runs functions on worker threads.
        log_sinks: Functions that receive every log record (the console).
        log: Log of the bus itself.
    """

    session = ""
    """Identifies buses of other processes that take part in the same run."""

    def __init__(self, seed: int = 0, *, debug: bool = False, workers: int = 1, start_ns: int = 0) -> None:
        self.seed = seed
        self.executor = Executor()
        self.executor.set_time(start_ns)
        self.router = MessageRouter(self.executor, debug=debug)
        self.topics = self.router.topics
        self.service_registry = ServiceRegistry(self.executor)
        self.services = self.service_registry.services
        self.transforms = TransformBuffer()
        self.offload = Offload(self.executor, workers)
        self.log_sinks: list[Callable[[LogRecord], None]] = []
        self.log = Logger("/roboyard", lambda: self.executor.now_ns, self.write_log)
        self.inputs = ExternalInputQueue(self.router, self.services, self.service_client, self.log)
        self.executor.process_inputs = self.inputs.process_next
        self._is_closing = False

    @property
    def now_ns(self) -> int:
        """Simulated time [ns]."""
        return self.executor.now_ns

    @property
    def is_closing(self) -> bool:
        """Whether ``close`` was called."""
        return self._is_closing

    def random(self, name: str) -> np.random.Generator:
        """Return the random generator `name`: the same for the same seed and name, independent of other generators."""
        words = np.frombuffer(hashlib.sha256(name.encode()).digest()[:16], dtype=np.uint32)
        return np.random.default_rng(np.random.SeedSequence([self.seed, *words.tolist()]))

    # -- topics and services, called by the methods of nodes -----------------------------------------------------------
    def publisher(self, name: str, message_type: type, node: str, *, latched: bool = False) -> Publisher:
        """Create a publisher of node `node` on the absolute topic `name`.

        Raises:
            MessageError: The topic has another message type.
        """
        return self.router.publisher(name, message_type, node, latched=latched)

    def subscribe(
        self, name: str, message_type: type, node: str, callback_timer: CallbackTimer, *, with_source: bool = False
    ) -> Subscription:
        """Create a subscription of node `node` to the absolute topic `name`; latched messages are delivered
        immediately.

        Raises:
            MessageError: The topic has another message type.
        """
        return self.router.subscribe(name, message_type, node, callback_timer, with_source=with_source)

    def serve(self, name: str, service_type: Any, node: str, callback_timer: CallbackTimer) -> Service:
        """Create a server of the absolute service `name`.

        Raises:
            InputError: Another node already serves it.
            MessageError: `service_type` is not a service type.
        """
        return self.service_registry.serve(name, service_type, node, callback_timer)

    def service_client(self, name: str, service_type: Any, node: str) -> ServiceClient:
        """Create a client of the absolute service `name`.

        Raises:
            MessageError: `service_type` is not a service type.
        """
        return self.service_registry.client(name, service_type, node)

    def add_message_observer(self, observer: MessageObserver) -> Callable[[], None]:
        """Register ``observer(topic, message, node, time_ns)``, which is called with every message when it is
        published.

        Returns:
            A function that removes the observer.
        """
        self.router.observers.append(observer)
        return lambda: self.router.observers.remove(observer)

    # -- reports of nodes, which the system node publishes -------------------------------------------------------------
    @abstractmethod
    def write_log(self, record: LogRecord) -> None:
        """Publish a log record and pass it to the log sinks."""

    @abstractmethod
    def publish_health_change(self) -> None:
        """Publish diagnostics now, because a node's level changed."""

    @abstractmethod
    def publish_parameter_change(self, node: str, name: str, value: Any) -> None:
        """Publish that parameter `name` of `node` now has the value `value`."""
