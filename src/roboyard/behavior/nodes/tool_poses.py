"""A leaf that brings an arm's tool over a thing that lies along a direction: from above, or leaning."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from roboyard.behavior.errors import PortError
from roboyard.behavior.nodes.reaching import STRAIGHT
from roboyard.behavior.nodes.sending import COMMON, SendGoal
from roboyard.behavior.ports import input_port
from roboyard.geometry import SE3
from roboyard.messages import action
from roboyard.messages.convert import pose_to_msg


class MoveTool(SendGoal):
    """Brings the tool to a position, pointing down or leaning away from the arm's foot, its x axis along a direction.

    Whether its x axis points there or the opposite way is as it takes less turning, since a gripper grips both ways
    alike; unless it is to be ``exact``, as where what is held sticks out on one side.
    """

    ports: ClassVar = {
        "position": input_port(list[float], doc="x;y;z [m]"),
        "yaw": input_port(float, 0.0, "Direction of its x axis about z [rad]"),
        "exact": input_port(bool, False, "Not the opposite direction"),
        "tilt": input_port(float, 0.0, "0: the tool points down; pi/2: level, away from the foot [rad]"),
        "over": input_port(float, 0.0, "It ends so much over the position [m]"),
        "short": input_port(float, 0.0, "And so much before it, against where it points [m]"),
        "straight": input_port(bool, False, "The tool goes in a straight line"),
        "speed": input_port(float, 1.0, "Share of the joints' speeds"),
        "tool": input_port(str, "tcp", "Which of the arm's tools"),
        "foot": input_port(str, "base_link", "Frame of the arm's foot"),
        "frame": input_port(str, "base_link", "Of the position; its z is up"),
        **COMMON,
    }
    server = "move_action"
    type = property(lambda _: action.MoveGroup)

    def goal(self) -> Any:
        """See `SendGoal.goal`. Raises TransformError."""
        node = self.on_desk().node
        frame, place = node.frame(self.input("frame")), self.input("position")
        if len(place) != 3:
            raise PortError(f"[position] has {len(place)} numbers", valid="x;y;z in m")
        foot = node.transforms.lookup(frame, node.frame(self.input("foot"))).translation
        above = (place[0], place[1], place[2] + self.input("over"))
        now = None if self.input("exact") else node.transforms.lookup(frame, node.frame(self.input("tool")))
        pose = leaning_pose(above, self.input("yaw"), self.input("tilt"), foot.tolist(), now)
        pose = pose @ SE3(translation=(0.0, 0.0, -self.input("short")))
        goal = action.MoveGroup.Goal()
        from roboyard.manipulation.nodes.motion_messages import pose_constraints

        goal.request.goal_constraints = [pose_constraints(self.input("tool"), pose_to_msg(pose), frame)]
        goal.request.max_velocity_scaling_factor = self.input("speed")
        if self.input("straight"):
            goal.request.planner_id = STRAIGHT
        return goal


def leaning_pose(
    place: tuple[float, float, float], yaw: float, tilt: float, foot: list[float], now: SE3 | None = None
) -> SE3:
    """Pose of a tool at a place, its x level along a direction and its z leaning away from a foot.

    Args:
        place: (3,) in a frame whose z is up [m].
        yaw: Of its x axis, or of the opposite one if that is nearer to how the tool is turned ``now`` [rad].
        tilt: Of its z axis, from straight down towards level [rad].
        foot: (3,) in that frame [m].
        now: How the tool is turned; None: its x axis is to point there exactly.
    """
    x = np.array([math.cos(yaw), math.sin(yaw), 0.0])
    away = np.array([-x[1], x[0], 0.0])
    if float(away @ (np.asarray(place) - np.asarray(foot))) < 0.0:
        away = -away
    z = math.sin(tilt) * away - math.cos(tilt) * np.array([0.0, 0.0, 1.0])
    if now is not None and float(x @ now.rotation_matrix()[:, 0]) < 0.0:
        x = -x
    return SE3.from_rotation_matrix(np.stack([x, np.cross(z, x), z], axis=1), np.asarray(place, dtype=np.float64))
