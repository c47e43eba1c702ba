"""The hand guiding node: forces on the tool become a commanded twist while the enabling switch is held."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from roboyard.bus import Node, TransformError
from roboyard.config import Config, parameter
from roboyard.errors import InputError
from roboyard.messages import msg
from roboyard.messages.convert.poses import make_header, vector_to_array
from roboyard.safety.collaborative.hand_guiding import AdmittanceConfig, AdmittanceController


class HandGuidingNodeConfig(Config):
    """Configuration of `HandGuidingNode`."""

    admittance: AdmittanceConfig = parameter(
        factory=AdmittanceConfig, flatten="", doc="Admittance of the hand guiding."
    )

    wrench_topics: tuple[str, ...] = parameter(
        ("finger_left/force", "finger_right/force"),
        doc="Topics of the forces that are added, geometry_msgs/WrenchStamped.",
    )
    command_topic: str = parameter("servo/delta_twist_cmds", doc="Topic of the commanded twists.")
    base_frame: str = parameter("base_link", doc="Frame of the commanded twists.")
    rate: float = parameter(50.0, unit="Hz", low=1.0, high=1000.0, doc="Rate of the control loop.")
    timeout: float = parameter(
        0.2,
        unit="s",
        low=0.01,
        high=10.0,
        runtime=True,
        doc="Age from which a force or the enabling switch is no longer used.",
    )


class HandGuidingNode(Node[HandGuidingNodeConfig]):
    """Moves a tool by the forces of a hand on it.

    in: ~/enable (std_msgs/Bool): the switch that must be held, published periodically; ``wrench_topics``
        (geometry_msgs/WrenchStamped): forces on the tool, which are added; /tf base → their frames
    out: ``command_topic`` (geometry_msgs/TwistStamped) in the base, for the servo node: while the switch is held, and
        until the tool is at rest

    A switch or a force without a message for ``timeout`` counts as released.
    """

    state_fields = ("_enabled_ns", "_forces", "_received_ns")

    def setup(self) -> None:
        """Connect."""
        self._controller = AdmittanceController(self.config.admittance)
        self._enabled_ns = -(10**18)
        self._forces: dict[str, list[float]] = {}
        self._received_ns: dict[str, int] = {}
        self._output = self.publisher(self.config.command_topic, msg.TwistStamped)
        self.subscribe("~/enable", msg.Bool, self._on_enable)
        for topic in self.config.wrench_topics:
            self.subscribe(topic, msg.WrenchStamped, partial(self._on_wrench, topic))
        self.timer(rate=self.config.rate, callback=self._update)

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return super().save_state() | {"velocity": self._controller.velocity.tolist()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        super().load_state(state)
        self._controller.velocity = np.array(state["velocity"])

    def _on_enable(self, message: Any) -> None:
        self._enabled_ns = self.now_ns if message.data else -(10**18)

    def _on_wrench(self, topic: str, message: Any) -> None:
        force = vector_to_array(message.wrench.force)
        if not np.isfinite(force).all():
            self.log.error(f"ignored a force of {topic}: not finite", throttle=5.0)
            return
        try:
            T = self.transforms.lookup(self.frame(self.config.base_frame), message.header.frame_id)
        except TransformError as error:
            self.log.warn(f"ignored a force of {topic}: {error}", throttle=5.0)
            return
        self._forces[topic] = (T.rotation_matrix() @ force).tolist()
        self._received_ns[topic] = self.now_ns

    def _update(self) -> None:
        recent_topics = [
            topic for topic in self.config.wrench_topics if self._is_recent(self._received_ns.get(topic, -(10**18)))
        ]
        is_enabled = self._is_recent(self._enabled_ns) and len(recent_topics) == len(self.config.wrench_topics)
        force = np.sum([self._forces[topic] for topic in recent_topics], axis=0) if recent_topics else np.zeros(3)
        was_moving = bool(self._controller.velocity.any())
        try:
            velocity = self._controller.step(force, 1.0 / self.config.rate, is_enabled=is_enabled)
        except InputError as error:  # too large a sum to be a number
            self.log.error(str(error), throttle=5.0)
            return
        self.report_health("ok", "guided" if is_enabled else "enabling switch released")
        if is_enabled or was_moving:
            self._output.publish(
                msg.TwistStamped(
                    header=make_header(self.frame(self.config.base_frame), self.now_ns),
                    twist=msg.Twist(linear=msg.Vector3(*velocity.tolist())),
                )
            )

    def _is_recent(self, time_ns: int) -> bool:
        return self.now_ns - time_ns <= self.config.timeout * 1e9
