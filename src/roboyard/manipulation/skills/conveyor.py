"""Geometry of conveyors: predicted positions of objects and places, interception points and tracking poses."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from roboyard.manipulation.skills.config import SkillConfig
from roboyard.manipulation.skills.requests import (
    Point,
    SkillResult,
    SkillResultCode,
    TargetDetection,
    TimedToolPose,
    ToolTarget,
)
from roboyard.manipulation.skills.skill import SkillContext, SkillMemory

ConveyorLane = tuple[float, float, float, float, float, float]
"""A lane of moving objects: x and y of its start and of its end, its width, and the height of the objects [m]."""
PLANNING_LEAD_TIME: Final = 0.3
"""A tracking motion is requested at least this long before its start [s]."""


@dataclass(frozen=True, slots=True)
class InterceptPoint:
    """Where and when the tool joins a moving target.

    Attributes:
        start_time_ns: Start of the motion from above `position`.
        position: Position of the target half of the synchronization time later, when an evenly accelerating tool is
            above it.
    """

    start_time_ns: int
    position: Point


class TrackingHeights(NamedTuple):
    """Heights of the tool above its target during a tracking motion.

    Attributes:
        above: Before the descent and after the ascent [m].
        grip: While the fingers move [m].
    """

    above: float
    grip: float


def conveyor_of_area(config: SkillConfig, area: str) -> tuple[float, ...] | None:
    """Return x, y of start and end, and width, of the conveyor of a work area; None: it has none."""
    if area not in config.conveyor_areas:
        return None
    index = 5 * config.conveyor_areas.index(area)
    return config.conveyors[index : index + 5]


def project_on_conveyor(
    detections: tuple[TargetDetection, ...], config: SkillConfig, area: str
) -> tuple[TargetDetection, ...]:
    """Return detections with their velocities projected on the direction of a work area's conveyor."""
    conveyor = conveyor_of_area(config, area)
    if conveyor is None:
        return detections
    x, y, end_x, end_y, _ = conveyor
    length = math.hypot(end_x - x, end_y - y)
    direction = (end_x - x) / length, (end_y - y) / length
    projected = []
    for detection in detections:
        speed = detection.velocity[0] * direction[0] + detection.velocity[1] * direction[1]
        projected.append(replace(detection, velocity=(speed * direction[0], speed * direction[1])))
    return tuple(projected)


def is_moving(detection: TargetDetection, config: SkillConfig) -> bool:
    """Whether a detection moves."""
    return detection.speed > config.stationary_speed


def conveyor_lanes(config: SkillConfig, memory: SkillMemory) -> tuple[ConveyorLane, ...]:
    """Return the lanes that the arm avoids: where moving objects were detected last."""
    lanes = []
    for area, height in memory.conveyor_lanes:
        conveyor = conveyor_of_area(config, area)
        if conveyor is not None:
            x, y, end_x, end_y, width = conveyor
            lanes.append((x, y, end_x, end_y, width, height))
    return tuple(lanes)


def conveyor_unknown(context: SkillContext, area: str) -> SkillResult | None:
    """Return a failure if no speed is received for the conveyor of a work area; None: it is received, or not needed."""
    if math.isfinite(context.conveyor_speeds.get(area, 0.0)):
        return None
    return SkillResult(SkillResultCode.CONVEYOR_UNKNOWN, f"no speed received for the conveyor of {area}")


def conveyor_speed_changed(context: SkillContext, detection: TargetDetection) -> SkillResult | None:
    """Return a failure if the conveyor's speed has changed since a detection; None: it has not, or is not measured."""
    if (failure := conveyor_unknown(context, context.memory.work_area)) is not None:
        return failure
    reported_speed = context.conveyor_speeds.get(context.memory.work_area)
    if (
        reported_speed is not None
        and abs(abs(reported_speed) - detection.speed) > context.config.speed_change_tolerance
    ):
        return SkillResult(
            SkillResultCode.CONVEYOR_SPEED_CHANGED,
            f"the conveyor moved at {detection.speed:.3f} m/s, now at {abs(reported_speed):.3f}",
        )
    return None


def conveyor_area_here(context: SkillContext) -> str:
    """Return the robot's work area if it has a conveyor, else an empty string."""
    return context.memory.work_area if context.memory.work_area in context.config.conveyor_areas else ""


def conveyor_started(context: SkillContext, area: str) -> SkillResult | None:
    """Return a failure if the conveyor of a work area moves; None: it stands, or there is none."""
    speed = abs(context.conveyor_speeds.get(area, 0.0))
    if speed <= context.config.stationary_speed:
        return None
    return SkillResult(SkillResultCode.CONVEYOR_SPEED_CHANGED, f"the conveyor has started, at {speed:.3f} m/s")


def tracking_duration(config: SkillConfig) -> float:
    """Return the time for which the tool tracks its target [s]."""
    return (
        0.5 * config.sync_time + config.descend_time + config.grip_time + config.ascend_time + 0.5 * config.leave_time
    )


def find_intercept(
    context: SkillContext, detection: TargetDetection, lead_time: float, waiting_position: Point | None = None
) -> InterceptPoint | SkillResult:
    """Return the first interception point with a moving target, or why there is none.

    Args:
        context: Inputs of the skill.
        detection: The moving target.
        lead_time: Time until the tool can start [s].
        waiting_position: Position at which the tool waits already; None: any position.

    Returns:
        Causes: TOO_FAST, OUT_OF_REACH.
    """
    config, speed = context.config, detection.speed
    first_distance, last_distance = _reachable_interval(context, detection)
    required_distance = speed * tracking_duration(config)
    if last_distance - first_distance <= 0.0:
        return SkillResult(
            SkillResultCode.OUT_OF_REACH,
            "the target's path is outside the arm's reach",
            position=detection.position_at(context.time_ns),
        )
    if required_distance > last_distance - first_distance:
        max_speed = (last_distance - first_distance) / tracking_duration(config)
        message = f"the target moves at {speed:.3f} m/s; the arm can follow at most {max_speed:.3f}"
        return SkillResult(SkillResultCode.TOO_FAST, message, position=detection.position_at(context.time_ns))
    earliest_distance = speed * (1e-9 * (context.time_ns - detection.time_ns) + lead_time + 0.5 * config.sync_time)
    start_distance = (
        first_distance if waiting_position is None else math.dist(detection.position[:2], waiting_position[:2])
    )
    distance = max(start_distance, earliest_distance)
    if distance + required_distance > last_distance:
        message = "the target leaves the arm's reach before the tool can be there"
        return SkillResult(SkillResultCode.OUT_OF_REACH, message, position=detection.position_at(context.time_ns))
    intercept_time_ns = detection.time_ns + round(1e9 * distance / speed)
    return InterceptPoint(intercept_time_ns - round(0.5e9 * config.sync_time), detection.position_at(intercept_time_ns))


def _reachable_interval(context: SkillContext, detection: TargetDetection) -> tuple[float, float]:
    """Return the interval of the target's path in which the tool can track it, from the detected position [m]."""
    config, (x, y, _) = context.config, detection.position
    direction_x, direction_y = detection.velocity[0] / detection.speed, detection.velocity[1] / detection.speed
    min_reach, max_reach = config.reach_range
    axis_position = context.arm.T_root_base @ context.arm.base_axis_position
    dx, dy = float(axis_position[0]) - x, float(axis_position[1]) - y
    along_distance, lateral_distance = dx * direction_x + dy * direction_y, abs(dx * direction_y - dy * direction_x)
    if lateral_distance >= max_reach:
        return 0.0, 0.0
    first_distance, last_distance = (
        along_distance - math.sqrt(max_reach**2 - lateral_distance**2),
        along_distance + math.sqrt(max_reach**2 - lateral_distance**2),
    )
    if lateral_distance < min_reach:  # it passes below the arm: up to there
        last_distance = along_distance - math.sqrt(min_reach**2 - lateral_distance**2)
    conveyor = conveyor_of_area(config, context.memory.work_area)
    if conveyor is not None:
        ends = sorted((px - x) * direction_x + (py - y) * direction_y for px, py in (conveyor[:2], conveyor[2:4]))
        first_distance, last_distance = (
            max(first_distance, ends[0] + config.object_radius),
            min(last_distance, ends[1] - config.object_radius),
        )
    return first_distance, last_distance


def tracking_poses(
    detection: TargetDetection,
    start_time_ns: int,
    heights: TrackingHeights,
    yaw: float,
    config: SkillConfig,
    object_offset: tuple[float, float] = (0.0, 0.0),
) -> tuple[TimedToolPose, ...]:
    """Return the poses of a tracking motion: join, descend, wait for the fingers, ascend, come to rest.

    Args:
        detection: The moving target.
        start_time_ns: Start of the motion.
        heights: Heights of the tool.
        yaw: Yaw of the gripper.
        config: Configuration of the cell.
        object_offset: Offset of the held object from the tool's center, in x and y [m].
    """

    def timed_pose(time_ns: int, position_time_ns: int, height: float, velocity: tuple[float, float]) -> TimedToolPose:
        x, y, z = detection.position_at(position_time_ns)
        return TimedToolPose(
            time_ns, ToolTarget((x - object_offset[0], y - object_offset[1], z + height), yaw), velocity
        )

    tool_poses, end_ns = [], start_time_ns
    for seconds, height in (
        (config.sync_time, heights.above),
        (config.descend_time, heights.grip),
        (config.grip_time, heights.grip),
        (config.ascend_time, heights.above),
    ):
        end_ns += round(1e9 * seconds)
        tool_poses.append(timed_pose(end_ns, end_ns, height, detection.velocity))
    leave_ns = round(1e9 * config.leave_time)
    tool_poses.append(timed_pose(end_ns + leave_ns, end_ns + leave_ns // 2, heights.above, (0.0, 0.0)))
    return tuple(tool_poses)
