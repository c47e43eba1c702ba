"""The thesis's constants, inverse kinematics and P controllers, in its own units: degrees of its scale and millimeters.

Westfälische Hochschule, bachelor thesis on picking and placing with a KUKA youBot, 2017: section 7 and its listings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from roboyard.config import parameter
from roboyard.errors import ConfigError, InputError
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain import Chain
from roboyard.manipulation.errors import GoalUnreachableError
from roboyard.vision.discs.disc_detector import DiscConfig, DiscMode, DiscPolarity
from roboyard.vision.discs.reference_detectors import ThesisCamera

ThesisPose = tuple[float, float, float, float]
"""Joints 2 to 5 [degrees]."""


@dataclass(frozen=True)
class ThesisConfig:
    """Defaults are those of the thesis, for its arm, its camera mount and its bays.

    Another mount requires new values of `focal_length` to `bay_pose`; the rest is the method.
    """

    # the camera, see ThesisCamera
    focal_length: float = parameter(
        530.0, unit="px", low=1.0, high=1e5, doc="Focal length that turns pixels into millimeters."
    )
    camera_origin: tuple[float, float, float] = parameter(
        (-12.0, 95.0, 564.0), doc="Position x, y of the camera and its height [mm]."
    )
    depth_map: tuple[float, float, float, float] = parameter(
        (0.1, -13.0, 0.1, -6.0), doc="Coefficients a, b, c, d of a depth pixel u + a u + b, v + c v + d."
    )
    # poses
    view_azimuths: tuple[float, ...] = parameter(
        (-45.0, -45.0), doc="Position of joint 1 in the view of each work area [degrees]."
    )
    view_pose: ThesisPose = parameter(
        (3.0, 0.0, 0.0, 5.0), doc="Positions of joints 2 to 5 in a view, and with an object in the gripper [degrees]."
    )
    bay_view_azimuth: float = parameter(136.5, doc="Position of joint 1 in the view of the bays [degrees].")
    bay_disc_x: tuple[float, ...] = parameter(
        (-68.0, -10.0, 47.0), doc="Lateral positions of the bays' discs in this view [mm]."
    )
    bay_disc_y: tuple[float, ...] = parameter(
        (217.5, 223.0, 217.5), doc="Forward positions of the bays' discs in this view [mm]."
    )
    bay_azimuths: tuple[float, ...] = parameter(
        (-59.25, -44.25, -29.25), doc="Position of joint 1 over each bay, with the arm bent back [degrees]."
    )
    bay_pose: ThesisPose = parameter(
        (-45.5, -45.0, -90.25, 5.0), doc="Positions of joints 2 to 5 with the grip in a bay [degrees]."
    )
    pre_stow_offset: ThesisPose = parameter(
        (5.0, 5.0, -2.0, 0.0), doc="Offsets of joints 2 to 5 from a bay before an object is stowed [degrees]."
    )
    stow_offset: ThesisPose = parameter(
        (-1.0, 5.0, -4.5, 0.0), doc="Offsets of joints 2 to 5 from a bay at the release [degrees]."
    )
    retreat_after_stow: bool = parameter(
        False, doc="Retreat by retrieve_offset after stowing, as in the text; false: straight up, as in the program."
    )
    retrieve_offset: ThesisPose = parameter(
        (5.0, 0.0, -2.0, 0.0),
        doc="Offsets of joints 2 to 5 from a bay before and after an object is taken out [degrees].",
    )
    as_programmed: bool = parameter(
        True, doc="Inverse kinematics with the program's tolerances of 1 mm, 5 and 1 degrees."
    )
    # the method
    bay_window: float = parameter(20.0, low=0.0, high=1e3, doc="Distance within which discs belong to a bay [mm].")
    max_bay_inspections: int = parameter(6, low=1, high=100, doc="Maximum number of inspections of the bays.")
    pick_heights: tuple[float, float] = parameter(
        (25.0, -25.0), doc="Heights above a symbol before the grasp and in it [mm]."
    )
    place_heights: tuple[float, float] = parameter(
        (45.0, 20.0), doc="Heights above a place before and at the release [mm]."
    )
    gripper_openings: tuple[float, float] = parameter(
        (20.0, 10.0), doc="Openings of the open and closed gripper, both fingers together [mm]."
    )
    num_images: int = parameter(5, low=1, high=100, doc="Number of images, of which those near the median count.")
    median_window: float = parameter(1.0, low=0.0, high=1e3, doc="Maximum distance of a position from the median [mm].")
    max_empty_images: int = parameter(
        10, low=1, high=1000, doc="Number of images without a symbol after which the view counts as empty."
    )
    require_place_within: float = parameter(
        0.0,
        low=0.0,
        high=1e3,
        doc="Maximum distance of picked objects from a place, 5 in the thesis; 0: all objects [mm].",
    )
    sensitivity: float = parameter(0.7, low=0.0, high=1.0, doc="Sensitivity of the detection of circles.")
    size_tolerance: float = parameter(
        3.0, low=0.0, high=1e3, doc="Tolerance of diameters and of distances in pairs [mm]."
    )

    def __post_init__(self) -> None:
        n_bays = len(self.bay_azimuths)
        if not len(self.bay_disc_x) == len(self.bay_disc_y) == n_bays:
            raise ConfigError(
                f"{len(self.bay_disc_x)}, {len(self.bay_disc_y)} disc positions of {n_bays} bays",
                location="thesis",
                valid="one for each",
            )

    @property
    def camera(self) -> ThesisCamera:
        """The camera model from pixels to the arm's frame."""
        return ThesisCamera(self.focal_length, self.camera_origin, self.depth_map)

    def disc_config(self, polarity: DiscPolarity, mode: DiscMode) -> DiscConfig:
        """Return the detection of discs of 20 mm and of pairs with a distance of 52 mm."""
        tolerance = 1e-3 * self.size_tolerance
        return DiscConfig(
            polarity=polarity,
            mode=mode,
            diameter_tolerance=tolerance,
            pair_distance_tolerance=tolerance,
            sensitivity=self.sensitivity,
        )

    def view_angles(self, azimuth: float) -> tuple[float, ...]:
        """Return all joint angles of the view pose at an azimuth [degrees]."""
        return (azimuth, *self.view_pose)

    def bay_angles(self, bay: int, offset: ThesisPose = (0.0, 0.0, 0.0, 0.0)) -> tuple[float, ...]:
        """Return all joint angles over a bay, from 1 on [degrees]."""
        return (self.bay_azimuths[bay - 1], *(a + b for a, b in zip(self.bay_pose, offset, strict=True)))


LOWER_LIMITS: Final = (-169.0, -65.0, -151.0, -102.0, -167.0)
UPPER_LIMITS: Final = (169.0, 90.0, 146.0, 102.0, 167.0)
REST_POSE: Final = (-169.0, -65.0, 146.0, -102.0, -167.0)
SEARCH_POSE: Final = (-45.0, 3.0, 0.0, 0.0, 5.0)
_UPPER_ARM_LENGTH, _FOREARM_LENGTH = 155.0, 135.0
"""Lengths between joints 2, 3 and 4 [mm]."""
_SHOULDER_OFFSET, _GRIP_LENGTH, _SHOULDER_HEIGHT, _FLOOR_MARGIN = 33.0, 217.5, 147.0, 10.0
"""From joint 1's axis to joint 2, from joint 4 to what is gripped, of joint 2 over the ground, kept above it [mm]."""
_PROGRAM_DISTANCE_OFFSET: Final = 1.0
"""What the thesis's program adds to the way out, beside its text [mm]."""
PROGRAM_ANGLE_OFFSETS: Final = (0.0, 5.0, 1.0)
"""What its program adds to joints 2, 3 and 4 [degrees]."""


@dataclass(frozen=True, eq=False)
class ThesisJointScale:
    """Converts the thesis's degrees, 0 for an upright arm, to joint positions of a youBot and back, linear between the
    limits.

    Attributes:
        lower: (5,) of the joints [rad].
        upper: (5,) of the joints [rad].
    """

    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        if np.shape(self.lower) != (5,) or np.shape(self.upper) != (5,) or not (self.lower < self.upper).all():
            raise InputError(
                "limits of other joints", location="the thesis's scale", valid="five each, lower then upper"
            )

    @classmethod
    def from_chain(cls, chain: Chain) -> ThesisJointScale:
        """Return the scale of a youBot's arm. Raises InputError for another arm."""
        return cls(chain.lower, chain.upper)

    def to_joints(self, degrees: ArrayLike, present: ArrayLike | None = None) -> Array:
        """Return joint positions (5,) [rad] within the limits; NaN takes the position of ``present``. Raises
        InputError.
        """
        angles = self._check_five(degrees)
        limited = np.clip(angles, LOWER_LIMITS, UPPER_LIMITS)
        fraction = (limited - LOWER_LIMITS) / (np.array(UPPER_LIMITS) - LOWER_LIMITS)
        joints = self.lower + fraction * (self.upper - self.lower)
        is_unchanged = np.isnan(angles)
        if is_unchanged.any() and present is None:
            raise InputError(
                "an angle that is NaN", location="the thesis's scale", valid="a number, or the present joints"
            )
        return np.where(is_unchanged, self._check_five(present), joints) if present is not None else joints

    def to_degrees(self, joints: ArrayLike) -> Array:
        """Return the degrees (5,) of joint positions [rad]. Raises InputError."""
        fraction = (self._check_five(joints) - self.lower) / (self.upper - self.lower)
        return np.asarray(LOWER_LIMITS + fraction * (np.array(UPPER_LIMITS) - LOWER_LIMITS))

    def _check_five(self, values: ArrayLike | None) -> Array:
        angles = np.asarray(values, dtype=np.float64)
        if angles.shape != (5,):
            raise InputError(f"angles of shape {angles.shape}", location="the thesis's scale", valid="(5,)")
        return angles


def solve_point_down_ik(distance: float, height: float, *, as_programmed: bool = True) -> tuple[float, float, float]:
    """Return joints 2, 3 and 4 [the thesis's degrees] with the gripper pointing down; sections 7.29 to 7.36.

    Args:
        distance: Distance from joint 1's axis, in the arm's plane [mm].
        height: Height of the grip above the floor, less a margin of 10 mm [mm].
        as_programmed: Whether the offsets of the program are added: 1 mm, 5 and 1 degrees.

    Raises:
        GoalUnreachableError: the arm is not so long, or not so short, or it would be behind joint 2's height.
        InputError: a number is not finite.
    """
    if not (math.isfinite(distance) and math.isfinite(height)):
        raise InputError(
            f"a place {distance} mm out and {height} mm high", location="the thesis's arm", valid="finite numbers"
        )
    forward = distance - _SHOULDER_OFFSET + (_PROGRAM_DISTANCE_OFFSET if as_programmed else 0.0)
    height_difference = height + _GRIP_LENGTH - _SHOULDER_HEIGHT + _FLOOR_MARGIN
    span = math.hypot(forward, height_difference)
    if (
        height_difference <= 0.0
        or not _UPPER_ARM_LENGTH - _FOREARM_LENGTH <= span <= _UPPER_ARM_LENGTH + _FOREARM_LENGTH
    ):
        raise GoalUnreachableError(
            f"joint 4 would be {span:.0f} mm from joint 2, {height_difference:.0f} mm higher",
            location="the thesis's arm",
            valid=f"{_UPPER_ARM_LENGTH - _FOREARM_LENGTH:.0f} to {_UPPER_ARM_LENGTH + _FOREARM_LENGTH:.0f} "
            "mm, and higher",
        )
    joint2_angle = math.atan(forward / height_difference) - math.acos(
        (_UPPER_ARM_LENGTH**2 + span**2 - _FOREARM_LENGTH**2) / (2.0 * _UPPER_ARM_LENGTH * span)
    )
    joint3_angle = math.pi - math.acos(
        (_FOREARM_LENGTH**2 + _UPPER_ARM_LENGTH**2 - span**2) / (2.0 * _FOREARM_LENGTH * _UPPER_ARM_LENGTH)
    )
    angles = math.degrees(joint2_angle), math.degrees(joint3_angle)
    joint_angles = (*angles, 180.0 - sum(angles))
    offsets = PROGRAM_ANGLE_OFFSETS if as_programmed else (0.0, 0.0, 0.0)
    return joint_angles[0] + offsets[0], joint_angles[1] + offsets[1], joint_angles[2] + offsets[2]


def _clip_magnitude(speed: Array, min_speed: float, max_speed: float) -> Array:
    return np.asarray(np.copysign(np.clip(np.abs(speed), min_speed, max_speed), speed))


@dataclass(frozen=True)
class JointPController:
    """P control of five joints; listing K.

    Attributes:
        gains: (5,) velocity for each unit of error [1/s].
        min_speed: Minimum speed of a joint outside its tolerance [rad/s].
        max_speed: Maximum speed of a joint [rad/s].
        tolerance: Position tolerance of a joint [rad].
        end_speed: Sum of the joint speeds below which the arm is at rest [rad/s].
    """

    gains: tuple[float, ...] = (0.9, 0.9, 0.7, 0.9, 0.5)
    min_speed: float = 0.1
    max_speed: float = 0.8
    tolerance: float = 0.01
    end_speed: float = 0.01

    def compute_velocities(self, goal: ArrayLike, joints: ArrayLike) -> Array:
        """Return velocities (5,) [rad/s] towards a goal (5,) from joint positions (5,). Raises InputError."""
        error = self._error(goal, joints)
        velocities = _clip_magnitude(np.array(self.gains) * error, self.min_speed, self.max_speed)
        return np.where(np.abs(error) > self.tolerance, velocities, 0.0)

    def is_at_goal(self, goal: ArrayLike, joints: ArrayLike, velocity: ArrayLike) -> bool:
        """Whether the joints are at the goal and at rest; a position command does the remainder. Raises InputError."""
        error_sum = float(np.abs(self._error(goal, joints)).sum())
        speed = float(np.abs(np.asarray(velocity, dtype=np.float64)).sum())
        return error_sum < len(self.gains) * self.tolerance and speed < self.end_speed

    def _error(self, goal: ArrayLike, joints: ArrayLike) -> Array:
        a, b = np.asarray(goal, dtype=np.float64), np.asarray(joints, dtype=np.float64)
        if not a.shape == b.shape == (len(self.gains),) or not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise InputError(f"joints of shapes {a.shape} and {b.shape}", valid=f"({len(self.gains)},), finite")
        return a - b


@dataclass(frozen=True)
class AlignPController:
    """P control of joint 1 towards a symbol; listing I.

    Attributes:
        gain: Velocity for each degree of error [rad/s].
        min_speed: Minimum speed [rad/s].
        max_speed: Maximum speed [rad/s].
        tolerance: Tolerance of the alignment [degrees].
    """

    gain: float = 0.03
    min_speed: float = 0.01
    max_speed: float = 1.0
    tolerance: float = 0.05

    def compute_velocity(self, right_offset: float, forward_offset: float) -> float:
        """Return the velocity of joint 1 [rad/s] with the sign of the youBot's driver; 0: the symbol is straight ahead.

        Args:
            right_offset: Offset of the symbol to the right of the arm's plane.
            forward_offset: Offset along the plane, in the same unit.

        Raises:
            InputError: it is not ahead, or a number is not finite.
        """
        if not (math.isfinite(right_offset) and math.isfinite(forward_offset) and forward_offset > 0.0):
            raise InputError(f"a symbol {right_offset:g} aside and {forward_offset:g} ahead", valid="finite, and ahead")
        angle = math.degrees(math.atan(right_offset / forward_offset))
        if abs(angle) <= self.tolerance:
            return 0.0
        return float(_clip_magnitude(np.array(self.gain * angle), self.min_speed, self.max_speed))
