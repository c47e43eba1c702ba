"""The node that plays an operator script: what a person at the joystick would send."""

from __future__ import annotations

from typing import Any

from roboyard.bus import Node, param, resource
from roboyard.geometry import SE2
from roboyard.messages import message_type
from roboyard.scenarios.pilot import Pilot
from roboyard.scenarios.script import Follow, Script, actions


class Operator(Node):
    """Sends a script's twists.   in: odom (only if the script drives by it)   out: cmd_vel

    It knows no more than the robot: way-points are followed on odometry, never on truth.
    """

    script: Script = resource(Script)
    after_end: str = param(
        "stop", choices=("stop", "silence"), doc="once the script is over: hold zero, or say nothing more"
    )

    def setup(self) -> None:
        """Connect."""
        plan = actions(self.script)
        self._pilot = Pilot(plan)
        self._pose: SE2 | None = None
        self._twist_type: Any = message_type("geometry_msgs/msg/Twist")
        self._commands = self.publisher("cmd_vel", self._twist_type)
        if any(isinstance(action, Follow) for action in plan):
            self.subscribe("odom", message_type("nav_msgs/msg/Odometry"), self._on_odometry)
        self.timer(rate=self.script.rate, callback=self._tick, start=True)
        self.over = False

    def _on_odometry(self, message: Any) -> None:
        pose = message.pose.pose
        q = pose.orientation
        yaw = SE2.from_quaternion_yaw(q.w, q.x, q.y, q.z) if hasattr(SE2, "from_quaternion_yaw") else 0.0
        self._pose = SE2(pose.position.x, pose.position.y, yaw)

    def _tick(self) -> None:
        output = self._pilot.update(self.now, self._pose)
        if output.over and not self.over:
            self.over = True
            self.log.info("the operator's script is over")
        if output.twist is None or (output.over and self.after_end == "silence"):
            return
        message = self._twist_type()
        message.linear.x, message.angular.z = output.twist
        self._commands.publish(message)

    def save(self) -> dict[str, Any]:
        """State of the node and of the script."""
        return {**super().save(), "pilot": self._pilot.save(), "over": self.over}

    def load(self, state: dict[str, Any]) -> None:
        """Take it back."""
        super().load(state)
        self._pilot.load(state["pilot"])
        self.over = state["over"]
