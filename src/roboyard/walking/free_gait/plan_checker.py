"""Independent checker of step plans.  It shares no code with the planners and recomputes everything from a plan's foot
and body positions.

Every few milliseconds it computes the joints by inverse kinematics, confirmed by forward kinematics of the description;
their speeds; the distance of the body's center from the hull of the feet; contacts of feet, limbs and body with the
ground; whether feet stand on it, away from its edges; and whether they slip.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry.arrays import Array
from roboyard.walking.free_gait.step_plan import StepPlan
from roboyard.walking.legged_robot import LeggedRobot

HeightFunction = Callable[[Array], Array]
"""Function that returns heights (…) of the ground at points (…, 2) [m]; NaN is a hole."""

_HOLD_FRACTION, _RISE_FRACTION, _LEAD_FRACTION = 0.15, 0.3, 0.1  # fractions of a swing, see the format of plan files
_MAX_FK_ERROR: Final = 1e-6
_FOOT_HEIGHT_TOLERANCE: Final = 1e-3
_MAX_FOOTHOLD_SLOPE: Final = 1.0
"""Largest slope of the ground within the radius of a foot [m/m]."""


@dataclass(frozen=True)
class PlanCheckLimits:
    """Limits that a plan must keep.

    Attributes:
        period: Time between two checks [s].
        min_stability_margin: Minimum distance of the body's center from the edges of the feet's hull, from above [m].
        min_tip_over_angle: Minimum rotation about an edge, in space, until the body's center is above it [rad].
        max_speed_fraction: Maximum fraction of the joints' speed limits.
        foot_radius: Radius of a foot: the ground within it must exist and be about as high [m].
        limb_radius: Radius of a limb [m].
        goal_tolerance: Maximum distance of the body's last position from the goal [m].
    """

    period: float = 0.01
    min_stability_margin: float = 0.05
    min_tip_over_angle: float = 0.2
    max_speed_fraction: float = 1.0
    foot_radius: float = 0.008
    limb_radius: float = 0.008
    goal_tolerance: float = 0.01


@dataclass(frozen=True)
class PlanFault:
    """A violation of the limits.

    Attributes:
        kind: "reach", "speed", "tipping", "tip_over", "foothold", "slip", "ground", "limb", "body_contact", "order",
            "start" or "goal".
        time: Time of its first occurrence [s].
        description: Description in words.
        count: Number of checked moments at which it occurs.
    """

    kind: str
    time: float
    description: str
    count: int = 1


@dataclass(frozen=True)
class PlanCheckReport:
    """Result of a check.

    Attributes:
        faults: Each kind once, the earliest first.
        n_samples: Number of checked moments.
        min_stability_margin: Smallest stability margin [m].
        min_tip_over_angle: Smallest tip-over angle, with feet at their heights [rad].
        max_speed_fraction: Speed of the fastest joint, as a fraction of its limit.
        max_fk_error: Largest distance between a foot and its position by forward kinematics [m].
    """

    faults: tuple[PlanFault, ...]
    n_samples: int
    min_stability_margin: float
    min_tip_over_angle: float
    max_speed_fraction: float
    max_fk_error: float


def check_plan(
    plan: StepPlan,
    legged_robot: LeggedRobot,
    body_box: Array,
    heights: HeightFunction,
    goal: tuple[float, float],
    limits: PlanCheckLimits | None = None,
) -> PlanCheckReport:
    """Check a plan.

    Args:
        plan: The plan.
        legged_robot: The legs.
        body_box: (2, 3) smallest and largest corner of the body's box in its frame [m].
        heights: Heights of the ground.
        goal: Desired last position of the body [m].
        limits: Limits that the plan must keep.
    """
    check_limits = limits or PlanCheckLimits()
    times = _sample_times(plan, check_limits.period)
    positions, down, body_positions = _sample_plan(plan, times)
    c, s = math.cos(plan.heading), math.sin(plan.heading)
    offsets = positions - body_positions[:, None]
    local_positions = np.stack(
        [c * offsets[..., 0] + s * offsets[..., 1], c * offsets[..., 1] - s * offsets[..., 0], offsets[..., 2]], axis=-1
    )
    faults_by_kind: dict[str, PlanFault] = {}

    def add_fault(kind: str, is_faulty: Any, describe: Callable[[int], str]) -> None:
        if is_faulty.any():
            k = int(np.argmax(is_faulty))
            faults_by_kind[kind] = PlanFault(kind, float(times[k]), describe(k), int(is_faulty.sum()))

    names = [leg.name for leg in legged_robot.legs]
    q, solved = _solve_joints(legged_robot, local_positions)
    add_fault("reach", ~solved.all(axis=1), lambda k: f"leg {names[int(np.argmin(solved[k]))]} cannot reach its foot")
    max_fk_error = 0.0
    for leg, one in enumerate(legged_robot.legs):
        is_solved = solved[:, leg]
        tips = one.chain.forward(q[is_solved, leg])[:, :3, 3]
        if len(tips):
            max_fk_error = max(
                max_fk_error, float(np.linalg.norm(tips - local_positions[is_solved, leg], axis=1).max())
            )
    if max_fk_error > _MAX_FK_ERROR:
        faults_by_kind["reach"] = PlanFault("reach", 0.0, f"forward kinematics is off by {max_fk_error:.2g} m")
    speeds = (
        np.abs(np.diff(q, axis=0))
        / np.diff(times)[:, None, None]
        / (legged_robot.max_joint_speeds * check_limits.max_speed_fraction)
    )
    speed_fractions = speeds.max(axis=(1, 2), initial=0.0)
    add_fault(
        "speed",
        np.append(speed_fractions > 1.0 + 1e-6, False),
        lambda k: (
            f"leg {names[int(speeds[k].max(axis=1).argmax())]} turns a joint at {speed_fractions[k]:.2f} of its speed"
        ),
    )
    margins, tilts = _stability_margins(positions, down, body_positions)
    add_fault(
        "tipping",
        margins < check_limits.min_stability_margin - 1e-3,
        lambda k: f"{margins[k]:.4f} m inside of the feet's hull",
    )
    add_fault(
        "tip_over",
        tilts < check_limits.min_tip_over_angle,
        lambda k: f"{math.degrees(tilts[k]):.1f}° more, and it tips over its lower feet",
    )
    _check_footholds(plan, heights, check_limits, names, faults_by_kind)
    ground_heights = np.nan_to_num(heights(positions[..., :2]), nan=-np.inf)
    below_ground = positions[..., 2] < ground_heights - 2e-3
    add_fault(
        "ground", below_ground.any(axis=1), lambda k: f"foot {names[int(np.argmax(below_ground[k]))]} is in the ground"
    )
    limb_contacts = (
        _limb_contacts(legged_robot, q, positions, body_positions, c, s, heights, check_limits.limb_radius) & solved
    )
    add_fault(
        "limb", limb_contacts.any(axis=1), lambda k: f"leg {names[int(np.argmax(limb_contacts[k]))]} touches the ground"
    )
    body_contacts = _body_contacts(body_positions, body_box, c, s, heights)
    add_fault(
        "body_contact",
        body_contacts,
        lambda k: f"the body touches the ground at ({body_positions[k, 0]:.2f}, {body_positions[k, 1]:.2f})",
    )
    crossed_feet = _crossed_feet(legged_robot, positions, c, s)
    add_fault(
        "order",
        crossed_feet.any(axis=1),
        lambda k: f"foot {names[int(np.argmax(crossed_feet[k]))]} passes the one before it",
    )
    goal_distance = float(np.hypot(*(body_positions[-1, :2] - goal)))
    if goal_distance > check_limits.goal_tolerance or not down[-1].all():
        faults_by_kind["goal"] = PlanFault(
            "goal", float(times[-1]), f"it ends {goal_distance:.3f} m from the goal, {down[-1].sum()} feet down"
        )
    if not down[0].all():
        faults_by_kind["start"] = PlanFault("start", 0.0, "not all feet are down")
    faults = tuple(sorted(faults_by_kind.values(), key=lambda one: (one.time, one.kind)))
    return PlanCheckReport(
        faults,
        len(times),
        float(margins.min()),
        float(tilts.min()),
        float(speed_fractions.max(initial=0.0)),
        max_fk_error,
    )


def _sample_times(plan: StepPlan, period: float) -> Array:
    """Return regular times and those of all changes, up to the end of the body's track."""
    event_times = [t for swing in plan.swings for t in (swing.lift_off_time, swing.touch_down_time)]
    regular_times = np.arange(0.0, plan.body_track[-1, 0], period)
    times = np.unique(np.concatenate([regular_times, plan.body_track[:, 0], event_times]))
    times = times[times <= plan.body_track[-1, 0]]
    return np.asarray(times[np.concatenate([[True], np.diff(times) > 1e-7])])


def _sample_plan(plan: StepPlan, times: Array) -> tuple[Array, NDArray[np.bool_], Array]:
    """Return feet (n, l, 3), which are in stance (n, l), and the body (n, 3), as the file format defines them."""
    body_positions = np.column_stack(
        [np.interp(times, plan.body_track[:, 0], plan.body_track[:, k]) for k in (1, 2, 3)]
    )
    positions = np.broadcast_to(plan.start_feet, (len(times), *plan.start_feet.shape)).copy()
    down = np.ones(positions.shape[:2], np.bool_)
    for one in plan.swings:
        swing_fraction = (times - one.lift_off_time) / max(one.touch_down_time - one.lift_off_time, 1e-12)
        in_air = (swing_fraction > 0.0) & (swing_fraction < 1.0)
        vertical_scale = (
            min(1.0, one.vertical_time / (one.touch_down_time - one.lift_off_time))
            if one.touch_down_time > one.lift_off_time
            else 1.0
        )
        progress = 0.5 * (
            1.0
            - np.cos(
                np.pi
                * np.clip(
                    (swing_fraction - vertical_scale * _HOLD_FRACTION) / (1.0 - 2.0 * vertical_scale * _HOLD_FRACTION),
                    0.0,
                    1.0,
                )
            )
        )
        first, second = np.array(one.source), np.array(one.target)
        foot_path = first + progress[:, None] * (second - first)
        rise = 0.5 * (
            1.0
            - np.cos(
                np.pi
                * np.clip(
                    np.minimum(swing_fraction, 1.0 - swing_fraction) / (vertical_scale * _RISE_FRACTION), 0.0, 1.0
                )
            )
        )
        swing_times = [one.lift_off_time, one.touch_down_time]
        body_at_swing = np.column_stack(
            [np.interp(swing_times, plan.body_track[:, 0], plan.body_track[:, k]) for k in (1, 2)]
        )
        lead = 0.5 * (
            1.0
            - np.cos(
                np.pi
                * np.clip(
                    np.minimum(swing_fraction, 1.0 - swing_fraction) / (vertical_scale * _LEAD_FRACTION), 0.0, 1.0
                )
            )
        )
        foot_path[:, :2] += lead[:, None] * (
            body_positions[:, :2] - body_at_swing[0] - progress[:, None] * (body_at_swing[1] - body_at_swing[0])
        )
        base_height = np.where(swing_fraction < 0.5, first[2], second[2])
        foot_path[:, 2] = base_height + (one.apex_height - base_height) * rise
        positions[in_air, one.leg] = foot_path[in_air]
        positions[swing_fraction >= 1.0, one.leg] = second
        down[in_air, one.leg] = False
    return positions, down, body_positions


def _solve_joints(legged_robot: LeggedRobot, local: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return joints (n, l, 3) near the stance, and which feet are in reach within limits (n, l)."""
    solved = legged_robot.is_reachable(local)
    # a leg out of reach counts as in its stance, so that the other legs can be checked
    return legged_robot.solve_ik(np.where(solved[..., None], local, legged_robot.stance_feet)), solved


def _stability_margins(positions: Array, down: NDArray[np.bool_], body_positions: Array) -> tuple[Array, Array]:
    """Return the smallest distance from above (n,) [m] and angle (n,) [rad] to the sides of the hull of the stance
    feet.

    The angle to a side in space: the body's height above the line between its two feet, perpendicular to it, and its
    distance.
    """
    from scipy.spatial import ConvexHull, QhullError

    margins, tilts = np.full(len(positions), -np.inf), np.full(len(positions), -np.inf)
    edges_by_stance: dict[bytes, tuple[Array, Array, Array] | None] = {}
    for k in range(len(positions)):
        feet = positions[k, down[k]]
        key = feet.tobytes()
        if key not in edges_by_stance:
            try:
                hull = ConvexHull(feet[:, :2]) if len(feet) >= 3 else None
            except QhullError:
                hull = None
            ends = feet[hull.simplices] if hull is not None else None
            edges_by_stance[key] = None if hull is None or ends is None else (hull.equations, ends[:, 0], ends[:, 1])
        sides = edges_by_stance[key]
        if sides is None:
            continue
        lines, a, b = sides
        distance = -(lines[:, :2] @ body_positions[k, :2]) - lines[:, 2]
        edge_vectors = b - a
        length = np.hypot(edge_vectors[:, 0], edge_vectors[:, 1])
        slope = edge_vectors[:, 2] / length
        along_edge = ((body_positions[k, :2] - a[:, :2]) * edge_vectors[:, :2]).sum(axis=1) / length
        height = (body_positions[k, 2] - a[:, 2] - slope * along_edge) / np.hypot(1.0, slope)
        margins[k], tilts[k] = distance.min(), np.arctan2(distance, height).min()
    return margins, tilts


def _check_footholds(
    plan: StepPlan,
    heights: HeightFunction,
    limits: PlanCheckLimits,
    names: list[str],
    faults_by_kind: dict[str, PlanFault],
) -> None:
    """Check that footholds are on flat ground, and that each swing starts where its foot is."""
    angles = np.linspace(0.0, 2.0 * np.pi, 8, endpoint=False)
    rim = limits.foot_radius * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    stances = [(leg, 0.0, position) for leg, position in enumerate(plan.start_feet)]
    stances += [(one.leg, one.touch_down_time, np.array(one.target)) for one in plan.swings]
    for leg, time, position in stances:
        foot_height = float(heights(position[None, :2])[0])
        rim_heights = heights(position[:2] + rim)
        if (
            math.isnan(foot_height)
            or np.isnan(rim_heights).any()
            or np.abs(rim_heights - foot_height).max() > _MAX_FOOTHOLD_SLOPE * limits.foot_radius
        ):
            description = f"foot {names[leg]} stands on an edge at ({position[0]:.3f}, {position[1]:.3f})"
        elif abs(position[2] - foot_height) > _FOOT_HEIGHT_TOLERANCE + _MAX_FOOTHOLD_SLOPE * 0.01:
            description = f"foot {names[leg]} is {position[2] - foot_height:.3f} m above the ground"
        else:
            continue
        if "foothold" not in faults_by_kind or time < faults_by_kind["foothold"].time:
            faults_by_kind["foothold"] = PlanFault("foothold", time, description)
    last = {leg: (0.0, position) for leg, position in enumerate(plan.start_feet)}
    for one in sorted(plan.swings, key=lambda swing: swing.lift_off_time):
        stance_time, position = last[one.leg]
        if (
            one.lift_off_time < stance_time - 1e-9
            or np.abs(np.array(one.source) - position).max() > 1e-9
            or one.touch_down_time <= one.lift_off_time
        ):
            faults_by_kind.setdefault(
                "slip", PlanFault("slip", one.lift_off_time, f"foot {names[one.leg]} is not where its swing begins")
            )
        last[one.leg] = (one.touch_down_time, np.array(one.target))


def _limb_contacts(
    legged_robot: LeggedRobot,
    q: Array,
    positions: Array,
    body_positions: Array,
    c: float,
    s: float,
    heights: HeightFunction,
    limb_radius: float,
) -> NDArray[np.bool_]:
    """Return (n, l) whether thigh or shank touch the ground at a few points between foot and hip, from the chains'
    frames."""
    in_contact = np.zeros(positions.shape[:2], np.bool_)
    rotation = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    for leg, one in enumerate(legged_robot.legs):
        frames = one.chain.frames(q[:, leg])[:, :, :3, 3]
        hip, knee = (frames[:, k] @ rotation.T + body_positions for k in (2, 3))
        foot = positions[:, leg]
        for a, b, fractions in ((foot, knee, (0.25, 0.5, 0.75, 1.0)), (knee, hip, (0.5,))):
            for fraction in fractions:
                point = a + fraction * (b - a)
                ground_heights = np.nan_to_num(heights(point[:, :2]), nan=-np.inf)
                in_contact[:, leg] |= point[:, 2] - limb_radius < ground_heights - 2e-3
    return in_contact


def _body_contacts(
    body_positions: Array, body_box: Array, c: float, s: float, heights: HeightFunction
) -> NDArray[np.bool_]:
    """Return (n,) whether the ground under the body's box reaches it."""
    x, y = (np.linspace(body_box[0, k], body_box[1, k], 12) for k in (0, 1))
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2) @ np.array([[c, s], [-s, c]])
    ground_heights = np.nan_to_num(heights(body_positions[:, None, :2] + grid), nan=-np.inf)
    in_contact: NDArray[np.bool_] = ground_heights.max(axis=1) > body_positions[:, 2] + body_box[0, 2]
    return in_contact


def _crossed_feet(legged_robot: LeggedRobot, positions: Array, c: float, s: float) -> NDArray[np.bool_]:
    """Return (n, l) whether a foot is ahead of the next foot in front on its side."""
    along = c * positions[..., 0] + s * positions[..., 1]
    stance_feet = legged_robot.stance_feet
    out = np.zeros(along.shape, np.bool_)
    for leg in range(len(stance_feet)):
        leading_legs = [
            k
            for k in range(len(stance_feet))
            if stance_feet[k, 0] > stance_feet[leg, 0] and stance_feet[k, 1] * stance_feet[leg, 1] > 0.0
        ]
        if leading_legs:
            out[:, leg] = along[:, leg] >= along[:, leading_legs].min(axis=1)
    return out
