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
    """Moves an arm to a named pose of its joint group."""

    ports: ClassVar = {
        "pose": input_port(str, doc="Named pose of the joint group."),
        "speed": input_port(float, 1.0, "Fraction of the speed limits of the joints."),
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
        "position": input_port(float, doc="Position of the fingers [m]."),
        "effort": input_port(float, 0.0, "Largest force [N]; 0: that of the gripper."),
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


_WORK_AREA_PORT = input_port(str, "", "Work area; empty: the one at which the robot is.")
_ERROR_CODE_PORT = output_port(str, doc="Cause of the failure, in one word.")
_FULL_BAYS_PORT = output_port(int, doc="Number of bays that were seen to be full.")


class RunSkill(ActionLeaf):
    """Runs a skill of the arm: detect, pick, place, stow …"""

    ports: ClassVar = {
        "skill": input_port(str, doc="Name of the skill."),
        "goal": input_port(str, "", "Fields of the goal (roboyard_msgs/RunSkill), as `polarity: white`."),
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
        "position": input_port(
            list[float],
            doc="Position `x;y;z` in the frame of the root link [m]; by default a detected place.",
            optional=True,
        ),
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
_FRAME_PORT = input_port(str, "base_link", "Frame of the position.")


class ComputePointInFront(BusLeaf, SyncActionNode):
    """Computes the point at a distance in front of a pose in the map."""

    ports: ClassVar = {
        "pose": input_port(SE2, doc="Pose `x;y;yaw` in the map [m, rad]."),
        "distance": input_port(float, doc="Distance of the point from the pose [m]."),
        "height": input_port(float, doc="Height of the point over the floor [m]."),
        "frame": _FRAME_PORT,
        "position": output_port(list[float], doc="The point `x;y;z` [m]."),
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
        "position": input_port(list[float], doc="Position `x;y;z` [m]; by default that of the tool.", optional=True),
        "standoff": input_port(float, 0.0, "Horizontal distance of the tool before the position [m]."),
        "height_offset": input_port(float, 0.0, "Height of the tool over the position [m]."),
        "straight": input_port(bool, False, "Whether the tool moves in a straight line."),
        "speed": input_port(float, 1.0, "Fraction of the speed limits of the joints."),
        "tool": input_port(str, "fingertips", "Frame of the tool."),
        "arm_base": input_port(str, "arm_base", "Frame whose z axis is the first joint axis of the arm."),
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
    """Return the pose of a tool whose z axis points horizontally from above the arm base to a position.

    The x axis points down.

    Args:
        position: (3,) x, y, z [m].
        arm_base: (3,) Position of the arm base in the same frame, whose z axis points up [m].
        standoff: Horizontal distance of the tool before the position [m].
        height_offset: Height of the tool over the position [m].
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
        "position": input_port(list[float], doc="Position `x;y;z` [m]."),
        "yaw": input_port(float, 0.0, "Direction of the x axis of the tool about z [rad]."),
        "exact": input_port(bool, False, "Whether the opposite direction of the x axis is excluded."),
        "tilt": input_port(
            float, 0.0, "Tilt of the tool [rad]; 0: it points down, π/2: horizontally away from the arm base."
        ),
        "height_offset": input_port(float, 0.0, "Height of the tool over the position [m]."),
        "standoff": input_port(float, 0.0, "Distance of the tool before the position, along its z axis [m]."),
        "straight": input_port(bool, False, "Whether the tool moves in a straight line."),
        "speed": input_port(float, 1.0, "Fraction of the speed limits of the joints."),
        "tool": input_port(str, "tcp", "Frame of the tool."),
        "arm_base": input_port(str, "base_link", "Frame of the arm base."),
        "frame": input_port(str, "base_link", "Frame of the position, whose z axis points up."),
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
    """Return the pose of a tool at a position.

    The x axis is horizontal and has a given direction; the z axis is tilted away from the arm base.

    Args:
        position: (3,) Position in a frame whose z axis points up [m].
        yaw: Direction of the x axis, or of the opposite one if that is nearer to ``current_pose`` [rad].
        tilt: Angle of the z axis from straight down [rad].
        arm_base: (3,) Position of the arm base in that frame [m].
        current_pose: Present pose of the tool; None: the x axis has exactly the direction ``yaw``.
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
    """Waits until a person pulls at the held object: until the force on a finger changes."""

    ports: ClassVar = {
        "topic": input_port(str, "finger_left/force", "Topic of the force on a finger (geometry_msgs/WrenchStamped)."),
        "force": input_port(float, 2.0, "Change of the force that counts as a pull [N]."),
        "timeout": input_port(float, 30.0, "Time after which the leaf fails [s]."),
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
        return "the force on the finger did not change"
