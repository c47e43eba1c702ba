"""Regular gaits: the order in which feet swing, and the speed that a gait allows.

A gait consists of a duty factor, the fraction of the cycle in which a foot is in stance, and for each leg the phase of
its lift-off.  A stance foot moves exactly against the body; a swing foot moves to where it will be in the middle of its
range half a stance later.  `GAITS` holds the gaits by name; a package adds its own as entry points of the group
``roboyard.gaits``, and `check_gait` of ``roboyard.walking.conformance`` tests them.

Terms and measures are those of Song and Waldron, Machines That Walk (MIT Press, 1989): duty factor, phase, stride,
support polygon; a gait is regular if all legs have the same duty factor, and symmetric if the legs of each pair are
half a cycle apart.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel
from roboyard.config.registry import Registry
from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.walking.legged_robot import LeggedRobot
from roboyard.walking.statics import MIN_SUPPORT_FEET

RAMP_FRACTION: Final = 0.1
"""Fraction of a swing in which a foot accelerates, and again in which it slows down to the motion of the ground."""


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


@kernel(forceinline=True, examples=lambda: [(0.1, 0.2, 0.0, 0.5, 0.5)])
def swing_coordinate(start: float, end: float, ground_drift: float, fraction: float, progress: float) -> float:
    """Return one coordinate of a swing foot [m].

    Args:
        start: Coordinate at lift-off [m].
        end: Coordinate at touch-down [m].
        ground_drift: Displacement of the ground in the body frame during the whole swing [m].
        fraction: Fraction of the swing.
        progress: `ease` of the fraction.
    """
    return start + ground_drift * fraction + progress * (end - start - ground_drift)


@kernel(examples=lambda: [(np.zeros((6, 3)), np.zeros(3), 0.1)])
def move_points_with_ground(points: Array, twist: Array, time: float) -> Array:
    """Return `move_point_with_ground` of points (k, 3), whose heights stay as they are."""
    out = points.copy()
    for i in range(len(points)):
        out[i, 0], out[i, 1] = move_point_with_ground(points[i, 0], points[i, 1], twist, time)
    return out


@kernel(examples=lambda: [(np.zeros((6, 3)), np.zeros(3))])
def ground_velocities_at(points: Array, twist: Array) -> Array:
    """Return `ground_velocity` (k, 2) of points (k, 3)."""
    out = np.empty((len(points), 2))
    for i in range(len(points)):
        out[i, 0], out[i, 1] = ground_velocity(points[i, 0], points[i, 1], twist)
    return out


@kernel(examples=lambda: [(np.zeros((6, 2)), np.zeros((6, 2)), np.zeros((6, 2)), np.zeros(3))])
def swing_paths(start: Array, end: Array, ground_drift: Array, fractions: Array) -> Array:
    """Return `swing_coordinate` (n, k, 2) of feet (k, 2) at fractions (n) of their swing."""
    out = np.empty((len(fractions), len(start), 2))
    for n in range(len(fractions)):
        progress = ease(fractions[n], RAMP_FRACTION)
        for i in range(len(start)):
            for k in range(2):
                out[n, i, k] = swing_coordinate(start[i, k], end[i, k], ground_drift[i, k], fractions[n], progress)
    return out


@kernel(examples=lambda: [(np.zeros(3),)])
def lift_profiles(fractions: Array) -> Array:
    """Return `lift_profile` of fractions (n)."""
    out = np.empty_like(fractions)
    for n in range(len(fractions)):
        out[n] = lift_profile(fractions[n])
    return out


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


@dataclass(frozen=True)
class LegLayout:
    """Arrangement of legs in pairs, one leg of each on either side.

    Attributes:
        sides: (l) side of each leg: 0 left, 1 right.
        rows: (l) pair of each leg, from 0 at the rear.
    """

    sides: tuple[int, ...]
    rows: tuple[int, ...]

    @classmethod
    def with_rows(cls, n_rows: int) -> LegLayout:
        """Return the layout of so many pairs of legs: left and right alternate, from the front to the rear."""
        return cls((0, 1) * n_rows, tuple(n_rows - 1 - k // 2 for k in range(2 * n_rows)))

    @classmethod
    def from_robot(cls, legged_robot: LeggedRobot) -> LegLayout:
        """Return the layout of a robot by the feet of its stance. Raises InputError if the sides differ in number."""
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
        return cls(tuple(sides), tuple(legs_by_side[side].index(i) for i, side in enumerate(sides)))

    @property
    def n_legs(self) -> int:
        """Number of legs."""
        return len(self.sides)

    @property
    def n_rows(self) -> int:
        """Number of pairs of legs."""
        return len(self.sides) // 2

    @property
    def leg_names(self) -> tuple[str, ...]:
        """(l) L or R with the number of the pair from the front, such as L1, as the literature numbers legs."""
        return tuple(f"{'LR'[side]}{self.n_rows - row}" for side, row in zip(self.sides, self.rows, strict=True))


class GaitPattern(ABC):
    """Order of lift-offs of a regular gait, for any number of pairs of legs: the contract of gaits.

    A class of your own derives from it and is registered under a name with an entry point of the group
    ``roboyard.gaits``; the parameter `gait` of the gait node then accepts the name.  `check_gait` tests the contract:

    - `phases` and `min_duty_factor` depend on their arguments only.
    - Phases are at least 0 and less than 1, one for each leg; duty factors are more than 0 and less than 1.
    - From the smallest duty factor on, the support polygon contains the body's center while the body moves forward.
    - If `is_symmetric`, the legs of each pair lift off half a cycle apart.
    - Walking with the gait, feet move without jumps, and no joint exceeds its speed.

    The docstring's first paragraph says in which order the feet swing.

    Attributes:
        is_symmetric: Whether the legs of each pair lift off half a cycle apart, whatever the number of legs.
        source: Where the gait is described.
    """

    is_symmetric: ClassVar[bool] = False
    source: ClassVar[str] = ""

    @abstractmethod
    def min_duty_factor(self, layout: LegLayout) -> float:
        """Return the smallest fraction of the cycle in which a foot may be in stance."""

    @abstractmethod
    def phases(self, layout: LegLayout, duty_factor: float) -> tuple[float, ...]:
        """Return (l) the phase of each leg's lift-off as a fraction of the cycle, from 0 to less than 1.

        Args:
            layout: Arrangement of the legs.
            duty_factor: Fraction of the cycle in which each foot is in stance.
        """


class WaveGait(GaitPattern):
    """One leg at a time: a wave runs from the rear to the front of one side, then of the other.

    With four legs it is the creeping gait of McGhee and Frank, whose stability margin is the largest of all orders.
    """

    is_symmetric = True
    source = "Wilson, Insect Walking, 1966; McGhee and Frank, 1968"

    def min_duty_factor(self, layout: LegLayout) -> float:
        """Return the fraction with which exactly one foot is in the air."""
        return 1.0 - 1.0 / layout.n_legs

    def phases(self, layout: LegLayout, duty_factor: float) -> tuple[float, ...]:
        """Return phases that are evenly distributed over the cycle."""
        n_rows = layout.n_rows
        return tuple((side * n_rows + row) / (2 * n_rows) for side, row in zip(layout.sides, layout.rows, strict=True))


class RippleGait(GaitPattern):
    """Legs of both sides alternate from the rear to the front; each swing overlaps the next one by a third."""

    source = "Ferrell, A Comparison of Three Insect-Inspired Locomotion Controllers, 1995"

    def min_duty_factor(self, layout: LegLayout) -> float:
        """Return the fraction with which one and a half feet are in the air on average."""
        return 1.0 - 1.5 / layout.n_legs

    def phases(self, layout: LegLayout, duty_factor: float) -> tuple[float, ...]:
        """Return phases with the sides half a cycle apart, and with an even number of pairs a little more."""
        n_rows = layout.n_rows
        shift = 0.5 if n_rows % 2 else 0.5 + 0.5 / n_rows
        return tuple((row / n_rows + side * shift) % 1.0 for side, row in zip(layout.sides, layout.rows, strict=True))


class TripodGait(GaitPattern):
    """Two sets of legs alternate; each consists of every other leg of both sides.

    With six legs each set is a tripod: front and rear leg of one side with the middle leg of the other.
    """

    is_symmetric = True
    source = "Wilson, Insect Walking, 1966"

    def min_duty_factor(self, layout: LegLayout) -> float:
        """Return a half: one set is on the ground while the other swings."""
        return 0.5

    def phases(self, layout: LegLayout, duty_factor: float) -> tuple[float, ...]:
        """Return 0 for one set, and a half for the other."""
        return tuple(
            0.5 * ((side + row + layout.n_rows + 1) % 2) for side, row in zip(layout.sides, layout.rows, strict=True)
        )


class MetachronalGait(GaitPattern):
    """Each leg lifts off when the leg behind it touches down; the sides are half a cycle apart.

    With six legs it is the tripod gait at the smallest duty factor and the wave gait at five sixths: the order changes
    steadily with the duty factor.  Of all regular symmetric gaits it has the largest stability margin.
    """

    is_symmetric = True
    source = "Song and Waldron, Machines That Walk, 1989 (wave gaits)"

    def min_duty_factor(self, layout: LegLayout) -> float:
        """Return a half, and three quarters with four legs, which always need three on the ground."""
        return 0.75 if layout.n_rows == 2 else 0.5

    def phases(self, layout: LegLayout, duty_factor: float) -> tuple[float, ...]:
        """Return phases that grow by the duration of a swing from pair to pair."""
        swing = 1.0 - duty_factor
        return tuple((row * swing + 0.5 * side) % 1.0 for side, row in zip(layout.sides, layout.rows, strict=True))


GAITS: Final[Registry[type[GaitPattern]]] = Registry("gait", group="roboyard.gaits", base=lambda: GaitPattern)
"""Classes of gaits by name; an entry point of ``roboyard.gaits`` names one."""


def make_gait(name: str, legged_robot: LeggedRobot, duty_factor: float = 0.0) -> Gait:
    """Return a gait for a robot with the same number of legs on both sides.

    Args:
        name: Name in `GAITS`: "tripod", "ripple", "wave", "metachronal", or that of a gait of another package.
        legged_robot: The robot.
        duty_factor: Fraction of the cycle in stance; the gait's minimum unless larger.

    Raises:
        UnknownNameError: There is no such gait.
        InputError: Fewer than three feet would be in stance, the sides differ, or the duty factor is not below 1.
    """
    return plan_gait(name, GAITS[name](), LegLayout.from_robot(legged_robot), duty_factor, location=legged_robot.name)


def plan_gait(
    name: str, pattern: GaitPattern, layout: LegLayout, duty_factor: float = 0.0, *, location: str = ""
) -> Gait:
    """Return the gait of a pattern with given legs; `make_gait` does the same for the name of a gait and a robot.

    Args:
        name: Name of the gait.
        pattern: Order of the lift-offs.
        layout: Arrangement of the legs.
        duty_factor: Fraction of the cycle in stance; the pattern's minimum unless larger.
        location: Name of the robot, for errors.

    Raises:
        InputError: Fewer than three feet would be in stance, or the duty factor is not below 1.
    """
    used_duty_factor = max(duty_factor, pattern.min_duty_factor(layout))
    gait = Gait(name, used_duty_factor, pattern.phases(layout, used_duty_factor))
    if gait.min_stance_feet() < MIN_SUPPORT_FEET:
        raise InputError(
            f"gait {name} leaves {gait.min_stance_feet()} of {layout.n_legs} stance feet",
            location=location or None,
            valid=f"a larger duty_factor, or a gait with {MIN_SUPPORT_FEET} feet or more: {_supporting_gaits(layout)}",
        )
    return gait


def _supporting_gaits(layout: LegLayout) -> str:
    """Return the names of the gaits that leave enough feet in stance."""
    names = []
    for name in GAITS.names():
        pattern = GAITS[name]()
        duty_factor = pattern.min_duty_factor(layout)
        if Gait(name, duty_factor, pattern.phases(layout, duty_factor)).min_stance_feet() >= MIN_SUPPORT_FEET:
            names.append(name)
    return ", ".join(names) or "none"


def move_feet_with_ground(feet: ArrayLike, twist: ArrayLike, time: float) -> Array:
    """Return stance feet (…, 3) in the body frame after the body has moved.

    Args:
        feet: Foot positions in the body frame [m].
        twist: (3,) forward [m/s], left [m/s], yaw rate [rad/s], constant in the body frame.
        time: Duration [s]; may be negative.
    """
    positions = np.ascontiguousarray(feet, dtype=np.float64)
    later_positions = move_points_with_ground(positions.reshape(-1, 3), np.asarray(twist, np.float64), float(time))
    return later_positions.reshape(positions.shape)


def ground_velocities(feet: ArrayLike, twist: ArrayLike) -> Array:
    """Return (…, 2) velocities of stance feet (…, 3) in the body frame [m/s]; ``twist`` as in
    `move_feet_with_ground`."""
    positions = np.ascontiguousarray(feet, dtype=np.float64)
    velocities = ground_velocities_at(positions.reshape(-1, 3), np.asarray(twist, dtype=np.float64))
    return velocities.reshape(*positions.shape[:-1], 2)


def swing_positions(start: ArrayLike, end: ArrayLike, ground_drift: ArrayLike, fraction: ArrayLike) -> Array:
    """Return (n, …, 2) positions of swing feet seen from above; they leave and meet the ground with its velocity.

    Args:
        start: (…, 2) lift-off positions.
        end: (…, 2) touch-down positions.
        ground_drift: (…, 2) displacement of the ground in the body frame during the whole swing.
        fraction: (n) fractions of the swing.
    """
    first, last, drift = (np.ascontiguousarray(value, dtype=np.float64) for value in (start, end, ground_drift))
    fractions = np.asarray(fraction, dtype=np.float64)
    out = swing_paths(first.reshape(-1, 2), last.reshape(-1, 2), drift.reshape(-1, 2), fractions)
    return out.reshape(len(fractions), *first.shape)


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
        stance_samples[-1, :, :2], stance_samples[0, :, :2], ground_drift, fractions
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
