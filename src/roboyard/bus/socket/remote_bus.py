"""Remote bus: nodes of another process on a bus whose clock and topics follow a live run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from roboyard.bus.bus import Bus
from roboyard.bus.callback_timer import NodeError
from roboyard.bus.names import check_node_name, normalize_namespace
from roboyard.bus.node import Node
from roboyard.bus.services import Future, ServiceClient, ServiceFuture
from roboyard.bus.socket.client import ReceivedMessage, RunConnection, ServiceResponse, connect
from roboyard.bus.topics import Publisher, Topic
from roboyard.errors import InputError, RoboyardError, RunError
from roboyard.messages import deserialize, message_type

N = TypeVar("N", bound=Node)
_CLOCK_TOPIC = "/clock"
_SYSTEM_NODE = "/roboyard"
"""Name of the system node of every bus; the run uses the connection's name for the remote bus's system node."""


class RemoteBus(Bus):
    """Bus whose nodes take part in a live run from this process.

    Messages that its nodes publish enter the run as external inputs, under the nodes' names.  Subscriptions receive the
    messages of the run; services and actions of the run can be called.  Timers follow the run's clock.  Nodes of a
    remote bus cannot serve the run: the run would have to wait for another process, and would no longer be
    deterministic.

    Args:
        name: Name or process id of the live run; None = the only one.
        seed: Seed of the random generators of the nodes on this bus.

    Raises:
        InputError: The run does not exist, or the name is ambiguous.
        RunError: The run does not respond.
    """

    def __init__(self, name: str | None = None, *, seed: int = 0) -> None:
        self.connection: RunConnection = connect(name)
        self.session = f"{self.connection.name} "
        self.has_ended = False
        self._subscribed_topics: set[str] = set()
        self._external_publishers: dict[tuple[str, str], Publisher] = {}
        self._pending_calls: dict[int, tuple[ServiceFuture, str, str]] = {}
        self._is_receiving = False
        super().__init__(seed, start_ns=self.connection.graph()["time_ns"])
        self.add_message_observer(self._publish_to_run)
        self.connection.subscribe(_CLOCK_TOPIC)

    def add(
        self,
        node: N,
        name: str,
        *,
        namespace: str = "",
        remap: Mapping[str, str] | None = None,
        frame_prefix: str = "",
    ) -> N:
        """Add a node as `Bus.add` does; the name must not be in use in the run either.

        Raises:
            RunError: A node of the run, or of another process, has this name.
        """
        full_name = f"{normalize_namespace(namespace)}/{check_node_name(name)}"
        if full_name != _SYSTEM_NODE and full_name not in self.nodes:
            node.check_unattached()
            self.executor.run_until(max(self.connection.reserve_node_name(full_name), self.now_ns))
        return super().add(node, name, namespace=namespace, remap=remap, frame_prefix=frame_prefix)

    def spin(self, timeout: float | None = None, stop_condition: Callable[[], bool] | None = None) -> None:
        """Follow the run until it ends.

        A node that calls ``sys.exit`` ends this process; the run continues without its nodes.

        Args:
            timeout: Maximum wall time without an event [s]; None waits forever.
            stop_condition: Checked after every event; True returns.
        """
        with _reraise_node_exits():
            self._process_events(timeout, stop_condition)

    def _process_events(self, timeout: float | None, stop_condition: Callable[[], bool] | None) -> None:
        self.executor.run_until(self.now_ns)
        self._update_subscriptions()
        for event in self.connection.events(timeout):
            if isinstance(event, ServiceResponse):
                self._complete_call(event)
            else:
                self._deliver(event)
            self._update_subscriptions()
            if stop_condition is not None and stop_condition():
                return
        if self.has_ended or self.connection.has_ended:
            for call_id in list(self._pending_calls):
                self._complete_call(ServiceResponse(call_id, 0, b"", f"run '{self.connection.run.name}' has ended"))

    def service_client(self, name: str, service_type: Any, node: str) -> ServiceClient:
        """Create a client of a service of the run, or of this bus."""
        return _RemoteClient(self, name, service_type, node)

    def call(self, client: ServiceClient, request: Any) -> Future:
        """Call a service of the run; the response arrives while the bus spins."""
        response_future = ServiceFuture(self.executor, client.name, client.node)
        self._update_subscriptions()  # first, so that messages caused by this call are received
        try:
            call_id = self.connection.call_async(client.name, client.type, request, client.node)
        except RunError as error:
            self.has_ended = True
            self.executor.ready.append((response_future, error, client.node))
        else:
            self._pending_calls[call_id] = (response_future, f"{client.type.name}_Response", client.node)
        return response_future

    def close(self) -> None:
        """Remove the nodes and close the connection."""
        try:
            super().close()
            with suppress(RunError):
                self.connection.release_node_names()
        finally:
            self.connection.close()

    def _update_subscriptions(self) -> None:
        for name, topic in self.topics.items():
            if name not in self._subscribed_topics and name != _CLOCK_TOPIC and topic.subscriptions:
                self._subscribed_topics.add(name)
                with suppress(RunError):
                    self.connection.subscribe(name)

    def _advance_to(self, time_ns: int) -> None:
        """Advance the clock to `time_ns` and run the timers that are due."""
        self.executor.run_until(max(time_ns, self.now_ns))

    def _deliver(self, received: ReceivedMessage) -> None:
        """Advance the clock to the message's time and deliver the message."""
        self._advance_to(received.time_ns)
        topic = self.topics.get(received.topic)
        is_local = received.source == self.connection.name or (
            received.source in self.nodes and received.source != _SYSTEM_NODE
        )
        if received.topic == _CLOCK_TOPIC or topic is None or is_local:
            return
        key = (received.source, received.topic)
        publisher = self._external_publishers.get(key)
        if publisher is None:
            type_ = message_type(received.type)
            publisher = self.publisher(received.topic, type_, received.source, latched=received.latched)
            self._external_publishers[key] = publisher
        self._is_receiving = True
        try:
            publisher.publish(received.message)
        finally:
            self._is_receiving = False
        self._advance_to(self.now_ns)

    def _complete_call(self, response: ServiceResponse) -> None:
        self._advance_to(response.time_ns)
        response_future, response_type, node = self._pending_calls.pop(response.call_id)
        result: Any
        if response.error:
            result = InputError(response.error)
        else:
            try:
                result = deserialize(response.data, response_type)
            except RoboyardError as error:
                result = error
        self.executor.ready.append((response_future, result, node))
        self._advance_to(self.now_ns)

    def _publish_to_run(self, topic: Topic, message: Any, node: str, time_ns: int) -> None:
        if self._is_receiving or topic.name == _CLOCK_TOPIC or self.has_ended:
            return
        latched = any(publisher.node == node and publisher.latched for publisher in topic.publishers)
        try:
            self.connection.publish(topic.name, message, "" if node == _SYSTEM_NODE else node, latched=latched)
        except RunError:
            self.has_ended = True  # during a callback; spin ends after it


@contextmanager
def _reraise_node_exits() -> Iterator[None]:
    """Let a node's call of ``sys.exit`` end this process: it belongs to the nodes; the run is another process."""
    try:
        yield
    except NodeError as error:
        if isinstance(error.__cause__, SystemExit):
            raise error.__cause__ from None
        raise


class _RemoteClient(ServiceClient):
    """Client of a service on this bus if there is one, else in the run."""

    __slots__ = ("_bus",)

    def __init__(self, bus: RemoteBus, name: str, service_type: Any, node: str) -> None:
        super().__init__(bus.service_registry, name, service_type, node)
        self._bus = bus

    def is_available(self) -> bool:
        """Return whether a node serves this name now, on this bus or in the run."""
        return super().is_available() or self.name in self._bus.connection.graph()["services"]

    def call(self, request: Any) -> Future:
        """Send a request; see `ServiceClient.call`."""
        if self.name in self._bus.services:
            return super().call(request)
        self.check(request)
        return self._bus.call(self, request)
