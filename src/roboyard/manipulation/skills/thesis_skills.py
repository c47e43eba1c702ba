"""The thesis's skills and loop: its functions KreisErkennung, GelenkPos, GreiferPos, LadeCheck, VorIk, Aufheben and
Ablegen.

The same skills as those of the other modules, as the thesis did them (listings A, G, I, L, M, P, Q and R). There is no
contact sensing and no collision checking: a skill ends when its motions end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from roboyard.errors import InputError
from roboyard.manipulation.errors import GoalUnreachableError
from roboyard.manipulation.skills.bays import inspection_result, is_in_bay_window
from roboyard.manipulation.skills.config import SkillConfig
from roboyard.manipulation.skills.loop import LoopOrder, PickPlaceLoopBase
from roboyard.manipulation.skills.pick_place import nearest_detection, no_detections_result
from roboyard.manipulation.skills.registry import SkillGoal, check_goal, disc_kind
from roboyard.manipulation.skills.requests import (
    SUCCESS,
    DelayRequest,
    DetectDiscsRequest,
    GripperRequest,
    Point,
    SkillRequest,
    SkillResult,
    SkillResultCode,
    TargetDetection,
)
from roboyard.manipulation.skills.skill import (
    BayState,
    GraspedObject,
    NextAction,
    Skill,
    SkillContext,
    phase,
)
from roboyard.manipulation.skills.thesis_control import (
    REST_POSE,
    AlignPController,
    ThesisConfig,
    ThesisPose,
    solve_point_down_ik,
)
from roboyard.vision.discs.disc_detector import DiscMode

UNCHANGED_ANGLE: Final = math.nan
"""A joint that keeps its angle."""


@dataclass(frozen=True, slots=True)
class ThesisDetectRequest(DetectDiscsRequest):
    """Detect discs in one image, while the first joint rotates; detections are in the arm's frame [m].

    This frame rotates with the first joint: x to the right, y ahead of its axis, z up from the floor.

    Attributes:
        speed: Velocity of the first joint meanwhile [rad/s].
        max_place_distance: Maximum distance to the nearest pair's center, in x and in y [m]; 0: no maximum
            (PosAufnehmen).
        is_published: Whether the image is published with the detections drawn in.
    """

    num_images: int = 1
    speed: float = 0.0
    max_place_distance: float = 0.0
    is_published: bool = False


@dataclass(frozen=True, slots=True)
class ThesisStopRequest(SkillRequest):
    """Stop all joints; done at once."""


@dataclass(frozen=True, slots=True)
class ThesisJointRequest(SkillRequest):
    """Move the joints to angles on the thesis's scale (5,) [degrees]; NaN keeps an angle."""

    degrees: tuple[float, ...]


@dataclass
class ThesisContext(SkillContext):
    """Inputs of a skill's step.

    Attributes:
        thesis: Constants of the thesis.
        floor_height: Height of the floor in the frame of the robot's root [m].
        joint1_velocity: Velocity of the first joint [rad/s].
    """

    thesis: ThesisConfig = field(default_factory=ThesisConfig)
    floor_height: float = 0.0
    joint1_velocity: float = 0.0

    def to_root_frame(self, point: Point) -> Point | None:
        """Return a point of the arm's frame in the frame of the robot's root [m]; None: the joint positions are
        unknown.
        """
        if not self.joints:
            return None
        first, second = self.arm.chain.frames(self.joints)[1:3, :3, 3]
        forward = self.arm.T_root_base.rotation_matrix()[:2] @ (second - first)
        forward_x, forward_y = (forward / math.hypot(*forward)).tolist()
        x, y, _ = (self.arm.T_root_base @ first).tolist()
        right_offset, forward_offset, height = point
        return (
            x + forward_offset * forward_x + right_offset * forward_y,
            y + forward_offset * forward_y - right_offset * forward_x,
            self.floor_height + height,
        )


RETRY_DELAY: Final = 0.1
"""Delay after an image without detections [s]."""
_ALIGN_CONTROLLER: Final = AlignPController()
_END_SPEED: Final = 0.05
"""Of the first joint, when it is ahead [rad/s]."""
_MAX_ALIGN_IMAGES: Final = 450
"""Images of half a minute while aligning. The thesis would continue for ever."""


def _horizontal_distance(position: Point) -> float:
    """Return the distance of a position of the arm's frame from the first joint's axis [m]."""
    return math.hypot(*position[:2])


def _open_request(context: ThesisContext) -> GripperRequest:
    return GripperRequest(1e-3 * context.thesis.gripper_openings[0])


def _close_request(context: ThesisContext) -> GripperRequest:
    return GripperRequest(1e-3 * context.thesis.gripper_openings[1])


def detections_on_places(
    detections: Sequence[TargetDetection], places: Sequence[TargetDetection], max_distance: float
) -> tuple[TargetDetection, ...]:
    """Return the last detection within a distance [m] of the nearest place in x and in y, or nothing (PosAufnehmen)."""
    nearest_place = nearest_detection(places, _horizontal_distance)
    if nearest_place is None:
        return ()
    x, y, _ = nearest_place.position
    found = [
        one for one in detections if abs(one.position[0] - x) < max_distance and abs(one.position[1] - y) < max_distance
    ]
    return tuple(found[-1:])


def median_filter(positions: Sequence[Point], window: float) -> Point | None:
    """Return the mean of the positions within a window [m] of their median in x and in y; None: there is none
    (PosMinDis).
    """
    if not positions:
        return None
    median_index = len(positions) // 2
    x, y = (sorted(position[axis] for position in positions)[median_index] for axis in (0, 1))
    inliers = [position for position in positions if abs(position[0] - x) < window and abs(position[1] - y) < window]
    if not inliers:
        return None
    x, y, z = (sum(position[axis] for position in inliers) / len(inliers) for axis in range(3))
    return x, y, z


@dataclass
class ThesisInspectBaysSkill(Skill):
    """LadeCheck: black discs mark empty bays, white ones full bays.

    Attributes:
        n_attempts: Number of inspections so far.
        black_discs: Black discs of the last inspection.
    """

    name = "check_load"
    n_attempts: int = 0
    black_discs: tuple[TargetDetection, ...] = ()

    @phase
    def _start(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        context.memory.reset_bays(len(context.thesis.bay_azimuths))
        return self.enter_phase(
            "move_to_view", ThesisJointRequest(context.thesis.view_angles(context.thesis.bay_view_azimuth))
        )

    @phase(on_failure="return")
    def _move_to_view(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("detect_black", ThesisDetectRequest("black", "single"))

    @phase(on_failure="return")
    def _detect_black(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        self.black_discs = result.detections
        return self.enter_phase("detect_white", ThesisDetectRequest("white", "single", is_published=True))

    @phase(on_failure="return")
    def _detect_white(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        n_detected = self._store_bay_states(context, self.black_discs, BayState.EMPTY) + self._store_bay_states(
            context, result.detections, BayState.FULL
        )
        self.n_attempts += 1
        if n_detected == len(context.memory.bay_states) or self.n_attempts >= context.thesis.max_bay_inspections:
            return inspection_result(context.memory, self.n_attempts)
        return self.enter_phase("move_to_view", DelayRequest(RETRY_DELAY))

    def _store_bay_states(self, context: ThesisContext, detections: Sequence[TargetDetection], state: BayState) -> int:
        """Return the number of discs at the bays; their states are stored."""
        thesis, count = context.thesis, 0
        for x, y, _ in (one.position for one in detections):
            for bay, center in enumerate(zip(thesis.bay_disc_x, thesis.bay_disc_y, strict=True), 1):
                if is_in_bay_window((1e3 * x, 1e3 * y), center, thesis.bay_window):
                    context.memory.store_bay(bay, state)
                    count += 1
        return count


def detection_request(
    context: ThesisContext, mode: DiscMode, speed: float = 0.0, *, is_published: bool = False
) -> ThesisDetectRequest:
    """Return a request for objects (single) or places (pair)."""
    if mode == "single":
        max_distance = 1e-3 * context.thesis.require_place_within
        return ThesisDetectRequest(
            "white", "single", speed=speed, max_place_distance=max_distance, is_published=is_published
        )
    return ThesisDetectRequest("black", "pair", speed=speed, is_published=is_published)


@dataclass
class ThesisAlignSkill(Skill):
    """VorIk: rotate the first joint with P control towards the nearest symbol until it is straight ahead.

    Attributes:
        mode: single for objects, pair for places.
        n_images: Number of images so far.
        n_empty_images: Number of images without a symbol.
        position: Position of the symbol in the root frame.
    """

    name = "align"
    mode: DiscMode = "single"
    n_images: int = 0
    n_empty_images: int = 0
    position: Point | None = None

    def subject(self) -> SkillResult:
        """What it deals with."""
        return SkillResult(position=self.position)

    @phase
    def _start(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self._request_image(context, 0.0)

    def _request_image(self, context: ThesisContext, speed: float) -> NextAction:
        self.n_images += 1
        return self.enter_phase("detect", detection_request(context, self.mode, speed))

    @phase(on_failure="return")
    def _detect(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        symbol = nearest_detection(result.detections, _horizontal_distance)
        if symbol is None:
            self.n_empty_images += 1
            if self.n_empty_images > context.thesis.max_empty_images:
                return no_detections_result(self.mode, self.n_empty_images)
            return self.enter_phase("stop_after_miss", ThesisStopRequest())
        self.position = context.to_root_frame(symbol.position)
        x, y, _ = symbol.position
        if y <= 0.0:
            return SkillResult(SkillResultCode.NOT_REACHABLE, "the nearest symbol is behind the arm")
        speed = _ALIGN_CONTROLLER.compute_velocity(x, y)
        if speed == 0.0 and abs(context.joint1_velocity) < _END_SPEED:
            return self.enter_phase("stop", ThesisStopRequest())
        if self.n_images > _MAX_ALIGN_IMAGES:
            return SkillResult(
                SkillResultCode.NOT_FOLLOWED, f"the symbol is not straight ahead after {self.n_images} images"
            )
        return self._request_image(context, speed)

    @phase
    def _stop_after_miss(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("wait", DelayRequest(RETRY_DELAY))

    @phase
    def _wait(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self._request_image(context, 0.0)

    @phase
    def _stop(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return SkillResult(position=self.position)


@dataclass
class ThesisLocateSkill(Skill):
    """PosMinDis, as often as the thesis's Aufheben and Ablegen call it.

    The result has the nearest symbol in the arm's frame as the only detection, and its position in the root frame.

    Attributes:
        mode: single for objects, pair for places.
        positions: Positions of the nearest symbol in each image with one [m].
        n_images: Number of images of this round.
        n_empty_rounds: Number of rounds without a symbol.
    """

    name = "look"
    mode: DiscMode = "single"
    positions: list[Point] = field(default_factory=list)
    n_images: int = 0
    n_empty_rounds: int = 0

    @phase
    def _start(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        self.positions, self.n_images = [], 0
        return self._request_image(context)

    def _request_image(self, context: ThesisContext) -> NextAction:
        is_last = self.n_images + 1 == context.thesis.num_images
        return self.enter_phase("detect", detection_request(context, self.mode, is_published=is_last))

    @phase(on_failure="return")
    def _detect(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        self.n_images += 1
        symbol = nearest_detection(result.detections, _horizontal_distance)
        if symbol is not None:
            self.positions = [*self.positions, symbol.position]
        if self.n_images < context.thesis.num_images:
            return self._request_image(context)
        position = median_filter(self.positions, 1e-3 * context.thesis.median_window)
        if position is not None:
            return SkillResult(detections=(TargetDetection(position),), position=context.to_root_frame(position))
        self.n_empty_rounds += 1
        if self.n_empty_rounds > context.thesis.max_empty_images:
            return no_detections_result(self.mode, self.n_empty_rounds * self.n_images)
        return self.enter_phase("start", DelayRequest(RETRY_DELAY))


@dataclass
class ThesisSkill(Skill):
    """A skill that ends if the arm cannot reach its goal, or a joint fails; base of the others.

    Attributes:
        symbol: Position of the symbol in the arm's frame [m].
        position: The same in the root frame.
        bay: Bay that it deals with, from 1 on; 0: none.
    """

    symbol: Point | None = None
    position: Point | None = None
    bay: int = 0

    def subject(self) -> SkillResult:
        """What it deals with."""
        return SkillResult(position=self.position, bay=self.bay)

    def advance(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        """Process a result; an unreachable goal ends the skill."""
        try:
            return super().advance(context, result)
        except GoalUnreachableError as error:
            return SkillResult(SkillResultCode.NOT_REACHABLE, str(error))

    def _set_bay_state(self, context: ThesisContext, state: BayState) -> None:
        if not context.memory.bay_states:
            context.memory.reset_bays(len(context.thesis.bay_azimuths))
        context.memory.store_bay(self.bay, state)

    def _point_down_request(self, context: ThesisContext, height: float) -> ThesisJointRequest:
        """Return the joint angles with the gripper pointing down at a height over the symbol [mm]."""
        _, y, z = self.symbol or (0.0, 0.0, 0.0)
        joint_angles = solve_point_down_ik(1e3 * y, 1e3 * z + height, as_programmed=context.thesis.as_programmed)
        return ThesisJointRequest((UNCHANGED_ANGLE, *joint_angles, UNCHANGED_ANGLE))

    def _store_symbol(self, result: SkillResult) -> None:
        if result.detections:
            self.symbol, self.position = result.detections[0].position, result.position


@dataclass
class ThesisTargetSkill(ThesisSkill):
    """Base of the skills at a work area: move to its view, align with the nearest symbol, locate it.

    Attributes:
        area: Work area.
    """

    mode: ClassVar[DiscMode] = "single"
    area: str = ""

    @phase(on_failure="return")
    def _start(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("move_to_view", view_request(context, self.area))

    @phase(on_failure="return")
    def _move_to_view(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("align", ThesisAlignSkill(self.mode))

    @phase(on_failure="return")
    def _align(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("locate", ThesisLocateSkill(self.mode))

    def _enter_ascend(self, context: ThesisContext) -> NextAction:
        return self.enter_phase("ascend", ThesisJointRequest((UNCHANGED_ANGLE, *context.thesis.view_pose)))

    @phase(on_failure="return")
    def _ascend(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return SkillResult(position=self.position)


@dataclass
class ThesisPickSkill(ThesisTargetSkill):
    """Aufheben, until the object is lifted."""

    name = "pick"

    @phase(on_failure="return")
    def _locate(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        self._store_symbol(result)
        return self.enter_phase("grasp", ThesisGraspSkill(self.symbol, self.position))

    @phase(on_failure="return")
    def _grasp(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self._enter_ascend(context)


@dataclass
class ThesisGraspSkill(ThesisSkill):
    """Move above the symbol, open the gripper, descend, close it, lift."""

    name = "grasp"

    @phase(on_failure="return")
    def _start(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("move_above", self._point_down_request(context, context.thesis.pick_heights[0]))

    @phase(on_failure="return")
    def _move_above(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("open_gripper", _open_request(context))

    @phase(on_failure="return")
    def _open_gripper(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("descend", self._point_down_request(context, context.thesis.pick_heights[1]))

    @phase(on_failure="return")
    def _descend(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        context.memory.grasped_object = GraspedObject(self.position or (0.0, 0.0, 0.0))
        return self.enter_phase("close_gripper", _close_request(context))

    @phase(on_failure="return")
    def _close_gripper(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("lift", self._point_down_request(context, context.thesis.pick_heights[0]))

    @phase(on_failure="return")
    def _lift(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return SkillResult(position=self.position)


@dataclass
class ThesisBaySkill(ThesisSkill):
    """Base of the skills at a bay: rotate the upright arm, then bend it back over the bay."""

    @phase(on_failure="return")
    def _start(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("rotate", bay_azimuth_request(context, self.bay))

    @phase(on_failure="return")
    def _rotate(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("move_above", self._bay_request(context, self._offset_above(context)))

    @staticmethod
    def _offset_above(context: ThesisContext) -> ThesisPose:
        """Return the offset from the bay before the descent."""
        return context.thesis.retrieve_offset

    def _bay_request(self, context: ThesisContext, offset: ThesisPose = (0.0, 0.0, 0.0, 0.0)) -> ThesisJointRequest:
        return ThesisJointRequest(context.thesis.bay_angles(self.bay, offset))


@dataclass
class ThesisStowSkill(ThesisBaySkill):
    """The second half of Aufheben: stow the object in a bay."""

    name = "stow"

    @staticmethod
    def _offset_above(context: ThesisContext) -> ThesisPose:
        return context.thesis.pre_stow_offset

    @phase(on_failure="return")
    def _move_above(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("descend", self._bay_request(context, context.thesis.stow_offset))

    @phase(on_failure="return")
    def _descend(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("open_gripper", _open_request(context))

    @phase(on_failure="return")
    def _open_gripper(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        context.memory.grasped_object = None
        self._set_bay_state(context, BayState.FULL)
        if not context.thesis.retreat_after_stow:
            return self._retreat(context, SUCCESS)
        return self.enter_phase("retreat", self._bay_request(context, context.thesis.retrieve_offset))

    @phase(on_failure="return")
    def _retreat(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("ascend", ThesisJointRequest((UNCHANGED_ANGLE, *context.thesis.view_pose)))

    @phase(on_failure="return")
    def _ascend(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return SkillResult(bay=self.bay)


@dataclass
class ThesisUnstowSkill(ThesisBaySkill):
    """The first half of Ablegen: take an object out of a bay."""

    name = "unstow"

    @phase(on_failure="return")
    def _move_above(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("open_gripper", _open_request(context))

    @phase(on_failure="return")
    def _open_gripper(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("descend", self._bay_request(context))

    @phase(on_failure="return")
    def _descend(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        context.memory.grasped_object = GraspedObject((0.0, 0.0, 0.0), self.bay)
        return self.enter_phase("close_gripper", _close_request(context))

    @phase(on_failure="return")
    def _close_gripper(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("lift", self._bay_request(context, context.thesis.retrieve_offset))

    @phase(on_failure="return")
    def _lift(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        self._set_bay_state(context, BayState.EMPTY)
        return SkillResult(bay=self.bay)


@dataclass
class ThesisPlaceSkill(ThesisTargetSkill):
    """The second half of Ablegen: place the object between two black discs."""

    name = "place"
    mode = "pair"

    @phase(on_failure="return")
    def _locate(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        self._store_symbol(result)
        return self.enter_phase("release", ThesisReleaseSkill(self.symbol, self.position))

    @phase(on_failure="return")
    def _release(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self._enter_ascend(context)


@dataclass
class ThesisReleaseSkill(ThesisSkill):
    """Move above the place, descend, open the gripper, ascend."""

    name = "release"

    @phase(on_failure="return")
    def _start(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("move_above", self._point_down_request(context, context.thesis.place_heights[0]))

    @phase(on_failure="return")
    def _move_above(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("descend", self._point_down_request(context, context.thesis.place_heights[1]))

    @phase(on_failure="return")
    def _descend(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("open_gripper", _open_request(context))

    @phase(on_failure="return")
    def _open_gripper(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        context.memory.grasped_object = None
        return self.enter_phase("retreat", self._point_down_request(context, context.thesis.place_heights[0]))

    @phase(on_failure="return")
    def _retreat(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return SkillResult(position=self.position)


@dataclass
class ThesisPutBackSkill(ThesisBaySkill):
    """AblegenSimpel: put the object back into its bay."""

    name = "put_back"

    @phase(on_failure="return")
    def _move_above(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("descend", self._bay_request(context))

    @phase(on_failure="return")
    def _descend(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("open_gripper", _open_request(context))

    @phase(on_failure="return")
    def _open_gripper(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        context.memory.grasped_object = None
        self._set_bay_state(context, BayState.FULL)
        return self.enter_phase("retreat", self._bay_request(context, context.thesis.retrieve_offset))

    @phase(on_failure="return")
    def _retreat(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase(
            "ascend", ThesisJointRequest(context.thesis.view_angles(context.thesis.bay_azimuths[self.bay - 1]))
        )

    @phase(on_failure="return")
    def _ascend(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return SkillResult(bay=self.bay)


def view_request(context: ThesisContext, area: str) -> ThesisJointRequest:
    """Return the view pose towards a work area."""
    work_areas = context.config.work_areas
    azimuth = context.thesis.view_azimuths[work_areas.index(area) if area in work_areas else 0]
    return ThesisJointRequest(context.thesis.view_angles(azimuth))


def bay_azimuth_request(context: ThesisContext, bay: int) -> ThesisJointRequest:
    """Return the upright arm, rotated so that it bends back into a bay."""
    return ThesisJointRequest((context.thesis.bay_azimuths[bay - 1], 0.0, 0.0, 0.0, context.thesis.bay_pose[3]))


_NO_SYMBOL: Final = (SkillResultCode.VIEW_EMPTY, SkillResultCode.NOT_REACHABLE)
"""Result codes that count as an empty view."""
_MAX_FAILURES: Final = 3
"""Maximum number of consecutive failures, such as missing images; the thesis would wait for ever."""


@dataclass
class ThesisFinishSkill(Skill):
    """Move the arm to its rest pose.

    Attributes:
        final_result: Result of the skill that it finishes.
    """

    name = "finish"
    final_result: SkillResult = SUCCESS

    @phase
    def _start(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("move_to_rest_pose", ThesisJointRequest(REST_POSE))

    @phase
    def _move_to_rest_pose(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.final_result


@dataclass
class ThesisPickPlaceLoop(PickPlaceLoopBase):
    """Ablauf. The last full or empty bay is used first.

    With full bays and no detected place it repeats the detection, as the program does; without objects in either work
    area it alternates between them.  It ends after ``n_objects``, when it is canceled, when no bay is detected, or
    after repeated failures.

    Attributes:
        bay: Bay that it deals with.
    """

    bay: int = 0

    @phase
    def _start(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("inspect_bays", ThesisInspectBaysSkill())

    @phase
    def _inspect_bays(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            return self.enter_phase("finish", ThesisFinishSkill(result))
        return self._go_to_area(context, "place" if BayState.FULL in context.memory.bay_states else "pick")

    def _go_to_area(self, context: ThesisContext, order: LoopOrder) -> NextAction:
        """Fahrt: move the arm to its rest pose, then use the other work area."""
        self.order = order
        area = self.configured_area(context)
        context.memory.work_area = area or context.config.work_areas[self.order == "place"]
        return self.enter_phase("change_work_area", ThesisJointRequest(REST_POSE))

    @phase
    def _change_work_area(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return self._start_order(context) if result.is_success else self._handle_failure(context, result)

    def _start_order(self, context: ThesisContext) -> NextAction | SkillResult:
        required_state = BayState.FULL if self.order == "place" else BayState.EMPTY
        self.bay = max(context.memory.bays_in_state(required_state), default=0)
        if not self.bay:
            return self._go_to_area(context, "pick" if self.order == "place" else "place")
        if self.order == "place":
            return self.enter_phase("unstow", ThesisUnstowSkill(bay=self.bay))
        return self.enter_phase("pick", ThesisPickSkill(area=context.memory.work_area))

    # -- picking -------------------------------------------------------------------------------------------------------
    @phase
    def _pick(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        if result.is_success:
            return self.enter_phase("stow", ThesisStowSkill(bay=self.bay))
        return (
            self._go_to_area(context, "place") if result.code in _NO_SYMBOL else self._handle_failure(context, result)
        )

    @phase
    def _stow(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            return self._handle_failure(context, result)
        self.record_stowed_object()
        return (
            self._go_to_area(context, "place")
            if BayState.EMPTY not in context.memory.bay_states
            else self._start_order(context)
        )

    # -- placing -------------------------------------------------------------------------------------------------------
    @phase
    def _unstow(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        return (
            self.enter_phase("place", ThesisPlaceSkill(area=context.memory.work_area))
            if result.is_success
            else self._handle_failure(context, result)
        )

    @phase
    def _place(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        if result.is_success:
            if self.record_placed_object():
                return self.enter_phase("finish", ThesisFinishSkill())
            return (
                self._start_order(context)
                if BayState.FULL in context.memory.bay_states
                else self._go_to_area(context, "pick")
            )
        if result.code not in _NO_SYMBOL:
            return self._handle_failure(context, result)
        self.waiting_for = result.message
        return self.enter_phase("put_back", ThesisPutBackSkill(bay=self.bay))

    @phase
    def _put_back(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            return self._handle_failure(context, result)
        return (
            self._go_to_area(context, "pick")
            if BayState.EMPTY in context.memory.bay_states
            else self._start_order(context)
        )

    # -- failures ------------------------------------------------------------------------------------------------------
    def _handle_failure(self, context: ThesisContext, result: SkillResult) -> NextAction | SkillResult:
        self.n_failures, self.waiting_for = self.n_failures + 1, result.message
        if self.n_failures >= _MAX_FAILURES:
            return self.enter_phase("finish", ThesisFinishSkill(result))
        context.report_recovery(result.code, result.message, result.position)
        return self._go_to_area(context, self.order)


def make_thesis_skill(name: str, goal: SkillGoal, config: SkillConfig, n_bays: int) -> Skill:
    """Return a skill that is ready to start.

    Raises:
        InputError: there is no such skill, work area or bay, or no bay is named where one is needed.
    """
    check_goal(name, goal, THESIS_SKILL_NAMES, config, n_bays)
    if name in ("stow", "unstow") and not goal.bay:
        raise InputError("bay 0", valid=f"1 to {n_bays}")
    return _FACTORIES[name](goal)


_FACTORIES: Final[dict[str, Callable[[SkillGoal], Skill]]] = {
    "align": lambda goal: ThesisAlignSkill(disc_kind(goal)[1]),
    "check_load": lambda goal: ThesisInspectBaysSkill(),
    "pick": lambda goal: ThesisPickSkill(area=goal.work_area),
    "place": lambda goal: ThesisPlaceSkill(area=goal.work_area),
    "stow": lambda goal: ThesisStowSkill(bay=goal.bay),
    "unstow": lambda goal: ThesisUnstowSkill(bay=goal.bay),
    "loop": lambda goal: ThesisPickPlaceLoop(goal.n_objects),
}
THESIS_SKILL_NAMES: Final = tuple(_FACTORIES)
"""Names of the skills that can be requested."""
