"""Services: a request goes to the node that serves the name; the response returns as a future."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from roboyard.bus.callback_timer import CallbackTimer, NodeError
from roboyard.bus.executor import Executor
from roboyard.errors import InputError, MessageError, RoboyardError, RunError, UnknownNameError, similar_names
from roboyard.messages import ServiceType


class Future:
    """Result that becomes available later.  Not thread-safe: created, resolved and read on the executor's thread."""

    __slots__ = ("_callbacks", "_error", "_is_done", "_result", "description")

    def __init__(self, description: str = "result") -> None:
        self.description = description
        self._is_done = False
        self._result: Any = None
        self._error: RoboyardError | None = None
        self._callbacks: list[Callable[[Future], None]] = []

    def done(self) -> bool:
        """Return whether a result or an error is available."""
        return self._is_done

    @property
    def result(self) -> Any:
        """Return the result.

        Raises:
            RunError: The result is not available yet.
            RoboyardError: The error that made it fail.
        """
        if not self._is_done:
            raise RunError(f"{self.description} is not available yet", valid="run the bus until .done()")
        if self._error is not None:
            raise self._error
        return self._result

    @property
    def error(self) -> RoboyardError | None:
        """Return the error; None if it has not failed (yet)."""
        return self._error

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Call ``callback(self)`` when the future is done; immediately if it is done already."""
        if self._is_done:
            callback(self)
        else:
            self._callbacks.append(callback)

    def set_result(self, result: Any) -> None:
        """Set the result; later calls do nothing."""
        self._finish(result, None)

    def set_error(self, error: RoboyardError) -> None:
        """Set an error instead of a result; later calls do nothing."""
        self._finish(None, error)

    def _finish(self, result: Any, error: RoboyardError | None) -> None:
        if self._is_done:
            return
        self._is_done, self._result, self._error = True, result, error
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)

    def deliver(self, message: Any, source: str) -> None:
        """Resolve the future with a queued message: an error makes it fail, anything else is the result."""
        if isinstance(message, RoboyardError):
            self.set_error(message)
        else:
            self.set_result(message)


class ServiceError(RoboyardError):
    """A service call failed without a response."""


class ServiceFuture(Future):
    """Future of a service response; its callbacks are charged to the calling node."""

    __slots__ = ("_executor", "_node")

    def __init__(self, executor: Executor, service: str, node: str) -> None:
        super().__init__(f"response of {service}")
        self._executor = executor
        self._node = node

    def deliver(self, message: Any, source: str) -> None:
        """Resolve the future with a queued message.

        Raises:
            NodeError: A callback given to `add_done_callback` raised an exception.
        """
        try:
            super().deliver(message, source)
        except NodeError:
            raise
        except (Exception, SystemExit) as error:
            raise NodeError(self._node, self.description, self._executor.now_ns, error) from error


class Service:
    """Service that a node serves.

    The handler takes a request and returns a response, or a Future of one that is available later.  A handler that
    raises InputError rejects the call: the caller's future fails with it, and the run continues.
    """

    __slots__ = ("_pending", "_registry", "callback_timer", "closed", "name", "node", "type")

    def __init__(
        self, registry: ServiceRegistry, name: str, service_type: Any, node: str, callback_timer: CallbackTimer
    ) -> None:
        self._pending: dict[Future, None] = {}
        self.closed = False
        self._registry = registry
        self.name = name
        self.type = service_type
        self.node = node
        self.callback_timer = callback_timer

    def deliver(self, message: tuple[Any, Future], source: str) -> None:
        """Handle one call."""
        request, response_future = message
        if self.closed:  # the service was closed after the call
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
                f"the handler returned {type(response).__name__}, expected a response of {self.type.name}",
                location=f"node {self.node}, service {self.name}",
            )
        self._registry.executor.ready.append((response_future, response, self.node))

    @property
    def pending_count(self) -> int:
        """Number of calls that wait for their response."""
        return len(self._pending)

    def close(self) -> None:
        """Close the service; pending calls fail."""
        if not self.closed:
            self.closed = True
            self._registry.services.pop(self.name, None)
            for response_future in list(self._pending):
                self._respond(response_future, self._closed_error())

    def _closed_error(self) -> ServiceError:
        return ServiceError(f"service {self.name} was closed by node {self.node}")


def check_service(service_type: Any, node: str) -> None:
    """Check that `service_type` is a service type.

    Raises:
        MessageError: It is not a service type.
    """
    check_interface_type(service_type, ServiceType, "service", "ry.srv.Trigger", node)


def check_interface_type(interface_type: Any, expected: type, kind: str, example: str, node: str) -> None:
    """Check that `interface_type` is an instance of `expected`.

    Args:
        interface_type: Type that a node gave for a service or an action.
        expected: `ServiceType` or `ActionType`.
        kind: Name of the kind in the error message.
        example: Valid type, for the error message.
        node: Full name of the node.

    Raises:
        MessageError: It is not an instance of `expected`.
    """
    if not isinstance(interface_type, expected):
        name = getattr(interface_type, "__name__", interface_type)
        raise MessageError(f"{name!r:.80} is not a valid {kind} type", location=f"node {node}", valid=f"e.g. {example}")


def _similar_services(name: str, available: list[str]) -> str:
    """Return a text with the services of similar names."""
    base_name = name.rsplit("/", 1)[-1]
    same_name = sorted(other for other in available if other.rsplit("/", 1)[-1] == base_name)
    similar = list(dict.fromkeys([*same_name, *similar_names(name, available, count=5, cutoff=0.7)]))[:8]
    return f"similar: {', '.join(similar)}" if similar else f"{len(available)} other services are served"


class ServiceClient:
    """Client of a service; it looks up the server at each call, so the order of start-up does not matter."""

    __slots__ = ("_registry", "name", "node", "type")

    def __init__(self, registry: ServiceRegistry, name: str, service_type: Any, node: str) -> None:
        self._registry = registry
        self.name = name
        self.type = service_type
        self.node = node

    def is_available(self) -> bool:
        """Return whether a node serves this name now."""
        return self.name in self._registry.services

    def check(self, request: Any) -> None:
        """Check that `request` is a request of this service.

        Raises:
            MessageError: It is not a request of this service.
        """
        if request.__class__ is not self.type.Request:
            raise MessageError(
                f"service {self.name} requires a {self.type.name} request, got {type(request).__name__}",
                location=f"node {self.node}",
            )

    def call(self, request: Any) -> Future:
        """Send a request; the future fails with UnknownNameError if no node serves the name.

        Raises:
            MessageError: `request` is not a request of this service.
        """
        self.check(request)
        executor, services = self._registry.executor, self._registry.services
        response_future = ServiceFuture(executor, self.name, self.node)
        server = services.get(self.name)
        ready = executor.ready
        if server is None:
            names = _similar_services(self.name, list(services))
            error: RoboyardError = UnknownNameError(
                f"no server for service {self.name}", location=f"node {self.node}", valid=names
            )
            ready.append((response_future, error, self.node))
        elif server.type is not self.type:
            error = MessageError(f"service {self.name} has the type {server.type.name}, not {self.type.name}")
            ready.append((response_future, error, self.node))
        else:
            ready.append((server, (request, response_future), self.node))
        return response_future


class ServiceRegistry:
    """Services by name, and the executor that delivers requests and responses."""

    __slots__ = ("executor", "services")

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.services: dict[str, Service] = {}

    def serve(self, name: str, service_type: Any, node: str, callback_timer: CallbackTimer) -> Service:
        """Create a server of the absolute service `name`.

        Raises:
            InputError: Another node already serves it.
            MessageError: `service_type` is not a service type.
        """
        check_service(service_type, node)
        if name in self.services:
            raise InputError(f"service {name} is already served by {self.services[name].node}", location=f"node {node}")
        service = self.services[name] = Service(self, name, service_type, node, callback_timer)
        return service

    def client(self, name: str, service_type: Any, node: str) -> ServiceClient:
        """Create a client of the absolute service `name`.

        Raises:
            MessageError: `service_type` is not a service type.
        """
        check_service(service_type, node)
        return ServiceClient(self, name, service_type, node)
