"""Nodes: the units that talk over the bus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from roboyard.bus import node_state, parameter_services
from roboyard.bus.actions import ActionClient, ActionServer, OnFuture, OnGoal
from roboyard.bus.broadcasting import Broadcaster
from roboyard.bus.configurable import Configurable
from roboyard.bus.executor import TIMER, Scheduled
from roboyard.bus.futures import Future
from roboyard.bus.health import LEVELS, Health, HealthLevel
from roboyard.bus.log import Logger, plain
from roboyard.bus.meter import Meter, timer_occasion
from roboyard.bus.names import resolve
from roboyard.bus.offload import Work
from roboyard.bus.services import Service, ServiceClient
from roboyard.bus.timers import Timer
from roboyard.bus.topics import Publisher, Subscription
from roboyard.bus.transforms import TransformBuffer
from roboyard.errors import InputError, RunError
from roboyard.geometry import SE2, SE3

if TYPE_CHECKING:
    from roboyard.bus.bus import Bus

Kept = TypeVar("Kept")


class Node(Configurable):
    """A part that communicates only over the bus (and through the resources it is handed).

    Subclass it, declare ``param(...)`` and ``resource(...)`` in the class body, connect in ``setup``.  Parameters and
    resources are keyword arguments of the constructor.

    Attributes:
        fields: Names of the attributes that make up the node's state, for ``save`` and ``load``.
        name: Last part of the name, e.g. "follow".
        namespace: "" or "/rover".
        full_name: "/rover/follow".
        meters: One per callback, with what it cost.
        health: What the node last said of itself with ``report_health``.

    Raises:
        ConfigError: an unknown keyword, a missing resource, or a bad parameter value.
    """

    fields: tuple[str, ...] = ()

    def __init__(self, **given: Any) -> None:
        super().__init__(given)
        self._bus: Bus | None = None
        self.name = ""
        self.namespace = ""
        self.meters: list[Meter] = []
        self.health: Health | None = None
        self._remap: dict[str, str] = {}
        self._frame_prefix = ""
        self._open: list[Any] = []
        self._timers: list[Timer] = []
        self._one_shots: dict[Scheduled, bool] = {}  # whether ``load`` schedules it anew
        self._works: dict[Work, None] = {}
        self._broadcaster = Broadcaster(self)

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
            raise RunError("the node is on no bus", where=type(self).__name__, valid="bus.add(node) first")
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
        return self._keep(self.bus.publisher(self.resolve(name), message_type, self.full_name, latched=latched))

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
            raise InputError(f"callback {callback!r:.80} cannot be called", where=f"node {self.full_name}, {absolute}")
        meter = self._meter(f"topic {absolute}", callback)
        return self._keep(self.bus.subscribe(absolute, message_type, self.full_name, meter, with_source=with_source))

    # -- time ------------------------------------------------------------------------------------------------------
    def timer(
        self,
        period: float | None = None,
        callback: Callable[[], None] | None = None,
        *,
        rate: float | None = None,
        start: bool = False,
        priority: int = TIMER,
        name: str | None = None,
    ) -> Timer:
        """Run ``callback()`` again and again.

        Args:
            period: Simulated time between calls [s]; or give ``rate``.
            callback: What to run.
            rate: Calls per simulated second [Hz].
            start: First call at once instead of one period from now.
            priority: Order among events of the same instant.
            name: For errors and reports; None: the callback's.

        Raises:
            InputError: not exactly one of period and rate, or not a positive one.
        """
        if (period is None) == (rate is None) or callback is None:
            raise InputError("a timer takes a callback and either period or rate", where=f"node {self.full_name}")
        seconds = period if period is not None else 1.0 / rate if rate else 0.0
        if not 1e-6 <= seconds <= 1e6:
            where = f"node {self.full_name}"
            raise InputError(f"timer period {seconds} s", where=where, valid="from 1 microsecond to 1e6 s")
        period_ns = round(seconds * 1e9)
        meter = self._meter(timer_occasion(seconds, callback, name), callback, budget_ns=period_ns)
        timer = Timer(self.bus.executor, period_ns, meter, start=start, priority=priority)
        self._timers.append(timer)
        return self._keep(timer)

    def after(
        self, delay: float, callback: Callable[[], None], *, restored: bool = False, priority: int = TIMER
    ) -> Scheduled:
        """Run ``callback()`` once, ``delay`` simulated seconds from now (now, if negative), unless the node leaves.

        Args:
            delay: Simulated time [s].
            callback: What to run.
            restored: The node's own ``load`` schedules it again; ``save`` refuses while others are pending.
            priority: Order among events of the same instant.

        Raises:
            InputError: ``delay`` is no time.
        """
        if not abs(delay) <= 1e9:
            raise InputError(f"a delay of {delay} s", where=f"node {self.full_name}", valid="at most 1e9 s")
        meter = self._meter("one-shot timers")

        def fire() -> None:
            del self._one_shots[event]
            meter.run(callback)

        event = self.bus.executor.at(self.now_ns + round(delay * 1e9), fire, priority)
        if len(self._one_shots) >= 64:  # forget the cancelled ones
            self._one_shots = {other: kept for other, kept in self._one_shots.items() if not other.cancelled}
        self._one_shots[event] = restored
        return event

    def offload(
        self,
        function: Callable[..., Any],
        *args: Any,
        latency: float,
        then: Callable[[Future], None],
        stop: Event | None = None,
    ) -> Work:
        """Run heavy, pure ``function(*args)`` on a worker; ``then(future)`` runs ``latency`` seconds from now.

        ``cancel()`` of what this returns drops the result; so does the node's leaving.

        Args:
            function: Must release the GIL or be cheap; must not touch the node.
            args: Must not be changed afterwards.
            latency: Declared duration [simulated s]; reports flag a job that really takes longer.
            then: Gets the finished future.
            stop: Set when nobody wants the result any more: give ``function`` its ``is_set`` as the predicate to look
                at in long loops, or ending the run waits for it.

        Raises:
            InputError: ``latency`` is not a positive time.
        """
        work = self.bus.offload.submit(self.full_name, latency, function, *args, stop=stop)
        meter = self._meter("offloaded results")
        self._works[work] = None

        def arrived(done: Future) -> None:
            del self._works[work]
            meter.run(then, done)

        work.then(arrived)
        return work

    # -- services and actions --------------------------------------------------------------------------------------
    def service(self, name: str, service_type: Any, handler: Callable[[Any], Any]) -> Service:
        """Serve ``name``: ``handler(request)`` returns a response or a Future of one; raises InputError to refuse.

        Raises:
            InputError: another node serves the name.
        """
        absolute = self.resolve(name)
        meter = self._meter(f"service {absolute}", handler)
        return self._keep(self.bus.serve(absolute, service_type, self.full_name, meter))

    def service_client(self, name: str, service_type: Any) -> ServiceClient:
        """A client of the service ``name``."""
        return self.bus.service_client(self.resolve(name), service_type, self.full_name)

    def action_server(
        self, name: str, action_type: Any, on_goal: OnGoal, *, preempt: bool = True, on_restored: OnGoal | None = None
    ) -> ActionServer:
        """Offer the action ``name``.

        Args:
            name: Relative to the node's namespace.
            action_type: E.g. ``ry.action.NavigateToPose``.
            on_goal: Called for each goal; must ``accept()`` or ``reject(reason)`` the handle before it returns.
            preempt: An accepted goal aborts the one before it; False: several run side by side.
            on_restored: Called by ``load`` for each goal under way; without it a node that has goals cannot be saved.
        """
        return self._keep(ActionServer(self, name, action_type, on_goal, preempt=preempt, on_restored=on_restored))

    def action_client(self, name: str, action_type: Any, *, on_restored: OnFuture | None = None) -> ActionClient:
        """A client of the action ``name``; ``on_restored`` as for servers: says again what shall come of a goal."""
        return self._keep(ActionClient(self, name, action_type, on_restored=on_restored))

    # -- transforms ------------------------------------------------------------------------------------------------
    def broadcast(
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
        self.broadcast_all([(T_parent_child, parent, child)], static=static, time_ns=time_ns)

    def broadcast_all(
        self, transforms: Sequence[tuple[SE2 | SE3, str, str]], *, static: bool = False, time_ns: int | None = None
    ) -> None:
        """Publish several transforms (T_parent_child, parent, child) of one moment in one message."""
        self._broadcaster.send(transforms, self.now_ns if time_ns is None else time_ns, static=static)

    # -- telling people --------------------------------------------------------------------------------------------
    def report_health(self, level: HealthLevel, text: str, **values: Any) -> None:
        """Say how the node is; published on /diagnostics once a second and at every change of level.

        Raises:
            InputError: no such level.
        """
        if level not in LEVELS:
            raise InputError(f"health '{level}'", where=f"node {self.full_name}", valid=", ".join(LEVELS))
        before = self.health
        self.health = Health(level, plain(text), tuple((key, plain(value)) for key, value in values.items()))
        if before is None or before.level != level:
            self.bus.health_changed(self)

    # -- state -----------------------------------------------------------------------------------------------------
    def save(self) -> dict[str, Any]:
        """The node's state as plain data: parameters, random generator, timers and the attributes in ``fields``.

        Raises:
            RunError: the node waits for something that no data can hold (a one-shot timer, offloaded work, a goal), or
                an attribute cannot be copied; names both.
        """
        return node_state.save(self)

    def load(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave, on a node of the same class that was set up the same way.

        Raises:
            RunError: it was set up otherwise.
        """
        node_state.load(self, saved)

    # -- life on the bus, called by it -----------------------------------------------------------------------------
    def check_free(self) -> None:
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
        parameter_services.offer(self)
        Meter(self.full_name, "setup", self.setup, lambda: bus.executor.now_ns)()

    def detach(self) -> None:
        """Leave the bus; use ``bus.remove``."""
        if self._bus is None:
            return
        bus = self._bus
        try:
            Meter(self.full_name, "close", self.close, lambda: bus.executor.now_ns)()
        finally:
            for work in list(self._works):
                work.cancel()
            for event in self._one_shots:
                event.cancel()
            for item in reversed(self._open):
                item.close()
            self._works.clear()
            self._one_shots.clear()
            self._open.clear()
            self._timers.clear()
            self._bus = None

    def _is_running(self) -> bool:
        return self._bus is not None

    def _parameter_changed(self, name: str, value: Any) -> None:
        if self._bus is not None:
            self._bus.parameter_changed(self, name, value)

    def _keep(self, item: Kept) -> Kept:
        self._open.append(item)
        return item

    def _meter(self, occasion: str, callback: Callable[..., Any] | None = None, budget_ns: int = 0) -> Meter:
        """The meter of a callback; without one, the shared meter of an occasion."""
        if callback is None:
            for meter in self.meters:
                if meter.occasion == occasion:
                    return meter
        executor = self.bus.executor
        meter = Meter(self.full_name, occasion, callback or _nothing, lambda: executor.now_ns, budget_ns)
        self.meters.append(meter)
        return meter


def _nothing() -> None:
    """What a shared meter has in place of a callback of its own."""
