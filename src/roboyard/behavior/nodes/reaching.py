"""Leaves for things that a detector sees and an arm reaches for: find one, know a point ahead, bring the tool there."""

from __future__ import annotations

import math
from fnmatch import fnmatchcase
from typing import Any, ClassVar

import numpy as np

from roboyard.behavior.errors import PortError
from roboyard.behavior.kinds import Action
from roboyard.behavior.nodes.asking import Listening
from roboyard.behavior.nodes.sending import COMMON, OnBus, SendGoal
from roboyard.behavior.ports import input_port, output_port
from roboyard.behavior.status import FAILURE, SUCCESS, Status
from roboyard.bus import TransformError
from roboyard.geometry import SE2, SE3
from roboyard.messages import action, msg, to_nanoseconds
from roboyard.messages.convert import pose_to_msg, pose_to_se3

STRAIGHT = "LIN"
_FRAME = input_port(str, "base_link", "Of the position")


class FindThing(Listening):
    """Looks for a thing that a detector names, or that is somewhere; fails where it is not seen in time."""

    ports: ClassVar = {
        "what": input_port(str, doc="The name or number that the detector gives it; part_* is any that begins so"),
        "topic": input_port(str, "fiducials", "Of vision_msgs/Detection3DArray"),
        "behind": input_port(float, 0.0, "Its middle lies so far behind what is seen of it, level [m]"),
        "looks": input_port(int, 3, "Sightings, of which the median counts"),
        "near": input_port(list[float], doc="x;y;z [m]: only what lies there", optional=True),
        "within": input_port(float, 0.1, "So near [m]"),
        "frame": _FRAME,
        "timeout": input_port(float, 5.0, "After which it has failed [s]"),
        "position": output_port(list[float], doc="x;y;z of its middle [m]"),
        "yaw": output_port(float, doc="Of its x axis about z [rad]"),
        "thing": output_port(str, doc="Its name"),
    }
    state_fields = (*Listening.state_fields, "_seen", "_name")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        self._seen: list[list[float]] = []
        self._name = ""

    def hears(self) -> Any:
        """See `Listening.hears`."""
        return msg.vision_msgs.Detection3DArray

    def on_start(self) -> Status:
        """See `StatefulAction.on_start`."""
        self._seen, self._name = [], ""
        return super().on_start()

    def take(self, message: Any) -> bool:
        """See `Listening.take`."""
        node = self.on_desk().node
        wanted, frame = self.input("what"), node.frame(self.input("frame"))
        for one in message.detections:
            if not fnmatchcase(one.id, self._name or wanted):
                continue
            try:
                T = node.transforms.lookup(frame, one.header.frame_id, to_nanoseconds(one.header.stamp))
            except TransformError as error:
                node.log.info(f"{self.path}: {error}")
                return False
            pose = T @ pose_to_se3(one.bbox.center)
            out = pose.rotation_matrix()[:2, 2]
            inward = -out / max(float(np.linalg.norm(out)), 1e-9)
            x, y, z = pose.translation.tolist()
            behind = self.input("behind")
            place = [x + behind * float(inward[0]), y + behind * float(inward[1]), z]
            if "near" in self.inputs and math.dist(place, self.input("near")) > self.input("within"):
                continue
            ahead = pose.rotation_matrix()[:, 0]
            self._name = str(one.id)
            self._seen.append([*place, math.atan2(float(ahead[1]), float(ahead[0]))])
            break
        if len(self._seen) < self.input("looks"):
            return False
        x, y, z, yaw = np.median(np.array(self._seen), axis=0).tolist()
        for port, value in (("position", [x, y, z]), ("yaw", yaw), ("thing", self._name)):
            if port in self.outputs:
                self.output(port, value)
        return True

    def too_late(self) -> str:
        """See `Listening.too_late`."""
        return f"{self.input('what')} is not seen"


class PointAhead(OnBus, Action):
    """Says where a point lies that is so far ahead of a pose in the map."""

    ports: ClassVar = {
        "pose": input_port(SE2, doc="x;y;yaw [m, rad] in the map"),
        "ahead": input_port(float, doc="Of it [m]"),
        "height": input_port(float, doc="Over the floor [m]"),
        "frame": _FRAME,
        "position": output_port(list[float], doc="x;y;z [m]"),
    }

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self.why = ""

    def tick(self) -> Status:
        """See `TreeNode.tick`."""
        node = self.on_desk().node
        pose, ahead = self.input("pose"), self.input("ahead")
        try:
            T = node.transforms.lookup(node.frame(self.input("frame")), node.frame("map"))
        except TransformError as error:
            self.why = str(error)
            return FAILURE
        x, y = pose.x + ahead * math.cos(pose.theta), pose.y + ahead * math.sin(pose.theta)
        self.output("position", (T @ np.array([x, y, self.input("height")])).tolist())
        return SUCCESS


class Reach(SendGoal):
    """Brings the tool to a position, pointing level at it from over the arm's foot, its x axis down."""

    ports: ClassVar = {
        "position": input_port(
            list[float], doc="x;y;z [m]; where the frame of its tool is, if not said", optional=True
        ),
        "short": input_port(float, 0.0, "It ends so much before it, level [m]"),
        "over": input_port(float, 0.0, "And so much over it [m]"),
        "straight": input_port(bool, False, "The tool goes in a straight line"),
        "speed": input_port(float, 1.0, "Share of the joints' speeds"),
        "tool": input_port(str, "fingertips", "Which of the arm's tools"),
        "foot": input_port(str, "arm_base", "Frame whose z is the axis that turns the arm"),
        "frame": _FRAME,
        **COMMON,
    }
    server = "move_action"
    type = property(lambda _: action.MoveGroup)

    def goal(self) -> Any:
        """See `SendGoal.goal`. Raises TransformError."""
        node = self.on_desk().node
        frame = node.frame(self.input("frame"))
        if "position" in self.inputs:
            place = self.input("position")
        else:
            place = node.transforms.lookup(frame, node.frame(self.input("tool"))).translation.tolist()
        if len(place) != 3:
            raise PortError(f"[position] has {len(place)} numbers", valid="x;y;z in m")
        foot = node.transforms.lookup(frame, node.frame(self.input("foot"))).translation
        goal = action.MoveGroup.Goal()
        pose = level_pose(place, foot.tolist(), self.input("short"), self.input("over"))
        from roboyard.manipulation.nodes.motion_messages import pose_constraints

        goal.request.goal_constraints = [pose_constraints(self.input("tool"), pose_to_msg(pose), frame)]
        goal.request.max_velocity_scaling_factor = self.input("speed")
        if self.input("straight"):
            goal.request.planner_id = STRAIGHT
        return goal


def level_pose(place: list[float], foot: list[float], short: float = 0.0, over: float = 0.0) -> SE3:
    """Pose of a tool whose z points level from over the foot to a place, its x down.

    Args:
        place: (3,) x, y, z [m].
        foot: (3,) in the same frame, whose z is up [m].
        short: The tool stands so much before the place, level [m].
        over: And so much over it [m].
    """
    x, y, z = place
    yaw = math.atan2(y - foot[1], x - foot[0])
    at = (x - short * math.cos(yaw), y - short * math.sin(yaw), z + over)
    return SE3.from_xyz_rpy(at, (0.0, 0.5 * math.pi, yaw))
