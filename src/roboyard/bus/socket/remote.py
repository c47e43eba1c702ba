"""Nodes in another process: a bus of their own whose clock and topics follow a live run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from roboyard.bus.bus import Bus
from roboyard.bus.futures import Future
from roboyard.bus.meter import NodeError
from roboyard.bus.names import check_node_name, normal_namespace
from roboyard.bus.node import Node
from roboyard.bus.services import Reply, ServiceClient
from roboyard.bus.socket.client import Answer, Connection, Received, connect
from roboyard.bus.topics import Publisher, Topic
from roboyard.errors import InputError, RoboyardError, RunError
from roboyard.messages import deserialize, message_type

N = TypeVar("N", bound=Node)
_CLOCK = "/clock"
_OWN = "/roboyard"
"""Every bus has a node of this name; to the run ours goes by the name of the connection."""


class RemoteBus(Bus):
    """A bus whose nodes take part in a live run from this process.

    What its nodes publish enters the run through the input port, under their names; what they subscribe to comes from
    the run; services and actions of the run can be called.  Their timers tick on the run's clock.  Nodes here cannot
    serve the run: the run would have to wait for another process, and would no longer be deterministic.

    Args:
        name: The live run's name or process id; None = the only one.
        seed: For the random generators of the nodes here.

    Raises:
        InputError: there is no such run, or several to choose from.
        RunError: it does not answer.
    """

    def __init__(self, name: str | None = None, *, seed: int = 0) -> None:
        self.connection: Connection = connect(name)
        self.session = f"{self.connection.name} "
        self.ended = False
        self._asked: set[str] = set()
        self._foreign: dict[tuple[str, str], Publisher] = {}
        self._calls: dict[int, tuple[Reply, str, str]] = {}
        self._receiving = False
        super().__init__(seed, start_ns=self.connection.graph()["time_ns"])
        self.tap(self._send)
        self.connection.subscribe(_CLOCK)

    def add(
        self,
        node: N,
        name: str,
        *,
        namespace: str = "",
        remap: Mapping[str, str] | None = None,
        frame_prefix: str = "",
    ) -> N:
        """As ``Bus.add``; the name must be free in the run too.

        Raises:
            RunError: a node of the run, or of another process, has that name.
        """
        full_name = f"{normal_namespace(namespace)}/{check_node_name(name)}"
        if full_name != _OWN and full_name not in self.nodes:
            node.check_free()
            self.executor.run_until(max(self.connection.join(full_name), self.now_ns))
        return super().add(node, name, namespace=namespace, remap=remap, frame_prefix=frame_prefix)

    def spin(self, timeout: float | None = None, until: Callable[[], bool] | None = None) -> None:
        """Follow the run until it ends.

        A node that calls ``sys.exit`` ends this process; the run goes on without its nodes.

        Args:
            timeout: Come back when it is silent for this long [s of wall time]; None waits for ever.
            until: Looked at after everything that comes; True comes back.
        """
        with _exits_of_nodes():
            self._follow(timeout, until)

    def _follow(self, timeout: float | None, until: Callable[[], bool] | None) -> None:
        self.executor.run_until(self.now_ns)
        self._ask_for_topics()
        for event in self.connection.events(timeout):
            if isinstance(event, Answer):
                self._answer(event)
            else:
                self._take(event)
            self._ask_for_topics()
            if until is not None and until():
                return
        if self.ended or self.connection.ended:
            for number in list(self._calls):
                self._answer(Answer(number, 0, b"", f"run '{self.connection.run.name}' has ended"))

    def service_client(self, name: str, service_type: Any, node: str) -> ServiceClient:
        """A client of a service of the run, or of this bus."""
        return _RemoteClient(self, name, service_type, node)

    def ask(self, client: ServiceClient, request: Any) -> Future:
        """Call a service of the run; it is answered while the bus spins."""
        reply = Reply(self, client.name, client.node)
        self._ask_for_topics()  # first, so that what is said on account of this call is heard
        try:
            number = self.connection.ask_later(client.name, client.type, request, client.node)
        except RunError as error:
            self.ended = True
            self.executor.ready.append((reply, error, client.node))
        else:
            self._calls[number] = (reply, f"{client.type.name}_Response", client.node)
        return reply

    def close(self) -> None:
        """Take the nodes off and hang up."""
        try:
            super().close()
            with suppress(RunError):
                self.connection.leave()
        finally:
            self.connection.close()

    def _ask_for_topics(self) -> None:
        for name, topic in self.topics.items():
            if name not in self._asked and name != _CLOCK and topic.subscriptions:
                self._asked.add(name)
                with suppress(RunError):
                    self.connection.subscribe(name)

    def _advance(self, time_ns: int) -> None:
        """Move the clock, running timers on the way."""
        self.executor.run_until(max(time_ns, self.now_ns))

    def _take(self, received: Received) -> None:
        """Move the clock to the message's time and deliver it."""
        self._advance(received.time_ns)
        topic = self.topics.get(received.topic)
        own = received.source == self.connection.name or (received.source in self.nodes and received.source != _OWN)
        if received.topic == _CLOCK or topic is None or own:
            return
        key = (received.source, received.topic)
        publisher = self._foreign.get(key)
        if publisher is None:
            kind = message_type(received.type)
            publisher = self.publisher(received.topic, kind, received.source, latched=received.latched)
            self._foreign[key] = publisher
        self._receiving = True
        try:
            publisher.publish(received.message)
        finally:
            self._receiving = False
        self._advance(self.now_ns)

    def _answer(self, answer: Answer) -> None:
        self._advance(answer.time_ns)
        reply, kind, node = self._calls.pop(answer.number)
        outcome: Any
        if answer.error:
            outcome = InputError(answer.error)
        else:
            try:
                outcome = deserialize(answer.data, kind)
            except RoboyardError as error:
                outcome = error
        self.executor.ready.append((reply, outcome, node))
        self._advance(self.now_ns)

    def _send(self, topic: Topic, message: Any, node: str, time_ns: int) -> None:
        if self._receiving or topic.name == _CLOCK or self.ended:
            return
        latched = any(publisher.node == node and publisher.latched for publisher in topic.publishers)
        try:
            self.connection.publish(topic.name, message, "" if node == _OWN else node, latched=latched)
        except RunError:
            self.ended = True  # while a callback was running; spin ends when it is through


@contextmanager
def _exits_of_nodes() -> Iterator[None]:
    """Let a node's call of ``sys.exit`` end this process: it belongs to the nodes, and the run is elsewhere."""
    try:
        yield
    except NodeError as error:
        if isinstance(error.__cause__, SystemExit):
            raise error.__cause__ from None
        raise


class _RemoteClient(ServiceClient):
    """Calls a service here if there is one, else in the run."""

    __slots__ = ()

    def available(self) -> bool:
        """Whether some node serves this name now, here or in the run."""
        bus = self._bus
        return super().available() or (isinstance(bus, RemoteBus) and self.name in bus.connection.graph()["services"])

    def call(self, request: Any) -> Future:
        """Send ``request``; see ``ServiceClient.call``."""
        bus = self._bus
        if self.name in bus.services or not isinstance(bus, RemoteBus):
            return super().call(request)
        self.check(request)
        return bus.ask(self, request)
