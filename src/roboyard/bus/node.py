"""Nodes: units that communicate over the bus, with health, transforms, actions and saved state."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from roboyard.bus.actions import ActionClient, ActionServer, OnFuture, OnGoal, endpoint
from roboyard.bus.callback_timer import CallbackTimer
from roboyard.bus.context import BusContext
from roboyard.bus.log import to_valid_utf8
from roboyard.bus.node_base import NodeBase
from roboyard.bus.parameter_services import serve_parameters
from roboyard.bus.parameters import ConfigT
from roboyard.bus.services import Service
from roboyard.bus.topics import Publisher
from roboyard.bus.transforms import TransformBuffer
from roboyard.errors import ConfigError, InputError, RunError, describe_exception
from roboyard.geometry import SE2, SE3
from roboyard.messages import message_type
from roboyard.messages.convert import transforms_to_msg

_GET_RESULT = endpoint("", "get_result")
"""Action service that clients call again after a snapshot was loaded, to request the results of their goals."""

STATE_RATE = 10.0
"""Rate at which nodes publish a state that does not change, for late subscribers [Hz]."""
HealthLevel = Literal["ok", "warn", "error", "stale"]
HEALTH_LEVELS: dict[HealthLevel, int] = {"ok": 0, "warn": 1, "error": 2, "stale": 3}
"""Health levels with the numbers of diagnostic_msgs/DiagnosticStatus."""


@dataclass(frozen=True, slots=True)
class Health:
    """Health of a node."""

    level: HealthLevel
    text: str
    values: tuple[tuple[str, str], ...] = ()


class TransformBroadcaster:
    """Publishes a node's transforms; its publishers are created on first use."""

    def __init__(self, node: NodeBase) -> None:
        self._node = node
        self._static_transforms: dict[str, tuple[SE3, str]] = {}
        self._dynamic_publisher: Publisher | None = None
        self._static_publisher: Publisher | None = None

    def send(self, transforms: Sequence[tuple[SE2 | SE3, str, str]], time_ns: int, *, static: bool) -> None:
        """Publish transforms (T_parent_child, parent, child) of one time in one message."""
        se3_transforms = [
            (pose.to_se3() if isinstance(pose, SE2) else pose, parent, child) for pose, parent, child in transforms
        ]
        tf_type = message_type("tf2_msgs/msg/TFMessage")
        if static:
            self._static_transforms.update({child: (pose, parent) for pose, parent, child in se3_transforms})
            if self._static_publisher is None:
                self._static_publisher = self._node.publisher("/tf_static", tf_type, latched=True)
            all_static = [(pose, parent, child) for child, (pose, parent) in self._static_transforms.items()]
            self._static_publisher.publish(transforms_to_msg(all_static, time_ns))
            return
        if self._dynamic_publisher is None:
            self._dynamic_publisher = self._node.publisher("/tf", tf_type)
        self._dynamic_publisher.publish(transforms_to_msg(se3_transforms, time_ns))


class Node(NodeBase[ConfigT]):
    """A component that communicates only over the bus (and through the resources it is given).

    Declare its configuration as a subclass of ``Config`` and name it in brackets: ``Node[FollowerConfig]``.
    Declare resources with ``resource(...)`` in the class body; create publishers, subscriptions and timers
    in ``setup``. The configuration's keys and the resources are keyword arguments of the constructor; ``self.config``
    is the present configuration.

    Attributes:
        state_fields: Names of the attributes that make up the node's state, for ``save_state`` and ``load_state``.
        name: Last part of the name, e.g. "follow".
        namespace: "" or "/rover".
        full_name: "/rover/follow".
        callback_timers: Timers of the callbacks, one each, with their wall time.
        health: Health that the node reported last with ``report_health``.

    Raises:
        ConfigError: A keyword is unknown, a resource is missing, or a parameter value is invalid.
    """

    state_fields: tuple[str, ...] = ()

    def __init__(self, **arguments: Any) -> None:
        super().__init__(arguments)
        self.health: Health | None = None
        self._transform_broadcaster = TransformBroadcaster(self)

    # -- for subclasses to fill in -------------------------------------------------------------------------------------
    def setup(self) -> None:
        """Connect to topics, services and timers; called once, when the node is added to a bus."""

    def close(self) -> None:
        """Release the resources of `setup`; called once, when the node is removed or the run ends."""

    # -- actions -------------------------------------------------------------------------------------------------------
    def action_server(
        self,
        name: str,
        action_type: Any,
        on_goal: OnGoal,
        *,
        preempt: bool = True,
        on_goal_restored: OnGoal | None = None,
    ) -> ActionServer:
        """Create a server of the action `name`.

        Args:
            name: Action, relative to the node's namespace.
            action_type: Action type, e.g. ``ry.action.NavigateToPose``.
            on_goal: Function called with each goal; it must call ``accept()`` or ``reject(error_message)`` before it
                returns.
            preempt: An accepted goal aborts the previous one; False: several goals are active at the same time.
            on_goal_restored: Function called by `load_state` for each active goal; without it a node with active goals
                cannot be saved.
        """
        return self._register(
            ActionServer(self, name, action_type, on_goal, preempt=preempt, on_goal_restored=on_goal_restored)
        )

    def action_client(self, name: str, action_type: Any, *, on_goal_restored: OnFuture | None = None) -> ActionClient:
        """Create a client of the action `name`.

        `load_state` calls `on_goal_restored` for each active goal, to attach its callbacks again.
        """
        return self._register(ActionClient(self, name, action_type, on_goal_restored=on_goal_restored))

    # -- transforms ----------------------------------------------------------------------------------------------------
    @property
    def transforms(self) -> TransformBuffer:
        """The buffer of all frames on this bus."""
        return self.bus.transforms

    def send_transform(
        self, T_parent_child: SE2 | SE3, parent: str, child: str, *, static: bool = False, time_ns: int | None = None
    ) -> None:
        """Publish a transform on /tf, or on the latched /tf_static.

        Args:
            T_parent_child: Pose of `child` in `parent`.
            parent: Frame id including the prefix (see `frame`).
            child: Frame id including the prefix.
            static: Whether the transform never changes.
            time_ns: Time of validity [ns]; None = now.
        """
        self.send_transforms([(T_parent_child, parent, child)], static=static, time_ns=time_ns)

    def send_transforms(
        self, transforms: Sequence[tuple[SE2 | SE3, str, str]], *, static: bool = False, time_ns: int | None = None
    ) -> None:
        """Publish several transforms (T_parent_child, parent, child) of one time in one message."""
        self._transform_broadcaster.send(transforms, self.now_ns if time_ns is None else time_ns, static=static)

    # -- health --------------------------------------------------------------------------------------------------------
    def report_health(self, level: HealthLevel, text: str, **values: Any) -> None:
        """Report the health of the node; published on /diagnostics once per second and at every change of level.

        Raises:
            InputError: The level is unknown.
        """
        if level not in HEALTH_LEVELS:
            raise InputError(
                f"unknown health level '{level}'", location=f"node {self.full_name}", valid=", ".join(HEALTH_LEVELS)
            )
        previous = self.health
        self.health = Health(
            level, to_valid_utf8(text), tuple((key, to_valid_utf8(value)) for key, value in values.items())
        )
        if previous is None or previous.level != level:
            self.bus.publish_health_change()

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """Return the node's state as plain data: configuration, random generator, timers, and ``state_fields``.

        Raises:
            RunError: The node has pending work that cannot be saved (a one-shot timer, an offloaded task, a goal), or
                an attribute cannot be copied; the message names both.
        """
        pending = self._pending_work()
        if pending:
            raise RunError(
                f"cannot be saved: {', '.join(pending)}", location=f"node {self.full_name}", valid=self._save_advice()
            )
        health = self.health
        return {
            "config": self.config.to_data(),
            "random": copy.deepcopy(self.random.bit_generator.state),
            "timers": [timer.next_ns for timer in self.timers],
            "health": None if health is None else (health.level, health.text, health.values),
            "log": self.log.save_state(),
            "actions": [item.save_state() for item in self._action_endpoints()],
            "state": {name: _copy_field(self, name) for name in self.state_fields},
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore a state that `save_state` returned, on a node of the same class with the same setup.

        Raises:
            RunError: The setup of the node differs.
        """
        actions = self._action_endpoints()
        is_compatible = len(saved["timers"]) == len(self.timers) and len(saved["actions"]) == len(actions)
        try:
            config = self.config_class.load(saved["config"], source_name=f"node {self.full_name}")
        except ConfigError as error:
            raise RunError(
                f"cannot load the state: the node's setup differs from the saved one: {error.message}",
                location=f"node {self.full_name}",
            ) from None
        if not is_compatible:
            raise RunError(
                "cannot load the state: the node's setup differs from the saved one", location=f"node {self.full_name}"
            )
        for event in [event for event, is_restored in self._one_shot_events.items() if not is_restored]:
            event.cancel()
            del self._one_shot_events[event]
        self.config = config  # type: ignore[assignment]  # of the class in brackets
        self.random.bit_generator.state = saved["random"]
        for timer, next_ns in zip(self.timers, saved["timers"], strict=True):
            timer.reschedule(next_ns)
        self.health = None if saved["health"] is None else Health(*saved["health"])
        self.log.load_state(saved["log"])
        for item, saved_action in zip(actions, saved["actions"], strict=True):
            item.load_state(saved_action)
        for name, value in saved["state"].items():
            setattr(self, name, copy.deepcopy(value))

    def _pending_work(self) -> list[str]:
        """Return descriptions of pending work that cannot be saved."""
        descriptions = []
        if self._offloaded_tasks:
            descriptions.append(f"{len(self._offloaded_tasks)} offloaded tasks are pending")
        events = self._one_shot_events.items()
        one_shot_count = sum(not is_restored and not event.cancelled for event, is_restored in events)
        if one_shot_count:
            descriptions.append(f"{one_shot_count} one-shot timers are pending")
        descriptions += [
            f"{count} calls of {service.name} are pending"
            for service in self._endpoints
            if isinstance(service, Service)
            and not service.name.endswith(_GET_RESULT)
            and (count := service.pending_count)
        ]
        descriptions += [
            f"{n} goals of {item.name} are active"
            for item in self._action_endpoints()
            if (n := item.unrestorable_goal_count)
        ]
        return descriptions

    def _action_endpoints(self) -> list[ActionServer | ActionClient]:
        return [item for item in self._endpoints if isinstance(item, (ActionServer, ActionClient))]

    def _save_advice(self) -> str:
        if any(item.unrestorable_goal_count for item in self._action_endpoints()):
            return "save when they are finished, or set on_goal_restored=… of action_server or action_client"
        return "save when they are finished"

    # -- lifecycle, called by the bus ----------------------------------------------------------------------------------
    def attach(self, bus: BusContext, name: str, namespace: str, remap: dict[str, str], frame_prefix: str) -> None:
        """Join a bus under a name and run `setup`; use ``bus.add``."""
        super().attach(bus, name, namespace, remap, frame_prefix)
        serve_parameters(self, self.service)
        CallbackTimer(self.full_name, "setup", self.setup, lambda: bus.executor.now_ns)()

    def detach(self) -> None:
        """Run `close` and leave the bus; use ``bus.remove``."""
        if self._bus is None:
            return
        executor = self._bus.executor
        try:
            CallbackTimer(self.full_name, "close", self.close, lambda: executor.now_ns)()
        finally:
            super().detach()


def _copy_field(node: Node, name: str) -> Any:
    """Copy an attribute of a node.

    Raises:
        RunError: The attribute does not exist or cannot be copied.
    """
    try:
        return copy.deepcopy(getattr(node, name))
    except (Exception, SystemExit) as error:
        reason = describe_exception(error) if isinstance(error, SystemExit) else error
        raise RunError(
            f"cannot be saved: attribute '{name}': {reason}",
            location=f"node {node.full_name}",
            valid="plain data",
        ) from error
