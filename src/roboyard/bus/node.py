"""Nodes: the units that talk over the bus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from roboyard.bus import node_state, parameter_services
from roboyard.bus.actions import ActionClient, ActionServer, OnFuture, OnGoal
from roboyard.bus.broadcasting import TransformBroadcaster
from roboyard.bus.configurable import Configurable
from roboyard.bus.executor import TIMER, ScheduledEvent
from roboyard.bus.futures import Future
from roboyard.bus.health import HEALTH_LEVELS, Health, HealthLevel
from roboyard.bus.log import Logger, to_valid_utf8
from roboyard.bus.meter import CallbackTimer, timer_label
from roboyard.bus.names import resolve
from roboyard.bus.offload import OffloadedTask
from roboyard.bus.services import Service, ServiceClient
from roboyard.bus.timers import Timer
from roboyard.bus.topics import Publisher, Subscription
from roboyard.bus.transforms import TransformBuffer
from roboyard.errors import InputError, RunError
from roboyard.geometry import SE2, SE3

if TYPE_CHECKING:
    from roboyard.bus.bus import Bus

Endpoint = TypeVar("Endpoint")


class Node(Configurable):
    """A part that communicates only over the bus (and through the resources it is handed).

    Subclass it, declare ``param(...)`` and ``resource(...)`` in the class body, connect in ``setup``.  Parameters and
    resources are keyword arguments of the constructor.

    Attributes:
        fields: Names of the attributes that make up the node's state, for ``save`` and ``load``.
        name: Last part of the name, e.g. "follow".
        namespace: "" or "/rover".
        full_name: "/rover/follow".
        callback_timers: One per callback, with what it cost.
        health: What the node last said of itself with ``report_health``.

    Raises:
        ConfigError: an unknown keyword, a missing resource, or a bad parameter value.
    """

    state_fields: tuple[str, ...] = ()

    def __init__(self, **arguments: Any) -> None:
        super().__init__(arguments)
        self._bus: Bus | None = None
        self.name = ""
        self.namespace = ""
        self.callback_timers: list[CallbackTimer] = []
        self.health: Health | None = None
        self._remap: dict[str, str] = {}
        self._frame_prefix = ""
        self._endpoints: list[Any] = []
        self._timers: list[Timer] = []
        self._one_shot_events: dict[ScheduledEvent, bool] = {}  # whether ``load`` schedules it anew
        self._offloaded_tasks: dict[OffloadedTask, None] = {}
        self._transform_broadcaster = TransformBroadcaster(self)

    # -- for subclasses to fill in ---------------------------------------------------------------------------------
    def setup(self) -> None:
        """Connect to topics, services and timers; called once, when the node joins a bus."""

    def close(self) -> None:
        """Release what was taken in ``setup``; called once, when the node leaves the bus or the run ends."""

    # -- where and when --------------------------------------------------------------------------------------------
    @property
    def bus(self) -> Bus:
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

    @property
    def transforms(self) -> TransformBuffer:
        """The buffer of all frames on this bus."""
        return self.bus.transforms

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

    # -- services and actions --------------------------------------------------------------------------------------
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

    def action_server(
        self,
        name: str,
        action_type: Any,
        on_goal: OnGoal,
        *,
        preempt: bool = True,
        on_goal_restored: OnGoal | None = None,
    ) -> ActionServer:
        """Offer the action ``name``.

        Args:
            name: Relative to the node's namespace.
            action_type: E.g. ``ry.action.NavigateToPose``.
            on_goal: Called for each goal; must ``accept()`` or ``reject(error_message)`` the handle before it returns.
            preempt: An accepted goal aborts the one before it; False: several run side by side.
            on_goal_restored: Called by ``load`` for each active goal; without it a node with goals cannot be saved.
        """
        return self._register(
            ActionServer(self, name, action_type, on_goal, preempt=preempt, on_goal_restored=on_goal_restored)
        )

    def action_client(self, name: str, action_type: Any, *, on_goal_restored: OnFuture | None = None) -> ActionClient:
        """Create a client of the action ``name``.

        ``load`` calls ``on_goal_restored`` for each active goal, to attach its callbacks again.
        """
        return self._register(ActionClient(self, name, action_type, on_goal_restored=on_goal_restored))

    # -- transforms ------------------------------------------------------------------------------------------------
    def send_transform(
        self, T_parent_child: SE2 | SE3, parent: str, child: str, *, static: bool = False, time_ns: int | None = None
    ) -> None:
        """Publish a transform on /tf, or on the latched /tf_static.

        Args:
            T_parent_child: Pose of ``child`` in ``parent``.
            parent: Frame id, prefixed already (see ``frame``).
            child: Frame id.
            static: It never changes.
            time_ns: Moment of validity [ns]; None = now.
        """
        self.send_transforms([(T_parent_child, parent, child)], static=static, time_ns=time_ns)

    def send_transforms(
        self, transforms: Sequence[tuple[SE2 | SE3, str, str]], *, static: bool = False, time_ns: int | None = None
    ) -> None:
        """Publish several transforms (T_parent_child, parent, child) of one moment in one message."""
        self._transform_broadcaster.send(transforms, self.now_ns if time_ns is None else time_ns, static=static)

    # -- telling people --------------------------------------------------------------------------------------------
    def report_health(self, level: HealthLevel, text: str, **values: Any) -> None:
        """Say how the node is; published on /diagnostics once a second and at every change of level.

        Raises:
            InputError: no such level.
        """
        if level not in HEALTH_LEVELS:
            raise InputError(f"health '{level}'", location=f"node {self.full_name}", valid=", ".join(HEALTH_LEVELS))
        previous = self.health
        self.health = Health(
            level, to_valid_utf8(text), tuple((key, to_valid_utf8(value)) for key, value in values.items())
        )
        if previous is None or previous.level != level:
            self.bus.publish_health_change(self)

    # -- state -----------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """The node's state as plain data: parameters, random generator, timers and the attributes in ``fields``.

        Raises:
            RunError: the node waits for something that no data can hold (a one-shot timer, offloaded work, a goal), or
                an attribute cannot be copied; names both.
        """
        return node_state.save(self)

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave, on a node of the same class that was set up the same way.

        Raises:
            RunError: it was set up otherwise.
        """
        node_state.load(self, saved)

    # -- life on the bus, called by it -----------------------------------------------------------------------------
    def check_unattached(self) -> None:
        """Whether the node can join a bus.

        Raises:
            RunError: it is on one.
        """
        if self._bus is not None:
            raise RunError(f"node {self.full_name} is on a bus already", valid="one node object joins one bus")

    def attach(self, bus: Bus, name: str, namespace: str, remap: dict[str, str], frame_prefix: str) -> None:
        """Join ``bus`` under a name and run ``setup``; use ``bus.add``."""
        self._bus = bus
        self.name, self.namespace, self.full_name = name, namespace, f"{namespace}/{name}"
        self._remap, self._frame_prefix = dict(remap), frame_prefix
        self.log = Logger(self.full_name, lambda: bus.executor.now_ns, bus.write_log)
        self.random: np.random.Generator = bus.random(self.full_name)
        parameter_services.serve_parameters(self)
        CallbackTimer(self.full_name, "setup", self.setup, lambda: bus.executor.now_ns)()

    def detach(self) -> None:
        """Leave the bus; use ``bus.remove``."""
        if self._bus is None:
            return
        bus = self._bus
        try:
            CallbackTimer(self.full_name, "close", self.close, lambda: bus.executor.now_ns)()
        finally:
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

    def _is_running(self) -> bool:
        return self._bus is not None

    def _on_parameter_changed(self, name: str, value: Any) -> None:
        if self._bus is not None:
            self._bus.publish_parameter_change(self, name, value)

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
