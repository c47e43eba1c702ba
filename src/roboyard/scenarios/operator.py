"""The node that plays an operator script: what a person at the joystick would send."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

from roboyard.bus import Node, TransformError, resource
from roboyard.config import Config, parameter
from roboyard.geometry import SE2
from roboyard.messages import msg
from roboyard.scenarios.pilot import Pilot
from roboyard.scenarios.planar import planar, scan_points
from roboyard.scenarios.script import Follow, Script, Wander, actions
from roboyard.scenarios.wander import Sight

_STRAY_TIME = 0.5
"""Correlation time of the hand's tremor [s]."""


class OperatorConfig(Config):
    """Configuration of `Operator`."""

    radius: float = parameter(
        0.3, unit="m", low=0.0, high=100.0, runtime=True, doc="Radius of the robot, for wandering."
    )
    base_frame: str = parameter("base_link", runtime=True, doc="Frame of the robot.")
    after_end: str = parameter(
        "stop",
        choices=("stop", "silence"),
        runtime=True,
        doc="Action after the end of the script: zero commands, or none.",
    )


class Operator(Node[OperatorConfig]):
    """Sends a script's twists.   in: odom, scan (only if the script drives by them)   out: cmd_vel

    It knows no more than the robot: way-points are followed on odometry, or on where the robot finds itself in its map;
    room is seen by lidar, never on truth; without a lidar it wanders round a small circle, and says so.
    """

    script: Script = resource(Script)

    def setup(self) -> None:
        """Connect."""
        plan = actions(self.script)
        self._pilot = Pilot(plan, self.config.radius)
        self._pose: SE2 | None = None
        self._sight: Sight | None = None
        self._lidars: dict[str, SE2] = {}
        self._commands = self.publisher("cmd_vel", msg.Twist)
        if any(isinstance(action, Follow) for action in plan):
            self.subscribe("odom", msg.Odometry, self._on_odometry)
        if any(isinstance(action, Wander) for action in plan):
            self.subscribe("scan", msg.LaserScan, self._on_scan)
        self.timer(rate=self.script.rate, callback=self._tick, immediate=True)
        self.over = self.blind = False
        self._stray = [0.0, 0.0]

    def _on_odometry(self, message: Any) -> None:
        pose, frame = planar(message.pose.pose), self.script.frame
        if frame != "odom":
            with suppress(TransformError):  # until the robot has found its place, the map begins where odometry did
                pose = SE2.from_se3(self.transforms.lookup(self.frame(frame), message.header.frame_id)) @ pose
        self._pose = pose

    def _on_scan(self, message: Any) -> None:
        self._sight = Sight(self._lidar(message.header.frame_id) @ scan_points(message))

    def _lidar(self, frame: str) -> SE2:
        """T_base_lidar, once the transforms are there; until then the lidar counts as the robot's middle."""
        if frame not in self._lidars:
            try:
                self._lidars[frame] = SE2.from_se3(self.transforms.lookup(self.frame(self.config.base_frame), frame))
            except TransformError:
                return SE2()
        return self._lidars[frame]

    def _tick(self) -> None:
        output = self._pilot.update(self.now, self._pose, self._sight)
        if output.over and not self.over:
            self.over = True
            self.log.info("the operator's script is over")
        if not self.blind and self._pilot.blind(self.now, self._sight):
            self.blind = True
            self.log.warn("no scan comes: the operator, who is to drive where there is room, drives in a circle")
        if output.twist is None or (output.over and self.config.after_end == "silence"):
            return
        v, w = self._by_hand(*output.twist)
        self._commands.publish(msg.Twist(linear=msg.Vector3(x=v), angular=msg.Vector3(z=w)))

    def _by_hand(self, v: float, w: float) -> tuple[float, float]:
        """The twist as an unsteady hand holds it: straying slowly about what it means, at rest at rest."""
        tremor = self.script.tremor
        if tremor == 0.0:
            return v, w
        keep = math.exp(-1.0 / (self.script.rate * _STRAY_TIME))
        spread = tremor * math.sqrt(1.0 - keep * keep)
        self._stray = [keep * stray + spread * float(self.random.standard_normal()) for stray in self._stray]
        return v * (1.0 + self._stray[0]), w + (abs(w) + abs(v)) * self._stray[1]

    def save_state(self) -> dict[str, Any]:
        """State of the node and of the script, and what it saw last."""
        seen = {"pose": self._pose, "sight": self._sight, "lidars": dict(self._lidars)}
        return {
            **super().save_state(),
            "pilot": self._pilot.save_state(),
            "over": self.over,
            "blind": self.blind,
            "stray": list(self._stray),
            **seen,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Take it back."""
        super().load_state(state)
        self._pilot.load_state(state["pilot"])
        self.over, self.blind = state["over"], state["blind"]
        self._stray = list(state["stray"])
        self._pose, self._sight, self._lidars = state["pose"], state["sight"], dict(state["lidars"])
