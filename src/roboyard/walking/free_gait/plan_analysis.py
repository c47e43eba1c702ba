"""Analysis of finished plans: foothold searches, admissible body intervals, joint work, margins after a leg loss, cost.

Everything is recomputed from a plan's foot and body positions, for plans of any origin; `plan_evaluation` computes the
same costs while planning.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.walking.free_gait.foothold_map import FootholdMap
from roboyard.walking.free_gait.problem import StepPlanningProblem
from roboyard.walking.free_gait.robot_model import FreeGaitModel
from roboyard.walking.free_gait.step_plan import StepPlan
from roboyard.walking.statics import compute_foot_loads, stability_margin


class FootholdSearchTrace(NamedTuple):
    """Search for one foothold.  Step 2c of the thesis's random sampling.

    Attributes:
        leg: Index of the leg.
        sampled: (2) sampled position [m].
        foothold: (2) foothold that was found [m].
        cells: (k, 2) centers of nearer cells that were rejected, in the order of the search [m].
        can_stand: (k,) whether feet may stand there; then the leg was out of reach or out of order.
    """

    leg: int
    sampled: tuple[float, float]
    foothold: tuple[float, float]
    cells: Array
    can_stand: NDArray[np.bool_]


def trace_foothold_searches(plan: StepPlan, foothold_map: FootholdMap) -> list[FootholdSearchTrace]:
    """Return the search of each swing whose sampled position is known, in the order of the swings."""
    traces = []
    for swing in plan.swings:
        if swing.sampled_foothold is None:
            continue
        first, last = (_cell_at(foothold_map, position) for position in (swing.sampled_foothold, swing.target[:2]))
        radius_cells = math.ceil(math.dist(first, last))
        r, c = (axis.ravel() for axis in np.mgrid[-radius_cells : radius_cells + 1, -radius_cells : radius_cells + 1])
        squared_distance = r * r + c * c
        is_nearer = squared_distance < math.dist(first, last) ** 2 - 0.5
        search_order = np.lexsort((np.arctan2(r, c)[is_nearer], squared_distance[is_nearer]))
        rows, columns = r[is_nearer][search_order] + first[0], c[is_nearer][search_order] + first[1]
        can_stand = foothold_map.arrays.can_stand
        is_inside = (rows >= 0) & (columns >= 0) & (rows < can_stand.shape[0]) & (columns < can_stand.shape[1])
        rows, columns = rows[is_inside], columns[is_inside]
        cell_centers = np.column_stack(
            [
                foothold_map.arrays.x + (columns + 0.5) * foothold_map.arrays.cell_size,
                foothold_map.arrays.y + (rows + 0.5) * foothold_map.arrays.cell_size,
            ]
        )
        traces.append(
            FootholdSearchTrace(
                swing.leg, swing.sampled_foothold, swing.target[:2], cell_centers, can_stand[rows, columns]
            )
        )
    return traces


def _cell_at(foothold_map: FootholdMap, position: tuple[float, float]) -> tuple[int, int]:
    """Return row and column of a position, outside the map as well."""
    rows = foothold_map.arrays
    return math.floor((position[1] - rows.y) / rows.cell_size), math.floor((position[0] - rows.x) / rows.cell_size)


_SAMPLE_SPACING: Final = 0.01
"""Distance between two samples of the path [m]."""
_MARGIN_TOLERANCE: Final = 1e-3
"""Distance below the minimum stability margin that the exact evaluation of plans tolerates [m]."""


class AdmissibleInterval(NamedTuple):
    """Interval in which the same feet are in stance.

    Attributes:
        start_time: Start of the interval [s].
        end_time: End of the interval [s].
        first_distance: First position along the path, from its start, where the body could be [m].
        last_distance: Last such position [m].
    """

    start_time: float
    end_time: float
    first_distance: float
    last_distance: float


def distance_along_path(plan: StepPlan, times: Array) -> Array:
    """Return (n,) distances of the body along its path at times (n,) [s], from the start [m]."""
    distances = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(plan.body_track[:, 1:], axis=0), axis=1))])
    interpolated: Array = np.interp(times, plan.body_track[:, 0], distances)
    return interpolated


def admissible_intervals(plan: StepPlan, robot_model: FreeGaitModel) -> list[AdmissibleInterval]:
    """Return the admissible interval of the path around the body, from event to event.

    All stance feet are in reach with joints within limits, and the body is inside their polygon by the robot's margin.
    Herms 2004; step 2a of the thesis's random sampling.
    """
    event_times = {time for swing in plan.swings for time in (swing.lift_off_time, swing.touch_down_time)}
    boundaries = np.array(sorted(event_times | {0.0, plan.duration}))
    rotation = SE3.from_xyz_rpy((0.0, 0.0, 0.0), (0.0, 0.0, plan.heading)).matrix()[:3, :3]
    distances = distance_along_path(plan, plan.body_track[:, 0])
    intervals = []
    for start_time, end_time in zip(boundaries[:-1].tolist(), boundaries[1:].tolist(), strict=True):
        if end_time - start_time < 1e-9:
            continue
        center_time = np.array([0.5 * (start_time + end_time)])
        (feet,), (in_stance,) = plan.foot_states(center_time)
        body_distance = float(distance_along_path(plan, center_time)[0])
        sampled_distances = np.union1d(np.arange(0.0, distances[-1], _SAMPLE_SPACING), [body_distance, distances[-1]])
        body_positions = np.stack(
            [np.interp(sampled_distances, distances, plan.body_track[:, k]) for k in (1, 2, 3)], axis=-1
        )
        is_reachable = robot_model.legged_robot.is_reachable((feet - body_positions[:, None]) @ rotation)
        is_stable = (
            np.array([stability_margin(feet[in_stance], body_position) for body_position in body_positions])
            >= robot_model.min_stability_margin - _MARGIN_TOLERANCE
        )
        is_admissible, k = (
            (is_reachable | ~in_stance).all(axis=1) & is_stable,
            int(np.searchsorted(sampled_distances, body_distance)),
        )
        inadmissible = np.flatnonzero(~is_admissible)
        low, high = (
            inadmissible[inadmissible < k].max(initial=-1) + 1,
            inadmissible[inadmissible > k].min(initial=len(sampled_distances)) - 1,
        )
        intervals.append(
            AdmissibleInterval(start_time, end_time, float(sampled_distances[low]), float(sampled_distances[high]))
        )
    return intervals


_SAMPLE_PERIOD: Final = 0.02
"""Time between two samples [s]."""


def joint_work(plan: StepPlan, robot_model: FreeGaitModel) -> float:
    """Return the mechanical work of all joints over a plan against gravity [J]; positive and negative work both count.

    The stance feet carry the weight as evenly as balance allows; each joint carries its share and the leg's own limbs,
    thigh and shank, at their centers.  No joint recovers the energy of another.
    """
    times = _sample_times(plan)
    _, in_stance = plan.foot_states(times)
    local_feet, legs = plan.foot_positions_in_body(times), robot_model.legged_robot.legs
    q = robot_model.legged_robot.solve_ik(local_feet)
    mid_joints = 0.5 * (q[1:] + q[:-1])
    joint_steps, total = np.diff(q, axis=0), 0.0
    loads = np.array(
        [
            compute_foot_loads(feet, 1.0, stance_mask)
            for feet, stance_mask in zip(local_feet, in_stance.astype(float), strict=True)
        ]
    )
    for leg, one in enumerate(legs):
        thigh, shank = robot_model.arrays.mass_fractions[leg]
        frames = one.chain.frames(mid_joints[:, leg])[:, :, :3]
        tips = one.chain.forward(mid_joints[:, leg])[:, :3, 3]
        hips, knees = frames[:, 2, :, 3], frames[:, 3, :, 3]
        for joint in range(3):
            axis, pivot = frames[:, joint + 1, :, 2], frames[:, joint + 1, :, 3]
            weighted_points = [(-0.5 * (loads[1:, leg] + loads[:-1, leg]), tips), (shank, 0.5 * (knees + tips))]
            if joint < 2:
                weighted_points.append((thigh, 0.5 * (hips + knees)))
            height_per_angle = sum(
                mass_fraction * np.cross(axis, position - pivot)[:, 2] for mass_fraction, position in weighted_points
            )
            total += float(np.abs(height_per_angle * joint_steps[:, leg, joint]).sum())
    return robot_model.weight * total


def leg_loss_margins(plan: StepPlan) -> tuple[Array, Array]:
    """Return times (n,) [s], and the smallest stability margins (n,) after the loss of one stance foot [m].

    -inf where fewer than three feet remain.
    """
    times = _sample_times(plan)
    feet, down = plan.foot_states(times)
    body_positions, margins = plan.body_positions(times), np.empty(len(times))
    for k, stance_mask in enumerate(down):
        legs = np.flatnonzero(stance_mask)
        margins[k] = min(stability_margin(feet[k, legs[legs != leg]], body_positions[k]) for leg in legs)
    return times, margins


_SAFE_MARGIN_RATIO: Final = 2.5
"""Multiple of the minimum stability margin from which on a body counts as stable."""


def compute_plan_cost(plan: StepPlan, problem: StepPlanningProblem) -> float:
    """Return the cost of a plan by the weights of its problem, from its foot and body positions alone [s].

    It is the duration, extended by a fraction of it for each weighted criterion: mean closeness to tipping, mean
    foothold cost, joint work relative to lifting the robot at full speed, and instability after the loss of a leg.
    """
    weights, foothold_map, robot_model = problem.cost_weights, problem.foothold_map, problem.robot_model
    safe_margin, times = _SAFE_MARGIN_RATIO * robot_model.min_stability_margin, _sample_times(plan)
    feet, in_stance = plan.foot_states(times)
    margins = np.array(
        [stability_margin(feet[k, in_stance[k]], position) for k, position in enumerate(plan.body_positions(times))]
    )
    penalty = weights.tipping * float((1.0 - np.clip(margins / safe_margin, 0.0, 1.0)).mean())
    if plan.swings:
        cells = np.array([_cell_at(foothold_map, swing.target[:2]) for swing in plan.swings])
        penalty += weights.foothold * float(1.0 - foothold_map.arrays.foothold_quality[cells[:, 0], cells[:, 1]].mean())
    if weights.joint_work > 0.0:
        lifting_time = joint_work(plan, robot_model) / robot_model.weight / problem.context.parameters.body_speed
        penalty += weights.joint_work * lifting_time / plan.duration
    if weights.leg_loss > 0.0:
        penalty += weights.leg_loss * float((1.0 - np.clip(leg_loss_margins(plan)[1] / safe_margin, 0.0, 1.0)).mean())
    return plan.duration * (1.0 + penalty)


def _sample_times(plan: StepPlan) -> Array:
    """Return regular times, including both ends."""
    return np.linspace(0.0, plan.duration, max(int(plan.duration / _SAMPLE_PERIOD), 1) + 1)
