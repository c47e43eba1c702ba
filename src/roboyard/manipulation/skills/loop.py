"""The pick-and-place loop, its end, and the skills that drive the robot: change of the work area, and approach of a
target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal

from roboyard.manipulation.skills.bays import InspectBaysSkill, StowSkill, UnstowSkill
from roboyard.manipulation.skills.grasp_release import RecoverStartSkill, grasped_object_extent
from roboyard.manipulation.skills.pick_place import FindPlacesSkill, PickSkill, PlaceSkill, PutBackSkill
from roboyard.manipulation.skills.requests import (
    CONVEYOR_UNUSABLE,
    NO_CAMERA,
    NO_DETECTIONS,
    OVERLOADED,
    SUCCESS,
    TARGET_MOVED,
    UNREACHABLE,
    ArmMotionRequest,
    DelayRequest,
    DriveRequest,
    NamedTarget,
    Point,
    SceneUpdateRequest,
    SkillResult,
    SkillResultCode,
)
from roboyard.manipulation.skills.skill import BayState, NextAction, Skill, SkillContext, phase

_MIN_DRIVE_DISTANCE: Final = 0.01
"""A shorter drive does not change the reachability [m]."""


@dataclass
class DrivingSkill(Skill):
    """Base of skills that drive the robot: what was detected before the drive is no longer valid after it."""

    def _reset_scene(self, context: SkillContext) -> NextAction:
        """Clear the detected objects and places, because the robot has moved."""
        memory = context.memory
        memory.objects, memory.free_places = [], []
        grasped_extent = grasped_object_extent(context) if memory.grasped_object is not None else None
        return self.enter_phase("update_scene", SceneUpdateRequest(tuple(memory.all_objects()), grasped_extent))

    @phase
    def _update_scene(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        """End: the scene is updated at once."""
        return SUCCESS


@dataclass
class ChangeWorkAreaSkill(DrivingSkill):
    """Drive to another work area, with the arm at its rest pose.

    Objects and places before the robot are not detected by its laser: it backs off before it rotates, and approaches a
    work area straight from ``approach_distance`` before it.  After a failed drive it backs off and tries again.

    Attributes:
        area: Its name.
        n_attempts: Number of failed drives.
    """

    name = "change_work_area"
    area: str = ""
    n_attempts: int = 0

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not context.config.is_mobile:
            return self.enter_phase("drive", DriveRequest(self.area))
        return self.enter_phase(
            "move_to_rest_pose",
            ArmMotionRequest(
                (NamedTarget(context.config.rest_pose),), is_holding=context.memory.grasped_object is not None
            ),
        )

    @phase(on_failure="return")
    def _move_to_rest_pose(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if context.memory.work_area not in context.config.work_areas:
            return self._back_off(context, SUCCESS)
        return self._start_back_off(context)

    def _start_back_off(self, context: SkillContext) -> NextAction:
        context.memory.work_area = ""
        return self.enter_phase("back_off", DriveRequest(offset=(-context.config.approach_distance, 0.0)))

    @phase
    def _back_off(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            context.report_recovery(result.code, result.message)  # an obstacle is behind it: another path may be free
        context.memory.work_area = ""
        if self.area not in context.config.work_areas:
            return self._approach(context, SUCCESS)
        return self.enter_phase("approach", DriveRequest(self.area, (-context.config.approach_distance, 0.0)))

    @phase
    def _approach(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("drive", DriveRequest(self.area)) if result.is_success else self._retry(context, result)

    @phase
    def _drive(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            return self._retry(context, result)
        context.memory.work_area = self.area
        context.memory.unreachable_bays.clear()
        return self._reset_scene(context)

    def _retry(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        self.n_attempts += 1
        if self.n_attempts > context.config.max_attempts or not context.config.is_mobile:
            return result
        context.report_recovery(result.code, result.message)
        return self._start_back_off(context)


@dataclass
class ApproachByDrivingSkill(DrivingSkill):
    """Drive straight until a target is at the best distance from the first joint.

    Attributes:
        target: Position of the target, as detected at the present pose.
        drive_offset: Offset to drive, ahead and to the left [m].
    """

    name = "approach"
    target: Point
    drive_offset: tuple[float, float] = (0.0, 0.0)

    def subject(self) -> SkillResult:
        """What it deals with."""
        return SkillResult(position=self.target)

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        distance, azimuth = context.arm.horizontal_distance(self.target), context.arm.azimuth(self.target)
        drive_distance = distance - sum(context.config.reach_range) / 2.0
        if abs(drive_distance) < _MIN_DRIVE_DISTANCE:
            return SkillResult(SkillResultCode.NOT_REACHABLE, "driving nearer does not change the reachability")
        self.drive_offset = (drive_distance * math.cos(azimuth), drive_distance * math.sin(azimuth))
        return self.enter_phase("drive", DriveRequest(offset=self.drive_offset))

    @phase(on_failure="return")
    def _drive(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        x, y = self.drive_offset
        context.memory.ignored_objects = [
            (object_x - x, object_y - y, object_z) for object_x, object_y, object_z in context.memory.ignored_objects
        ]
        return self._reset_scene(context)


LoopOrder = Literal["pick", "place"]
HOME_AREA: Final = "start_end"
"""Where the robot drives at the end."""
_PLACE_WAIT_PERIOD: Final = 2.0
"""Time between detections of free places [s]."""
_MAX_APPROACHES: Final = 3
"""Maximum number of consecutive approaches of a target by driving."""
_NO_REACHABLE_BAY: Final = SkillResult(SkillResultCode.NOT_REACHABLE, "no bay is within reach")


@dataclass
class FinishSkill(Skill):
    """Finish in a safe state: the gripper empty, the robot at its home, the arm at its rest pose.

    Attributes:
        final_result: Result of the skill that it finishes.
    """

    name = "finish"
    final_result: SkillResult = SUCCESS

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("recover_start", RecoverStartSkill())

    @phase
    def _recover_start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:  # the arm stays
            return replace(self.final_result, message=result.message)
        if context.memory.grasped_object is None:
            return self._move_to_final_pose(context, SUCCESS)
        return self.enter_phase("put_back", PutBackSkill())

    @phase
    def _put_back(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self._move_to_final_pose(context, result)

    def _move_to_final_pose(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase(
            "move_to_rest_pose",
            ArmMotionRequest(
                (NamedTarget(context.config.rest_pose),), is_holding=context.memory.grasped_object is not None
            ),
        )

    @phase
    def _move_to_rest_pose(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("drive_home", ChangeWorkAreaSkill(HOME_AREA))

    @phase
    def _drive_home(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.final_result


@dataclass
class PickPlaceLoopBase(Skill):
    """State of a pick-and-place loop that is published, whatever its method.

    Attributes:
        n_objects: Number of objects to place; 0: no end.
        order: Whether it picks or places.
        n_picked: Number of stowed objects so far.
        n_placed: Number of placed objects so far.
        waiting_for: What it waits for.
        n_failures: Number of consecutive failures.
    """

    name = "loop"
    n_objects: int = 0
    order: LoopOrder = "pick"
    n_picked: int = 0
    n_placed: int = 0
    waiting_for: str = ""
    n_failures: int = 0

    def record_stowed_object(self) -> None:
        """Count an object that was picked and stowed."""
        self.n_picked += 1
        self.reset_counters()

    def record_placed_object(self) -> bool:
        """Count an object that was placed; returns whether it was the last one."""
        self.n_placed += 1
        self.reset_counters()
        return 0 < self.n_objects <= self.n_placed

    def reset_counters(self) -> None:
        """Forget earlier failures, because an object was moved."""
        self.n_failures = 0

    def configured_area(self, context: SkillContext) -> str:
        """Return the work area that the configuration gives for the present order; empty: any."""
        return context.config.pick_area if self.order == "pick" else context.config.place_area

    @phase
    def _finish(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return result


@dataclass
class PickPlaceLoop(PickPlaceLoopBase):
    """The thesis's main loop, with timeouts and recoveries.

    Stowed objects are placed first; else objects are picked until the bays are full or no object is detected.  With
    full
    bays and no free place it waits and detects again for ``wait_timeout``, then changes the work area; if no object
    could be moved in any work area twice, it rests for ``idle_time``.  It ends after ``n_objects``, or after repeated
    failures of the camera, the gripper or the rest motion; a canceled loop moves the arm to its rest pose.

    Attributes:
        n_area_changes: Number of changes of the work area since an object was moved.
        waited_time: Time waited for a free place [s].
        n_waits: Number of consecutive waits for images, fingers or joints.
        n_approaches: Number of approaches by driving since an object was moved.
    """

    n_area_changes: int = 0
    waited_time: float = 0.0
    n_waits: int = 0
    n_approaches: int = 0

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not len(context.arm.bay_positions):
            return SkillResult(SkillResultCode.BAD_GOAL, "there are no bays")
        return self.enter_phase("recover_start", RecoverStartSkill())

    @phase
    def _recover_start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            return self._handle_failure(context, result)
        self.waiting_for = ""
        return self.enter_phase("inspect_bays", InspectBaysSkill())

    @phase
    def _inspect_bays(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if result.code in (*NO_CAMERA, *CONVEYOR_UNUSABLE):
            return self._handle_camera_loss(context, result)
        if not result.is_success and not result.is_empty:
            return self._handle_failure(context, result)
        if context.memory.grasped_object is not None:
            return self.enter_phase("stow", StowSkill())
        has_full_bay = BayState.FULL in context.memory.bay_states
        if not has_full_bay and not context.memory.first_bay(BayState.EMPTY):
            return self._handle_failure(context, result if not result.is_success else _NO_REACHABLE_BAY)
        self.order = "place" if has_full_bay else "pick"
        return self._go_to_area(context)

    # -- work areas ----------------------------------------------------------------------------------------------------
    def _go_to_area(self, context: SkillContext) -> NextAction:
        """Continue the order in its work area."""
        area = self.configured_area(context) or context.memory.work_area or context.config.work_areas[0]
        if area != context.memory.work_area:
            return self.enter_phase("change_work_area", ChangeWorkAreaSkill(area))
        return self._start_order(context)

    def _change_area(self, context: SkillContext, order: LoopOrder) -> NextAction:
        """Change work area and order; after two rounds without success, rest."""
        self.order, self.waited_time = order, 0.0
        self.n_area_changes += 1
        work_areas = context.config.work_areas
        if self.n_area_changes > 2 * len(work_areas):
            self.n_area_changes = 0
            self.waiting_for = "no object can be moved in any work area"
            return self.enter_phase("idle", ArmMotionRequest((NamedTarget(context.config.rest_pose),)))
        area = self.configured_area(context)
        area_index = work_areas.index(context.memory.work_area) if context.memory.work_area in work_areas else -1
        return self.enter_phase(
            "change_work_area", ChangeWorkAreaSkill(area or work_areas[(area_index + 1) % len(work_areas)])
        )

    @phase
    def _change_work_area(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            return self._handle_failure(context, result)
        self.n_approaches = 0
        return self._start_order(context)

    @phase
    def _approach(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self._start_order(context) if result.is_success else self._handle_failure(context, result)

    def _start_order(self, context: SkillContext) -> NextAction:
        memory = context.memory
        if self.order == "pick":
            return self.enter_phase("pick", PickSkill(memory.work_area))
        if (
            memory.free_places or memory.work_area in context.config.conveyor_areas
        ):  # places on a conveyor are detected with an object in the gripper
            return self._unstow_next(context)
        return self.enter_phase("find_places", FindPlacesSkill(memory.work_area))

    @phase
    def _idle(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if result.code is SkillResultCode.NOT_FOLLOWED and self._has_exhausted_attempts(
            context
        ):  # the arm cannot reach its rest pose
            return result
        return self.enter_phase("recover_start", DelayRequest(context.config.idle_time))

    def _approach_target(self, context: SkillContext, result: SkillResult) -> NextAction | None:
        """Drive nearer to a detected target that is out of reach, if the robot can drive."""
        if result.code is not SkillResultCode.NOT_REACHABLE or result.position is None:
            return None
        if not context.config.is_mobile or self.n_approaches >= _MAX_APPROACHES:
            return None
        self.n_approaches += 1
        return self.enter_phase("approach", ApproachByDrivingSkill(result.position))

    # -- picking -------------------------------------------------------------------------------------------------------
    @phase
    def _pick(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if result.is_success:
            return self.enter_phase("stow", StowSkill())
        if result.code in (*NO_CAMERA, *CONVEYOR_UNUSABLE):
            return self._handle_camera_loss(context, result)
        if (approach := self._approach_target(context, result)) is not None:
            return approach
        if result.code in (
            *NO_DETECTIONS,
            *UNREACHABLE,
            *TARGET_MOVED,
            SkillResultCode.TOO_CLOSE,
            SkillResultCode.TOO_HEAVY,
        ):
            return self._change_area(context, "place" if context.memory.first_bay(BayState.FULL) else "pick")
        return self._handle_failure(context, result)

    @phase
    def _stow(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if result.is_success:
            self.record_stowed_object()
            return (
                self._start_order(context)
                if context.memory.first_bay(BayState.EMPTY)
                else self._change_area(context, "place")
            )
        if context.memory.grasped_object is not None:
            context.report_recovery(result.code, result.message, result.position)
            return self.enter_phase("put_back", PutBackSkill(result.code in OVERLOADED))
        return self._handle_failure(context, result)

    @phase
    def _put_back(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            return self._handle_failure(context, result)
        if not context.memory.first_bay(BayState.FULL) and not context.memory.first_bay(BayState.EMPTY):
            return self._handle_failure(context, _NO_REACHABLE_BAY)
        return self._change_area(context, "place" if context.memory.first_bay(BayState.FULL) else "pick")

    # -- placing -------------------------------------------------------------------------------------------------------
    @phase
    def _find_places(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if result.is_success:
            return self._unstow_next(context)
        if result.code in (*NO_CAMERA, *CONVEYOR_UNUSABLE):
            return self._handle_camera_loss(context, result)
        if (approach := self._approach_target(context, result)) is not None:
            return approach
        if result.code in (*NO_DETECTIONS, SkillResultCode.PLACE_OCCUPIED, SkillResultCode.NOT_REACHABLE):
            return self._handle_no_place(context, result)
        return self._handle_failure(context, result)

    def _unstow_next(self, context: SkillContext) -> NextAction:
        self.waiting_for = ""
        if not context.memory.first_bay(BayState.FULL):
            return self._change_area(context, "pick")
        return self.enter_phase("unstow", UnstowSkill())

    def _handle_no_place(self, context: SkillContext, result: SkillResult) -> NextAction:
        """Wait for a free place if the bays are full, else pick meanwhile."""
        context.memory.free_places = []
        if context.memory.first_bay(BayState.EMPTY) or self.waited_time >= context.config.wait_timeout:
            return self._change_area(context, "pick" if context.memory.first_bay(BayState.EMPTY) else "place")
        self.waited_time += _PLACE_WAIT_PERIOD
        self.waiting_for = f"a free place: {result.message}"
        return self.enter_phase("wait", DelayRequest(_PLACE_WAIT_PERIOD))

    @phase
    def _wait(self, context: SkillContext, result: SkillResult) -> NextAction:
        return self.enter_phase("find_places", FindPlacesSkill(context.memory.work_area))

    @phase
    def _unstow(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if result.is_success:
            return self.enter_phase("place", PlaceSkill(context.memory.work_area))
        if result.code in (*NO_CAMERA, *CONVEYOR_UNUSABLE):
            return self._handle_camera_loss(context, result)
        return self._handle_failure(context, result)

    @phase
    def _place(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if result.is_success:
            if self.record_placed_object():
                return self.enter_phase("finish", FinishSkill())
            return (
                self._go_to_area(context)
                if context.memory.first_bay(BayState.FULL)
                else self._change_area(context, "pick")
            )
        if context.memory.grasped_object is None:
            return self._handle_failure(context, result)
        context.report_recovery(result.code, result.message, result.position)
        self.waiting_for = result.message
        return self.enter_phase("put_back_again", PutBackSkill(result.code in OVERLOADED))

    @phase
    def _put_back_again(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            return self._handle_failure(context, result)
        return self._handle_no_place(context, SkillResult(SkillResultCode.PLACE_OCCUPIED, self.waiting_for))

    # -- failures ------------------------------------------------------------------------------------------------------
    def reset_counters(self) -> None:
        """Forget earlier failures and waits, because an object was moved."""
        self.n_area_changes = self.n_failures = self.n_waits = self.n_approaches = 0
        self.waited_time = 0.0

    def _handle_failure(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        """Start again with an inspection of the bays; after repeated failures, rest first.

        While the fingers do not open, the arm does not move: it would move the object between them.
        """
        if result.code is SkillResultCode.GRIPPER_STUCK:
            return self._handle_stuck_gripper(context, result)
        context.report_recovery(result.code, result.message, result.position)
        self.n_failures += 1
        if self.n_failures <= context.config.max_attempts:
            return self.enter_phase("recover_start", RecoverStartSkill())
        self.n_failures = 0
        self.waiting_for = result.message
        return self.enter_phase(
            "idle",
            ArmMotionRequest(
                (NamedTarget(context.config.rest_pose),), is_holding=context.memory.grasped_object is not None
            ),
        )

    def _has_exhausted_attempts(self, context: SkillContext) -> bool:
        """Whether it had to wait too often in a row."""
        self.n_waits += 1
        return self.n_waits > context.config.max_attempts

    def _handle_stuck_gripper(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        """Wait for the fingers to open, then give up."""
        if self._has_exhausted_attempts(context):
            return result
        context.report_recovery(result.code, result.message, result.position)
        self.waiting_for = result.message
        return self.enter_phase("wait_for_gripper", DelayRequest(context.config.wait_timeout))

    @phase
    def _wait_for_gripper(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("recover_start", RecoverStartSkill())

    def _handle_camera_loss(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        """Wait at the rest pose for the camera, then give up."""
        if self._has_exhausted_attempts(context):
            return self.enter_phase("finish", FinishSkill(result))
        context.report_recovery(result.code, result.message)
        self.waiting_for = result.message
        return self.enter_phase(
            "wait_for_camera",
            ArmMotionRequest(
                (NamedTarget(context.config.rest_pose),), is_holding=context.memory.grasped_object is not None
            ),
        )

    @phase
    def _wait_for_camera(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("recover_start", DelayRequest(context.config.wait_timeout))
