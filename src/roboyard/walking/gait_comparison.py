"""Comparison of gaits on a robot: order of the legs, duty factor, stability margin over a cycle, and speed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.walking.gait import (
    GAITS,
    Gait,
    GaitPattern,
    LegLayout,
    compute_gait_speed,
    max_stance_foot_speed,
    move_feet_with_ground,
    plan_gait,
)
from roboyard.walking.legged_robot import LeggedRobot
from roboyard.walking.statics import support_margin

_N_PHASES = 360
"""Phases of a cycle at which the stability margin is computed, beside those at the lift-offs and touch-downs."""
_EVENT_OFFSET = 1e-6
"""The margin is computed this fraction of a cycle before and after each lift-off and touch-down."""


def cycle_stability_margin(
    legged_robot: LeggedRobot, gait: Gait, stride: float, twist: ArrayLike = (1.0, 0.0, 0.0)
) -> float:
    """Return the smallest stability margin over a cycle of steady walking [m]; -inf if too few feet are in stance.

    Each stance foot moves once through its stride, with its stance position in the middle.  The margin is that of
    `roboyard.walking.statics.stability_margin` at the origin of the body frame (McGhee and Frank, 1968).

    Args:
        legged_robot: The robot.
        gait: The gait.
        stride: Displacement of the fastest stance foot [m].
        twist: Direction of motion: forward, left [m/s], yaw rate [rad/s]; only its direction matters.
    """
    # A cycle of 1 s, in which the fastest stance foot moves through the whole stride.
    scale = stride / gait.duty_factor / max(max_stance_foot_speed(legged_robot, twist), 1e-12)
    scaled_twist, margin = scale * np.asarray(twist, dtype=np.float64), np.inf
    for phase in _phases_of_cycle(gait):
        time_since_lift_off = np.mod(phase - np.array(gait.phases), 1.0)
        feet = np.concatenate([
            move_feet_with_ground(foot[None], scaled_twist, since - 1.0 + 0.5 * gait.duty_factor)
            for foot, since in zip(legged_robot.stance_feet, time_since_lift_off, strict=True)
        ])  # fmt: skip
        margin = min(margin, float(support_margin(feet, ~gait.swing_mask(phase), 0.0, 0.0)))
    return margin


def _phases_of_cycle(gait: Gait) -> Array:
    """Return phases of the cycle, among them those around each lift-off and touch-down."""
    lift_offs = np.array(gait.phases)
    events = np.concatenate([lift_offs, lift_offs + 1.0 - gait.duty_factor])
    phases = [np.arange(_N_PHASES) / _N_PHASES, events - _EVENT_OFFSET, events + _EVENT_OFFSET]
    return np.unique(np.mod(np.concatenate(phases), 1.0))


@dataclass(frozen=True)
class GaitComparison:
    """What a gait is like on a robot, at its smallest duty factor.

    Attributes:
        name: Name of the gait.
        order: Names of the legs in the order of their lift-offs; legs that lift off together are in one group.
        duty_factor: Smallest duty factor.
        min_stance_feet: Smallest number of feet on the ground.
        margin: Smallest stability margin over a cycle of walking forward [m].
        forward_speed: Largest speed forward [m/s].
        lateral_speed: Largest speed to the left [m/s].
        yaw_rate: Largest yaw rate [rad/s].
    """

    name: str
    order: tuple[tuple[str, ...], ...]
    duty_factor: float
    min_stance_feet: int
    margin: float
    forward_speed: float
    lateral_speed: float
    yaw_rate: float


def lift_off_order(gait: Gait, leg_names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return the names of legs in the order of their lift-offs, grouped by equal phases."""
    groups: dict[float, list[str]] = {}
    for name, phase in zip(leg_names, gait.phases, strict=True):
        groups.setdefault(round(phase, 9), []).append(name)
    return tuple(tuple(sorted(groups[phase])) for phase in sorted(groups))


def compare_gaits(
    legged_robot: LeggedRobot, names: Iterable[str] | None = None, *, stride: float = 0.08, lift: float = 0.03
) -> tuple[GaitComparison, ...]:
    """Compare gaits on a robot; gaits that it cannot walk are left out.

    Args:
        legged_robot: The robot.
        names: Names of the gaits; None: all of `GAITS`.
        stride: Largest displacement of a stance foot [m].
        lift: Height of the swing [m].

    Raises:
        UnknownNameError: There is no such gait.
        InputError: Feet cannot be lifted that high in the stance.
    """
    layout, comparisons = LegLayout.from_robot(legged_robot), []
    for name in GAITS.names() if names is None else names:
        pattern = GAITS[name]()
        if not can_walk(pattern, layout):
            continue
        gait = plan_gait(name, pattern, layout, location=legged_robot.name)
        forward = compute_gait_speed(legged_robot, gait, (1.0, 0.0, 0.0), stride, lift)
        lateral = compute_gait_speed(legged_robot, gait, (0.0, 1.0, 0.0), stride, lift)
        rotation = compute_gait_speed(legged_robot, gait, (0.0, 0.0, 1.0), stride, lift)
        comparisons.append(
            GaitComparison(
                name,
                lift_off_order(gait, (leg.name for leg in legged_robot.legs)),
                gait.duty_factor,
                gait.min_stance_feet(),
                cycle_stability_margin(legged_robot, gait, forward.stride),
                forward.speed,
                lateral.speed,
                rotation.speed / max_stance_foot_speed(legged_robot, (0.0, 0.0, 1.0)),
            )
        )
    return tuple(comparisons)


def can_walk(pattern: GaitPattern, layout: LegLayout) -> bool:
    """Return whether a gait leaves three or more feet in stance with given legs."""
    try:
        plan_gait("", pattern, layout)
    except InputError:
        return False
    return True
