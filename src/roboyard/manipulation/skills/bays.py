"""Skills of the bays on the robot: inspect them, stow an object, take one out."""

from __future__ import annotations

from collections.abc import Sequence
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
from roboyard.manipulation.skills.skill import BayState, NextAction, Skill, SkillContext, SkillMemory, phase


def is_in_bay_window(position: Sequence[float], center: Sequence[float], window: float) -> bool:
    """Whether a position is within a distance from the center of a bay in x and in y, all in the same unit."""
    return max(abs(position[0] - center[0]), abs(position[1] - center[1])) <= window


def disc_in_bay_window(detections: tuple[TargetDetection, ...], center: Point, window: float) -> Point | None:
    """Return the position of the first disc in the window of a bay [m]; None: there is none."""
    return next((one.position for one in detections if is_in_bay_window(one.position, center, window)), None)


def inspection_result(memory: SkillMemory, n_attempts: int) -> SkillResult:
    """Return the result of an inspection of the bays: a failure if no bay was detected."""
    unknown_bays = [str(bay) for bay, state in enumerate(memory.bay_states, 1) if state == BayState.UNKNOWN]
    if len(unknown_bays) == len(memory.bay_states):
        return SkillResult(SkillResultCode.VIEW_EMPTY, f"no bay is detected in {n_attempts} inspections")
    return SkillResult(message=f"bays {', '.join(unknown_bays)} are not detected" if unknown_bays else "")


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

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        context.memory.reset_bays(len(context.arm.bay_positions))
        if not context.memory.bay_states:
            return SUCCESS
        return self.enter_phase(
            "move_to_view",
            ArmMotionRequest(
                (NamedTarget(context.config.bay_view_pose),), is_holding=context.memory.grasped_object is not None
            ),
        )

    @phase(on_failure="return")
    def _move_to_view(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("settle", DelayRequest(context.config.settle_time))

    @phase
    def _settle(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("detect_white", DetectDiscsRequest("white", "single", context.config.quick_images))

    @phase(on_failure="return", handled_codes=NO_DETECTIONS)
    def _detect_white(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        self.white_discs = result.detections
        return self.enter_phase("detect_black", DetectDiscsRequest("black", "single", context.config.quick_images))

    @phase(on_failure="return", handled_codes=NO_DETECTIONS)
    def _detect_black(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        memory, config = context.memory, context.config
        for bay, center in enumerate(context.arm.bay_positions, 1):
            for detections, state in ((self.white_discs, BayState.FULL), (result.detections, BayState.EMPTY)):
                disc = disc_in_bay_window(detections, center, config.bay_window)
                if disc is not None and memory.bay_states[bay - 1] == BayState.UNKNOWN:
                    memory.store_bay(bay, state, disc)
        self.n_attempts += 1
        if BayState.UNKNOWN in memory.bay_states and self.n_attempts < config.max_attempts:
            return self._settle(context, SUCCESS)
        return inspection_result(memory, self.n_attempts)


def _select_bay(
    bay: int, requested_bay: int, required_state: BayState, context: SkillContext, result: SkillResult
) -> tuple[int, SkillResult | None]:
    """Return the requested bay, or the first one with the required state, and why it is not suitable."""
    bay_states = context.memory.bay_states
    if requested_bay > len(bay_states):
        return bay, SkillResult(SkillResultCode.BAD_GOAL, f"there are {len(bay_states)} bays", bay=requested_bay)
    bay = requested_bay or context.memory.first_bay(required_state)
    if bay and (bay_states[bay - 1] == BayState.FULL) == (required_state == BayState.FULL):
        return bay, None
    if not requested_bay and not result.is_success:
        return bay, result
    code, state_word, opposite_word = (
        (SkillResultCode.BAYS_EMPTY, "empty", "full")
        if required_state == BayState.FULL
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

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        memory = context.memory
        if memory.grasped_object is None:
            return SkillResult(SkillResultCode.GRIPPER_EMPTY, "the gripper holds no object")
        self.requested_bay = self.bay
        if not memory.bay_states:
            return self.enter_phase("inspect_bays", InspectBaysSkill())
        return self._select(context, SUCCESS)

    @phase(on_failure="return")
    def _inspect_bays(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self._select(context, result)

    def _select(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        self.bay, failure = _select_bay(self.bay, self.requested_bay, BayState.EMPTY, context, result)
        if failure is not None:
            return failure
        return self.enter_phase("release", ReleaseSkill(self._floor_position(context), self.bay))

    def _floor_position(self, context: SkillContext) -> Point:
        disc = (
            context.memory.bay_discs[self.bay - 1]
            if context.memory.bay_states[self.bay - 1] == BayState.EMPTY
            else None
        )
        return disc or context.arm.bay_position(self.bay)

    @phase
    def _release(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        memory = context.memory
        if result.is_success:
            disc = offset_vertically(
                result.position or context.arm.bay_position(self.bay), context.config.object_height
            )
            memory.store_bay(self.bay, BayState.FULL, disc)
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

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        self.requested_bay = self.bay
        return self.enter_phase("recover_start", RecoverStartSkill())

    @phase(on_failure="return")
    def _recover_start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if context.memory.grasped_object is not None:
            return SkillResult(SkillResultCode.GRIPPER_OCCUPIED, "the gripper holds an object already")
        if not context.memory.bay_states:
            return self.enter_phase("inspect_bays", InspectBaysSkill())
        return self._select(context, SUCCESS)

    @phase(on_failure="return")
    def _inspect_bays(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self._select(context, result)

    def _select(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        self.bay, failure = _select_bay(self.bay, self.requested_bay, BayState.FULL, context, result)
        if failure is not None:
            return failure
        memory = context.memory
        disc = memory.bay_discs[self.bay - 1] or offset_vertically(
            context.arm.bay_position(self.bay), context.config.object_height
        )
        return self.enter_phase("grasp", GraspSkill(disc, self.bay, memory.bay_yaws[self.bay - 1]))

    @phase
    def _grasp(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        memory, self.n_attempts = context.memory, self.n_attempts + 1
        if result.is_success:
            memory.store_bay(self.bay, BayState.EMPTY)
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
