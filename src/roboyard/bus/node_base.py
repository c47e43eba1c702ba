"""Base class of nodes without actions: names, topics, services, timers and offloaded tasks."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any, TypeVar

import numpy as np

from roboyard.bus.callback_timer import CallbackTimer, timer_label
from roboyard.bus.context import BusContext
from roboyard.bus.executor import TIMER, ScheduledEvent, Timer
from roboyard.bus.log import Logger
from roboyard.bus.names import resolve
from roboyard.bus.offload import OffloadedTask
from roboyard.bus.parameters import ConfigT, Configurable
from roboyard.bus.services import Future, Service, ServiceClient
from roboyard.bus.topics import Publisher, Subscription
from roboyard.errors import InputError, RunError

Endpoint = TypeVar("Endpoint")


class NodeBase(Configurable[ConfigT]):
    """Base class of `Node`, with the methods that actions require.

    Attributes:
        name: Last part of the name, e.g. "follow".
        namespace: "" or "/rover".
        full_name: "/rover/follow".
        callback_timers: Timers of the callbacks, one each, with their wall time.
        log: Log of the node, while it is on a bus.
        random: Random generator of the node, while it is on a bus.
    """

    log: Logger
    random: np.random.Generator

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(arguments)
        self._bus: BusContext | None = None
        self.name = ""
        self.namespace = ""
        self.callback_timers: list[CallbackTimer] = []
        self._remap: dict[str, str] = {}
        self._frame_prefix = ""
        self._endpoints: list[Any] = []
        self._timers: list[Timer] = []
        self._one_shot_events: dict[ScheduledEvent, bool] = {}  # whether ``load_state`` schedules the event again
        self._offloaded_tasks: dict[OffloadedTask, None] = {}

    # -- bus, names and time
    # --------------------------------------------------------------------------------------------
    @property
    def bus(self) -> BusContext:
        """The bus that the node is on.

        Raises:
            RunError: The node is not on a bus.
        """
        if self._bus is None:
            raise RunError("the node is not on a bus", location=type(self).__name__, valid="bus.add(node) first")
        return self._bus

    @property
    def now_ns(self) -> int:
        """Simulated time [ns]."""
        return self.bus.executor.now_ns

    @property
    def now(self) -> float:
        """Simulated time [s]."""
        return self.now_ns * 1e-9

    @property
    def timers(self) -> tuple[Timer, ...]:
        """The node's timers, in order of creation."""
        return tuple(self._timers)

    def frame(self, name: str) -> str:
        """Return the frame id of this robot's frame `name`, with the prefix that distinguishes several robots."""
        return self._frame_prefix + name

    def resolve(self, name: str) -> str:
        """Return the absolute, remapped form of a topic, service or action name."""
        absolute = resolve(self._remap.get(name, name), self.namespace, self.name)
        return self._remap.get(absolute, absolute)

    # -- topics --------------------------------------------------------------------------------------------------------
    def publisher(self, name: str, message_type: type, *, latched: bool = False) -> Publisher:
        """Create a publisher.

        Args:
            name: Topic, relative to the node's namespace.
            message_type: Class of the messages.
            latched: Whether later subscribers get the last message too.

        Raises:
            MessageError: The topic has another message type.
        """
        return self._register(self.bus.publisher(self.resolve(name), message_type, self.full_name, latched=latched))

    def subscribe(
        self, name: str, message_type: type, callback: Callable[..., None], *, with_source: bool = False
    ) -> Subscription:
        """Create a subscription that calls ``callback(message)`` for every message of a topic.

        Args:
            name: Topic, relative to the node's namespace.
            message_type: Class of the messages.
            callback: Function called with the message, and with the sending node's name if `with_source`.
            with_source: Whether the callback gets the name of the sending node.

        Raises:
            MessageError: The topic has another message type.
        """
        absolute = self.resolve(name)
        if not callable(callback):
            raise InputError(
                f"callback {callback!r:.80} is not callable", location=f"node {self.full_name}, {absolute}"
            )
        callback_timer = self._callback_timer(f"topic {absolute}", callback)
        return self._register(
            self.bus.subscribe(absolute, message_type, self.full_name, callback_timer, with_source=with_source)
        )

    # -- time ----------------------------------------------------------------------------------------------------------
    def timer(
        self,
        period: float | None = None,
        callback: Callable[[], None] | None = None,
        *,
        rate: float | None = None,
        immediate: bool = False,
        priority: int = TIMER,
        name: str | None = None,
    ) -> Timer:
        """Create a timer that calls ``callback()`` periodically.

        Args:
            period: Simulated time between calls [s]; alternative to `rate`.
            callback: Function to call.
            rate: Calls per simulated second [Hz].
            immediate: Make the first call immediately instead of after one period.
            priority: Order among events of the same time.
            name: Name for errors and reports; None for the callback's name.

        Raises:
            InputError: Not exactly one of `period` and `rate` is given, or it is not positive.
        """
        if (period is None) == (rate is None) or callback is None:
            raise InputError("a timer requires a callback and either period or rate", location=f"node {self.full_name}")
        seconds = period if period is not None else 1.0 / rate if rate else 0.0
        if not 1e-6 <= seconds <= 1e6:
            location = f"node {self.full_name}"
            raise InputError(
                f"timer period {seconds} s is out of range", location=location, valid="1 microsecond to 1e6 s"
            )
        period_ns = round(seconds * 1e9)
        callback_timer = self._callback_timer(timer_label(seconds, callback, name), callback, deadline_ns=period_ns)
        timer = Timer(self.bus.executor, period_ns, callback_timer, immediate=immediate, priority=priority)
        self._timers.append(timer)
        return self._register(timer)

    def call_after(
        self, delay: float, callback: Callable[[], None], *, restored_by_node: bool = False, priority: int = TIMER
    ) -> ScheduledEvent:
        """Call ``callback()`` once, after `delay` simulated seconds (now, if negative), unless the node is removed
        before.

        Args:
            delay: Simulated time [s].
            callback: Function to call.
            restored_by_node: The node's own `load_state` schedules it again; `save_state` fails while other calls are
                pending.
            priority: Order among events of the same time.

        Raises:
            InputError: `delay` is not a valid duration.
        """
        if not abs(delay) <= 1e9:
            raise InputError(
                f"delay {delay} s is out of range", location=f"node {self.full_name}", valid="at most 1e9 s"
            )
        callback_timer = self._callback_timer("one-shot timers")

        def fire() -> None:
            del self._one_shot_events[event]
            callback_timer.run(callback)

        event = self.bus.executor.schedule(self.now_ns + round(delay * 1e9), fire, priority)
        if len(self._one_shot_events) >= 64:  # remove the canceled ones
            self._one_shot_events = {
                other: is_restored for other, is_restored in self._one_shot_events.items() if not other.cancelled
            }
        self._one_shot_events[event] = restored_by_node
        return event

    def offload(
        self,
        function: Callable[..., Any],
        *args: Any,
        latency: float,
        on_done: Callable[[Future], None],
        cancel_event: Event | None = None,
    ) -> OffloadedTask:
        """Run the expensive, pure ``function(*args)`` on a worker; ``on_done(future)`` runs after `latency` simulated
        seconds.

        `cancel()` of the returned task discards the result, and so does the removal of the node.

        Args:
            function: Function to run; must release the GIL or be cheap; must not access the node.
            args: Arguments; must not be changed afterwards.
            latency: Declared duration [simulated s]; reports flag a task that takes longer.
            on_done: Function called with the finished future.
            cancel_event: Set when the result is no longer needed.  Pass its ``is_set`` to `function` so that long loops
                can check it; otherwise the end of the run waits for `function`.

        Raises:
            InputError: `latency` is not a positive duration.
        """
        task = self.bus.offload.submit(self.full_name, latency, function, *args, cancel_event=cancel_event)
        callback_timer = self._callback_timer("offloaded results")
        self._offloaded_tasks[task] = None

        def deliver_result(future: Future) -> None:
            del self._offloaded_tasks[task]
            callback_timer.run(on_done, future)

        task.add_done_callback(deliver_result)
        return task

    # -- services ------------------------------------------------------------------------------------------------------
    def service(self, name: str, service_type: Any, handler: Callable[[Any], Any]) -> Service:
        """Create a server of the service `name`.

        ``handler(request)`` returns a response or a Future of one; it raises InputError to reject the request.

        Raises:
            InputError: Another node already serves the name.
        """
        absolute = self.resolve(name)
        callback_timer = self._callback_timer(f"service {absolute}", handler)
        return self._register(self.bus.serve(absolute, service_type, self.full_name, callback_timer))

    def service_client(self, name: str, service_type: Any) -> ServiceClient:
        """Create a client of the service `name`."""
        return self.bus.service_client(self.resolve(name), service_type, self.full_name)

    # -- lifecycle -----------------------------------------------------------------------------------------------------
    def check_unattached(self) -> None:
        """Check that the node is not on a bus yet.

        Raises:
            RunError: The node is already on a bus.
        """
        if self._bus is not None:
            raise RunError(f"node {self.full_name} is already on a bus", valid="a new node object for each bus")

    def attach(self, bus: BusContext, name: str, namespace: str, remap: dict[str, str], frame_prefix: str) -> None:
        """Join a bus under a name."""
        self._bus = bus
        self.name, self.namespace, self.full_name = name, namespace, f"{namespace}/{name}"
        self._remap, self._frame_prefix = dict(remap), frame_prefix
        self.log = Logger(self.full_name, lambda: bus.executor.now_ns, bus.write_log)
        self.random = bus.random(self.full_name)

    def detach(self) -> None:
        """Cancel scheduled calls, close all endpoints and leave the bus."""
        for task in list(self._offloaded_tasks):
            task.cancel()
        for event in self._one_shot_events:
            event.cancel()
        for endpoint in reversed(self._endpoints):
            endpoint.close()
        self._offloaded_tasks.clear()
        self._one_shot_events.clear()
        self._endpoints.clear()
        self._timers.clear()
        self._bus = None

    def release_endpoint(self, endpoint: Any) -> None:
        """Close a publisher, subscription or timer of this node and remove it."""
        endpoint.close()
        self._endpoints = [other for other in self._endpoints if other is not endpoint]
        self._timers = [timer for timer in self._timers if timer is not endpoint]

    def _is_running(self) -> bool:
        return self._bus is not None

    def _on_parameter_changed(self, name: str, value: Any) -> None:
        if self._bus is not None:
            self._bus.publish_parameter_change(self.full_name, name, value)

    def _register(self, endpoint: Endpoint) -> Endpoint:
        self._endpoints.append(endpoint)
        return endpoint

    def _callback_timer(
        self, trigger: str, callback: Callable[..., Any] | None = None, deadline_ns: int = 0
    ) -> CallbackTimer:
        """Return the timer of a callback; without a callback, the shared timer of a trigger."""
        if callback is None:
            for callback_timer in self.callback_timers:
                if callback_timer.trigger == trigger:
                    return callback_timer
        executor = self.bus.executor
        callback_timer = CallbackTimer(
            self.full_name, trigger, callback or _no_op, lambda: executor.now_ns, deadline_ns
        )
        self.callback_timers.append(callback_timer)
        return callback_timer


def _no_op() -> None:
    """Do nothing; stands in for the callback of a shared timer."""
