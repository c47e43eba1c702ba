"""Conditions of step events: where on its path the body can be with the stance feet in reach and the margin kept, and
whether the feet of a side keep their order on the ground and in the air.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import Array
from roboyard.walking.free_gait.partial_plans import (
    PATH_SPACING,
    BodyPaths,
    PartialPlans,
    PlanningContext,
    empty_partial_plans,
    example_context,
    example_search_state,
)
from roboyard.walking.free_gait.robot_model import TABLE_LAYERS

_SEARCH_STRIDE: Final = 4
"""Number of samples between two checks in the search for a reachable interval."""
_ROUNDING_FACTOR: Final = 0.999
"""Factor on a distance that allows for rounding errors."""
_COLLINEAR_AREA: Final = 1e-12
"""Twice the area of a triangle up to which its corners count as collinear [m²]."""


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(np.zeros((1, 1, 3)), np.ones((1, 1), np.bool_), 0, -1, np.zeros((12, 3)))],
)
def support_edges(feet: Array, in_stance: NDArray[np.bool_], i: int, excluded_leg: int, out: Array) -> int:
    """Compute the edges of the polygon of the stance feet (p, l, 3) of plan ``i``, without one leg: (k, 3) inward
    normals and offsets; return their number.

    Gift wrapping from the rearmost foot (Jarvis 1973).
    """
    n_legs, n_edges, first = feet.shape[1], 0, -1
    for k in range(n_legs):
        if in_stance[i, k] and k != excluded_leg:
            back_distance = feet[i, k, 0] - feet[i, first, 0] if first >= 0 else -1.0
            if back_distance < 0.0 or (back_distance == 0.0 and feet[i, k, 1] < feet[i, first, 1]):
                first = k
    a = first
    for _ in range(n_legs):
        ax, ay, ex, ey, b = feet[i, a, 0], feet[i, a, 1], 0.0, 0.0, -1
        for k in range(n_legs):
            if k in (a, excluded_leg) or not in_stance[i, k]:
                continue
            dx, dy = feet[i, k, 0] - ax, feet[i, k, 1] - ay
            cross_product = ex * dy - ey * dx
            if (
                b < 0
                or cross_product < -_COLLINEAR_AREA
                or (cross_product <= _COLLINEAR_AREA and dx * dx + dy * dy > ex * ex + ey * ey)
            ):
                b, ex, ey = k, dx, dy
        length = math.sqrt(ex * ex + ey * ey)
        if length > 1e-9:
            out[n_edges, 0], out[n_edges, 1] = -ey / length, ex / length
            out[n_edges, 2] = (ex * ay - ey * ax) / length
            n_edges += 1
        a = b
        if a in (first, -1):
            break
    return n_edges


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((12, 3)), 3, 0.0, 0.0)])
def edge_margin(edges: Array, n_edges: int, x: float, y: float) -> float:
    """Return the distance of a point from the edges, positive inside [m]."""
    min_margin = math.inf
    for k in range(n_edges):
        min_margin = min(min_margin, edges[k, 0] * x + edges[k, 1] * y - edges[k, 2])
    return min_margin


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(np.zeros((1, 2, 2), np.uint64), np.zeros((1, 3)), 0, 0.0, 0.0, 0.0, 100.0, 100.0)],
)
def is_in_reach_table(
    reach_table: NDArray[np.uint64],
    table_origin: Array,
    leg: int,
    x: float,
    y: float,
    z: float,
    cells_per_meter: float,
    layers_per_meter: float,
) -> bool:
    """Return whether a leg reaches a position in the body frame, with its margin."""
    a = int((x - table_origin[leg, 0]) * cells_per_meter + 0.5)
    b = int((y - table_origin[leg, 1]) * cells_per_meter + 0.5)
    c = int((z - table_origin[leg, 2]) * layers_per_meter + 0.5)
    n = reach_table.shape[1]
    if a < 0 or b < 0 or c < 0 or a >= n or b >= n or c >= TABLE_LAYERS:
        return False
    return bool((reach_table[leg, a, b] >> np.uint64(c)) & np.uint64(1))


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(*example_search_state()[:3], 0, 0, 0)])
def reachable_interval(
    context: PlanningContext, paths: BodyPaths, plans: PartialPlans, i: int, leg: int, seed: int
) -> tuple[int, int]:
    """Return the first and the last sample of the path of plan ``i`` from which a foot is reachable.

    The search starts at the sample ``seed`` and proceeds in strides, then one sample at a time.
    """
    params, positions, w = context.parameters, paths.positions, plans.path[i]
    x, y, z, end = plans.feet[i, leg, 0], plans.feet[i, leg, 1], plans.feet[i, leg, 2], paths.n_samples[w] - 1
    interval = (seed, seed)
    for pass_index in range(2):
        sign, sample, stride = 1 - 2 * pass_index, seed, _SEARCH_STRIDE
        while True:
            next_sample = sample + sign * stride
            if stride > 1:
                next_sample = min(max(next_sample, 0), end)
            if next_sample < 0 or next_sample > end or next_sample == sample:
                if stride == 1:
                    break
                stride = 1
                continue
            dx, dy = x - positions[w, next_sample, 0], y - positions[w, next_sample, 1]
            if is_in_reach_table(
                context.stance_reach,
                context.table_origin,
                leg,
                params.cos * dx + params.sin * dy,
                params.cos * dy - params.sin * dx,
                z - positions[w, next_sample, 2],
                params.cells_per_meter,
                params.layers_per_meter,
            ):
                sample = next_sample
            elif stride > 1:
                stride = 1
            else:
                break
        interval = (interval[0], sample) if pass_index == 0 else (sample, interval[1])
    return interval


@kernel(
    no_refcount=True, forceinline=True, examples=lambda: [(np.zeros((1, 4, 3)), 0, np.zeros((12, 3)), 3, 0.05, 0, 3)]
)
def last_stable_sample(
    positions: Array, w: int, edges: Array, n_edges: int, margin: float, inner: int, outer: int
) -> int:
    """Return the last sample toward ``outer`` up to which all samples are inside the edges by a margin, as ``inner``
    is.

    A path may leave the polygon at a bend and return, which bisection would miss; since samples are at most
    PATH_SPACING apart, the excess margin of one sample determines how many of the next are inside.
    """
    step = 1 if outer > inner else -1
    excess_margin = edge_margin(edges, n_edges, positions[w, inner, 0], positions[w, inner, 1]) - margin
    while inner != outer:
        next_sample = inner + step * min(
            max(int(_ROUNDING_FACTOR * excess_margin / PATH_SPACING), 1), abs(outer - inner)
        )
        excess_margin = edge_margin(edges, n_edges, positions[w, next_sample, 0], positions[w, next_sample, 1]) - margin
        if excess_margin < 0.0:
            break
        inner = next_sample
    return inner


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [
        (np.zeros((1, 4, 3)), np.zeros(1, np.int64), empty_partial_plans(1, 1), 0, 0, np.zeros((12, 3)), 3, 0.05)
    ],
)
def update_body_interval(
    positions: Array,
    size: NDArray[np.int64],
    plans: PartialPlans,
    i: int,
    seed: int,
    edges: Array,
    n_edges: int,
    margin: float,
) -> None:
    """Set the interval around a sample where the body is stable, from the reach of all stance feet and the edges."""
    w = plans.path[i]
    low, high = 0, size[w] - 1
    for k in range(plans.in_stance.shape[1]):
        if plans.in_stance[i, k]:
            low, high = max(low, plans.foot_interval[i, k, 0]), min(high, plans.foot_interval[i, k, 1])
    plans.body_interval[i, 0] = last_stable_sample(positions, w, edges, n_edges, margin, seed, low)
    plans.body_interval[i, 1] = last_stable_sample(positions, w, edges, n_edges, margin, seed, high)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_context(), *example_search_state()[1:3], 0)])
def remaining_distance(context: PlanningContext, paths: BodyPaths, plans: PartialPlans, i: int) -> float:
    """Return the distance from the last possible body position of a plan to the goal [m]."""
    w, sample = plans.path[i], plans.body_interval[i, 1]
    return math.hypot(context.goal[0] - paths.positions[w, sample, 0], context.goal[1] - paths.positions[w, sample, 1])


PASSING_GAP_FRACTION: Final = 0.1
"""Fraction of the minimum distance between feet of a side that is kept while one of them swings."""


@kernel(
    no_refcount=True, forceinline=True, examples=lambda: [(example_context(), *example_search_state()[1:3], 0, 0, 0)]
)
def foot_order_bounds(
    context: PlanningContext, paths: BodyPaths, plans: PartialPlans, i: int, leg: int, sample: int
) -> tuple[float, float]:
    """Return the bounds along the body within which a foot keeps its order with the others of its side, at a body
    sample.

    A swing foot is assumed where the body had it at its lift-off.
    """
    params, stance_feet, side, p, w = (
        context.parameters,
        context.stance_feet,
        context.leg_side,
        paths.positions,
        plans.path[i],
    )
    low, high = -math.inf, math.inf
    for k in range(plans.in_stance.shape[1]):
        if k == leg or side[k] != side[leg]:
            continue
        x, y, min_gap = plans.feet[i, k, 0], plans.feet[i, k, 1], params.min_foot_gap
        if not plans.in_stance[i, k]:
            min_gap *= PASSING_GAP_FRACTION
            x, y = (
                x + p[w, sample, 0] - p[w, plans.lift_off_sample[i, k], 0],
                y + p[w, sample, 1] - p[w, plans.lift_off_sample[i, k], 1],
            )
        other_position = params.cos * x + params.sin * y
        if stance_feet[k, 0] > stance_feet[leg, 0]:
            high = min(high, other_position - min_gap)
        else:
            low = max(low, other_position + min_gap)
    return low, high


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(example_context(), *example_search_state()[1:3], 0, 0)])
def is_swing_order_valid(context: PlanningContext, paths: BodyPaths, plans: PartialPlans, i: int, sample: int) -> bool:
    """Return whether stance feet keep their order with swing feet, with the body at a sample.

    Swing feet are assumed where the body had them at their lift-off; when the body moves back and forth, others may
    pass them.
    """
    params, stance_feet, side, p, w = (
        context.parameters,
        context.stance_feet,
        context.leg_side,
        paths.positions,
        plans.path[i],
    )
    for k in range(plans.in_stance.shape[1]):
        if plans.in_stance[i, k]:
            continue
        lift_off_sample = plans.lift_off_sample[i, k]
        swing_start = params.cos * (plans.feet[i, k, 0] - p[w, lift_off_sample, 0]) + params.sin * (
            plans.feet[i, k, 1] - p[w, lift_off_sample, 1]
        )
        for m in range(plans.in_stance.shape[1]):
            if plans.in_stance[i, m] and side[m] == side[k]:
                other_position = params.cos * (plans.feet[i, m, 0] - p[w, sample, 0]) + params.sin * (
                    plans.feet[i, m, 1] - p[w, sample, 1]
                )
                forward_distance = (
                    other_position - swing_start
                    if stance_feet[m, 0] > stance_feet[k, 0]
                    else swing_start - other_position
                )
                if forward_distance < PASSING_GAP_FRACTION * params.min_foot_gap:
                    return False
    return True


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(example_context(), *example_search_state()[1:3], 0, 0, 0.0, 0.0, 0)],
)
def is_foot_order_valid(
    context: PlanningContext, paths: BodyPaths, plans: PartialPlans, i: int, leg: int, x: float, y: float, sample: int
) -> bool:
    """Return whether a foot that touches down at a body sample kept its order with the others of its side during its
    swing.

    Stance feet move backward in the body frame; a foot that swings backward as well must pass none of them.
    """
    params, stance_feet, side, p, w = (
        context.parameters,
        context.stance_feet,
        context.leg_side,
        paths.positions,
        plans.path[i],
    )
    lift_off_sample = plans.lift_off_sample[i, leg]
    body_at_lift_off = params.cos * p[w, lift_off_sample, 0] + params.sin * p[w, lift_off_sample, 1]
    body_at_touch_down = params.cos * p[w, sample, 0] + params.sin * p[w, sample, 1]
    swing_start = params.cos * plans.feet[i, leg, 0] + params.sin * plans.feet[i, leg, 1] - body_at_lift_off
    swing_end = params.cos * x + params.sin * y - body_at_touch_down
    low, high = foot_order_bounds(context, paths, plans, i, leg, sample)
    if not (low <= swing_end + body_at_touch_down <= high and is_swing_order_valid(context, paths, plans, i, sample)):
        return False
    for k in range(plans.in_stance.shape[1]):
        if k == leg or side[k] != side[leg] or not plans.in_stance[i, k]:
            continue
        other_position = params.cos * plans.feet[i, k, 0] + params.sin * plans.feet[i, k, 1]
        if stance_feet[k, 0] > stance_feet[leg, 0]:
            if (
                swing_start
                > min(other_position - body_at_lift_off, other_position - body_at_touch_down)
                - PASSING_GAP_FRACTION * params.min_foot_gap
            ):
                return False
        elif (
            swing_end < swing_start
            and swing_end
            < max(other_position - body_at_lift_off, other_position - body_at_touch_down)
            + PASSING_GAP_FRACTION * params.min_foot_gap
        ):
            return False
    return True
