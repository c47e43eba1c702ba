"""Skills of the bays on the robot: inspect them, stow an object, take one out."""

from __future__ import annotations

from dataclasses import dataclass

from roboyard.manipulation.skills.grasp_release import GraspSkill, RecoverStartSkill, ReleaseSkill, offset_vertically
from roboyard.manipulation.skills.requests import (
    NO_DETECTIONS,
    SUCCESS,
    UNREACHABLE,
    ArmMotionRequest,
    DelayRequest,
    DetectDiscsRequest,
    NamedTarget,
    Point,
    SkillResult,
    SkillResultCode,
    TargetDetection,
)
from roboyard.manipulation.skills.skill import BAY_EMPTY, BAY_FULL, BAY_UNKNOWN, NextAction, Skill, SkillContext


def disc_in_bay_window(detections: tuple[TargetDetection, ...], center: Point, window: float) -> Point | None:
    """Return the first disc in the window of a bay; None: there is none."""
    for detection in detections:
        if abs(detection.position[0] - center[0]) <= window and abs(detection.position[1] - center[1]) <= window:
            return detection.position
    return None


@dataclass
class InspectBaysSkill(Skill):
    """Inspect the bays: a white disc marks a full one, a black disc an empty one.

    Attributes:
        n_attempts: Number of inspections so far.
        white_discs: Discs on objects in bays.
    """

    name = "check_load"
    n_attempts: int = 0
    white_discs: tuple[TargetDetection, ...] = ()

    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        n_bays = len(context.arm.bay_positions)
        context.memory.bay_states, context.memory.bay_discs = [BAY_UNKNOWN] * n_bays, [None] * n_bays
        context.memory.bay_yaws = context.memory.bay_yaws or [None] * n_bays
        if not n_bays:
            return SUCCESS
        return self.enter_phase(
            "move_to_view",
            ArmMotionRequest(
                (NamedTarget(context.config.bay_view_pose),), is_holding=context.memory.grasped_object is not None
            ),
        )

    def _move_to_view(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            return result
        return self.enter_phase("settle", DelayRequest(context.config.settle_time))

    def _settle(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("detect_white", DetectDiscsRequest("white", "single", context.config.quick_images))

    def _detect_white(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success and result.code not in NO_DETECTIONS:
            return result
        self.white_discs = result.detections
        return self.enter_phase("detect_black", DetectDiscsRequest("black", "single", context.config.quick_images))

    def _detect_black(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success and result.code not in NO_DETECTIONS:
            return result
        memory, config = context.memory, context.config
        for k in range(len(context.arm.bay_positions)):
            center = context.arm.bay_position(k + 1)
            for detections, state in ((self.white_discs, BAY_FULL), (result.detections, BAY_EMPTY)):
                disc = disc_in_bay_window(detections, center, config.bay_window)
                if disc is not None and memory.bay_states[k] == BAY_UNKNOWN:
                    memory.bay_states[k], memory.bay_discs[k] = state, disc
        self.n_attempts += 1
        unknown_bays = [k for k, state in enumerate(memory.bay_states, 1) if state == BAY_UNKNOWN]
        if unknown_bays and self.n_attempts < config.max_attempts:
            return self._settle(context, SUCCESS)
        if len(unknown_bays) == len(context.arm.bay_positions):
            return SkillResult(SkillResultCode.VIEW_EMPTY, f"no bay is detected in {self.n_attempts} inspections")
        return SkillResult(message=f"bays {', '.join(map(str, unknown_bays))} are not detected" if unknown_bays else "")


def _select_bay(
    bay: int, requested_bay: int, required_state: int, context: SkillContext, result: SkillResult
) -> tuple[int, SkillResult | None]:
    """Return the requested bay, or the first one with the required state, and why it is not suitable."""
    bay_states = context.memory.bay_states
    if requested_bay > len(bay_states):
        return bay, SkillResult(SkillResultCode.BAD_GOAL, f"there are {len(bay_states)} bays", bay=requested_bay)
    bay = requested_bay or context.memory.first_bay(required_state)
    if bay and (bay_states[bay - 1] == BAY_FULL) == (required_state == BAY_FULL):
        return bay, None
    if not requested_bay and not result.is_success:
        return bay, result
    code, state_word, opposite_word = (
        (SkillResultCode.BAYS_EMPTY, "empty", "full")
        if required_state == BAY_FULL
        else (SkillResultCode.BAY_FULL, "full", "empty")
    )
    return bay, SkillResult(
        code, f"bay {bay} is {state_word}" if requested_bay else f"no bay is {opposite_word} and within reach", bay=bay
    )


@dataclass
class StowSkill(Skill):
    """Put the held object into a bay.

    Attributes:
        bay: From 1 on; 0: the first empty one.
        n_attempts: Number of contacts in a bay so far.
    """

    name = "stow"
    bay: int = 0
    n_attempts: int = 0
    requested_bay: int = 0

    def subject(self) -> SkillResult:
        """What it deals with."""
        return SkillResult(bay=self.bay)

    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        memory = context.memory
        if memory.grasped_object is None:
            return SkillResult(SkillResultCode.GRIPPER_EMPTY, "the gripper holds no object")
        self.requested_bay = self.bay
        if not memory.bay_states:
            return self.enter_phase("inspect_bays", InspectBaysSkill())
        return self._select(context, SUCCESS)

    def _inspect_bays(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self._select(context, result) if result.is_success else result

    def _select(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        self.bay, failure = _select_bay(self.bay, self.requested_bay, BAY_EMPTY, context, result)
        if failure is not None:
            return failure
        return self.enter_phase("release", ReleaseSkill(self._floor_position(context), self.bay))

    def _floor_position(self, context: SkillContext) -> Point:
        disc = context.memory.bay_discs[self.bay - 1] if context.memory.bay_states[self.bay - 1] == BAY_EMPTY else None
        return disc or context.arm.bay_position(self.bay)

    def _release(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        memory = context.memory
        if result.is_success:
            memory.bay_states[self.bay - 1] = BAY_FULL
            memory.bay_discs[self.bay - 1] = offset_vertically(
                result.position or context.arm.bay_position(self.bay), context.config.object_height
            )
            return SkillResult(bay=self.bay, position=result.position)
        if result.code in UNREACHABLE and not self.requested_bay:
            memory.unreachable_bays.append(self.bay)
            context.report_recovery(result.code, f"bay {self.bay}: {result.message}", result.position)
            return self._select(context, result)
        self.n_attempts += 1
        if (
            result.code is SkillResultCode.BLOCKED
            and not self.requested_bay
            and self.n_attempts < context.config.max_attempts
        ):
            context.report_recovery(result.code, f"bay {self.bay}: {result.message}", result.position)
            return self.enter_phase("inspect_bays", InspectBaysSkill())
        return result


@dataclass
class UnstowSkill(Skill):
    """Take an object out of a bay.

    Attributes:
        bay: From 1 on; 0: the first full one.
        n_attempts: Number of grasps so far.
    """

    name = "unstow"
    bay: int = 0
    n_attempts: int = 0
    requested_bay: int = 0

    def subject(self) -> SkillResult:
        """What it deals with."""
        return SkillResult(bay=self.bay)

    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        self.requested_bay = self.bay
        return self.enter_phase("recover_start", RecoverStartSkill())

    def _recover_start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            return result
        if context.memory.grasped_object is not None:
            return SkillResult(SkillResultCode.GRIPPER_OCCUPIED, "the gripper holds an object already")
        if not context.memory.bay_states:
            return self.enter_phase("inspect_bays", InspectBaysSkill())
        return self._select(context, SUCCESS)

    def _inspect_bays(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self._select(context, result) if result.is_success else result

    def _select(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        self.bay, failure = _select_bay(self.bay, self.requested_bay, BAY_FULL, context, result)
        if failure is not None:
            return failure
        memory = context.memory
        disc = memory.bay_discs[self.bay - 1] or offset_vertically(
            context.arm.bay_position(self.bay), context.config.object_height
        )
        return self.enter_phase("grasp", GraspSkill(disc, self.bay, memory.bay_yaws[self.bay - 1]))

    def _grasp(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        memory, self.n_attempts = context.memory, self.n_attempts + 1
        if result.is_success:
            memory.bay_states[self.bay - 1], memory.bay_discs[self.bay - 1] = BAY_EMPTY, None
            return SkillResult(bay=self.bay, position=result.position)
        if result.code in UNREACHABLE and not self.requested_bay:
            memory.unreachable_bays.append(self.bay)
            context.report_recovery(result.code, f"bay {self.bay}: {result.message}", result.position)
            return self._select(context, result)
        if (
            result.code in (SkillResultCode.GRASP_FAILED, SkillResultCode.BLOCKED, SkillResultCode.LOST)
            and self.n_attempts < context.config.max_attempts
        ):
            context.report_recovery(result.code, f"bay {self.bay}: {result.message}", result.position)
            return self.enter_phase("inspect_bays", InspectBaysSkill())
        return result
