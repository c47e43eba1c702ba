"""Services: a request goes to the one node that serves the name, its response comes back through the queue."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from roboyard.bus.futures import Future
from roboyard.bus.meter import CallbackTimer, NodeError
from roboyard.errors import InputError, MessageError, RoboyardError, UnknownNameError
from roboyard.messages import ServiceType

if TYPE_CHECKING:
    from roboyard.bus.bus import Bus


class ServiceError(RoboyardError):
    """A call could not be answered."""


class ServiceFuture(Future):
    """The answer to a call; what its reader does with it is done in the name of the calling node."""

    __slots__ = ("_bus", "_node")

    def __init__(self, bus: Bus, service: str, node: str) -> None:
        super().__init__(f"response of {service}")
        self._bus = bus
        self._node = node

    def deliver(self, message: Any, source: str) -> None:
        """Be resolved by the queue.

        Raises:
            NodeError: one of the callbacks given to ``add_done_callback`` raised.
        """
        try:
            super().deliver(message, source)
        except NodeError:
            raise
        except (Exception, SystemExit) as error:
            raise NodeError(self._node, self.description, self._bus.now_ns, error) from error


class Service:
    """The serving end.

    The handler takes a request and returns a response, or a Future of one when the answer comes later.  A handler that
    raises InputError refuses the call: the caller's future fails with it, and the run goes on.
    """

    __slots__ = ("_bus", "_pending", "callback_timer", "closed", "name", "node", "type")

    def __init__(self, bus: Bus, name: str, service_type: Any, node: str, callback_timer: CallbackTimer) -> None:
        self._pending: dict[Future, None] = {}
        self.closed = False
        self._bus = bus
        self.name = name
        self.type = service_type
        self.node = node
        self.callback_timer = callback_timer

    def deliver(self, message: tuple[Any, Future], source: str) -> None:
        """Answer one call."""
        request, response_future = message
        if self.closed:  # since the call was made
            self._respond(response_future, self._closed_error())
            return
        try:
            response = self.callback_timer(request)
        except NodeError as error:
            if isinstance(error.__cause__, InputError):
                self._respond(response_future, error.__cause__)
                return
            raise
        if isinstance(response, Future):
            self._pending[response_future] = None
            response.add_done_callback(lambda future: self._respond(response_future, future.error or future.result))
        else:
            self._respond(response_future, response)

    def _respond(self, response_future: Future, response: Any) -> None:
        self._pending.pop(response_future, None)
        if not isinstance(response, RoboyardError) and response.__class__ is not self.type.Response:
            response = ServiceError(
                f"answered with {type(response).__name__} instead of {self.type.name} response",
                location=f"node {self.node}, service {self.name}",
            )
        self._bus.executor.ready.append((response_future, response, self.node))

    @property
    def pending_count(self) -> int:
        """How many calls wait for their answer."""
        return len(self._pending)

    def close(self) -> None:
        """Serve no more; calls that are still unanswered fail."""
        if not self.closed:
            self.closed = True
            self._bus.services.pop(self.name, None)
            for response_future in list(self._pending):
                self._respond(response_future, self._closed_error())

    def _closed_error(self) -> ServiceError:
        return ServiceError(f"node {self.node}, which served {self.name}, went away")


def check_service(service_type: Any, node: str) -> None:
    """Refuse what is no type of a service.

    Raises:
        MessageError: it is none.
    """
    if not isinstance(service_type, ServiceType):
        raise MessageError(
            f"{getattr(service_type, '__name__', service_type)!r:.80} is no service", location=f"node {node}",
            valid="e.g. ry.srv.Trigger",
        )  # fmt: skip


def _similar_services(name: str, available: list[str]) -> str:
    """The services that may have been meant."""
    base_name = name.rsplit("/", 1)[-1]
    same_name = sorted(other for other in available if other.rsplit("/", 1)[-1] == base_name)
    similar = list(dict.fromkeys([*same_name, *get_close_matches(name, available, 5, 0.7)]))[:8]
    return f"near it: {', '.join(similar)}" if similar else f"{len(available)} others are served"


class ServiceClient:
    """The calling end; finds the server anew at each call, so order of start does not matter."""

    __slots__ = ("_bus", "name", "node", "type")

    def __init__(self, bus: Bus, name: str, service_type: Any, node: str) -> None:
        self._bus = bus
        self.name = name
        self.type = service_type
        self.node = node

    def is_available(self) -> bool:
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
                location=f"node {self.node}",
            )

    def call(self, request: Any) -> Future:
        """Send ``request``; the future fails with UnknownNameError when nobody serves the name.

        Raises:
            MessageError: ``request`` is not this service's request.
        """
        self.check(request)
        response_future = ServiceFuture(self._bus, self.name, self.node)
        server = self._bus.services.get(self.name)
        ready = self._bus.executor.ready
        if server is None:
            names = _similar_services(self.name, list(self._bus.services))
            error: RoboyardError = UnknownNameError(
                f"nobody serves {self.name}", location=f"node {self.node}", valid=names
            )
            ready.append((response_future, error, self.node))
        elif server.type is not self.type:
            error = MessageError(f"service {self.name} is a {server.type.name}, not a {self.type.name}")
            ready.append((response_future, error, self.node))
        else:
            ready.append((server, (request, response_future), self.node))
        return response_future
