"""Requests of skills, one at a time, and their results with result codes: plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from roboyard.vision.discs.disc_detector import DiscMode, DiscPolarity


class SkillResultCode(StrEnum):
    """Why a skill or a request ended."""

    SUCCESS = ""
    VIEW_EMPTY = "view_empty"
    """No such target is in view."""
    DISAGREEMENT = "disagreement"
    """The detections of several images disagree."""
    CAMERA_SILENT = "camera_silent"
    """No usable images are received."""
    NO_DEPTH = "no_depth"
    """The depth images have no valid pixels, or none are received."""
    NOT_REACHABLE = "not_reachable"
    """No joint positions or no path reach the target."""
    IN_COLLISION = "in_collision"
    """The arm, or the held object, would be in collision."""
    NOT_FOLLOWED = "not_followed"
    """The joints did not follow their commands."""
    GRASP_FAILED = "grasp_failed"
    """The fingers closed without an object."""
    GRIPPER_STUCK = "gripper_stuck"
    """The fingers do not open."""
    BLOCKED = "blocked"
    """The fingers, or the held object, touched something during the descent."""
    LOST = "lost"
    """The held object is no longer between the fingers."""
    TOO_FAST = "too_fast"
    """The target moves faster than the arm can follow within its reach."""
    OUT_OF_REACH = "out_of_reach"
    """The target leaves the arm's reach before the tool can be there."""
    CONVEYOR_SPEED_CHANGED = "conveyor_speed_changed"
    """The conveyor changed its speed."""
    CONVEYOR_UNKNOWN = "conveyor_unknown"
    """No conveyor speed is received."""
    TOO_HEAVY = "too_heavy"
    """The arm cannot lift the object."""
    TOO_CLOSE = "too_close"
    """The fingers have no clearance beside other objects."""
    PLACE_OCCUPIED = "place_occupied"
    """All detected places are occupied."""
    GRIPPER_OCCUPIED = "gripper_occupied"
    """The gripper holds an object already."""
    GRIPPER_EMPTY = "gripper_empty"
    """The gripper holds no object."""
    BAY_FULL = "bay_full"
    """This bay is full, or all are."""
    BAYS_EMPTY = "bays_empty"
    """This bay is empty, or all are."""
    BAD_GOAL = "bad_goal"
    """The goal is invalid."""
    NO_SERVER = "no_server"
    """A required action has no server."""
    TIMED_OUT = "timed_out"
    """A result was not received in time."""
    CANCELLED = "cancelled"
    """The client canceled the goal, or the arm was stopped."""
    PREEMPTED = "preempted"
    """A newer goal replaced it."""


NO_CAMERA = (SkillResultCode.CAMERA_SILENT, SkillResultCode.NO_DEPTH)
"""The camera provides no usable images: another view does not help."""
NO_DETECTIONS = (SkillResultCode.VIEW_EMPTY, SkillResultCode.DISAGREEMENT)
"""No target was detected in this view."""
TARGET_MOVED = (SkillResultCode.OUT_OF_REACH, SkillResultCode.CONVEYOR_SPEED_CHANGED)
"""The target is not where it was expected: detect again."""
CONVEYOR_UNUSABLE = (SkillResultCode.TOO_FAST, SkillResultCode.CONVEYOR_UNKNOWN)
"""Nothing can be done at this conveyor in its present state."""
UNREACHABLE = (SkillResultCode.NOT_REACHABLE, SkillResultCode.IN_COLLISION)
"""The arm cannot reach the target."""
OVERLOADED = (SkillResultCode.TOO_HEAVY, SkillResultCode.NOT_FOLLOWED)
"""The held object may be too heavy for the arm."""
ABORTED = (SkillResultCode.CANCELLED, SkillResultCode.PREEMPTED)
"""A user or a newer goal ended it."""

Point = tuple[float, float, float]
"""A position in the frame of the robot's root link [m]."""


@dataclass(frozen=True, slots=True)
class TargetDetection:
    """A detected disc, or the center of a pair.

    Attributes:
        position: Its position.
        diameter: Diameter of the disc, or mean of both [m].
        pair_distance: Distance between the discs of a pair [m]; 0 for a single disc.
        velocity: Horizontal velocity; the motion is straight [m/s].
        time_ns: Time of the position.
    """

    position: Point
    diameter: float = 0.0
    pair_distance: float = 0.0
    velocity: tuple[float, float] = (0.0, 0.0)
    time_ns: int = 0

    @property
    def speed(self) -> float:
        """Horizontal speed [m/s]."""
        return math.hypot(*self.velocity)

    def position_at(self, time_ns: int) -> Point:
        """Return the position at another time."""
        (x, y, z), (u, v) = self.position, self.velocity
        elapsed = 1e-9 * (time_ns - self.time_ns)
        return x + u * elapsed, y + v * elapsed, z


@dataclass(frozen=True, slots=True)
class SkillResult:
    """Result of a skill or a request.

    Attributes:
        code: Why it failed; SUCCESS if it did not.
        message: Description of the code.
        detections: Detections, nearest to the robot's root first.
        position: Position of the object or place that it dealt with.
        bay: Bay that it dealt with, from 1 on; 0: none.
        recoveries: Number of failures that were recovered from.
    """

    code: SkillResultCode = SkillResultCode.SUCCESS
    message: str = ""
    detections: tuple[TargetDetection, ...] = ()
    position: Point | None = None
    bay: int = 0
    recoveries: int = 0

    @property
    def is_success(self) -> bool:
        """Whether it succeeded."""
        return self.code is SkillResultCode.SUCCESS

    @property
    def is_empty(self) -> bool:
        """Whether nothing was detected."""
        return self.code is SkillResultCode.VIEW_EMPTY


SUCCESS = SkillResult()


@dataclass(frozen=True, slots=True)
class SkillRequest:
    """What a skill asks its executor to do."""


@dataclass(frozen=True, slots=True)
class DetectDiscsRequest(SkillRequest):
    """Detect marked discs in several images; discs that move are reported with their velocity."""

    polarity: DiscPolarity = "white"
    mode: DiscMode = "single"
    num_images: int = 5
    may_move: bool = False


@dataclass(frozen=True, slots=True)
class JointTarget:
    """Target positions of the joints (n,) [rad]."""

    positions: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class NamedTarget:
    """A named pose of the arm."""

    name: str


@dataclass(frozen=True, slots=True)
class ToolTarget:
    """The tool at a position, pointing down, its x axis rotated by ``yaw`` about the vertical [rad]."""

    position: Point
    yaw: float


MotionTarget = JointTarget | NamedTarget | ToolTarget


@dataclass(frozen=True, slots=True)
class ArmMotionRequest(SkillRequest):
    """Move the arm to the first target that can be reached; a held object must stay in the gripper.

    Attributes:
        targets: Targets in order of preference.
        is_holding: Whether an object is held.
        is_straight: Whether the tool moves straight to the only target, a `ToolTarget`.
        is_guarded: Whether the arm stops at a contact force along the fingers.
        conveyor_area: Work area whose conveyor must stand still during the motion; empty: none.
        speed_scaling: Velocity scaling of the joints.
    """

    targets: tuple[MotionTarget, ...]
    is_holding: bool = False
    is_straight: bool = False
    is_guarded: bool = False
    conveyor_area: str = ""
    speed_scaling: float = 1.0


@dataclass(frozen=True, slots=True)
class GripperRequest(SkillRequest):
    """Move the fingers to a distance of ``opening`` [m], or until they press on an object."""

    opening: float
    force: float = 0.0


@dataclass(frozen=True, slots=True)
class TimedToolPose:
    """Pose of the tool at a time, pointing down.

    Attributes:
        time_ns: The time.
        target: The pose.
        velocity: Horizontal velocity [m/s].
    """

    time_ns: int
    target: ToolTarget
    velocity: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class ConveyorTrackingRequest(SkillRequest):
    """Move the tool through timed poses, starting at rest, and move the fingers at one of the times.

    Attributes:
        start_time_ns: Start of the motion.
        tool_poses: Poses in the order of their times.
        gripper_request: Motion of the fingers.
        grip_time_ns: Time of this motion.
        conveyor_area: Work area of the conveyor.
        is_holding: Whether an object is held until then.
    """

    start_time_ns: int
    tool_poses: tuple[TimedToolPose, ...]
    gripper_request: GripperRequest
    grip_time_ns: int
    conveyor_area: str
    is_holding: bool = False


@dataclass(frozen=True, slots=True)
class SceneUpdateRequest(SkillRequest):
    """Update the planning scene with the objects around the arm and the held object; done at once.

    Attributes:
        objects: Upper ends of the objects.
        grasped_extent: Extent of the held object above and below the tool's tip [m]; None: nothing is held.
    """

    objects: tuple[Point, ...] = ()
    grasped_extent: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class DelayRequest(SkillRequest):
    """Wait for a duration [s]."""

    duration: float


@dataclass(frozen=True, slots=True)
class DriveRequest(SkillRequest):
    """Drive the robot to a work area; without a mobile base this is done at once.

    Attributes:
        area: Its name; empty: relative to the present pose.
        offset: Offset ahead of it and to its left [m].
    """

    area: str = ""
    offset: tuple[float, float] = (0.0, 0.0)


_ACTION_FAILURES: Final = (
    SkillResultCode.NO_SERVER,
    SkillResultCode.TIMED_OUT,
    SkillResultCode.BAD_GOAL,
    SkillResultCode.NOT_FOLLOWED,
)
_MOTION_FAILURES: Final = (
    SkillResultCode.NOT_REACHABLE,
    SkillResultCode.IN_COLLISION,
    SkillResultCode.OUT_OF_REACH,
    SkillResultCode.BLOCKED,
    SkillResultCode.LOST,
    SkillResultCode.TOO_HEAVY,
    SkillResultCode.CONVEYOR_SPEED_CHANGED,
    *_ACTION_FAILURES,
)
REQUEST_FAILURES: Final[dict[type[SkillRequest], tuple[SkillResultCode, ...]]] = {
    DetectDiscsRequest: (
        SkillResultCode.VIEW_EMPTY,
        SkillResultCode.DISAGREEMENT,
        SkillResultCode.CAMERA_SILENT,
        SkillResultCode.NO_DEPTH,
        SkillResultCode.NO_SERVER,
        SkillResultCode.TIMED_OUT,
    ),
    ArmMotionRequest: _MOTION_FAILURES,
    ConveyorTrackingRequest: _MOTION_FAILURES,
    GripperRequest: (SkillResultCode.GRIPPER_STUCK, *_ACTION_FAILURES),
    DriveRequest: (SkillResultCode.NOT_REACHABLE, SkillResultCode.IN_COLLISION, *_ACTION_FAILURES),
    SceneUpdateRequest: (),
    DelayRequest: (),
}
"""Failures that an executor may return for each request, beside a cancellation."""


def failures_of(request_type: type[SkillRequest]) -> tuple[SkillResultCode, ...]:
    """Return the failures of a request; those of its base, or for a request of another package all of them."""
    for base in request_type.__mro__:
        if base in REQUEST_FAILURES:
            return REQUEST_FAILURES[base]
    return tuple(code for code in SkillResultCode if code is not SkillResultCode.SUCCESS and code not in ABORTED)
