"""Leaves of behavior trees that move arms and grippers and execute skills."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from roboyard.behavior.basic_types import FAILURE, SUCCESS, NodeStatus
from roboyard.behavior.errors import PortError
from roboyard.behavior.nodes.leaf_host import ACTION_PORTS, ActionLeaf, BusLeaf, check_fields, message_from_port
from roboyard.behavior.nodes.topic_leaves import TopicLeaf
from roboyard.behavior.ports import input_port, output_port
from roboyard.behavior.tree_node import SyncActionNode
from roboyard.bus import TransformError
from roboyard.geometry import SE2, SE3
from roboyard.messages import action, msg
from roboyard.messages.convert import pose_to_msg


class MoveArm(ActionLeaf):
    """Moves an arm to a pose that its groups name."""

    ports: ClassVar = {
        "pose": input_port(str, doc="A named pose of the group"),
        "speed": input_port(float, 1.0, "Share of the joints' speeds"),
        **ACTION_PORTS,
    }
    action_name = "move_action"
    action_type = property(lambda _: action.MoveGroup)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        goal = action.MoveGroup.Goal()
        goal.request.goal_constraints = [msg.moveit_msgs.Constraints(name=self.get_input("pose"))]
        goal.request.max_velocity_scaling_factor = self.get_input("speed")
        return goal


class MoveGripper(ActionLeaf):
    """Opens or closes a gripper."""

    ports: ClassVar = {
        "position": input_port(float, doc="Of the fingers [m]"),
        "effort": input_port(float, 0.0, "At most [N]; 0: the gripper's own"),
        **ACTION_PORTS,
    }
    action_name = "gripper/gripper_cmd"
    action_type = property(lambda _: action.GripperCommand)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        goal = action.GripperCommand.Goal()
        goal.command.position = self.get_input("position")
        goal.command.max_effort = self.get_input("effort")
        return goal


_WORK_AREA_PORT = input_port(str, "", "Which field; empty: the one that it is at")
_ERROR_CODE_PORT = output_port(str, doc="Why it failed, in one word")
_FULL_BAYS_PORT = output_port(int, doc="Bays that are full, as far as they were seen")


class RunSkill(ActionLeaf):
    """Runs a skill of the arm: detect, pick, place, stow …"""

    ports: ClassVar = {
        "skill": input_port(str, doc="Which one"),
        "goal": input_port(str, "", "Further fields of roboyard_msgs/RunSkill, as polarity: white"),
        "error_code": _ERROR_CODE_PORT,
        "full_bays": _FULL_BAYS_PORT,
        **ACTION_PORTS,
    }
    action_type = property(lambda _: action.RunSkill)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        check_fields(self, self.action_type.Goal, "goal")

    def _action_name(self) -> str:
        return super()._action_name() or f"skills/{self.inputs.get('skill', '')}"

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        return message_from_port(self, self.action_type.Goal, "goal")

    def on_result(self, result: Any) -> None:
        """See `ActionLeaf.on_result`."""
        for port, value in (
            ("error_code", result.error_code),
            ("full_bays", int(sum(state == 1 for state in result.load))),
        ):
            if port in self.outputs:
                self.set_output(port, value)


class _NamedSkill(RunSkill):
    """A skill with its own ports instead of goal fields."""

    skill_name: ClassVar[str] = ""

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        ActionLeaf.setup(self)

    def _action_name(self) -> str:
        return self.inputs.get("server_name", "") or f"skills/{self.skill_name}"

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        return action.RunSkill.Goal(field=self.get_input("field"))


class Pick(_NamedSkill):
    """Grasps a detected object and lifts it."""

    ports: ClassVar = {
        "field": _WORK_AREA_PORT,
        "error_code": _ERROR_CODE_PORT,
        "full_bays": _FULL_BAYS_PORT,
        **ACTION_PORTS,
    }
    skill_name = "pick"


class Place(_NamedSkill):
    """Places the held object: at a position, or at a detected place."""

    ports: ClassVar = {
        "field": _WORK_AREA_PORT,
        "position": input_port(list[float], doc="x;y;z [m] in the frame of the robot's root", optional=True),
        "error_code": _ERROR_CODE_PORT,
        "full_bays": _FULL_BAYS_PORT,
        **ACTION_PORTS,
    }
    skill_name = "place"

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`."""
        goal = super().make_goal()
        if "position" in self.inputs:
            position = self.get_input("position")
            if len(position) != 3:
                raise PortError(f"[position] has {len(position)} numbers", valid="x;y;z in m")
            goal.has_position, goal.position = True, msg.Point(x=position[0], y=position[1], z=position[2])
        return goal


STRAIGHT_LINE_PLANNER = "LIN"
_FRAME_PORT = input_port(str, "base_link", "Of the position")


class OffsetPoint(BusLeaf, SyncActionNode):
    """Computes the point at a distance in front of a pose in the map."""

    ports: ClassVar = {
        "pose": input_port(SE2, doc="x;y;yaw [m, rad] in the map"),
        "distance": input_port(float, doc="Of it [m]"),
        "height": input_port(float, doc="Over the floor [m]"),
        "frame": _FRAME_PORT,
        "position": output_port(list[float], doc="x;y;z [m]"),
    }

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self.failure_reason = ""

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        node = self.require_host().node
        pose, distance = self.get_input("pose"), self.get_input("distance")
        try:
            T = node.transforms.lookup(node.frame(self.get_input("frame")), node.frame("map"))
        except TransformError as error:
            self.failure_reason = str(error)
            return FAILURE
        x, y = pose.x + distance * math.cos(pose.theta), pose.y + distance * math.sin(pose.theta)
        self.set_output("position", (T @ np.array([x, y, self.get_input("height")])).tolist())
        return SUCCESS


class ReachPosition(ActionLeaf):
    """Moves the tool to a position, pointing horizontally at it from above the arm's base, its x axis down."""

    ports: ClassVar = {
        "position": input_port(
            list[float], doc="x;y;z [m]; where the frame of its tool is, if not said", optional=True
        ),
        "standoff": input_port(float, 0.0, "It ends so much before it, level [m]"),
        "height_offset": input_port(float, 0.0, "And so much over it [m]"),
        "straight": input_port(bool, False, "The tool goes in a straight line"),
        "speed": input_port(float, 1.0, "Share of the joints' speeds"),
        "tool": input_port(str, "fingertips", "Which of the arm's tools"),
        "arm_base": input_port(str, "arm_base", "Frame whose z is the axis that turns the arm"),
        "frame": _FRAME_PORT,
        **ACTION_PORTS,
    }
    action_name = "move_action"
    action_type = property(lambda _: action.MoveGroup)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`. Raises TransformError."""
        node = self.require_host().node
        frame = node.frame(self.get_input("frame"))
        if "position" in self.inputs:
            position = self.get_input("position")
        else:
            position = node.transforms.lookup(frame, node.frame(self.get_input("tool"))).translation.tolist()
        if len(position) != 3:
            raise PortError(f"[position] has {len(position)} numbers", valid="x;y;z in m")
        arm_base = node.transforms.lookup(frame, node.frame(self.get_input("arm_base"))).translation
        goal = action.MoveGroup.Goal()
        pose = level_pose(position, arm_base.tolist(), self.get_input("standoff"), self.get_input("height_offset"))
        from roboyard.manipulation.nodes.motion_messages import pose_constraints_to_msg

        goal.request.goal_constraints = [pose_constraints_to_msg(self.get_input("tool"), pose_to_msg(pose), frame)]
        goal.request.max_velocity_scaling_factor = self.get_input("speed")
        if self.get_input("straight"):
            goal.request.planner_id = STRAIGHT_LINE_PLANNER
        return goal


def level_pose(position: list[float], arm_base: list[float], standoff: float = 0.0, height_offset: float = 0.0) -> SE3:
    """Pose of a tool whose z points level from over the foot to a place, its x down.

    Args:
        position: (3,) x, y, z [m].
        arm_base: (3,) in the same frame, whose z is up [m].
        standoff: The tool stands so much before the place, level [m].
        height_offset: And so much over it [m].
    """
    x, y, z = position
    yaw = math.atan2(y - arm_base[1], x - arm_base[0])
    tool_position = (x - standoff * math.cos(yaw), y - standoff * math.sin(yaw), z + height_offset)
    return SE3.from_xyz_rpy(tool_position, (0.0, 0.5 * math.pi, yaw))


class MoveTool(ActionLeaf):
    """Moves the tool to a position, pointing down or tilted away from the arm's base, its x axis along a direction.

    A gripper grips both ways alike: its x axis points along the direction or opposite to it, whichever needs less
        rotation, unless ``exact`` is set, as where the held object protrudes on one side.
    """

    ports: ClassVar = {
        "position": input_port(list[float], doc="x;y;z [m]"),
        "yaw": input_port(float, 0.0, "Direction of its x axis about z [rad]"),
        "exact": input_port(bool, False, "Not the opposite direction"),
        "tilt": input_port(float, 0.0, "0: the tool points down; pi/2: level, away from the foot [rad]"),
        "height_offset": input_port(float, 0.0, "It ends so much over the position [m]"),
        "standoff": input_port(float, 0.0, "And so much before it, against where it points [m]"),
        "straight": input_port(bool, False, "The tool goes in a straight line"),
        "speed": input_port(float, 1.0, "Share of the joints' speeds"),
        "tool": input_port(str, "tcp", "Which of the arm's tools"),
        "arm_base": input_port(str, "base_link", "Frame of the arm's foot"),
        "frame": input_port(str, "base_link", "Of the position; its z is up"),
        **ACTION_PORTS,
    }
    action_name = "move_action"
    action_type = property(lambda _: action.MoveGroup)

    def make_goal(self) -> Any:
        """See `ActionLeaf.make_goal`. Raises TransformError."""
        node = self.require_host().node
        frame, position = node.frame(self.get_input("frame")), self.get_input("position")
        if len(position) != 3:
            raise PortError(f"[position] has {len(position)} numbers", valid="x;y;z in m")
        arm_base = node.transforms.lookup(frame, node.frame(self.get_input("arm_base"))).translation
        tool_position = (position[0], position[1], position[2] + self.get_input("height_offset"))
        current_pose = (
            None if self.get_input("exact") else node.transforms.lookup(frame, node.frame(self.get_input("tool")))
        )
        pose = tilted_pose(
            tool_position, self.get_input("yaw"), self.get_input("tilt"), arm_base.tolist(), current_pose
        )
        pose = pose @ SE3(translation=(0.0, 0.0, -self.get_input("standoff")))
        goal = action.MoveGroup.Goal()
        from roboyard.manipulation.nodes.motion_messages import pose_constraints_to_msg

        goal.request.goal_constraints = [pose_constraints_to_msg(self.get_input("tool"), pose_to_msg(pose), frame)]
        goal.request.max_velocity_scaling_factor = self.get_input("speed")
        if self.get_input("straight"):
            goal.request.planner_id = STRAIGHT_LINE_PLANNER
        return goal


def tilted_pose(
    position: tuple[float, float, float],
    yaw: float,
    tilt: float,
    arm_base: list[float],
    current_pose: SE3 | None = None,
) -> SE3:
    """Pose of a tool at a place, its x level along a direction and its z leaning away from a foot.

    Args:
        position: (3,) in a frame whose z is up [m].
        yaw: Of its x axis, or of the opposite one if that is nearer to how the tool is turned ``current_pose`` [rad].
        tilt: Of its z axis, from straight down towards level [rad].
        arm_base: (3,) in that frame [m].
        current_pose: How the tool is turned; None: its x axis is to point there exactly.
    """
    x = np.array([math.cos(yaw), math.sin(yaw), 0.0])
    outward = np.array([-x[1], x[0], 0.0])
    if float(outward @ (np.asarray(position) - np.asarray(arm_base))) < 0.0:
        outward = -outward
    z = math.sin(tilt) * outward - math.cos(tilt) * np.array([0.0, 0.0, 1.0])
    if current_pose is not None and float(x @ current_pose.rotation_matrix()[:, 0]) < 0.0:
        x = -x
    return SE3.from_rotation_matrix(np.stack([x, np.cross(z, x), z], axis=1), np.asarray(position, dtype=np.float64))


class WaitForPull(TopicLeaf):
    """Waits until a person pulls at the held object: until the force on a finger has changed."""

    ports: ClassVar = {
        "topic": input_port(str, "finger_left/force", "Of geometry_msgs/WrenchStamped"),
        "force": input_port(float, 2.0, "So much it changes [N]"),
        "timeout": input_port(float, 30.0, "After which it has failed [s]"),
    }
    state_fields = (*TopicLeaf.state_fields, "_reference_force")

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        super().setup()
        self._reference_force: list[float] = []

    def topic_type(self) -> Any:
        """See `TopicLeaf.topic_type`."""
        return msg.WrenchStamped

    def on_start(self) -> NodeStatus:
        """See `StatefulActionNode.on_start`."""
        self._reference_force = []
        return super().on_start()

    def on_message(self, message: Any) -> bool:
        """See `TopicLeaf.on_message`."""
        force = [message.wrench.force.x, message.wrench.force.y, message.wrench.force.z]
        self._reference_force = self._reference_force or force
        return bool(math.dist(force, self._reference_force) >= self.get_input("force"))

    def on_timeout(self) -> str:
        """See `TopicLeaf.on_timeout`."""
        return "nobody pulled"
