"""What every node does on a bus but for actions: names, topics, services, timers and offloaded work."""

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
    """Base of ``Node``, and what actions need of a node.

    Attributes:
        name: Last part of the name, e.g. "follow".
        namespace: "" or "/rover".
        full_name: "/rover/follow".
        callback_timers: One per callback, with what it cost.
        log: The node's log, once it is on a bus.
        random: The node's random generator, once it is on a bus.
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
        self._one_shot_events: dict[ScheduledEvent, bool] = {}  # whether ``load_state`` schedules it anew
        self._offloaded_tasks: dict[OffloadedTask, None] = {}

    # -- where and when --------------------------------------------------------------------------------------------
    @property
    def bus(self) -> BusContext:
        """The bus the node is on.

        Raises:
            RunError: it is on none.
        """
        if self._bus is None:
            raise RunError("the node is on no bus", location=type(self).__name__, valid="bus.add(node) first")
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
        """The node's timers, as they were made."""
        return tuple(self._timers)

    def frame(self, name: str) -> str:
        """Frame id of this robot's frame ``name``, with the prefix that keeps several robots apart."""
        return self._frame_prefix + name

    def resolve(self, name: str) -> str:
        """Absolute, remapped form of a topic, service or action name."""
        absolute = resolve(self._remap.get(name, name), self.namespace, self.name)
        return self._remap.get(absolute, absolute)

    # -- topics ----------------------------------------------------------------------------------------------------
    def publisher(self, name: str, message_type: type, *, latched: bool = False) -> Publisher:
        """Announce that this node sends ``message_type`` on a topic.

        Args:
            name: Topic, relative to the node's namespace.
            message_type: Class of the messages.
            latched: Give the last message to later subscribers too.

        Raises:
            MessageError: the topic carries another type.
        """
        return self._register(self.bus.publisher(self.resolve(name), message_type, self.full_name, latched=latched))

    def subscribe(
        self, name: str, message_type: type, callback: Callable[..., None], *, with_source: bool = False
    ) -> Subscription:
        """Have ``callback(message)`` run for every message on a topic.

        Args:
            name: Topic, relative to the node's namespace.
            message_type: Class of the messages.
            callback: Takes the message, and the sending node's name if ``with_source``.
            with_source: See ``callback``.

        Raises:
            MessageError: the topic carries another type.
        """
        absolute = self.resolve(name)
        if not callable(callback):
            raise InputError(
                f"callback {callback!r:.80} cannot be called", location=f"node {self.full_name}, {absolute}"
            )
        callback_timer = self._callback_timer(f"topic {absolute}", callback)
        return self._register(
            self.bus.subscribe(absolute, message_type, self.full_name, callback_timer, with_source=with_source)
        )

    # -- time ------------------------------------------------------------------------------------------------------
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
        """Run ``callback()`` again and again.

        Args:
            period: Simulated time between calls [s]; or give ``rate``.
            callback: What to run.
            rate: Calls per simulated second [Hz].
            immediate: First call at once instead of one period from now.
            priority: Order among events of the same instant.
            name: For errors and reports; None: the callback's.

        Raises:
            InputError: not exactly one of period and rate, or not a positive one.
        """
        if (period is None) == (rate is None) or callback is None:
            raise InputError("a timer takes a callback and either period or rate", location=f"node {self.full_name}")
        seconds = period if period is not None else 1.0 / rate if rate else 0.0
        if not 1e-6 <= seconds <= 1e6:
            location = f"node {self.full_name}"
            raise InputError(f"timer period {seconds} s", location=location, valid="from 1 microsecond to 1e6 s")
        period_ns = round(seconds * 1e9)
        callback_timer = self._callback_timer(timer_label(seconds, callback, name), callback, deadline_ns=period_ns)
        timer = Timer(self.bus.executor, period_ns, callback_timer, immediate=immediate, priority=priority)
        self._timers.append(timer)
        return self._register(timer)

    def call_after(
        self, delay: float, callback: Callable[[], None], *, restored_by_node: bool = False, priority: int = TIMER
    ) -> ScheduledEvent:
        """Run ``callback()`` once, ``delay`` simulated seconds from now (now, if negative), unless the node leaves.

        Args:
            delay: Simulated time [s].
            callback: What to run.
            restored_by_node: The node's own ``load`` schedules it again; ``save`` refuses while others are pending.
            priority: Order among events of the same instant.

        Raises:
            InputError: ``delay`` is no time.
        """
        if not abs(delay) <= 1e9:
            raise InputError(f"a delay of {delay} s", location=f"node {self.full_name}", valid="at most 1e9 s")
        callback_timer = self._callback_timer("one-shot timers")

        def fire() -> None:
            del self._one_shot_events[event]
            callback_timer.run(callback)

        event = self.bus.executor.schedule(self.now_ns + round(delay * 1e9), fire, priority)
        if len(self._one_shot_events) >= 64:  # forget the cancelled ones
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
        """Run heavy, pure ``function(*args)`` on a worker; ``on_done(future)`` runs ``latency`` seconds from now.

        ``cancel()`` of what this returns drops the result; so does the node's leaving.

        Args:
            function: Must release the GIL or be cheap; must not touch the node.
            args: Must not be changed afterwards.
            latency: Declared duration [simulated s]; reports flag a job that really takes longer.
            on_done: Gets the finished future.
            cancel_event: Set when the result is no longer needed.  Pass its ``is_set`` to ``function`` so that long
                loops can check it; otherwise the end of the run waits for ``function``.

        Raises:
            InputError: ``latency`` is not a positive time.
        """
        task = self.bus.offload.submit(self.full_name, latency, function, *args, cancel_event=cancel_event)
        callback_timer = self._callback_timer("offloaded results")
        self._offloaded_tasks[task] = None

        def deliver_result(future: Future) -> None:
            del self._offloaded_tasks[task]
            callback_timer.run(on_done, future)

        task.add_done_callback(deliver_result)
        return task

    # -- services ------------------------------------------------------------------------------------------------
    def service(self, name: str, service_type: Any, handler: Callable[[Any], Any]) -> Service:
        """Serve ``name``: ``handler(request)`` returns a response or a Future of one; raises InputError to refuse.

        Raises:
            InputError: another node serves the name.
        """
        absolute = self.resolve(name)
        callback_timer = self._callback_timer(f"service {absolute}", handler)
        return self._register(self.bus.serve(absolute, service_type, self.full_name, callback_timer))

    def service_client(self, name: str, service_type: Any) -> ServiceClient:
        """A client of the service ``name``."""
        return self.bus.service_client(self.resolve(name), service_type, self.full_name)

    # -- life on the bus -----------------------------------------------------------------------------------------
    def check_unattached(self) -> None:
        """Refuse to join a second bus.

        Raises:
            RunError: the node is on one.
        """
        if self._bus is not None:
            raise RunError(f"node {self.full_name} is on a bus already", valid="one node object joins one bus")

    def attach(self, bus: BusContext, name: str, namespace: str, remap: dict[str, str], frame_prefix: str) -> None:
        """Join ``bus`` under a name."""
        self._bus = bus
        self.name, self.namespace, self.full_name = name, namespace, f"{namespace}/{name}"
        self._remap, self._frame_prefix = dict(remap), frame_prefix
        self.log = Logger(self.full_name, lambda: bus.executor.now_ns, bus.write_log)
        self.random = bus.random(self.full_name)

    def detach(self) -> None:
        """Cancel what is scheduled, close all endpoints and leave the bus."""
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
        """Close a publisher, subscription or timer of this node and forget it, as if it had never been made."""
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
        """The meter of a callback; without one, the shared meter of an occasion."""
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
    """What a shared meter has in place of a callback of its own."""
