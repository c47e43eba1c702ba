"""Skills of a work area: detect and align, pick an object, find free places, place the held object, put it back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from roboyard.manipulation.skills.arm_geometry import feasible_yaws, is_too_close
from roboyard.manipulation.skills.bays import StowSkill, disc_in_bay_window
from roboyard.manipulation.skills.config import SkillConfig
from roboyard.manipulation.skills.conveyor import (
    InterceptPoint,
    conveyor_unknown,
    find_intercept,
    is_moving,
    project_on_conveyor,
)
from roboyard.manipulation.skills.conveyor_skill import ConveyorTrackingSkill, stationary_detections
from roboyard.manipulation.skills.grasp_release import GraspSkill, RecoverStartSkill, ReleaseSkill, offset_vertically
from roboyard.manipulation.skills.requests import (
    NO_DETECTIONS,
    SUCCESS,
    TARGET_MOVED,
    UNREACHABLE,
    ArmMotionRequest,
    DelayRequest,
    DetectDiscsRequest,
    JointTarget,
    NamedTarget,
    Point,
    SkillResult,
    SkillResultCode,
    TargetDetection,
)
from roboyard.manipulation.skills.skill import BayState, NextAction, Skill, SkillContext, phase
from roboyard.vision.discs.disc_detector import DiscMode, DiscPolarity


def view_pose_of(context: SkillContext, name: str) -> JointTarget | NamedTarget:
    """Return the arm's view pose of a work area."""
    config = context.config
    area_index = config.work_areas.index(name)
    pose = config.view_poses[area_index]
    if not config.view_azimuths:
        return NamedTarget(pose)
    return JointTarget((config.view_azimuths[area_index], *context.arm.poses[pose][1:]))


def nearest_detection(
    detections: Sequence[TargetDetection], distance: Callable[[Point], float], max_distance: float = math.inf
) -> TargetDetection | None:
    """Return the detection with the smallest distance; None: there is none within the maximum [m].

    Args:
        detections: The detections.
        distance: Distance of a position from where a detection is expected [m].
        max_distance: Maximum of this distance [m].
    """
    nearest = min(detections, key=lambda one: distance(one.position), default=None)
    return nearest if nearest is not None and distance(nearest.position) <= max_distance else None


def no_detections_result(
    mode: DiscMode, n_images: int, detections: tuple[TargetDetection, ...] = (), position: Point | None = None
) -> SkillResult:
    """Return the failure of a skill that detected no disc, or no pair, in a number of images."""
    expected = "no disc" if mode == "single" else "no pair of discs"
    return SkillResult(SkillResultCode.VIEW_EMPTY, f"{expected} in {n_images} images", detections, position)


@dataclass
class DetectSkill(Skill):
    """Detect discs, or centers of pairs, in a work area.

    Attributes:
        polarity: Polarity of the discs.
        mode: single or pair.
        num_images: Number of images.
        area: Work area; empty: from the present pose.
        may_move: Whether the discs may move.
    """

    name = "look"
    polarity: DiscPolarity = "white"
    mode: DiscMode = "single"
    num_images: int = 5
    area: str = ""
    may_move: bool = False

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not self.area:
            return self._move_to_view(context, SUCCESS)
        return self.enter_phase(
            "move_to_view",
            ArmMotionRequest((view_pose_of(context, self.area),), is_holding=context.memory.grasped_object is not None),
        )

    @phase(on_failure="return")
    def _move_to_view(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        config = context.config
        return self.enter_phase(
            "settle", DelayRequest(config.conveyor_settle_time if self.may_move else config.settle_time)
        )

    @phase
    def _settle(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("detect", DetectDiscsRequest(self.polarity, self.mode, self.num_images, self.may_move))

    @phase
    def _detect(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return result


@dataclass
class AlignSkill(Skill):
    """Rotate the first joint until a disc, or the center of a pair, is in the arm's plane, and detect it again.

    The thesis calls it VorIk.  The result has the position and all detections of the last images.

    Attributes:
        polarity: Polarity of the disc.
        mode: single or pair.
        target: Expected position; None: the detection nearest to the robot's root.
        n_rotations: Number of rotations of the joint so far.
        n_empty_images: Number of consecutive images without a detection.
        is_aligned: Whether the joint is aligned with the last detection.
    """

    name = "align"
    polarity: DiscPolarity = "white"
    mode: DiscMode = "single"
    target: Point | None = None
    n_rotations: int = 0
    n_empty_images: int = 0
    is_aligned: bool = False

    def subject(self) -> SkillResult:
        """What it deals with."""
        return SkillResult(position=self.target)

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self._request_images(context) if self.target is None else self._rotate_to_target(context)

    def _request_images(self, context: SkillContext) -> NextAction:
        self.is_aligned = False
        return self.enter_phase("detect", DetectDiscsRequest(self.polarity, self.mode, context.config.quick_images))

    @phase
    def _detect(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        config = context.config
        detection = result.detections[0] if result.detections and self.target is None else None
        if detection is None and self.target is not None:
            detection = nearest_detection(result.detections, partial(math.dist, self.target), config.same_object_radius)
        if detection is None:
            if not result.is_success and result.code not in NO_DETECTIONS:
                return result
            self.n_empty_images += images_of_last_detection(self, config)
            if self.n_empty_images >= config.max_empty_images:
                return no_detections_result(self.mode, self.n_empty_images, result.detections, self.target)
            return self._request_images(context)
        self.target, self.n_empty_images = detection.position, 0
        if (
            len(context.joints)
            and abs(context.arm.joint1_angle_to(context.joints, self.target)) <= config.align_tolerance
            and self.is_aligned
        ):
            return SkillResult(detections=result.detections, position=self.target)
        return self._rotate_to_target(context)

    def _rotate_to_target(self, context: SkillContext) -> NextAction | SkillResult:
        config, joints = context.config, context.joints
        if not joints or self.target is None:
            return SkillResult(SkillResultCode.NOT_FOLLOWED, "the joint positions are unknown", position=self.target)
        angle = context.arm.joint1_angle_to(joints, self.target)
        if abs(angle) <= config.align_tolerance:
            return self._rotate(context, SUCCESS)
        if self.n_rotations >= config.max_align_rotations:
            message = f"the target is {angle:.4f} rad outside the arm's plane after {self.n_rotations} rotations"
            return SkillResult(SkillResultCode.NOT_FOLLOWED, message, position=self.target)
        self.n_rotations += 1
        joint1_position = joints[0] + angle
        lower, upper = float(context.arm.chain.lower[0]), float(context.arm.chain.upper[0])
        if not lower <= joint1_position <= upper:
            message = f"{context.arm.chain.joints[0]} would have to rotate to {joint1_position:.2f} rad"
            return SkillResult(SkillResultCode.NOT_REACHABLE, message, position=self.target)
        return self.enter_phase(
            "rotate",
            ArmMotionRequest(
                (JointTarget((joint1_position, *joints[1:])),), is_holding=context.memory.grasped_object is not None
            ),
        )

    @phase
    def _rotate(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if not result.is_success:
            return SkillResult(result.code, result.message, position=self.target)
        return self.enter_phase("settle", DelayRequest(context.config.settle_time))

    @phase
    def _settle(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        self.is_aligned = True
        return self.enter_phase("detect", DetectDiscsRequest(self.polarity, self.mode, context.config.num_images))


def images_of_last_detection(skill: AlignSkill, config: SkillConfig) -> int:
    """Return the number of images of the last detection."""
    return config.num_images if skill.is_aligned else config.quick_images


def detections_in_area(detections: tuple[TargetDetection, ...], context: SkillContext) -> list[Point]:
    """Return the positions of detections in a work area, without those in bays."""
    config = context.config
    return [
        one.position
        for one in detections
        if all(disc_in_bay_window((one,), bay, config.bay_window) is None for bay in context.arm.bay_positions)
    ]


def is_within_reach(context: SkillContext, point: Point) -> bool:
    """Whether the horizontal distance of a point is within the arm's reach."""
    min_distance, max_distance = context.config.reach_range
    return min_distance <= context.arm.horizontal_distance(point) <= max_distance


@dataclass
class PickSkill(Skill):
    """Detect objects, select the nearest one that can be grasped, align, detect it again, grasp it.

    An object that cannot be grasped is skipped and the next one is selected; after a failure it detects again.

    Attributes:
        area: Work area; empty: where the robot is.
        target: The selected object.
        n_attempts: Number of failed grasps and detections so far.
        skipped_objects: Objects that are skipped in this run.
        last_failure: Why the last object was skipped.
        waited_time: Time waited for an object on a conveyor [s].
    """

    name = "pick"
    area: str = ""
    target: Point | None = None
    n_attempts: int = 0
    skipped_objects: list[Point] = field(default_factory=list)
    last_failure: SkillResult = SUCCESS
    waited_time: float = 0.0

    def subject(self) -> SkillResult:
        """What it deals with."""
        return SkillResult(position=self.target)

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("recover_start", RecoverStartSkill())

    @phase(on_failure="return")
    def _recover_start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if context.memory.grasped_object is not None:
            return SkillResult(SkillResultCode.GRIPPER_OCCUPIED, "the gripper holds an object already")
        return self._start_detection(context)

    def _start_detection(self, context: SkillContext) -> NextAction | SkillResult:
        self.target = None
        config, area = context.config, self.area or context.memory.work_area
        if (failure := conveyor_unknown(context, area)) is not None:
            return failure
        is_conveyor = area in config.conveyor_areas
        num_images = config.conveyor_images if is_conveyor else config.quick_images
        return self.enter_phase("detect", DetectSkill("white", "single", num_images, area, is_conveyor))

    @phase
    def _detect(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        is_conveyor = (self.area or context.memory.work_area) in context.config.conveyor_areas
        if is_conveyor and result.code in NO_DETECTIONS:
            return self._wait_for_object(context, result)
        if not result.is_success:
            return result
        stationary_objects = stationary_detections(result.detections, context)
        context.memory.objects = detections_in_area(stationary_objects, context)
        if is_conveyor and len(stationary_objects) < len(result.detections):
            return self._intercept(
                context, project_on_conveyor(result.detections, context.config, self.area or context.memory.work_area)
            )
        if context.config.require_place_within > 0.0:
            return self.enter_phase("detect_places", DetectDiscsRequest("black", "pair", context.config.quick_images))
        return self._select_target(context, context.memory.objects)

    @phase(on_failure="return", handled_codes=NO_DETECTIONS)
    def _detect_places(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        max_distance = context.config.require_place_within
        places = [one.position for one in result.detections]
        objects = [
            one
            for one in context.memory.objects
            if any(math.dist(one[:2], place[:2]) <= max_distance for place in places)
        ]
        return self._select_target(context, objects)

    def _select_target(self, context: SkillContext, objects: list[Point]) -> NextAction | SkillResult:
        config, memory = context.config, context.memory
        candidates = [one for one in objects if not self._is_ignored(context, one)]
        if not candidates:
            return (
                self.last_failure
                if not self.last_failure.is_success
                else SkillResult(SkillResultCode.VIEW_EMPTY, "there is no object to pick")
            )
        reachable = [one for one in candidates if is_within_reach(context, one)]
        if not reachable:
            return SkillResult(
                SkillResultCode.NOT_REACHABLE,
                f"{len(candidates)} objects are detected, all too far or too near",
                position=candidates[0],
            )
        others = {one: [other for other in memory.objects if other != one] for one in reachable}
        graspable = [one for one in reachable if feasible_yaws(one, context.arm.azimuth(one), others[one], config)]
        if not graspable:
            return SkillResult(
                SkillResultCode.TOO_CLOSE,
                f"the fingers have no clearance at any of {len(reachable)} objects",
                position=reachable[0],
            )
        self.target = min(graspable, key=lambda one: is_too_close(one, others[one], config))  # the nearest of these
        return self.enter_phase("align", AlignSkill("white", "single", self.target))

    # -- conveyors -----------------------------------------------------------------------------------------------------
    def _intercept(self, context: SkillContext, detections: tuple[TargetDetection, ...]) -> NextAction | SkillResult:
        """Track the object that can be intercepted first."""
        moving = [one for one in detections if is_moving(one, context.config)]
        intercepts = [(one, find_intercept(context, one, context.config.intercept_lead_time)) for one in moving]
        feasible = [(found.start_time_ns, one) for one, found in intercepts if isinstance(found, InterceptPoint)]
        if not feasible:
            failures = [found for _, found in intercepts if isinstance(found, SkillResult)]
            too_fast = next((one for one in failures if one.code is SkillResultCode.TOO_FAST), None)
            return too_fast or self._wait_for_object(
                context,
                failures[0]
                if failures
                else SkillResult(SkillResultCode.VIEW_EMPTY, "there is no object on the conveyor"),
            )
        _, one = min(feasible, key=lambda pair: pair[0])
        self.target = one.position
        others = tuple(other.position_at(one.time_ns) for other in moving if other is not one)
        return self.enter_phase("track_conveyor", ConveyorTrackingSkill(one, others))

    def _wait_for_object(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        """Wait until the conveyor brings an object."""
        if self.waited_time >= context.config.wait_timeout:
            return result
        self.waited_time += _OBJECT_POLL_PERIOD
        return self.enter_phase("wait", DelayRequest(_OBJECT_POLL_PERIOD))

    @phase
    def _wait(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self._start_detection(context)

    @phase
    def _track_conveyor(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if result.is_success:
            return SkillResult(position=result.position)
        if result.code not in (
            SkillResultCode.GRASP_FAILED,
            SkillResultCode.LOST,
            SkillResultCode.TOO_CLOSE,
            *TARGET_MOVED,
            *UNREACHABLE,
        ):
            return result
        self.n_attempts += 1
        if self.n_attempts > context.config.max_attempts:
            return SkillResult(result.code, result.message, position=self.target)
        context.report_recovery(result.code, result.message, self.target)
        return self.enter_phase("recover_start", RecoverStartSkill())

    # -- skipped objects -----------------------------------------------------------------------------------------------
    def _is_ignored(self, context: SkillContext, point: Point) -> bool:
        ignored_positions = [*self.skipped_objects, *context.memory.ignored_objects]
        return any(math.dist(point[:2], one[:2]) <= context.config.same_object_radius for one in ignored_positions)

    @phase
    def _align(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if result.is_empty:
            return self._retry(context, result, "it is no longer detected: fallen or removed")
        if result.code in UNREACHABLE:
            return self._skip_target(context, result)
        if not result.is_success or result.position is None:
            return result
        self.target, context.memory.objects = result.position, detections_in_area(result.detections, context)
        return self.enter_phase("grasp", GraspSkill(self.target))

    @phase
    def _grasp(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if result.is_success:
            return SkillResult(position=self.target)
        if result.code in (SkillResultCode.GRASP_FAILED, SkillResultCode.BLOCKED, SkillResultCode.LOST, *TARGET_MOVED):
            return self._retry(context, result, result.message)
        if result.code in (*UNREACHABLE, SkillResultCode.TOO_CLOSE, SkillResultCode.TOO_HEAVY):
            return self._skip_target(context, result)
        return result

    def _skip_target(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        """Skip the object and select another one."""
        if self.target is not None:
            self.skipped_objects.append(self.target)
        self.last_failure = result
        return self._retry(context, result, result.message) if len(self.skipped_objects) <= _MAX_SKIPPED else result

    def _retry(self, context: SkillContext, result: SkillResult, message: str) -> NextAction | SkillResult:
        self.n_attempts += result.code not in UNREACHABLE
        if self.n_attempts > context.config.max_attempts:
            return SkillResult(result.code, message, position=self.target)
        context.report_recovery(result.code, message, self.target)
        return self._start_detection(context)


_MAX_SKIPPED = 20
_OBJECT_POLL_PERIOD = 1.0
"""Time between detections of objects on a conveyor [s]."""

_PLACE_POLL_PERIOD: Final = 1.0
"""Time between detections of places on a conveyor [s]."""
GENTLE_SPEED_SCALING: Final = 0.3
"""Velocity scaling after a failure."""


@dataclass
class FindPlacesSkill(Skill):
    """Detect pairs of black discs without an object on them; the nearest comes first.

    Attributes:
        area: Work area; empty: where the robot is.
        object_detections: Detected objects, standing or moving.
        waited_time: Time waited for a place on a conveyor [s].
    """

    name = "find_places"
    area: str = ""
    object_detections: tuple[TargetDetection, ...] = ()
    waited_time: float = 0.0

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        area = self.area or context.memory.work_area
        if (failure := conveyor_unknown(context, area)) is not None:
            return failure
        detection = DetectSkill(
            "white", "single", context.config.quick_images, area, area in context.config.conveyor_areas
        )
        return self.enter_phase("detect_objects", detection)

    @phase(on_failure="return", handled_codes=NO_DETECTIONS)
    def _detect_objects(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        self.object_detections, config = result.detections, context.config
        context.memory.objects = detections_in_area(stationary_detections(result.detections, context), context)
        is_conveyor = (self.area or context.memory.work_area) in config.conveyor_areas
        num_images = config.conveyor_images if is_conveyor else config.quick_images
        return self.enter_phase("detect_places", DetectDiscsRequest("black", "pair", num_images, is_conveyor))

    @phase
    def _detect_places(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        memory = context.memory
        memory.free_places = []
        if (self.area or memory.work_area) in context.config.conveyor_areas and any(
            is_moving(one, context.config) for one in result.detections
        ):
            return self._intercept(
                context, project_on_conveyor(result.detections, context.config, self.area or memory.work_area)
            )
        if not result.is_success:
            return self._wait_for_place(context, result) if result.code in NO_DETECTIONS else result
        free_places = [one for one in result.detections if not is_occupied(context, one.position)]
        reachable = [one for one in free_places if is_within_reach(context, one.position)]
        memory.free_places = [one.position for one in reachable]
        if not free_places:
            return SkillResult(SkillResultCode.PLACE_OCCUPIED, f"objects occupy all {len(result.detections)} places")
        if not reachable:
            message = f"{len(free_places)} free places are detected, all too far or too near"
            return SkillResult(SkillResultCode.NOT_REACHABLE, message, position=free_places[0].position)
        return SkillResult(detections=tuple(reachable), position=reachable[0].position)

    # -- conveyors -----------------------------------------------------------------------------------------------------
    def _intercept(self, context: SkillContext, detections: tuple[TargetDetection, ...]) -> NextAction | SkillResult:
        """Return the places on a conveyor that the tool can intercept, the first one first."""
        radius = context.config.occupied_radius
        free_places = [
            one
            for one in detections
            if all(
                math.dist(other.position_at(one.time_ns)[:2], one.position[:2]) > radius
                for other in self.object_detections
            )
        ]
        if not free_places:
            return self._wait_for_place(
                context, SkillResult(SkillResultCode.PLACE_OCCUPIED, f"objects occupy all {len(detections)} places")
            )
        intercepts = [
            (one, find_intercept(context, one, context.config.intercept_lead_time))
            for one in free_places
            if is_moving(one, context.config)
        ]
        feasible = sorted(
            ((found.start_time_ns, one) for one, found in intercepts if isinstance(found, InterceptPoint)),
            key=lambda it: it[0],
        )
        if feasible:
            return SkillResult(detections=tuple(one for _, one in feasible), position=feasible[0][1].position)
        failures = [found for _, found in intercepts if isinstance(found, SkillResult)]
        too_fast = next((one for one in failures if one.code is SkillResultCode.TOO_FAST), None)
        return too_fast or self._wait_for_place(context, failures[0])

    def _wait_for_place(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if (
            self.area or context.memory.work_area
        ) not in context.config.conveyor_areas or self.waited_time >= context.config.wait_timeout:
            return result
        self.waited_time += _PLACE_POLL_PERIOD
        return self.enter_phase("wait", DelayRequest(_PLACE_POLL_PERIOD))

    @phase
    def _wait(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self._start(context, SUCCESS)


def is_occupied(context: SkillContext, place: Point) -> bool:
    """Whether an object stands on a place."""
    return any(math.dist(one[:2], place[:2]) <= context.config.occupied_radius for one in context.memory.objects)


@dataclass
class PlaceSkill(Skill):
    """Place the held object at a given position, or between two black discs.

    Attributes:
        area: Work area; empty: where the robot is.
        requested_position: Where the object is to be placed; None: on the nearest free place.
        target: The selected place.
        skipped_places: Places that are skipped in this run.
        n_attempts: Number of failed attempts on a conveyor.
        last_failure: Why the last place was skipped.
    """

    name = "place"
    area: str = ""
    requested_position: Point | None = None
    target: Point | None = None
    skipped_places: list[Point] = field(default_factory=list)
    n_attempts: int = 0
    last_failure: SkillResult = SUCCESS

    def subject(self) -> SkillResult:
        """What it deals with."""
        return SkillResult(position=self.target)

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("recover_start", RecoverStartSkill())

    @phase(on_failure="return")
    def _recover_start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if context.memory.grasped_object is None:
            return SkillResult(SkillResultCode.GRIPPER_EMPTY, "the gripper holds no object")
        if self.requested_position is not None:
            self.target = self.requested_position
            return self.enter_phase("release", ReleaseSkill(self.requested_position))
        return self._start_detection(context)

    def _start_detection(self, context: SkillContext) -> NextAction:
        self.target = None
        return self.enter_phase("find_places", FindPlacesSkill(self.area))

    @phase(on_failure="return")
    def _find_places(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        radius = context.config.same_object_radius
        free_positions = [one.position for one in result.detections]
        candidates = [
            one for one in free_positions if all(math.dist(one, other) > radius for other in self.skipped_places)
        ]
        if not candidates:
            return SkillResult(self.last_failure.code, self.last_failure.message, position=self.last_failure.position)
        self.target = candidates[0]
        detection = next(one for one in result.detections if one.position == self.target)
        if is_moving(detection, context.config):
            return self.enter_phase("track_conveyor", ConveyorTrackingSkill(detection, is_placing=True))
        return self.enter_phase("align", AlignSkill("black", "pair", self.target))

    @phase
    def _track_conveyor(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if result.is_success:
            return SkillResult(position=result.position)
        if context.memory.grasped_object is None or result.code not in (
            SkillResultCode.TOO_CLOSE,
            *TARGET_MOVED,
            *UNREACHABLE,
        ):
            return result
        return self._retry(context, result)

    def _retry(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        """Detect the places again, because the target moved."""
        self.n_attempts += 1
        if self.n_attempts > context.config.max_attempts:
            return SkillResult(result.code, result.message, position=self.target)
        context.report_recovery(result.code, result.message, self.target)
        return self.enter_phase("recover_start", RecoverStartSkill())

    @phase
    def _align(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if result.is_empty:
            return self._skip_target(
                context,
                SkillResult(SkillResultCode.PLACE_OCCUPIED, "the place is no longer detected", position=self.target),
            )
        if result.code in UNREACHABLE:
            return self._skip_target(context, result)
        if not result.is_success or result.position is None:
            return result
        self.target = result.position
        return self.enter_phase("check_occupancy", DetectDiscsRequest("white", "single", context.config.quick_images))

    @phase
    def _check_occupancy(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if self.target is None or (not result.is_success and result.code not in NO_DETECTIONS):
            return result
        context.memory.objects = detections_in_area(result.detections, context)
        if is_occupied(context, self.target):
            return self._skip_target(
                context, SkillResult(SkillResultCode.PLACE_OCCUPIED, "an object occupies it now", position=self.target)
            )
        return self.enter_phase("release", ReleaseSkill(self.target))

    @phase
    def _release(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        if result.is_success:
            radius = context.config.same_object_radius
            context.memory.free_places = [
                one for one in context.memory.free_places if math.dist(one, self.target or one) > radius
            ]
            return SkillResult(position=self.target)
        if self.requested_position is None and (
            result.code in (*UNREACHABLE, SkillResultCode.BLOCKED, SkillResultCode.TOO_CLOSE)
        ):
            return self._skip_target(context, result)
        return (
            self._retry(context, result) if self.requested_position is None and result.code in TARGET_MOVED else result
        )

    def _skip_target(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        """Skip the place and select another one."""
        if self.target is not None:
            self.skipped_places.append(self.target)
        self.last_failure = result
        if len(self.skipped_places) > context.config.max_attempts:
            return result
        context.report_recovery(result.code, result.message, self.target)
        return self._start_detection(context)


@dataclass
class PutBackSkill(Skill):
    """Put the held object back where it came from, or into a bay if that fails.

    Attributes:
        is_too_heavy: Whether the object is too heavy; then it is not picked again.
        origin: Position of the disc on top before it was grasped.
    """

    name = "put_back"
    is_too_heavy: bool = False
    origin: Point | None = None

    def subject(self) -> SkillResult:
        """What it deals with."""
        return SkillResult(position=self.origin)

    @phase
    def _start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return self.enter_phase("recover_start", RecoverStartSkill())

    @phase(on_failure="return")
    def _recover_start(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        grasped_object = context.memory.grasped_object
        if grasped_object is None:
            return SUCCESS
        if self.is_too_heavy:
            context.memory.ignored_objects.append(grasped_object.origin)
        self.origin = grasped_object.origin
        bay = grasped_object.bay
        if not bay and context.memory.work_area in context.config.conveyor_areas:
            return self.enter_phase("stow", StowSkill())
        return self.enter_phase(
            "release",
            ReleaseSkill(
                offset_vertically(grasped_object.origin, -context.config.object_height),
                bay,
                speed_scaling=GENTLE_SPEED_SCALING,
            ),
        )

    @phase
    def _release(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        memory = context.memory
        if result.is_success:
            if result.bay and result.bay <= len(memory.bay_states):
                memory.store_bay(result.bay, BayState.FULL, self.origin)
            return SkillResult(position=self.origin, bay=result.bay)
        if memory.grasped_object is None or result.code not in (
            *UNREACHABLE,
            SkillResultCode.BLOCKED,
            SkillResultCode.TOO_CLOSE,
        ):
            return result
        context.report_recovery(result.code, result.message, self.origin)
        return self.enter_phase("stow", StowSkill())

    @phase
    def _stow(self, context: SkillContext, result: SkillResult) -> NextAction | SkillResult:
        return result
