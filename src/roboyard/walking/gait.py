"""Regular gaits: the order in which feet swing, and the speed that a gait allows.

A gait consists of a duty factor, the fraction of the cycle in which a foot is in stance, and for each leg the phase of
its lift-off.  A stance foot moves exactly against the body; a swing foot moves to where it will be in the middle of its
range half a stance later.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel
from roboyard.config.wording import did_you_mean as similar
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry.arrays import Array
from roboyard.walking.legged_robot import LeggedRobot
from roboyard.walking.statics import MIN_SUPPORT_FEET

RAMP_FRACTION: Final = 0.1
"""Share of a swing in which a foot gets under way, and comes to rest on the ground's motion."""


@kernel(examples=lambda: [(0.1, 0.1, np.zeros(3), 0.1)])
def move_point_with_ground(x: float, y: float, twist: Array, time: float) -> tuple[float, float]:
    """Return a ground point in the body frame after the body has moved with a twist (3,) for a time [s]."""
    vx, vy, angle = twist[0], twist[1], twist[2] * time
    c, s = math.cos(angle), math.sin(angle)
    sinc = math.sin(angle) / angle if abs(angle) > 1e-9 else 1.0
    cosc = 2.0 * math.sin(0.5 * angle) ** 2 / angle if abs(angle) > 1e-9 else 0.5 * angle
    px, py = x - time * (sinc * vx - cosc * vy), y - time * (cosc * vx + sinc * vy)
    return c * px + s * py, c * py - s * px


@kernel(examples=lambda: [(0.1, 0.1, np.zeros(3))])
def ground_velocity(x: float, y: float, twist: Array) -> tuple[float, float]:
    """Return the velocity of a ground point in the body frame [m/s]."""
    return twist[2] * y - twist[0], -twist[2] * x - twist[1]


@kernel(examples=lambda: [(0.5, RAMP_FRACTION)])
def ease(fraction: float, ramp: float) -> float:
    """Return progress 0 to 1 for a fraction 0 to 1: at rest at both ends, with constant acceleration for ``ramp`` of
    it."""
    s = min(max(fraction, 0.0), 1.0)
    top = 1.0 / (1.0 - ramp)
    if s < ramp:
        return 0.5 * top * s * s / ramp
    if s > 1.0 - ramp:
        return 1.0 - 0.5 * top * (1.0 - s) ** 2 / ramp
    return top * (s - 0.5 * ramp)


@kernel(examples=lambda: [(0.5,)])
def lift_profile(fraction: float) -> float:
    """Return the height of a swing foot as a fraction of its lift: 0, 1 in the middle of the swing, 0; smooth."""
    return float(ease(1.0 - abs(2.0 * min(max(fraction, 0.0), 1.0) - 1.0), RAMP_FRACTION))


_N_PHASE_SAMPLES: Final = 16
_STRIDE_REDUCTION: Final = 0.8


@dataclass(frozen=True)
class Gait:
    """A regular gait.

    Attributes:
        name: Name of the gait.
        duty_factor: Fraction of the cycle in which a foot is in stance.
        phases: (l) phase of each leg's lift-off, as a fraction of the cycle.
    """

    name: str
    duty_factor: float
    phases: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 0.0 < self.duty_factor < 1.0 or any(not 0.0 <= phase < 1.0 for phase in self.phases):
            raise InputError(
                f"duty factor {self.duty_factor:g}, phases {self.phases}", location=f"gait {self.name}", valid="0 to 1"
            )

    def swing_mask(self, phase: float) -> NDArray[np.bool_]:
        """Return (l) which feet swing at a phase of the cycle."""
        phase_since_lift_off = np.mod(phase - np.array(self.phases), 1.0)
        return phase_since_lift_off < 1.0 - self.duty_factor - 1e-9

    def min_stance_feet(self) -> int:
        """Return the minimum number of stance feet over the cycle."""
        return int(min((~self.swing_mask(phase + 1e-6)).sum() for phase in self.phases))


def _leg_sides_and_rows(legged_robot: LeggedRobot) -> list[tuple[int, int]]:
    """Return side (0 left, 1 right) and row (0 at the rear) of each leg. Raises InputError if the sides differ."""
    feet = legged_robot.stance_feet
    sides = (feet[:, 1] < 0.0).astype(int).tolist()
    if sides.count(0) != sides.count(1):
        raise InputError(
            f"{sides.count(0)} legs on the left, {sides.count(1)} on the right",
            location=legged_robot.name,
            valid="as many on either side",
        )
    order = np.argsort(feet[:, 0], kind="stable").tolist()
    legs_by_side = {side: [i for i in order if sides[i] == side] for side in (0, 1)}
    return [(side, legs_by_side[side].index(i)) for i, side in enumerate(sides)]


def _tripod_phase(side: int, row: int, half: int) -> float:
    return 0.5 * ((side + row + half + 1) % 2)


def _wave_phase(side: int, row: int, half: int) -> float:
    return (side * half + row) / (2 * half)


def _ripple_phase(side: int, row: int, half: int) -> float:
    shift = 0.5 if half % 2 else 0.5 + 0.5 / half
    return (row / half + side * shift) % 1.0


GAITS: Final[dict[str, tuple[Callable[[int, int, int], float], Callable[[int], float]]]] = {
    "wave": (_wave_phase, lambda legs: 1.0 - 1.0 / legs),
    "ripple": (_ripple_phase, lambda legs: 1.0 - 1.5 / legs),
    "tripod": (_tripod_phase, lambda legs: 0.5),
}
"""Phase of a leg by side and row, and minimum duty factor, by name."""


def make_gait(name: str, legged_robot: LeggedRobot, duty_factor: float = 0.0) -> Gait:
    """Return a gait for a robot with the same number of legs on both sides.

    Args:
        name: "wave": one leg at a time, from rear to front, one side after the other; "ripple": alternating sides, each
            swing overlapping the next by a third; "tripod": every other leg of both sides at once.
        legged_robot: The robot.
        duty_factor: Fraction of the cycle in stance; the gait's minimum unless larger.

    Raises:
        UnknownNameError: There is no such gait.
        InputError: Fewer than three feet would be in stance, the sides differ, or the duty factor is not below 1.
    """
    if name not in GAITS:
        raise UnknownNameError(f"no gait {name!r}{similar(name, GAITS)}", valid=", ".join(GAITS))
    phase, min_duty_factor = GAITS[name]
    legs = len(legged_robot.legs)
    sides_and_rows = _leg_sides_and_rows(legged_robot)
    gait = Gait(
        name,
        max(duty_factor, min_duty_factor(legs)),
        tuple(phase(side, row, legs // 2) for side, row in sides_and_rows),
    )
    if gait.min_stance_feet() < MIN_SUPPORT_FEET:
        suitable = [other for other in GAITS if other != name] if legs > MIN_SUPPORT_FEET + 1 else ["wave"]
        raise InputError(
            f"gait {name} leaves {gait.min_stance_feet()} of {legs} stance feet",
            location=legged_robot.name,
            valid=f"gaits with {MIN_SUPPORT_FEET} or more: {', '.join(suitable)}",
        )
    return gait


def move_feet_with_ground(feet: ArrayLike, twist: ArrayLike, time: float) -> Array:
    """Return stance feet (…, 3) in the body frame after the body has moved.

    Args:
        feet: Foot positions in the body frame [m].
        twist: (3,) forward [m/s], left [m/s], yaw rate [rad/s], constant in the body frame.
        time: Duration [s]; may be negative.
    """
    positions = np.asarray(feet, dtype=np.float64)
    vx, vy, w = (float(value) for value in np.asarray(twist, dtype=np.float64))
    angle = w * time
    c, s = math.cos(angle), math.sin(angle)
    sinc = math.sin(angle) / angle if abs(angle) > 1e-9 else 1.0
    cosc = 2.0 * math.sin(0.5 * angle) ** 2 / angle if abs(angle) > 1e-9 else 0.5 * angle
    dx, dy = time * (sinc * vx - cosc * vy), time * (cosc * vx + sinc * vy)
    out = positions.copy()
    x, y = positions[..., 0] - dx, positions[..., 1] - dy
    out[..., 0], out[..., 1] = c * x + s * y, c * y - s * x
    return out


def ground_velocities(feet: ArrayLike, twist: ArrayLike) -> Array:
    """Return (…, 2) velocities of stance feet (…, 3) in the body frame [m/s]; ``twist`` as in
    `move_feet_with_ground`."""
    positions = np.asarray(feet, dtype=np.float64)
    vx, vy, w = (float(value) for value in np.asarray(twist, dtype=np.float64))
    return np.stack([w * positions[..., 1] - vx, -w * positions[..., 0] - vy], axis=-1)


def ease_fractions(fraction: ArrayLike, ramp: float = RAMP_FRACTION) -> Array:
    """Return progress 0 to 1 for fractions of the time: at rest at both ends, with constant acceleration for ``ramp``
    of it."""
    s = np.clip(np.asarray(fraction, dtype=np.float64), 0.0, 1.0)
    top = 1.0 / (1.0 - ramp)
    low, high = 0.5 * top * s * s / ramp, 1.0 - 0.5 * top * (1.0 - s) ** 2 / ramp
    out: Array = np.where(s < ramp, low, np.where(s > 1.0 - ramp, high, top * (s - 0.5 * ramp)))
    return out


def swing_positions(start: ArrayLike, end: ArrayLike, ground_drift: ArrayLike, fraction: ArrayLike) -> Array:
    """Return (…, 2) positions of a swing foot seen from above; it leaves and meets the ground with the ground's
    velocity.

    Args:
        start: (…, 2) lift-off position.
        end: (…, 2) touch-down position.
        ground_drift: (…, 2) displacement of the ground in the body frame during the whole swing.
        fraction: (…) fraction of the swing.
    """
    a, b, d = (np.asarray(value, dtype=np.float64) for value in (start, end, ground_drift))
    s = np.asarray(fraction, dtype=np.float64)[..., None]
    out: Array = a + d * s + ease_fractions(s) * (b - a - d)
    return out


def lift_profiles(fraction: ArrayLike) -> Array:
    """Return heights of a swing foot as fractions of its lift: 0, 1 in the middle of the swing, 0; smooth."""
    s = np.asarray(fraction, dtype=np.float64)
    return ease_fractions(1.0 - np.abs(2.0 * np.clip(s, 0.0, 1.0) - 1.0))


@dataclass(frozen=True)
class GaitSpeed:
    """Limits of a gait in one direction.

    Attributes:
        stride: Maximum displacement of a stance foot [m].
        cycle: Shortest cycle [s].
        speed: Maximum speed of the fastest foot relative to the body [m/s].
    """

    stride: float
    cycle: float
    speed: float


def max_stance_foot_speed(legged_robot: LeggedRobot, twist: ArrayLike) -> float:
    """Return the speed of the fastest foot of the stance relative to the body [m/s]."""
    return float(np.hypot(*ground_velocities(legged_robot.stance_feet, twist).T).max())


def sample_cycle(
    legged_robot: LeggedRobot, gait: Gait, twist: ArrayLike, stride: float, lift: float
) -> tuple[Array, Array]:
    """Return foot positions of one cycle of 1 s in stance and in swing, (n, l, 3) each, at regular times.

    Args:
        legged_robot: The robot.
        gait: Provides the duty factor.
        twist: Direction of motion.
        stride: Displacement of the fastest stance foot [m].
        lift: Height of the swing [m].
    """
    scaled_twist = np.asarray(twist, dtype=np.float64) * (
        stride / gait.duty_factor / max(max_stance_foot_speed(legged_robot, twist), 1e-12)
    )
    stance_feet = legged_robot.stance_feet
    stance_samples = np.stack(
        [
            move_feet_with_ground(stance_feet, scaled_twist, time)
            for time in np.linspace(-0.5, 0.5, _N_PHASE_SAMPLES + 1) * gait.duty_factor
        ]
    )
    fractions = np.linspace(0.0, 1.0, _N_PHASE_SAMPLES + 1)
    ground_drift = (
        0.5
        * (ground_velocities(stance_samples[0], scaled_twist) + ground_velocities(stance_samples[-1], scaled_twist))
        * (1.0 - gait.duty_factor)
    )
    swing_samples = np.repeat(stance_feet[None], len(fractions), axis=0)
    swing_samples[:, :, :2] = swing_positions(
        stance_samples[-1, :, :2], stance_samples[0, :, :2], ground_drift, fractions[:, None]
    )
    swing_samples[:, :, 2] += lift * lift_profiles(fractions)[:, None]
    return stance_samples, swing_samples


def compute_gait_speed(
    legged_robot: LeggedRobot, gait: Gait, twist: ArrayLike, stride: float, lift: float, speed_fraction: float = 0.95
) -> GaitSpeed:
    """Compute the speed that a robot can reach in a direction with its strides in reach and its joints within their
    speeds.

    Args:
        legged_robot: The robot.
        gait: The gait.
        twist: Direction of motion, not zero.
        stride: Desired displacement of stance feet [m].
        lift: Height of the swing [m].
        speed_fraction: Fraction of the joint speeds to use.

    Raises:
        InputError: Feet cannot be lifted that high in the stance.
    """
    while stride > 1e-3:
        stance_samples, swing_samples = sample_cycle(legged_robot, gait, twist, stride, lift)
        if legged_robot.is_reachable(np.concatenate([stance_samples, swing_samples])).all():
            rates = [
                np.abs(np.diff(legged_robot.solve_ik(feet), axis=0)).max(axis=0) * (_N_PHASE_SAMPLES / time)
                for feet, time in ((stance_samples, gait.duty_factor), (swing_samples, 1.0 - gait.duty_factor))
            ]
            cycle = float((np.maximum(*rates) / (speed_fraction * legged_robot.max_joint_speeds)).max())
            return GaitSpeed(stride, cycle, stride / (gait.duty_factor * cycle))
        stride *= _STRIDE_REDUCTION
    raise InputError(f"a lift of {lift:g} m", location=legged_robot.name, valid="what all legs reach in the stance")
