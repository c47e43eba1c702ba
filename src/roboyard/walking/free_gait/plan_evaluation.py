"""Exact evaluation of complete plans: inverse kinematics, joint speeds, collisions of the legs, tipping, joint work,
leg loss.

The evaluation also times a plan: each interval between events lasts as long as the fastest joint needs.  Joint work is
the sum over all joints, positive and negative work counted alike, against the weight of the body on the stance feet and
of the leg's own limbs.  Its unit is the meter: work divided by the robot's weight, the height to which it would lift
the robot.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from roboyard.compute import kernel
from roboyard.geometry.arrays import I64, Array, Flags
from roboyard.walking.free_gait.foothold_map import cell_value, value_at
from roboyard.walking.free_gait.partial_plans import MAX_EVENTS, PlanningContext, StepEvent, example_context
from roboyard.walking.free_gait.plan_draft import PlanDraft, empty_draft, mean_foothold_cost
from roboyard.walking.free_gait.robot_model import LegArrays, example_leg_arrays
from roboyard.walking.free_gait.step_constraints import PASSING_GAP_FRACTION, edge_margin, support_edges
from roboyard.walking.free_gait.step_plan import RISE_FRACTION, SwingGeometry, swing_position
from roboyard.walking.leg import solve_leg_ik


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_leg_arrays(), 0, 0.0, 0.0, 0.0)])
def limb_heights(leg_arrays: LegArrays, i: int, first: float, second: float, third: float) -> tuple[float, float]:
    """Return the heights of knee and foot of a leg in the body frame [m] for its joints [rad]."""
    kinematics = leg_arrays.kinematics
    H, K = kinematics.T_body_hip[i], kinematics.T_hip_knee[i]
    knee_angle, c, s = kinematics.knee_axis_sign[i] * third, math.cos(second), math.sin(second)
    kx, ky = (
        c * kinematics.thigh[i, 0] - s * kinematics.thigh[i, 1],
        s * kinematics.thigh[i, 0] + c * kinematics.thigh[i, 1],
    )
    c, s = math.cos(second + knee_angle), math.sin(second + knee_angle)
    fx = kx + c * kinematics.shank[i, 0] - s * kinematics.shank[i, 1]
    fy = ky + s * kinematics.shank[i, 0] + c * kinematics.shank[i, 1]
    c, s = math.cos(first), math.sin(first)
    up_x, up_y = c * H[2, 0] + s * H[2, 1], c * H[2, 1] - s * H[2, 0]  # z axis of the body in frame 1
    ax, ay = up_x * K[0, 0] + up_y * K[1, 0] + H[2, 2] * K[2, 0], up_x * K[0, 1] + up_y * K[1, 1] + H[2, 2] * K[2, 1]
    az = up_x * K[0, 2] + up_y * K[1, 2] + H[2, 2] * K[2, 2]
    base = up_x * K[0, 3] + up_y * K[1, 3] + H[2, 2] * K[2, 3] + H[2, 3]
    return float(base + ax * kx + ay * ky), float(base + ax * fx + ay * fy + az * kinematics.foot_offset[i])


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_leg_arrays(), 0, np.zeros(3), np.zeros(3), 0.3)])
def leg_work(leg_arrays: LegArrays, i: int, joints_before: Array, joints_after: Array, load: float) -> float:
    """Return the work of a leg's joints between two nearby positions (3,) [m]: each joint alone, with its load.

    Args:
        leg_arrays: The legs.
        i: Index of the leg.
        joints_before: Joint positions [rad].
        joints_after: Joint positions a little later [rad].
        load: Load of the foot, as a fraction of the robot's weight.
    """
    thigh, shank = (
        0.5 * leg_arrays.mass_fractions[i, 0],
        0.5 * leg_arrays.mass_fractions[i, 1],
    )  # the centers of the limbs move half as far as their ends
    knee, foot = limb_heights(leg_arrays, i, joints_before[0], joints_before[1], joints_before[2])
    work = 0.0
    for j in range(3):
        first = joints_after[0] if j == 0 else joints_before[0]
        second = joints_after[1] if j == 1 else joints_before[1]
        third = joints_after[2] if j == 2 else joints_before[2]
        knee_after, foot_after = limb_heights(leg_arrays, i, first, second, third)
        energy = (thigh + shank) * (knee_after - knee) + (shank - load) * (foot_after - foot)
        work += abs(energy)
    return work


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(np.zeros((1, 1, 3)), np.ones((1, 1), np.bool_), 0.0, 0.0, np.zeros(1))],
)
def distribute_weight_over_stance(feet: Array, in_stance: Flags, x: float, y: float, out: Array) -> None:
    """Compute the loads (l,) of the stance feet (1, l, 3) for a unit weight above a point, as even as balance allows.

    Like `distribute_weight`, without arrays of its own.
    """
    n = sx = sy = sxx = sxy = syy = 0.0
    for i in range(feet.shape[1]):
        out[i] = 0.0
        if in_stance[0, i]:
            dx, dy = feet[0, i, 0] - x, feet[0, i, 1] - y
            n, sx, sy = n + 1.0, sx + dx, sy + dy
            sxx, sxy, syy = sxx + dx * dx, sxy + dx * dy, syy + dy * dy
    cofactor_1, cofactor_x, cofactor_y = sxx * syy - sxy * sxy, sxy * sy - sx * syy, sx * sxy - sxx * sy
    determinant = n * cofactor_1 + sx * cofactor_x + sy * cofactor_y
    if determinant < 1e-12:
        return
    for i in range(feet.shape[1]):
        if in_stance[0, i]:
            force = cofactor_1 + (feet[0, i, 0] - x) * cofactor_x + (feet[0, i, 1] - y) * cofactor_y
            out[i] = max(force / determinant, 0.0)


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(np.zeros((1, 1, 3)), np.ones((1, 1), np.bool_), np.zeros((1, 12, 3)), np.zeros(1, np.int64))],
)
def support_edges_without_each_foot(feet: Array, in_stance: Flags, edges: Array, edge_counts: I64) -> None:
    """Compute the edges (l, 12, 3) of the polygons of the stance feet (1, l, 3) without each of them, and their
    numbers."""
    for leg in range(feet.shape[1]):
        edge_counts[leg] = support_edges(feet, in_stance, 0, leg, edges[leg]) if in_stance[0, leg] else -1


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((1, 12, 3)), np.zeros(1, np.int64), 0.0, 0.0)])
def min_margin_after_leg_loss(edges: Array, edge_counts: I64, x: float, y: float) -> float:
    """Return the smallest margin of a point after the loss of any one foot [m]; -inf without a polygon."""
    min_margin = math.inf
    for leg in range(edges.shape[0]):
        if edge_counts[leg] >= 0:
            min_margin = min(
                min_margin, edge_margin(edges[leg], edge_counts[leg], x, y) if edge_counts[leg] >= 3 else -math.inf
            )
    return min_margin


class PlanViolation(IntEnum):
    """Condition that a plan violates."""

    VALID = 0
    """The plan violates no condition."""
    REACH = 1
    """A foot is out of reach."""
    GROUND = 2
    """A foot is below the ground."""
    LIMB = 3
    """A limb touches the ground."""
    TIPPING = 4
    """The stability margin is too small."""
    FOOT_ORDER = 5
    """Feet of one side pass each other."""
    TOO_FAST = 6
    """A committed swing exceeds the speed of its joints."""


FINE_PERIOD: Final = 0.01
"""Largest time between two checks in the exact check of a plan [s]."""
_COARSE_PERIOD: Final = 0.1
"""Largest time between two checks in the first timing passes [s]."""
_PREVIEW_PERIOD: Final = 0.06
"""Largest time between two checks in the preview, which finds most violations [s]."""
_MEDIUM_PERIOD: Final = 0.04
"""Largest time between two checks in the stretching passes [s]."""
_STANCE_CHECK_TRAVEL: Final = 0.2
"""Largest motion of the body between two checks of a stance leg, in samples of the path: 2 mm."""
_CHECKS_PER_SAMPLE: Final = 3
"""Smallest number of checks between two samples of the path."""
_JOINT_SPEED_FRACTION: Final = 0.87
"""Fraction of the joints' speed limits that plans use."""
_N_TIMING_PASSES: Final = 3
_MIN_INTERVAL_RATIO: Final = 0.4
"""Smallest factor on an interval in one timing pass."""
_MAX_STRETCHING_PASSES: Final = 6
"""Largest number of passes that only stretch intervals, until none is too short by more than `_SPEED_RATIO_TOLERANCE`.
If intervals could also shrink, swings over several intervals would never settle."""
_SPEED_RATIO_TOLERANCE: Final = 1.1
EXACT_CHECK: Final = 0.0
"""Value of ``min_interval_ratio`` for a check that keeps the intervals."""
_MIN_INTERVAL: Final = 1e-4
_MIN_CHECK_PERIOD: Final = 1e-7
"""Smallest time between two checks [s]."""
_SAFE_MARGIN_RATIO: Final = 2.5
"""Multiple of the minimum stability margin from which on a body counts as stable."""
_MAX_COMMITTED_SPEED_RATIO: Final = 1.1


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((2, 3)), 0.5, np.zeros(3))])
def path_position(path: Array, sample: float, out: Array) -> None:
    """Compute the body position (3,) at a position of its path, in samples."""
    k = min(max(int(sample), 0), path.shape[0] - 2)
    u = sample - k
    for j in range(3):
        out[j] = path[k, j] * (1.0 - u) + path[k + 1, j] * u


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_leg_arrays(), 0, np.zeros(7), np.zeros(3))])
def knee_position(leg_arrays: LegArrays, leg: int, q: Array, out: Array) -> None:
    """Compute the knee position (3,) of a leg in the body frame from its joints (7,), see `solve_leg_ik`."""
    H, K = leg_arrays.kinematics.T_body_hip[leg], leg_arrays.kinematics.T_hip_knee[leg]
    rx = q[5] * leg_arrays.kinematics.thigh[leg, 0] - q[6] * leg_arrays.kinematics.thigh[leg, 1]
    ry = q[6] * leg_arrays.kinematics.thigh[leg, 0] + q[5] * leg_arrays.kinematics.thigh[leg, 1]
    ax = K[0, 0] * rx + K[0, 1] * ry + K[0, 3]
    ay = K[1, 0] * rx + K[1, 1] * ry + K[1, 3]
    az = K[2, 0] * rx + K[2, 1] * ry + K[2, 3]
    bx, by = q[3] * ax - q[4] * ay, q[4] * ax + q[3] * ay
    for k in range(3):
        out[k] = H[k, 0] * bx + H[k, 1] * by + H[k, 2] * az + H[k, 3]


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(example_context(), example_leg_arrays(), np.zeros(3), np.zeros(3), 0, np.zeros(7), np.zeros(3))],
)
def is_limb_collision_free(
    context: PlanningContext,
    leg_arrays: LegArrays,
    body_position: Array,
    foot_position: Array,
    leg: int,
    q: Array,
    knee: Array,
) -> bool:
    """Return whether shank and thigh stay above the ground: foot (3,) and body in the world, joints (7,)."""
    params, per_cell = context.parameters, 1.0 / context.parameters.cell_size
    knee_position(leg_arrays, leg, q, knee)
    kx = (body_position[0] + params.cos * knee[0] - params.sin * knee[1] - params.x) * per_cell
    ky = (body_position[1] + params.sin * knee[0] + params.cos * knee[1] - params.y) * per_cell
    kz = body_position[2] + knee[2]
    fx, fy = (foot_position[0] - params.x) * per_cell, (foot_position[1] - params.y) * per_cell
    for k in range(1, 5):  # the foot itself is checked by the caller
        u = 0.25 * k
        if foot_position[2] + u * (kz - foot_position[2]) - params.limb_radius < cell_value(
            context.heights, fx + u * (kx - fx), fy + u * (ky - fy)
        ):  # fmt: skip
            return False
    hip = leg_arrays.kinematics.T_body_hip[leg, :3, 3]
    hx = (body_position[0] + params.cos * hip[0] - params.sin * hip[1] - params.x) * per_cell
    hy = (body_position[1] + params.sin * hip[0] + params.cos * hip[1] - params.y) * per_cell
    z = 0.5 * (kz + body_position[2] + hip[2])
    return bool(z - params.limb_radius >= cell_value(context.heights, 0.5 * (kx + hx), 0.5 * (ky + hy)))


class SweepWorkspace(NamedTuple):
    """Scratch memory of `sweep_plan`.

    Attributes:
        feet: (1, l, 3) positions of stance feet, and of swing feet before lift-off [m].
        in_stance: (1, l) feet in stance.
        lift_off_event: (l,) lift-off event of a swing foot.
        vertical_slowdown: (l,) factor by which lift-off and touch-down are too fast.
        event_times: (e + 2,) times of the events [s].
        previous_joints: (l, 3) joints at the previous check [rad].
        support_edges: (12, 3) edges of the support polygon.
        forward_positions: (l,) positions of the feet along the body.
        scratch_vectors: (6, 7) body, foot, joints, knee, body at lift-off, body at touch-down; see `solve_leg_ik`.
        load_fractions: (l,) loads of the feet as fractions of the weight.
        edges_without_foot: (l, 12, 3) edges of the polygons without a foot.
        edge_counts: (l,) number of these edges.
    """

    feet: Array
    in_stance: Flags
    lift_off_event: I64
    vertical_slowdown: Array
    event_times: Array
    previous_joints: Array
    support_edges: Array
    forward_positions: Array
    scratch_vectors: Array
    load_fractions: Array
    edges_without_foot: Array
    edge_counts: I64


@kernel(examples=lambda: [(6,)])
def empty_sweep_workspace(n_legs: int) -> SweepWorkspace:
    """Return scratch memory for a number of legs."""
    return SweepWorkspace(
        np.zeros((1, n_legs, 3)), np.ones((1, n_legs), np.bool_), np.zeros(n_legs, np.int64), np.ones(n_legs),
        np.zeros(MAX_EVENTS + 2),
        np.zeros((n_legs, 3)), np.zeros((12, 3)), np.zeros(n_legs), np.zeros((6, 7)), np.zeros(n_legs),
        np.zeros((n_legs, 12, 3)), np.zeros(n_legs, np.int64),
    )  # fmt: skip


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(0.5, 1.0, 0.1)])
def next_sample_fraction(start: float, travel: float, fraction: float) -> float:
    """Return the fraction of a motion of length ``travel`` from a path position [samples] at which the next sample is
    reached."""
    position = start + fraction * travel
    sample = math.floor(position) + 1.0 if travel > 0.0 else math.ceil(position) - 1.0
    return (sample - start) / travel


@kernel(
    no_refcount=True,
    examples=lambda: [
        (
            example_context(),
            example_leg_arrays(),
            np.zeros((2, 3)),
            empty_draft(),
            0.02,
            EXACT_CHECK,
            empty_sweep_workspace(1),
            np.zeros(6),
        )
    ],
)
def sweep_plan(
    context: PlanningContext,
    leg_arrays: LegArrays,
    path: Array,
    draft: PlanDraft,
    period: float,
    min_interval_ratio: float,
    workspace: SweepWorkspace,
    out: Array,
) -> PlanViolation:
    """Go through a timed plan, and set each interval by its fastest joint, or check the plan exactly.

    Args:
        context: The planning context.
        leg_arrays: The legs.
        path: (n, 3) path of the body.
        draft: The plan.
        period: Maximum time between two checks [s].
        min_interval_ratio: Minimum ratio of a new interval to the old one.  EXACT_CHECK: the times stay, and
            collisions, stability and foot order are checked instead.
        workspace: Scratch memory.
        out: (6,) receives the largest fraction of a joint's speed, the smallest margin [m], the mean closeness to
            tipping (0 to 1), the duration [s], the joints' work relative to lifting the robot at full speed, and the
            instability after the loss of a foot (0 to 1); the last two are 0 without their weights.  With a violation
            only the first: the number of events before it, including the touch-down of a violating swing.

    Returns:
        `PlanViolation.VALID`, or the violation.
    """
    is_exact = min_interval_ratio == EXACT_CHECK
    params, n_legs, m = context.parameters, context.stance_feet.shape[0], draft.counts[0]
    (
        feet,
        in_stance,
        lift_off_event,
        vertical_slowdown,
        times,
        previous_joints,
        support_edge_buffer,
        forward_positions,
    ) = (
        workspace.feet,
        workspace.in_stance,
        workspace.lift_off_event,
        workspace.vertical_slowdown,
        workspace.event_times,
        workspace.previous_joints,
        workspace.support_edges,
        workspace.forward_positions,
    )
    body_position, foot_position, q, knee, body_at_lift_off, body_at_touch_down = (
        workspace.scratch_vectors[0],
        workspace.scratch_vectors[1],
        workspace.scratch_vectors[2],
        workspace.scratch_vectors[3],
        workspace.scratch_vectors[4],
        workspace.scratch_vectors[5],
    )
    heights, rates, leading_legs, knee_side, kinematics = (
        context.heights,
        leg_arrays.max_joint_speeds,
        leg_arrays.leading_leg,
        leg_arrays.knee_side,
        leg_arrays.kinematics,
    )
    for leg in range(n_legs):
        in_stance[0, leg], lift_off_event[leg], vertical_slowdown[leg] = True, -1, 1.0
        for k in range(3):
            feet[0, leg, k], previous_joints[leg, k] = context.start_feet[leg, k], 0.0
    times[0] = 0.0
    for k in range(m + 1):
        times[k + 1] = times[k] + draft.interval[k]
    max_speed_ratio, min_margin, tipping, has_previous, n_edges, weakest_event = 0.0, math.inf, 0.0, False, 0, 0
    inverse_safe_margin = 1.0 / (_SAFE_MARGIN_RATIO * params.min_stability_margin)
    joint_work, leg_loss_cost, delay, measures_work, measures_leg_loss = (
        0.0,
        0.0,
        0.0,
        is_exact and params.joint_work_weight > 0.0,
        is_exact and params.leg_loss_weight > 0.0,
    )
    for k in range(m + 1):
        interval = draft.interval[k]
        is_ongoing, is_committed = k >= draft.counts[2], k < draft.counts[1]
        if is_exact:
            n_edges = support_edges(feet, in_stance, 0, -1, support_edge_buffer)
        if measures_leg_loss:
            support_edges_without_each_foot(feet, in_stance, workspace.edges_without_foot, workspace.edge_counts)
        # joints that are too fast in committed intervals must be found before the rest is timed
        n_checks = max(math.ceil(interval / (FINE_PERIOD if is_committed else period)), 1) if interval > 0.0 else 0
        if is_exact and n_checks > 0:  # the path may have a corner within a period
            n_checks = max(
                n_checks, math.ceil(_CHECKS_PER_SAMPLE * abs(draft.body_sample[k + 1] - draft.body_sample[k]))
            )
        if not is_ongoing:  # the interval is in the past
            n_checks = -1
        start_sample, travel, max_joint_speed, stride, fraction, stance_fraction = (
            draft.body_sample[k],
            draft.body_sample[k + 1] - draft.body_sample[k],
            0.0,
            1,
            0.0,
            0.0,
        )
        if n_checks > 0:
            stride = max(int(n_checks * _STANCE_CHECK_TRAVEL / max(abs(travel), 1e-9)), 1)
        p = 0 if not has_previous else 1
        while p <= n_checks:
            previous_fraction, fraction = fraction, p / n_checks if n_checks > 0 else 0.0
            checks_stance = p % stride == 0 or p == n_checks
            p += 1
            if is_exact and travel != 0.0 and interval > 0.0:  # joint speeds change at corners of the path
                corner_fraction = next_sample_fraction(
                    start_sample, travel, previous_fraction + _MIN_CHECK_PERIOD / interval
                )
                if corner_fraction < fraction - _MIN_CHECK_PERIOD / interval:
                    fraction, checks_stance, p = corner_fraction, True, p - 1
            time_step = (fraction - previous_fraction) * interval
            path_position(path, start_sample + fraction * travel, body_position)
            time = times[k] + fraction * interval
            if is_exact:
                margin = edge_margin(support_edge_buffer, n_edges, body_position[0], body_position[1])
                if margin < min_margin:
                    min_margin, weakest_event = margin, k
                tipping += (1.0 - min(max(margin * inverse_safe_margin, 0.0), 1.0)) * time_step
            if measures_leg_loss:
                margin = min_margin_after_leg_loss(
                    workspace.edges_without_foot, workspace.edge_counts, body_position[0], body_position[1]
                )
                leg_loss_cost += (1.0 - min(max(margin * inverse_safe_margin, 0.0), 1.0)) * time_step
            if measures_work:
                distribute_weight_over_stance(
                    feet, in_stance, body_position[0], body_position[1], workspace.load_fractions
                )
            for leg in range(n_legs):
                if in_stance[0, leg] and not checks_stance:
                    continue
                vertical_scale, swing_fraction, swing_duration, fraction_step = (
                    1.0,
                    0.0,
                    0.0,
                    fraction - previous_fraction,
                )
                if in_stance[0, leg]:
                    fraction_step = fraction - stance_fraction
                    for j in range(3):
                        foot_position[j] = feet[0, leg, j]
                else:
                    end = draft.paired_event[lift_off_event[leg]]
                    swing_duration = times[end + 1] - times[lift_off_event[leg] + 1]
                    path_position(path, draft.body_sample[lift_off_event[leg] + 1], body_at_lift_off)
                    path_position(path, draft.body_sample[end + 1], body_at_touch_down)
                    swing_fraction = (time - times[lift_off_event[leg] + 1]) / max(swing_duration, 1e-9)
                    vertical_scale = min(1.0, draft.vertical_time[end] / max(swing_duration, 1e-9))
                    swing_position(
                        SwingGeometry(feet[0, leg], draft.position[end], draft.apex_height[end], vertical_scale),
                        swing_fraction,
                        body_position,
                        body_at_lift_off,
                        body_at_touch_down,
                        foot_position,
                    )
                x, y = foot_position[0] - body_position[0], foot_position[1] - body_position[1]
                forward_positions[leg] = params.cos * foot_position[0] + params.sin * foot_position[1]
                if not solve_leg_ik(
                    kinematics,
                    knee_side,
                    leg,
                    params.cos * x + params.sin * y,
                    params.cos * y - params.sin * x,
                    foot_position[2] - body_position[2],
                    q,
                ):
                    out[0] = k
                    return PlanViolation.REACH
                if is_exact:
                    if (
                        foot_position[2]
                        < value_at(heights, params.x, params.y, params.cell_size, foot_position[0], foot_position[1])
                        - params.height_tolerance
                    ):
                        out[0] = k if in_stance[0, leg] else draft.paired_event[lift_off_event[leg]] + 1
                        return PlanViolation.GROUND
                    if not is_limb_collision_free(context, leg_arrays, body_position, foot_position, leg, q, knee):
                        out[0] = k if in_stance[0, leg] else draft.paired_event[lift_off_event[leg]] + 1
                        return PlanViolation.LIMB
                if measures_work and has_previous:
                    joint_work += leg_work(leg_arrays, leg, previous_joints[leg], q, workspace.load_fractions[leg])
                if has_previous and fraction_step > 0.0:
                    joint_speed = 0.0
                    for j in range(3):
                        joint_speed = max(
                            joint_speed, abs(q[j] - previous_joints[leg, j]) / (fraction_step * rates[leg, j])
                        )
                    is_vertical_phase = (
                        not in_stance[0, leg]
                        and vertical_scale < 1.0
                        and min(swing_fraction, 1.0 - swing_fraction) < RISE_FRACTION * vertical_scale
                    )
                    if (
                        is_vertical_phase
                        and not is_exact
                        and draft.paired_event[lift_off_event[leg]] >= draft.counts[1]
                    ):
                        # a longer lift-off or touch-down helps, a longer swing does not
                        vertical_slowdown[leg] = max(
                            vertical_slowdown[leg], joint_speed / (_JOINT_SPEED_FRACTION * interval)
                        )
                    elif (
                        is_committed
                        and not is_exact
                        and not in_stance[0, leg]
                        and draft.paired_event[lift_off_event[leg]] >= draft.counts[1]
                    ):
                        # the committed interval stays as it is, but the foot may touch down later
                        delay = max(delay, swing_duration * (joint_speed / (_JOINT_SPEED_FRACTION * interval) - 1.0))
                    else:
                        max_joint_speed = max(max_joint_speed, joint_speed)
                for j in range(3):
                    previous_joints[leg, j] = q[j]
            if checks_stance:
                stance_fraction = fraction
            if is_exact:
                for leg in range(n_legs):
                    leading_leg = leading_legs[leg]
                    if leading_leg >= 0:
                        min_gap = (
                            params.min_foot_gap
                            if in_stance[0, leg] and in_stance[0, leading_leg]
                            else PASSING_GAP_FRACTION * params.min_foot_gap
                        )
                        if forward_positions[leading_leg] - forward_positions[leg] < min_gap - 1e-9:
                            out[0] = k
                            return PlanViolation.FOOT_ORDER
            has_previous = True
        if n_checks > 0:
            ratio = max_joint_speed / (_JOINT_SPEED_FRACTION * interval)
            if is_committed:
                if is_exact and ratio > _MAX_COMMITTED_SPEED_RATIO:
                    out[0] = k
                    return PlanViolation.TOO_FAST
            else:
                max_speed_ratio = max(max_speed_ratio, ratio)
            if not is_exact and not is_committed:
                draft.interval[k] = max(interval * min(max(ratio, min_interval_ratio), 3.0), _MIN_INTERVAL)
        if k < m:
            leg = draft.leg[k]
            if draft.kind[k] == StepEvent.TOUCH_DOWN:
                in_stance[0, leg] = True
                draft.vertical_time[k] *= vertical_slowdown[leg]
                for j in range(3):
                    feet[0, leg, j] = draft.position[k, j]
            else:
                in_stance[0, leg] = False
                lift_off_event[leg], vertical_slowdown[leg] = k, 1.0
    if is_exact and min_margin < params.min_stability_margin - 1e-3:
        out[0] = weakest_event
        return PlanViolation.TIPPING
    draft.interval[draft.counts[1]] += delay
    duration = max(times[m + 1], 1e-9)
    out[0], out[1], out[2], out[3] = max_speed_ratio, min_margin, tipping / duration, times[m + 1]
    out[4], out[5] = joint_work / (params.body_speed * duration), leg_loss_cost / duration
    return PlanViolation.VALID


@kernel(examples=lambda: [(example_context(), example_leg_arrays(), np.zeros((2, 3)), empty_draft(), np.zeros(6))])
def evaluate_plan(
    context: PlanningContext, leg_arrays: LegArrays, path: Array, draft: PlanDraft, out: Array
) -> PlanViolation:
    """Time a plan and check it exactly.

    Args:
        context: The planning context.
        leg_arrays: The legs.
        path: (n, 3) path of the body.
        draft: A scheduled draft; its intervals are set so that all joints are within their speeds.
        out: (6,) receives the results of `sweep_plan`, the first replaced by the cost: the duration, increased by the
            weighted criteria.

    Returns:
        `PlanViolation.VALID`, or the violation.
    """
    workspace = empty_sweep_workspace(context.stance_feet.shape[0])
    if draft.counts[1] == 0:  # most violations hardly depend on the schedule, except for committed swings
        state = sweep_plan(context, leg_arrays, path, draft, _COARSE_PERIOD, EXACT_CHECK, workspace, out)
        if state != PlanViolation.VALID:
            return state
    for _ in range(_N_TIMING_PASSES):
        state = sweep_plan(context, leg_arrays, path, draft, _COARSE_PERIOD, _MIN_INTERVAL_RATIO, workspace, out)
        if state != PlanViolation.VALID:
            return state
    state = sweep_plan(context, leg_arrays, path, draft, _PREVIEW_PERIOD, EXACT_CHECK, workspace, out)
    if state != PlanViolation.VALID:
        return state
    for _ in range(_MAX_STRETCHING_PASSES):
        state = sweep_plan(context, leg_arrays, path, draft, _MEDIUM_PERIOD, 1.0, workspace, out)
        if state != PlanViolation.VALID:
            return state
        if out[0] <= _SPEED_RATIO_TOLERANCE:
            break
    state = sweep_plan(context, leg_arrays, path, draft, FINE_PERIOD, EXACT_CHECK, workspace, out)
    if state != PlanViolation.VALID:
        return state
    timed_duration, out[3] = out[3], 0.0
    for k in range(draft.counts[0] + 1):
        if k >= draft.counts[1]:
            draft.interval[k] *= out[0]
            if k < draft.counts[0] and draft.kind[k] == StepEvent.TOUCH_DOWN:
                draft.vertical_time[k] *= out[0]
        out[3] += draft.interval[k]
    params = context.parameters
    out[4] *= timed_duration / max(out[3], 1e-9)  # the work does not depend on the duration
    relative_penalty = (
        params.tipping_weight * out[2]
        + params.foothold_weight * mean_foothold_cost(context, draft)
        + params.joint_work_weight * out[4]
    )
    out[0] = out[3] * (1.0 + relative_penalty + params.leg_loss_weight * out[5])
    return PlanViolation.VALID
