"""MoveIt's motion requests as planning requests; what is not supported is rejected with the reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from roboyard.config.wording import did_you_mean
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics.ik import PointingTarget
from roboyard.manipulation.nodes.moveit_errors import ArmMotionError
from roboyard.manipulation.nodes.planning_scene_monitor import PlanningSceneMonitor
from roboyard.manipulation.nodes.request_fields import check_fields, is_set
from roboyard.manipulation.planning import AxisConstraint, JointGoal, MotionGoal, NamedGoal, PointingGoal, TimedPose
from roboyard.manipulation.planning.goals import PoseGoal
from roboyard.manipulation.planning.plan import PlanConfig
from roboyard.manipulation.planning.planning_request import PlanningRequest
from roboyard.messages import msg, to_nanoseconds, to_seconds
from roboyard.messages.convert import pose_to_se3
from roboyard.messages.convert.poses import quaternion_to_array, vector_to_array

FREE_AXIS_TOLERANCE: Final = 0.999 * math.pi
"""An orientation tolerance from here on leaves the rotation about an axis free [rad]."""
MAX_SCALING: Final = 0.998
"""Maximum scaling of the limits, because a controller's cubics deviate a little from the motion in blends."""
STRAIGHT_PLANNER: Final = "LIN"
"""Planner of straight tool paths, with the name of MoveIt's industrial motion planner."""
TIMED_PLANNER: Final = "TIMED"
"""Planner of timed tool poses: the points of one Cartesian reference trajectory, each at its time."""
_N_SEEDS: Final = 2**31
_MAX_ATTEMPTS: Final = 32


class MotionRequestReader:
    """Reads motion requests for a planning group.

    Args:
        monitor: Monitor of the planning scene, with the robot and its frames.
        states_per_planning_second: Number of sampled states for a second of allowed planning time.
        warn: Takes the report of a field that has no effect, see `FIELD_SUPPORT`.
    """

    def __init__(
        self, monitor: PlanningSceneMonitor, states_per_planning_second: float, warn: Callable[[str], None]
    ) -> None:
        self._monitor, self._states_per_planning_second, self._warn = monitor, states_per_planning_second, warn

    def read_plan_request(self, message: Any, seed: int) -> PlanningRequest:
        """Read a moveit_msgs/MotionPlanRequest. Raises ArmMotionError, TransformError, MessageError, InputError."""
        self.check_group(message.group_name)
        check_fields(message, "MotionPlanRequest", self._warn)
        if str(message.planner_id) == TIMED_PLANNER:
            return self._read_timed_request(message, seed)
        if not message.goal_constraints:
            raise ArmMotionError("no goal", "bad_goal", valid="goal_constraints")
        if message.reference_trajectories:
            raise ArmMotionError(
                f"a reference trajectory for {str(message.planner_id) or 'the default planner'}",
                "bad_goal",
                valid=f"the planner_id {TIMED_PLANNER}",
            )
        goals_and_tools = [self._read_goal(one) for one in message.goal_constraints]
        tools = {tool for _, tool in goals_and_tools}
        if len(tools) > 1:
            raise ArmMotionError("goals for several tools in one request", "bad_goal", valid="one tool")
        planning_time = float(message.allowed_planning_time)
        if not 0.0 <= planning_time <= 1e4:
            raise ArmMotionError(f"allowed_planning_time {planning_time}", "bad_goal", valid="0 (the default) to 1e4 s")
        is_straight = str(message.planner_id) == STRAIGHT_PLANNER
        config = PlanConfig(
            planner="rrt_connect" if is_straight else str(message.planner_id) or "rrt_connect",
            seed=seed % _N_SEEDS,
            max_states=max(1, round(planning_time * self._states_per_planning_second))
            if planning_time > 0.0
            else PlanConfig.max_states,
            velocity_scaling=_scaling(message.max_velocity_scaling_factor),
            acceleration_scaling=_scaling(message.max_acceleration_scaling_factor),
        )
        constraint = self._path_constraint(message.path_constraints)
        n_attempts = min(max(int(message.num_planning_attempts), 1), _MAX_ATTEMPTS)
        if is_straight:
            goals = [goal for goal, _ in goals_and_tools]
            if constraint is not None or len(goals) != 1 or not isinstance(goals[0], PoseGoal):
                raise ArmMotionError(
                    f"no line for {STRAIGHT_PLANNER}", "bad_goal", valid="one pose, and no path constraint"
                )
            return PlanningRequest(cartesian_poses=(goals[0].pose,), config=config, tool=tools.pop())
        motion_goals = tuple(goal for goal, _ in goals_and_tools)
        return PlanningRequest(
            motion_goals, constraint=constraint, config=config, n_attempts=n_attempts, tool=tools.pop()
        )

    def read_start_state(self, state: Any) -> Array:
        """Read a moveit_msgs/RobotState as (n,) joints; joints without a value are measured. Raises ArmMotionError."""
        check_fields(state, "RobotState", self._warn, cause="bad_state")
        check_fields(state.joint_state, "JointState", self._warn, cause="bad_state")
        return self._monitor.with_joint_state(state.joint_state)

    def check_group(self, name: str) -> None:
        """Raises ArmMotionError for the name of another group."""
        group_name = self._monitor.scene.group.name
        if name not in ("", group_name):
            raise ArmMotionError(f"group {name!r} is not the group of this node", "unknown_group", valid=group_name)

    def read_cartesian_request(self, message: Any) -> PlanningRequest:
        """Read a moveit_msgs/GetCartesianPath request. Raises ArmMotionError, TransformError, MessageError,
        InputError.
        """
        self.check_group(message.group_name)
        check_fields(message, "GetCartesianPath", self._warn)
        if not message.waypoints:
            raise ArmMotionError("no waypoints", "bad_goal", valid="poses of the tool")
        if not message.avoid_collisions:
            raise ArmMotionError("a path through obstacles is not supported", "bad_goal", valid="avoid_collisions")
        T = self._monitor.T_world_frame(message.header.frame_id)
        config = PlanConfig(
            velocity_scaling=_scaling(message.max_velocity_scaling_factor),
            acceleration_scaling=_scaling(message.max_acceleration_scaling_factor),
        )
        poses = tuple(T @ pose_to_se3(pose) for pose in message.waypoints)
        return PlanningRequest(cartesian_poses=poses, config=config, tool=self.find_tool(message.link_name))

    def _read_timed_request(self, message: Any, seed: int) -> PlanningRequest:
        trajectories = [one for reference in message.reference_trajectories for one in reference.cartesian_trajectory]
        if is_set(message.path_constraints) or any(one.joint_trajectory for one in message.reference_trajectories):
            raise ArmMotionError(
                f"path constraints or joint trajectories for {TIMED_PLANNER}",
                "bad_goal",
                valid="one Cartesian trajectory alone",
            )
        if len(trajectories) != 1 or not trajectories[0].points or message.goal_constraints:
            raise ArmMotionError(
                f"{len(trajectories)} Cartesian reference trajectories and {len(message.goal_constraints)} "
                f"goals for {TIMED_PLANNER}",
                "bad_goal",
                valid="one with points, and no goals",
            )
        trajectory = trajectories[0]
        T = self._monitor.T_world_frame(trajectory.header.frame_id)
        R = T.rotation_matrix()
        timed_poses = []
        for point in trajectory.points:
            check_fields(point.point, "CartesianPoint", self._warn)
            if is_set(point.point.velocity.angular):
                self._warn(f"the angular velocity of a point for {TIMED_PLANNER} has no effect: it follows from poses")
            x, y, z = (R @ vector_to_array(point.point.velocity.linear)).tolist()
            if not all(map(math.isfinite, (x, y, z))):
                raise ArmMotionError("a velocity that is not finite", "bad_goal")
            point_time = to_seconds(point.time_from_start)
            timed_poses.append(TimedPose(point_time, T @ pose_to_se3(point.point.pose), (x, y, z)))
        config = PlanConfig(
            seed=seed % _N_SEEDS,
            velocity_scaling=_scaling(message.max_velocity_scaling_factor),
            acceleration_scaling=_scaling(message.max_acceleration_scaling_factor),
        )
        start_time_ns = to_nanoseconds(trajectory.header.stamp)
        if not start_time_ns:
            raise ArmMotionError(f"no stamp for {TIMED_PLANNER}", "bad_goal", valid="the start of its times")
        tool = self.find_tool(trajectory.tracked_frame)
        return PlanningRequest(timed_poses=tuple(timed_poses), start_time_ns=start_time_ns, config=config, tool=tool)

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _read_goal(self, goal: Any) -> tuple[MotionGoal, str | None]:
        check_fields(goal, "Constraints", self._warn)
        joint_constraints, position_constraints, orientation_constraints = (
            goal.joint_constraints,
            goal.position_constraints,
            goal.orientation_constraints,
        )
        if joint_constraints and not position_constraints and not orientation_constraints:
            return self._joint_goal(joint_constraints), None
        if len(position_constraints) == 1 and len(orientation_constraints) == 1 and not joint_constraints:
            return self._pose_goal(position_constraints[0], orientation_constraints[0])
        if not joint_constraints and not position_constraints and not orientation_constraints and goal.name:
            return self._named_goal(str(goal.name)), None
        counts_text = (
            f"{len(joint_constraints)} joint, {len(position_constraints)} position and "
            f"{len(orientation_constraints)} orientation constraints"
        )
        raise ArmMotionError(
            counts_text, "bad_goal", valid="all joints; or one position and one orientation; or only the name of a pose"
        )

    def _named_goal(self, name: str) -> MotionGoal:
        pose_names = list(self._monitor.scene.group.poses)
        if name not in pose_names:
            raise ArmMotionError(
                f"no pose {name!r}{did_you_mean(name, pose_names)}", "bad_goal", valid=", ".join(pose_names) or "none"
            )
        return NamedGoal(name)

    def _joint_goal(self, constraints: Sequence[Any]) -> MotionGoal:
        group_joints = self._monitor.joints
        positions: dict[str, float] = {}
        for constraint in constraints:
            if constraint.joint_name not in group_joints:
                name = str(constraint.joint_name)
                raise ArmMotionError(
                    f"no joint {name!r}{did_you_mean(name, group_joints)}", "bad_goal", valid=", ".join(group_joints)
                )
            if not math.isfinite(constraint.position) or constraint.joint_name in positions:
                problem = "is no number" if constraint.joint_name not in positions else "is given twice"
                raise ArmMotionError(
                    f"the position of {constraint.joint_name} {problem}", "bad_goal", valid="one for each joint"
                )
            positions[str(constraint.joint_name)] = float(constraint.position)
        missing = [name for name in group_joints if name not in positions]
        if missing:
            raise ArmMotionError(f"no position for {missing[0]}", "bad_goal", valid=f"all of {', '.join(group_joints)}")
        return JointGoal(np.array([positions[name] for name in group_joints]))

    def _pose_goal(self, position_constraint: Any, orientation_constraint: Any) -> tuple[MotionGoal, str | None]:
        tool = self.find_tool(position_constraint.link_name)
        if self.find_tool(orientation_constraint.link_name) != tool:
            raise ArmMotionError("position and orientation of two links", "bad_goal", valid="the same link")
        region = position_constraint.constraint_region
        poses = [*region.primitive_poses, *region.mesh_poses]
        if len(poses) != 1:
            raise ArmMotionError(f"a position in {len(poses)} regions", "bad_goal", valid="one: its center is the goal")
        T_frame = self._monitor.T_world_frame(position_constraint.header.frame_id)
        T_world_orientation = self._monitor.T_world_frame(orientation_constraint.header.frame_id) @ _rotation(
            orientation_constraint
        )
        point = T_frame @ pose_to_se3(poses[0]).translation
        offset = vector_to_array(position_constraint.target_point_offset)
        if not np.isfinite(offset).all():
            raise ArmMotionError("an offset of the target that is not finite", "bad_goal")
        T_world = SE3(T_world_orientation.rotation, point - T_world_orientation.rotation_matrix() @ offset)
        free_axis = _free_axis(orientation_constraint)
        if free_axis is None:
            return PoseGoal(T_world, "world", _region_radius(region), min(_tolerances(orientation_constraint))), tool
        tool_axis = np.array(self._monitor.scene.group.tool_axis)
        if abs(abs(float(free_axis @ tool_axis)) / float(np.linalg.norm(tool_axis)) - 1.0) > 1e-6:
            raise ArmMotionError(
                "an orientation that is free about another axis than the tool's", "bad_goal",
                valid=f"a tolerance of pi about {_axis_name(tool_axis)}",
            )  # fmt: skip
        direction = T_world.rotation_matrix() @ tool_axis
        pointing_target = PointingTarget(
            tuple(T_world.translation.tolist()), tuple(direction.tolist()), tuple(tool_axis.tolist())
        )
        return PointingGoal(pointing_target, "world"), tool

    def find_tool(self, link: str) -> str | None:
        """Return the tool frame of a link's name: a tool's name, its link, or None for the group's tip."""
        group = self._monitor.scene.group
        if link in ("", group.tip):
            return None
        if link in group.tools:
            return str(link)
        for name, tool in group.tools.items():
            if tool.link == link and tool.T_link_tool.distance(SE3.identity()) < 1e-9:
                return name
        known_tools = [group.tip, *group.tools]
        raise ArmMotionError(
            f"no tool {link!r}{did_you_mean(link, known_tools)}", "unknown_link", valid=", ".join(known_tools)
        )

    def _path_constraint(self, constraints: Any) -> AxisConstraint | None:
        check_fields(constraints, "Constraints", self._warn)
        orientation_constraints = constraints.orientation_constraints
        if constraints.joint_constraints or constraints.position_constraints:
            raise ArmMotionError(
                "only orientations are supported as path constraints", "bad_goal", valid="one orientation constraint"
            )
        if not orientation_constraints:
            return None
        if len(orientation_constraints) > 1:
            raise ArmMotionError(
                f"{len(orientation_constraints)} orientation constraints of the path", "bad_goal", valid="one"
            )
        orientation_constraint = orientation_constraints[0]
        if self.find_tool(orientation_constraint.link_name) is not None:
            raise ArmMotionError(
                f"a path constraint of {orientation_constraint.link_name}",
                "unknown_link",
                valid=self._monitor.scene.group.tip,
            )
        axis = _free_axis(orientation_constraint)
        if axis is None:
            raise ArmMotionError(
                "an orientation constraint about all axes", "bad_goal", valid="a tolerance of pi about one"
            )
        T = self._monitor.T_world_frame(orientation_constraint.header.frame_id) @ _rotation(orientation_constraint)
        T_base_orientation = self._monitor.current_scene().T_world_base.inverse() @ T
        tolerances = [
            value
            for value, is_free in zip(_tolerances(orientation_constraint), axis.tolist(), strict=True)
            if not is_free
        ]
        direction = T_base_orientation.rotation_matrix() @ axis
        return AxisConstraint(tuple(axis.tolist()), tuple(direction.tolist()), min(tolerances))


def _tolerances(orientation_constraint: Any) -> tuple[float, float, float]:
    tolerances = (
        orientation_constraint.absolute_x_axis_tolerance,
        orientation_constraint.absolute_y_axis_tolerance,
        orientation_constraint.absolute_z_axis_tolerance,
    )
    if not all(value >= 0.0 for value in tolerances):
        raise ArmMotionError("orientation tolerances that are not numbers from 0 on", "bad_goal")
    return float(tolerances[0]), float(tolerances[1]), float(tolerances[2])


def _region_radius(region: Any) -> float:
    """Return the radius of the largest sphere in a spherical or box region; 0 for others [m]."""
    kinds = msg.SolidPrimitive
    for shape in region.primitives[:1]:
        sizes = [float(size) for size in shape.dimensions]
        if sizes and all(0.0 < size < math.inf for size in sizes) and shape.type in (kinds.BOX, kinds.SPHERE):
            return sizes[0] if shape.type == kinds.SPHERE else min(sizes) / 2.0
    return 0.0


def _free_axis(orientation_constraint: Any) -> Array | None:
    """Return the axis about which the rotation is free. Raises ArmMotionError for more than one."""
    is_free = [value >= FREE_AXIS_TOLERANCE for value in _tolerances(orientation_constraint)]
    if sum(is_free) > 1:
        raise ArmMotionError("an orientation that is free about several axes", "bad_goal", valid="about one, or none")
    return np.array(is_free, dtype=np.float64) if any(is_free) else None


def _rotation(orientation_constraint: Any) -> SE3:
    q = quaternion_to_array(orientation_constraint.orientation)
    length = float(np.linalg.norm(q))
    if not (math.isfinite(length) and length > 1e-6):
        raise ArmMotionError("an invalid orientation", "bad_goal", valid="a quaternion")
    return SE3(q / length)


def _scaling(value: float) -> float:
    """Return a scaling factor: values outside (0, 1] count as 1, as in MoveIt; a reserve is left for the controller."""
    if not math.isfinite(value):
        raise ArmMotionError(f"a scaling factor {value}", "bad_goal", valid="more than 0, at most 1")
    return MAX_SCALING * (float(value) if 0.0 < value <= 1.0 else 1.0)


def _axis_name(axis: Array) -> str:
    return "xyz"[int(np.argmax(np.abs(axis)))]
