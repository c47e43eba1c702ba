"""What moveit_msgs ask for, as requests to a planner; whatever cannot be done is refused with the reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from roboyard.config.wording import did_you_mean
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics.ik import PointingTarget
from roboyard.manipulation.nodes.move_codes import MoveError
from roboyard.manipulation.nodes.scene_keeper import SceneKeeper
from roboyard.manipulation.planning import (
    AimGoal,
    Goal,
    JointGoal,
    KeepAxis,
    NamedGoal,
    PlanSettings,
    PoseGoal,
    Station,
)
from roboyard.manipulation.searching import Request
from roboyard.messages import msg, to_nanoseconds, to_seconds
from roboyard.messages.convert import pose_to_se3
from roboyard.messages.convert.poses import quaternion_to_array, vector_to_array

FREE: Final = 0.999 * math.pi
"""A tolerance of so much about an axis leaves the turn about it open [rad]."""
HEADROOM: Final = 0.998
"""Motions take at most such a share of the limits, since in arcs a controller's cubics are not quite the motion."""
STRAIGHT: Final = "LIN"
"""Planner of straight lines of the tool, as MoveIt's industrial motion planner calls it."""
TIMED: Final = "PURSUIT"
"""Planner of a time-table of the tool: the points of one Cartesian reference trajectory, each at its moment."""
_SEEDS: Final = 2**31
_MOST_ATTEMPTS: Final = 32


class Reader:
    """Reads requests for a group of joints.

    Args:
        keeper: Knows the robot, and where frames are.
        states_per_second: How many states a second of allowed planning time stands for.
    """

    def __init__(self, keeper: SceneKeeper, states_per_second: float) -> None:
        self._keeper, self._pace = keeper, states_per_second

    def request(self, message: Any, seed: int) -> Request:
        """Of a moveit_msgs/MotionPlanRequest. Raises MoveError, TransformError, MessageError, InputError."""
        self.check_group(message.group_name)
        if str(message.planner_id) == TIMED:
            return self._timed(message, seed)
        if not message.goal_constraints:
            raise MoveError("no goal", "bad_goal", valid="goal_constraints")
        if message.trajectory_constraints.constraints or message.reference_trajectories:
            raise MoveError("constraints by trajectories are not served", "bad_goal", valid="goal and path constraints")
        if message.max_cartesian_speed > 0.0:
            raise MoveError("a limit of the tool's speed is not served", "bad_goal", valid="scaling of the velocity")
        read = [self._goal(one) for one in message.goal_constraints]
        tools = {tool for _, tool in read}
        if len(tools) > 1:
            raise MoveError("goals for several tools in one request", "bad_goal", valid="one tool")
        time = float(message.allowed_planning_time)
        if not 0.0 <= time <= 1e4:
            raise MoveError(f"allowed_planning_time {time}", "bad_goal", valid="0 (the usual) to 1e4 s")
        straight = str(message.planner_id) == STRAIGHT
        settings = PlanSettings(
            planner="connect" if straight else str(message.planner_id) or "connect",
            seed=seed % _SEEDS,
            budget=max(1, round(time * self._pace)) if time > 0.0 else PlanSettings.budget,
            speed=_share(message.max_velocity_scaling_factor),
            acceleration=_share(message.max_acceleration_scaling_factor),
        )
        keep = self._keep(message.path_constraints)
        attempts = min(max(int(message.num_planning_attempts), 1), _MOST_ATTEMPTS)
        if straight:
            goals = [goal for goal, _ in read]
            if keep is not None or len(goals) != 1 or not isinstance(goals[0], PoseGoal):
                raise MoveError(f"no line for {STRAIGHT}", "bad_goal", valid="one pose, and nothing to keep on the way")
            return Request(line=(goals[0].pose,), settings=settings, tool=tools.pop())
        wanted = tuple(goal for goal, _ in read)
        return Request(wanted, keep=keep, settings=settings, attempts=attempts, tool=tools.pop())

    def start(self, state: Any) -> Array:
        """(n,) of a moveit_msgs/RobotState: measured where it says nothing. Raises MoveError."""
        if state.attached_collision_objects:
            raise MoveError("a start with attached objects", "bad_state", valid="attach them to the planning scene")
        if state.multi_dof_joint_state.joint_names:
            raise MoveError("a start of joints with several degrees of freedom", "bad_state", valid="joint_state")
        return self._keeper.with_given(state.joint_state)

    def check_group(self, name: str) -> None:
        """Raises MoveError: it is another group's."""
        mine = self._keeper.scene.group.name
        if name not in ("", mine):
            raise MoveError(f"group {name!r} is not moved here", "unknown_group", valid=mine)

    def line(self, message: Any) -> Request:
        """Of a moveit_msgs/GetCartesianPath request. Raises MoveError, TransformError, MessageError, InputError."""
        self.check_group(message.group_name)
        if not message.waypoints:
            raise MoveError("no way points", "bad_goal", valid="poses of the tool")
        if not message.avoid_collisions:
            raise MoveError("a line through obstacles is not served", "bad_goal", valid="avoid_collisions")
        constraints = message.path_constraints
        if constraints.joint_constraints or constraints.position_constraints or constraints.orientation_constraints:
            raise MoveError("constraints on lines are not served", "bad_goal", valid="poses that keep them")
        T = self._keeper.T_world_frame(message.header.frame_id)
        settings = PlanSettings(
            speed=_share(message.max_velocity_scaling_factor),
            acceleration=_share(message.max_acceleration_scaling_factor),
        )
        poses = tuple(T @ pose_to_se3(pose) for pose in message.waypoints)
        return Request(line=poses, settings=settings, tool=self.tool(message.link_name))

    def _timed(self, message: Any, seed: int) -> Request:
        given = [one for reference in message.reference_trajectories for one in reference.cartesian_trajectory]
        if len(given) != 1 or not given[0].points or message.goal_constraints:
            raise MoveError(
                f"{len(given)} Cartesian reference trajectories and {len(message.goal_constraints)} goals for {TIMED}",
                "bad_goal", valid="one with points, and no goals",
            )  # fmt: skip
        way = given[0]
        T = self._keeper.T_world_frame(way.header.frame_id)
        R = T.rotation_matrix()
        stations = []
        for point in way.points:
            x, y, z = (R @ vector_to_array(point.point.velocity.linear)).tolist()
            if not all(map(math.isfinite, (x, y, z))):
                raise MoveError("a velocity that is not finite", "bad_goal")
            time = to_seconds(point.time_from_start)
            stations.append(Station(time, T @ pose_to_se3(point.point.pose), (x, y, z)))
        settings = PlanSettings(
            seed=seed % _SEEDS,
            speed=_share(message.max_velocity_scaling_factor),
            acceleration=_share(message.max_acceleration_scaling_factor),
        )
        begin = to_nanoseconds(way.header.stamp)
        if not begin:
            raise MoveError(f"no stamp for {TIMED}", "bad_goal", valid="when its times begin")
        tool = self.tool(way.tracked_frame)
        return Request(stations=tuple(stations), begin_ns=begin, settings=settings, tool=tool)

    # -- goals ---------------------------------------------------------------------------------------------------------
    def _goal(self, goal: Any) -> tuple[Goal, str | None]:
        if goal.visibility_constraints:
            raise MoveError("visibility is no goal here", "bad_goal", valid="joints, or a place and an orientation")
        joints, places, turns = goal.joint_constraints, goal.position_constraints, goal.orientation_constraints
        if joints and not places and not turns:
            return self._joints(joints), None
        if len(places) == 1 and len(turns) == 1 and not joints:
            return self._pose(places[0], turns[0])
        if not joints and not places and not turns and goal.name:
            return self._named(str(goal.name)), None
        what = f"{len(joints)} joint, {len(places)} position and {len(turns)} orientation constraints"
        raise MoveError(
            what, "bad_goal", valid="all joints; or one position and one orientation; or only the name of a pose"
        )

    def _named(self, name: str) -> Goal:
        known = list(self._keeper.scene.group.poses)
        if name not in known:
            raise MoveError(
                f"no pose {name!r}{did_you_mean(name, known)}", "bad_goal", valid=", ".join(known) or "none"
            )
        return NamedGoal(name)

    def _joints(self, constraints: Sequence[Any]) -> Goal:
        wanted = self._keeper.joints
        given: dict[str, float] = {}
        for one in constraints:
            if one.joint_name not in wanted:
                name = str(one.joint_name)
                raise MoveError(f"no joint {name!r}{did_you_mean(name, wanted)}", "bad_goal", valid=", ".join(wanted))
            if not math.isfinite(one.position) or one.joint_name in given:
                what = "is no number" if one.joint_name not in given else "is given twice"
                raise MoveError(f"the position of {one.joint_name} {what}", "bad_goal", valid="one for each joint")
            given[str(one.joint_name)] = float(one.position)
        missing = [name for name in wanted if name not in given]
        if missing:
            raise MoveError(f"no position for {missing[0]}", "bad_goal", valid=f"all of {', '.join(wanted)}")
        return JointGoal(np.array([given[name] for name in wanted]))

    def _pose(self, place: Any, turn: Any) -> tuple[Goal, str | None]:
        tool = self.tool(place.link_name)
        if self.tool(turn.link_name) != tool:
            raise MoveError("position and orientation of two links", "bad_goal", valid="the same link")
        region = place.constraint_region
        poses = [*region.primitive_poses, *region.mesh_poses]
        if len(poses) != 1:
            raise MoveError(f"a position in {len(poses)} regions", "bad_goal", valid="one: its middle is the goal")
        T_frame = self._keeper.T_world_frame(place.header.frame_id)
        T_turn = self._keeper.T_world_frame(turn.header.frame_id) @ _turn(turn)
        point = T_frame @ pose_to_se3(poses[0]).translation
        offset = vector_to_array(place.target_point_offset)
        if not np.isfinite(offset).all():
            raise MoveError("an offset of the target that is not finite", "bad_goal")
        T_world = SE3(T_turn.rotation, point - T_turn.rotation_matrix() @ offset)
        axis = _open_axis(turn)
        if axis is None:
            return PoseGoal(T_world, "world", _radius(region), min(_tolerances(turn))), tool
        mine = np.array(self._keeper.scene.group.axis)
        if abs(abs(float(axis @ mine)) / float(np.linalg.norm(mine)) - 1.0) > 1e-6:
            raise MoveError(
                "an orientation that is open about another axis than the tool's", "bad_goal",
                valid=f"a tolerance of pi about {_name(mine)}",
            )  # fmt: skip
        direction = T_world.rotation_matrix() @ mine
        aim = PointingTarget(tuple(T_world.translation.tolist()), tuple(direction.tolist()), tuple(mine.tolist()))
        return AimGoal(aim, "world"), tool

    def tool(self, link: str) -> str | None:
        """The tool of the group that a link's name means: a tool's name, its link, or the group's tip."""
        group = self._keeper.scene.group
        if link in ("", group.tip):
            return None
        if link in group.tools:
            return str(link)
        for name, tool in group.tools.items():
            if tool.link == link and tool.T_link_tool.distance(SE3.identity()) < 1e-9:
                return name
        known = [group.tip, *group.tools]
        raise MoveError(f"no tool {link!r}{did_you_mean(link, known)}", "unknown_link", valid=", ".join(known))

    def _keep(self, constraints: Any) -> KeepAxis | None:
        turns = constraints.orientation_constraints
        if constraints.joint_constraints or constraints.position_constraints or constraints.visibility_constraints:
            raise MoveError("only orientations can be kept on the way", "bad_goal", valid="one orientation constraint")
        if not turns:
            return None
        if len(turns) > 1:
            raise MoveError(f"{len(turns)} orientations to be kept", "bad_goal", valid="one")
        turn = turns[0]
        if self.tool(turn.link_name) is not None:
            raise MoveError(f"what {turn.link_name} keeps", "unknown_link", valid=self._keeper.scene.group.tip)
        axis = _open_axis(turn)
        if axis is None:
            raise MoveError("an orientation to be kept about all axes", "bad_goal", valid="a tolerance of pi about one")
        T = self._keeper.T_world_frame(turn.header.frame_id) @ _turn(turn)
        T_base = self._keeper.now().T_world_base.inverse() @ T
        others = [value for value, open_ in zip(_tolerances(turn), axis.tolist(), strict=True) if not open_]
        direction = T_base.rotation_matrix() @ axis
        return KeepAxis(tuple(axis.tolist()), tuple(direction.tolist()), min(others))


def _tolerances(turn: Any) -> tuple[float, float, float]:
    found = (turn.absolute_x_axis_tolerance, turn.absolute_y_axis_tolerance, turn.absolute_z_axis_tolerance)
    if not all(value >= 0.0 for value in found):
        raise MoveError("tolerances of an orientation that are no numbers from 0 on", "bad_goal")
    return float(found[0]), float(found[1]), float(found[2])


def _radius(region: Any) -> float:
    """Of the largest ball in a region that is a ball or a box; 0 for others [m]."""
    kinds = msg.SolidPrimitive
    for shape in region.primitives[:1]:
        sizes = [float(size) for size in shape.dimensions]
        if sizes and all(0.0 < size < math.inf for size in sizes) and shape.type in (kinds.BOX, kinds.SPHERE):
            return sizes[0] if shape.type == kinds.SPHERE else min(sizes) / 2.0
    return 0.0


def _open_axis(turn: Any) -> Array | None:
    """The axis about which any turn will do. Raises MoveError for more than one."""
    free = [value >= FREE for value in _tolerances(turn)]
    if sum(free) > 1:
        raise MoveError("an orientation that is open about several axes", "bad_goal", valid="about one, or none")
    return np.array(free, dtype=np.float64) if any(free) else None


def _turn(turn: Any) -> SE3:
    q = quaternion_to_array(turn.orientation)
    length = float(np.linalg.norm(q))
    if not (math.isfinite(length) and length > 1e-6):
        raise MoveError("an orientation that is none", "bad_goal", valid="a quaternion")
    return SE3(q / length)


def _share(value: float) -> float:
    """A scaling factor: what is not in (0, 1] counts as 1, as in MoveIt; a little is left for the controller."""
    if not math.isfinite(value):
        raise MoveError(f"a scaling factor {value}", "bad_goal", valid="more than 0, at most 1")
    return HEADROOM * (float(value) if 0.0 < value <= 1.0 else 1.0)


def _name(axis: Array) -> str:
    return "xyz"[int(np.argmax(np.abs(axis)))]
