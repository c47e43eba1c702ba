"""Nodes in another process: a bus of their own whose clock and topics follow a live run."""

from __future__ import annotations

from typing import Any

from roboyard.bus.bus import Bus
from roboyard.bus.futures import Future
from roboyard.bus.services import ServiceClient
from roboyard.bus.socket.client import Connection, Received, connect
from roboyard.bus.topics import Publisher, Topic
from roboyard.errors import RoboyardError
from roboyard.messages import message_type

_LOCAL = frozenset({"/clock", "/diagnostics", "/parameter_events"})
"""Topics the remote bus keeps to itself: the run has its own."""


class RemoteBus(Bus):
    """A bus whose nodes take part in a live run from this process.

    What its nodes publish enters the run through the input port, under their names; what they subscribe to comes from
    the run; services of the run can be called.  Their timers tick on the run's clock.  Nodes here cannot serve the run:
    the run would have to wait for another process, and would no longer be deterministic.

    Args:
        name: The live run's name or process id; None = the only one.
        seed: For the random generators of the nodes here.
    """

    def __init__(self, name: str | None = None, *, seed: int = 0) -> None:
        self.connection: Connection = connect(name)
        self._asked: set[str] = set()
        self._foreign: dict[tuple[str, str], Publisher] = {}
        self._receiving = False
        super().__init__(seed)
        self.tap(self._send)
        self.connection.subscribe("/clock")

    def spin(self, timeout: float | None = None) -> None:
        """Follow the run until it ends, or is silent for ``timeout`` seconds of wall time."""
        self._ask_for_topics()
        for received in self.connection.messages(timeout):
            self._take(received)
            self._ask_for_topics()

    def service_client(self, name: str, service_type: Any, node: str) -> ServiceClient:
        """A client of a service of the run, or of this bus."""
        return _RemoteClient(self, name, service_type, node)

    def close(self) -> None:
        """Take the nodes off and hang up."""
        super().close()
        self.connection.close()

    def _ask_for_topics(self) -> None:
        for name, topic in self.topics.items():
            if name not in self._asked and name not in _LOCAL and topic.subscriptions:
                self._asked.add(name)
                self.connection.subscribe(name)

    def _take(self, received: Received) -> None:
        """Move the clock to the message's time, running timers on the way, and deliver it."""
        if self.now_ns == 0 and self.executor.next_time_ns() == 0:
            self.executor.run_until(0)
        self.executor.run_until(max(received.time_ns, self.now_ns))
        topic = self.topics.get(received.topic)
        if received.topic in _LOCAL or topic is None or received.source in self.nodes:
            return
        key = (received.source, received.topic)
        publisher = self._foreign.get(key)
        if publisher is None:
            kind = message_type(received.type)
            publisher = self._foreign[key] = self.publisher(received.topic, kind, received.source)
        self._receiving = True
        try:
            publisher.publish(received.message)
        finally:
            self._receiving = False
        self.executor.run_until(self.now_ns)

    def _send(self, topic: Topic, message: Any, node: str, time_ns: int) -> None:
        if not self._receiving and topic.name not in _LOCAL and (node != "/roboyard" or topic.name == "/rosout"):
            self.connection.publish(topic.name, message, node)


class _RemoteClient(ServiceClient):
    """Calls a service here if there is one, else in the run, waiting for the answer."""

    __slots__ = ()

    def call(self, request: Any) -> Future:
        bus = self._bus
        if self.name in bus.services or not isinstance(bus, RemoteBus):
            return super().call(request)
        reply = Future(f"response of {self.name}")
        answer: Any
        try:
            answer = bus.connection.call(self.name, self.type, request, self.node)
        except RoboyardError as error:
            answer = error
        bus.executor.ready.append((reply, answer, self.node))
        return reply
