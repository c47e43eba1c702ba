"""What skills ask for, as goals of actions, and what comes back as outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from roboyard.bus import GoalFuture
from roboyard.description import Box, Cylinder
from roboyard.geometry import SE3
from roboyard.manipulation.collision import Attached, Obstacle
from roboyard.manipulation.nodes.motion_messages import pose_constraints
from roboyard.manipulation.nodes.motion_requests import STRAIGHT, TIMED
from roboyard.manipulation.nodes.scene_messages import object_to_msg
from roboyard.manipulation.skills import (
    Cause,
    Joints,
    Lane,
    Look,
    Move,
    Named,
    Outcome,
    Point,
    Ride,
    Show,
    Sighting,
    Tip,
)
from roboyard.manipulation.skills.config import SkillConfig
from roboyard.messages import action, msg, to_nanoseconds
from roboyard.messages.convert import make_header, pose_to_msg
from roboyard.messages.convert.action_goals import GoalStatus
from roboyard.messages.time import duration_to_msg

_NEVER_SEEN: Final = {
    "view_empty": Cause.VIEW_EMPTY, "disagreement": Cause.DISAGREEMENT, "depth_unknown": Cause.NO_DEPTH,
    "depth_silent": Cause.NO_DEPTH, "depth_info_silent": Cause.NO_DEPTH,
}  # fmt: skip
_NOT_MOVED: Final = {
    "start_in_collision": Cause.IN_COLLISION, "goal_in_collision": Cause.IN_COLLISION,
    "line_blocked": Cause.IN_COLLISION, "in_the_way": Cause.IN_COLLISION, "budget_spent": Cause.IN_COLLISION,
    "start_outside_limits": Cause.NOT_REACHABLE, "goal_outside_limits": Cause.NOT_REACHABLE,
    "goal_unreachable": Cause.NOT_REACHABLE, "too_fast": Cause.NOT_REACHABLE, "too_late": Cause.OUT_OF_REACH,
    "cancelled": Cause.CANCELLED, "preempted": Cause.PREEMPTED,
    "no_controller": Cause.NO_SERVER, "bad_goal": Cause.BAD_GOAL, "unknown_group": Cause.BAD_GOAL,
    "unknown_link": Cause.BAD_GOAL,
}  # fmt: skip
HELD: Final = "held"
FLOOR: Final = "ground"
_THING: Final = "thing_"
_FLOOR_SIZE: Final = (4.0, 4.0, 0.1)


# -- looks -------------------------------------------------------------------------------------------------------------
def look_goal(ask: Look, frame: str, timeout: float) -> Any:
    """roboyard_msgs/LookForDiscs: positions in ``frame``."""
    least = max(1, ask.looks // 2)  # a thing between dark discs is not seen in every picture
    return action.LookForDiscs.Goal(
        polarity=ask.polarity, mode=ask.mode, frame_id=frame, num_images=ask.looks, min_agreeing=least, timeout=timeout,
        may_move=ask.moving,
    )  # fmt: skip


def looked(future: GoalFuture) -> Outcome:
    """How a look went."""
    if future.error is not None:
        return Outcome(Cause.NO_SERVER, str(future.error))
    result = future.result
    if result.error_code == "canceled":
        return Outcome(Cause.CANCELLED, result.message)
    if result.error_code:
        return Outcome(
            _NEVER_SEEN.get(result.error_code, Cause.CAMERA_SILENT), f"{result.error_code}: {result.message}"
        )
    speeds = [(v.x, v.y) for v in result.velocities] or [(0.0, 0.0)] * len(result.positions)
    rows = zip(result.positions, result.diameters, result.distances, speeds, strict=True)
    time_ns = to_nanoseconds(result.header.stamp)
    return Outcome(seen=tuple(Sighting((p.x, p.y, p.z), float(d), float(apart), v, time_ns) for p, d, apart, v in rows))


# -- motions -----------------------------------------------------------------------------------------------------------
def move_goal(ask: Move, joints: tuple[str, ...], tip: str, frame: str) -> Any:
    """moveit_msgs/MoveGroup: the first of its targets that can be had."""
    goal = action.MoveGroup.Goal()
    goal.request.goal_constraints = [_target(one, joints, tip, frame) for one in ask.targets]
    goal.request.max_velocity_scaling_factor = ask.speed
    if ask.straight:
        goal.request.planner_id = STRAIGHT
    return goal


def ride_goal(ask: Ride, tip: str, frame: str) -> Any:
    """moveit_msgs/MoveGroup: a time-table of the tool."""
    kinds = msg.moveit_msgs
    points = [
        kinds.CartesianTrajectoryPoint(
            point=kinds.CartesianPoint(
                pose=_down(stage.tip), velocity=msg.Twist(linear=msg.Vector3(x=stage.velocity[0], y=stage.velocity[1])),
            ),
            time_from_start=duration_to_msg(stage.time_ns - ask.begin_ns),
        )
        for stage in ask.stages
    ]  # fmt: skip
    way = kinds.CartesianTrajectory(header=make_header(frame, ask.begin_ns), tracked_frame=tip, points=points)
    goal = action.MoveGroup.Goal()
    goal.request.planner_id = TIMED
    goal.request.reference_trajectories = [kinds.GenericTrajectory(cartesian_trajectory=[way])]
    return goal


def _down(tip: Tip) -> Any:
    return pose_to_msg(SE3.from_xyz_rpy(tip.position, (math.pi, 0.0, tip.yaw)))


def _target(target: Joints | Named | Tip, joints: tuple[str, ...], tip: str, frame: str) -> Any:
    kinds = msg.moveit_msgs
    if isinstance(target, Named):
        return kinds.Constraints(name=target.name)
    if isinstance(target, Joints):
        pairs = zip(joints, target.values, strict=True)
        return kinds.Constraints(joint_constraints=[kinds.JointConstraint(joint_name=n, position=v) for n, v in pairs])
    return pose_constraints(tip, _down(target), frame)


def moved(future: GoalFuture) -> Outcome:
    """How a motion went."""
    if future.succeeded and future.error is None:
        return Outcome()
    text = str(future.error) if future.error is not None else future.error_message
    if future.status is GoalStatus.CANCELED:
        return Outcome(Cause.CANCELLED, text or "cancelled")
    if future.error is not None and not future.error_code:
        return Outcome(Cause.NO_SERVER, text)
    return Outcome(_NOT_MOVED.get(future.error_code, Cause.NOT_FOLLOWED), text)


# -- what stands around ------------------------------------------------------------------------------------------------
def scene_messages(ask: Show, before: tuple[str, ...], frame: str, hand: str, touches: tuple[str, ...],
                   config: SkillConfig, ground: float,
                   lanes: Sequence[Lane]) -> tuple[list[Any], tuple[str, ...]]:  # fmt: skip
    """moveit_msgs/PlanningScene that bring a scene to what is asked for, and names of what then stands around.

    Args:
        ask: What stands around, and what is held.
        before: Names of what was told before; ``HELD`` is among them when something was held.
        frame: Of the robot's root.
        hand: Link or frame of the tool's tip, its z axis along the fingers.
        touches: Links that may touch what is held.
        config: Sizes of things.
        ground: Height of the floor [m].
        lanes: Strips to keep out of.
    """
    kinds = msg.moveit_msgs
    removal = kinds.CollisionObject.REMOVE
    found: list[Any] = []
    if HELD in before:  # what is detached becomes an obstacle: that goes too
        gone = kinds.CollisionObject(id=HELD, operation=removal)
        freed = kinds.RobotState(
            is_diff=True, attached_collision_objects=[kinds.AttachedCollisionObject(link_name=hand, object=gone)]
        )
        found.append(kinds.PlanningScene(is_diff=True, robot_state=freed))
        found.append(_diff([gone]))
    stale = [kinds.CollisionObject(id=name, operation=removal) for name in before if name.startswith(_THING)]
    shape = Cylinder(config.thing_radius, config.thing_height)
    things = [
        Obstacle(f"{_THING}{k}", shape, SE3(translation=(x, y, z - 0.5 * config.thing_height)))
        for k, (x, y, z) in enumerate(ask.things)
    ]
    things += [_lane(k, lane, ground) for k, lane in enumerate(lanes)]
    names = [one.name for one in things]
    if FLOOR not in before:
        things.append(Obstacle(FLOOR, Box(_FLOOR_SIZE), SE3(translation=(0.0, 0.0, ground - 0.5 * _FLOOR_SIZE[2]))))
    message = _diff([*stale, *(object_to_msg(one, frame, 0) for one in things)])
    if ask.held is not None:
        up, down = ask.held
        body = Cylinder(config.thing_radius, up + down)
        held = Attached(HELD, hand, body, SE3(translation=(0.0, 0.0, 0.5 * (down - up))))
        message.robot_state = kinds.RobotState(
            is_diff=True,
            attached_collision_objects=[
                kinds.AttachedCollisionObject(
                    link_name=hand, object=object_to_msg(held, hand, 0), touch_links=list(touches)
                )
            ],
        )
        names.append(HELD)
    found.append(message)
    return found, (*names, FLOOR)


def _lane(number: int, lane: Lane, ground: float) -> Obstacle:
    """All the room in which things move on a belt."""
    x, y, u, v, width, top = lane
    size = (math.hypot(u - x, v - y), width, top - ground)
    place = SE3.from_xyz_rpy((0.5 * (x + u), 0.5 * (y + v), 0.5 * (top + ground)), (0.0, 0.0, math.atan2(v - y, u - x)))
    return Obstacle(f"{_THING}lane_{number}", Box(size), place)


def _diff(objects: list[Any]) -> Any:
    kinds = msg.moveit_msgs
    return kinds.PlanningScene(
        is_diff=True, world=kinds.PlanningSceneWorld(collision_objects=objects),
        robot_state=kinds.RobotState(is_diff=True),
    )  # fmt: skip


def point_msg(point: Point | None) -> Any:
    """geometry_msgs/Point; the origin where nobody knows."""
    x, y, z = point if point is not None else (0.0, 0.0, 0.0)
    return msg.Point(x=x, y=y, z=z)
