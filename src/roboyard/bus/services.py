"""Services: a request goes to the one node that serves the name, its response comes back through the queue."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from roboyard.bus.futures import Future
from roboyard.bus.meter import Meter, NodeError
from roboyard.errors import InputError, MessageError, RoboyardError, UnknownNameError
from roboyard.messages import ServiceType

if TYPE_CHECKING:
    from roboyard.bus.bus import Bus


class ServiceError(RoboyardError):
    """A call could not be answered."""


class Reply(Future):
    """The answer to a call; what its reader does with it is done in the name of the calling node."""

    __slots__ = ("_bus", "_node")

    def __init__(self, bus: Bus, service: str, node: str) -> None:
        super().__init__(f"response of {service}")
        self._bus = bus
        self._node = node

    def deliver(self, message: Any, source: str) -> None:
        """Be resolved by the queue.

        Raises:
            NodeError: one of the callbacks given to ``then`` raised.
        """
        try:
            super().deliver(message, source)
        except NodeError:
            raise
        except (Exception, SystemExit) as error:
            raise NodeError(self._node, self.what, self._bus.now_ns, error) from error


class Service:
    """The serving end.

    The handler takes a request and returns a response, or a Future of one when the answer comes later.  A handler that
    raises InputError refuses the call: the caller's future fails with it, and the run goes on.
    """

    __slots__ = ("_bus", "_waiting", "closed", "meter", "name", "node", "type")

    def __init__(self, bus: Bus, name: str, service_type: Any, node: str, meter: Meter) -> None:
        self._waiting: dict[Future, None] = {}
        self.closed = False
        self._bus = bus
        self.name = name
        self.type = service_type
        self.node = node
        self.meter = meter

    def deliver(self, message: tuple[Any, Future], source: str) -> None:
        """Answer one call."""
        request, reply = message
        if self.closed:  # since the call was made
            self._reply(reply, self._gone())
            return
        try:
            response = self.meter(request)
        except NodeError as error:
            if isinstance(error.__cause__, InputError):
                self._reply(reply, error.__cause__)
                return
            raise
        if isinstance(response, Future):
            self._waiting[reply] = None
            response.then(lambda future: self._reply(reply, future.error or future.result))
        else:
            self._reply(reply, response)

    def _reply(self, reply: Future, response: Any) -> None:
        self._waiting.pop(reply, None)
        if not isinstance(response, RoboyardError) and response.__class__ is not self.type.Response:
            response = ServiceError(
                f"answered with {type(response).__name__} instead of {self.type.name} response",
                where=f"node {self.node}, service {self.name}",
            )
        self._bus.executor.ready.append((reply, response, self.node))

    @property
    def unanswered(self) -> int:
        """How many calls wait for their answer."""
        return len(self._waiting)

    def close(self) -> None:
        """Serve no more; calls that are still unanswered fail."""
        if not self.closed:
            self.closed = True
            self._bus.services.pop(self.name, None)
            for reply in list(self._waiting):
                self._reply(reply, self._gone())

    def _gone(self) -> ServiceError:
        return ServiceError(f"node {self.node}, which served {self.name}, went away")


def check_service(service_type: Any, node: str) -> None:
    """Refuse what is no type of a service.

    Raises:
        MessageError: it is none.
    """
    if not isinstance(service_type, ServiceType):
        raise MessageError(
            f"{getattr(service_type, '__name__', service_type)!r:.80} is no service", where=f"node {node}",
            valid="e.g. ry.srv.Trigger",
        )  # fmt: skip


def _like(name: str, served: list[str]) -> str:
    """The services that may have been meant."""
    last = name.rsplit("/", 1)[-1]
    same = sorted(other for other in served if other.rsplit("/", 1)[-1] == last)
    near = list(dict.fromkeys([*same, *get_close_matches(name, served, 5, 0.7)]))[:8]
    return f"near it: {', '.join(near)}" if near else f"{len(served)} others are served"


class ServiceClient:
    """The calling end; finds the server anew at each call, so order of start does not matter."""

    __slots__ = ("_bus", "name", "node", "type")

    def __init__(self, bus: Bus, name: str, service_type: Any, node: str) -> None:
        self._bus = bus
        self.name = name
        self.type = service_type
        self.node = node

    def available(self) -> bool:
        """Whether some node serves this name now."""
        return self.name in self._bus.services

    def check(self, request: Any) -> None:
        """Refuse what is not this service's request.

        Raises:
            MessageError: it is not.
        """
        if request.__class__ is not self.type.Request:
            raise MessageError(
                f"service {self.name} takes a {self.type.name} request, not {type(request).__name__}",
                where=f"node {self.node}",
            )

    def call(self, request: Any) -> Future:
        """Send ``request``; the future fails with UnknownNameError when nobody serves the name.

        Raises:
            MessageError: ``request`` is not this service's request.
        """
        self.check(request)
        reply = Reply(self._bus, self.name, self.node)
        server = self._bus.services.get(self.name)
        ready = self._bus.executor.ready
        if server is None:
            names = _like(self.name, list(self._bus.services))
            error: RoboyardError = UnknownNameError(
                f"nobody serves {self.name}", where=f"node {self.node}", valid=names
            )
            ready.append((reply, error, self.node))
        elif server.type is not self.type:
            error = MessageError(f"service {self.name} is a {server.type.name}, not a {self.type.name}")
            ready.append((reply, error, self.node))
        else:
            ready.append((server, (request, reply), self.node))
        return reply
