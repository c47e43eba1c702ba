"""The skill that picks an object from a moving conveyor, or places one on a moving place."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from roboyard.geometry import wrap_angle
from roboyard.manipulation.skills.arm_geometry import feasible_yaws
from roboyard.manipulation.skills.conveyor import (
    PLANNING_LEAD_TIME,
    TrackingHeights,
    conveyor_speed_changed,
    find_intercept,
    is_moving,
    tracking_duration,
    tracking_poses,
)
from roboyard.manipulation.skills.grasp_release import grasped_object_extent
from roboyard.manipulation.skills.requests import (
    ArmMotionRequest,
    ConveyorTrackingRequest,
    GripperRequest,
    JointTarget,
    Point,
    SceneUpdateRequest,
    SkillResult,
    SkillResultCode,
    TargetDetection,
    ToolTarget,
)
from roboyard.manipulation.skills.skill import GraspedObject, NextAction, Skill, SkillContext, phase

_N_CHECKED_POSES: Final = 4
"""Number of poses of the tracking motion that are checked for joint positions beforehand."""


@dataclass
class ConveyorTrackingSkill(Skill):
    """Wait above the target's path, then track it, descend, move the fingers and ascend in one planned motion.

    Attributes:
        target: Disc on the object, or the place for the held object.
        others: Discs on objects that move with it, at the time of the detection.
        is_placing: Whether the held object is placed.
        waiting_position: Position at which the tool waits.
        candidate_yaws: Yaws that are still to be tried.
        object_offset: Offset of the held object from the tool's center, in x and y [m].
        start_time_ns: Start of the tracking motion.
        final_result: Result of the skill.
    """

    name = "track_conveyor"
    target: TargetDetection
    others: tuple[Point, ...] = ()
    is_placing: bool = False
    waiting_position: Point = (0.0, 0.0, 0.0)
    candidate_yaws: tuple[float, ...] = ()
    object_offset: tuple[float, float] = (0.0, 0.0)
    start_time_ns: int = 0
    final_result: SkillResult = SkillResult()  # noqa: RUF009 - frozen

    def subject(self) -> SkillResult:
        """Return the position of the detection."""
        return SkillResult(position=self.target.position)

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        config, target = context.config, self.target
        if self.is_placing and context.memory.grasped_object is None:
            return SkillResult(SkillResultCode.GRIPPER_EMPTY, "the gripper holds no object")
        intercept = conveyor_speed_changed(context, target) or find_intercept(
            context, target, config.intercept_lead_time
        )
        if isinstance(intercept, SkillResult):
            return intercept
        self.waiting_position = intercept.position
        grip_position = target.position_at(
            intercept.start_time_ns + round(1e9 * (config.sync_time + config.descend_time))
        )
        self.candidate_yaws = tuple(
            feasible_yaws(target.position, context.arm.azimuth(grip_position), self.others, config)
        )
        if not self.candidate_yaws:
            return SkillResult(SkillResultCode.TOO_CLOSE, "the fingers have no clearance beside moving objects")
        return self.enter_phase("update_scene", self._scene_update(context, is_conveyor_blocked=True))

    @phase
    def _update_scene(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return (
            self._move_to_waiting_pose(context)
            if self.is_placing
            else self.enter_phase("open_gripper", GripperRequest(context.config.open_width))
        )

    @phase(on_failure="return")
    def _open_gripper(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self._move_to_waiting_pose(context)

    def _move_to_waiting_pose(self, context: SkillContext) -> NextAction | SkillResult:
        """Move to joint positions from which the whole tracking motion is possible."""
        joint_targets = []
        for yaw in self.candidate_yaws:
            targets = self._tracking_targets(context, yaw)
            if (joints := context.arm.solve_tool_path(targets, context.joints or None)) is not None:
                joint_targets.append(JointTarget(joints))
        if not joint_targets:
            message = "no joint configuration reaches the whole tracking path"
            return SkillResult(SkillResultCode.NOT_REACHABLE, message)
        return self.enter_phase(
            "move_above",
            ArmMotionRequest(
                tuple(joint_targets), is_holding=self.is_placing, speed_scaling=context.config.speed_scaling
            ),
        )

    def _tracking_targets(self, context: SkillContext, yaw: float) -> list[ToolTarget]:
        """Return tool targets from above the waiting position to the end of the tracking motion."""
        heights = self._heights(context)
        x, y, z = self.waiting_position
        velocity_x, velocity_y = self.target.velocity
        targets = [ToolTarget((x, y, z + heights.above), yaw)]
        for k in range(_N_CHECKED_POSES + 1):
            time = tracking_duration(context.config) * k / _N_CHECKED_POSES
            targets += [
                ToolTarget((x + velocity_x * time, y + velocity_y * time, z + height), yaw)
                for height in ((heights.grip, heights.above) if k % 2 else heights)
            ]
        return targets

    @phase
    def _move_above(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            if result.code is SkillResultCode.LOST:
                context.memory.grasped_object = None
            return result
        intercept = conveyor_speed_changed(context, self.target) or find_intercept(
            context, self.target, PLANNING_LEAD_TIME, self.waiting_position
        )
        if isinstance(intercept, SkillResult):
            return intercept
        yaw = context.arm.tool_yaw(context.joints) if context.joints else self.candidate_yaws[0]
        # the nearest candidate: the measured tool is tilted a little
        self.candidate_yaws = (min(self.candidate_yaws, key=lambda candidate: abs(wrap_angle(candidate - yaw))),)
        if self.is_placing:
            self.object_offset = context.grasp_offset * math.sin(yaw), -context.grasp_offset * math.cos(yaw)
        self.start_time_ns, context.memory.is_tool_low = intercept.start_time_ns, True
        return self.enter_phase("unblock_conveyor", self._scene_update(context, is_conveyor_blocked=False))

    @phase
    def _unblock_conveyor(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        config = context.config
        tool_poses = tracking_poses(
            self.target,
            self.start_time_ns,
            self._heights(context),
            self.candidate_yaws[0],
            config,
            self.object_offset,
        )
        gripper_request = (
            GripperRequest(config.open_width)
            if self.is_placing
            else GripperRequest(config.closed_width, config.grip_force)
        )
        if not self.is_placing:
            context.memory.grasped_object = GraspedObject(self.target.position)  # unless the fingers measure no object
        return self.enter_phase(
            "track",
            ConveyorTrackingRequest(
                self.start_time_ns,
                tool_poses,
                gripper_request,
                tool_poses[1].time_ns,
                context.memory.work_area,
                self.is_placing,
            ),
        )

    @phase
    def _track(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        memory = context.memory
        memory.is_tool_low = not result.is_success
        if self.is_placing:
            is_released = context.time_ns > self.start_time_ns + round(
                1e9 * (context.config.sync_time + context.config.descend_time + context.config.grip_time)
            )
            if is_released or not context.is_holding:
                memory.grasped_object = None
            self.final_result = (
                result if not is_released else SkillResult(position=self.target.position_at(context.time_ns))
            )
        elif context.is_holding:
            memory.grasped_object = GraspedObject(self.target.position_at(context.time_ns))
            self.final_result = SkillResult(position=self.target.position_at(context.time_ns))
        else:
            memory.grasped_object = None
            self.final_result = (
                result
                if not result.is_success
                else SkillResult(SkillResultCode.GRASP_FAILED, "the fingers closed without an object")
            )
        return self.enter_phase("block_conveyor", self._scene_update(context, is_conveyor_blocked=True))

    @phase
    def _block_conveyor(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not self.is_placing and context.memory.grasped_object is None and not context.memory.is_tool_low:
            return self.enter_phase("reopen_gripper", GripperRequest(context.config.open_width))
        return self.final_result

    @phase
    def _reopen_gripper(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.final_result

    def _heights(self, context: SkillContext) -> TrackingHeights:
        """Return the heights of the tool above the target, before the tracking motion and at its lowest part [m]."""
        config = context.config
        height_above = max(
            config.approach_height, config.object_height + 1.5 * config.finger_clearance
        )  # the held object clears moving objects
        if self.is_placing:
            tool_height = config.object_height - config.grasp_depth
            return TrackingHeights(tool_height + height_above, tool_height + config.release_height)
        return TrackingHeights(height_above - config.grasp_depth, -config.grasp_depth)

    def _scene_update(self, context: SkillContext, *, is_conveyor_blocked: bool) -> SceneUpdateRequest:
        """Return the update of the scene, with the conveyor as an obstacle unless the tool tracks a target on it."""
        memory, area = context.memory, context.memory.work_area
        other_lanes = [lane for lane in memory.conveyor_lanes if lane[0] != area]
        height = self.target.position[2] + (context.config.object_height if self.is_placing else 0.0)
        memory.conveyor_lanes = [*other_lanes, (area, height)] if is_conveyor_blocked else other_lanes
        grasped_extent = (
            grasped_object_extent(context, is_standing=not is_conveyor_blocked)
            if memory.grasped_object is not None
            else None
        )
        return SceneUpdateRequest(tuple(memory.all_objects()), grasped_extent)


def stationary_detections(
    detections: tuple[TargetDetection, ...], context: SkillContext
) -> tuple[TargetDetection, ...]:
    """Return the detections that do not move; if none moves, the conveyor is no obstacle."""
    stationary = tuple(one for one in detections if not is_moving(one, context.config))
    if len(stationary) == len(detections):
        context.memory.conveyor_lanes = [
            lane for lane in context.memory.conveyor_lanes if lane[0] != context.memory.work_area
        ]
    return stationary
