"""Partial plans as arrays for kernels, the body paths they follow, the log of their events, and counter-based random
numbers.

A random number depends only on its key and its index, so that a plan is the same in any order and on any number of
cores.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel
from roboyard.geometry.arrays import I64, Array, Flags

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.uint64(1),)])
def mix_bits(word: np.uint64) -> np.uint64:
    """Return a word with each bit spread over all bits.  Steele, Lea, Flood: Fast splittable pseudorandom numbers,
    2014."""
    x = word
    x = (x ^ (x >> np.uint64(30))) * _FIRST
    x = (x ^ (x >> np.uint64(27))) * _SECOND
    return x ^ (x >> np.uint64(31))


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.uint64(1), 0)])
def derive_key(parent: np.uint64, number: int) -> np.uint64:
    """Return the key of a stream from its parent's key and its number."""
    return mix_bits(parent + _GOLDEN * np.uint64(number + 1))


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(np.uint64(1), 0)])
def uniform_draw(key: np.uint64, number: int) -> float:
    """Return the draw of a stream with a number: from 0 up to 1."""
    return float(derive_key(key, number) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(0.5, 0.0, 0.5, 1.0)])
def triangular_quantile(fraction: float, low: float, mode: float, high: float) -> float:
    """Convert a uniform draw to one of a triangular distribution."""
    width = high - low
    if width <= 0.0:
        return low
    mode_fraction = (mode - low) / width
    if fraction < mode_fraction:
        return low + math.sqrt(fraction * width * (mode - low))
    return high - math.sqrt((1.0 - fraction) * width * (high - mode))


PATH_SPACING: Final = 0.01
"""Distance between samples of a body path [m]."""
MAX_EVENTS: Final = 1000
"""Largest number of events of a plan."""
MAX_PATH_SAMPLES: Final = 2048
"""Largest number of samples of a body path, 20 m."""


class StepEvent(IntEnum):
    """Kind of a row of the event log."""

    LIFT_OFF = 0
    TOUCH_DOWN = 1
    PATH_CHANGE = 2
    """The body continues on another path; this is no event of a plan."""


class PlanningParameters(NamedTuple):
    """Parameters of a planning problem.

    Attributes:
        x: Smallest x of the map, at the edge of the first column [m].
        y: Smallest y of the map [m].
        cell_size: Edge of the map's cells [m].
        cells_per_meter: Cells of a reachability table per meter.
        layers_per_meter: Layers of a reachability table per meter.
        min_foot_gap: Minimum distance along the body between feet of one side [m].
        limb_radius: Radius of a limb [m].
        cos: Cosine of the heading.
        sin: Sine of the heading.
        min_stability_margin: Minimum distance of the body's center from the edges of the support polygon [m].
        forward_step: Distance by which feet are placed ahead of their positions in the stance [m].
        step_spread: Maximum deviation of sampled footholds from there, along x and y [m].
        min_swing_clearance: Minimum height of swing feet above everything they pass [m].
        body_speed: Approximate maximum speed of the body [m/s].
        foot_speed: Approximate maximum speed of a swing foot [m/s].
        tipping_weight: Cost weight of small stability margins.
        foothold_weight: Cost weight of poor footholds.
        joint_work_weight: Cost weight of the joints' work.
        leg_loss_weight: Cost weight of the instability after the loss of one foot.
        height_tolerance: Uncertainty of the heights: swing feet may pass this far below them [m].
        max_detour: Maximum length of a detour [m].
        robot_scale: Size of the robot relative to the reference robot.
    """

    x: float
    y: float
    cell_size: float
    cells_per_meter: float
    layers_per_meter: float
    min_foot_gap: float
    limb_radius: float
    cos: float
    sin: float
    min_stability_margin: float
    forward_step: float
    step_spread: float
    min_swing_clearance: float
    body_speed: float
    foot_speed: float
    tipping_weight: float
    foothold_weight: float
    joint_work_weight: float
    leg_loss_weight: float
    height_tolerance: float
    max_detour: float
    robot_scale: float


class PlanningContext(NamedTuple):
    """Constant inputs of a search: robot model, terrain, start and goal.

    The tuple is flat, and its numbers are separate, since kernels count references of each array in every tuple they
    pass on.

    Attributes:
        stance_reach: (l, n, n) see `FreeGaitModelArrays`.
        swing_reach: (l, n, n) see `FreeGaitModelArrays`.
        table_origin: (l, 3) see `FreeGaitModelArrays`.
        stance_feet: (l, 3) see `FreeGaitModelArrays`.
        leg_side: (l,) see `FreeGaitModelArrays`.
        heights: (rows, columns) see `FootholdMapArrays`.
        obstacle_height: (rows, columns) see `FootholdMapArrays`.
        can_stand: (rows, columns) see `FootholdMapArrays`.
        foothold_quality: (rows, columns) see `FootholdMapArrays`.
        body_height: (rows, columns) see `FootholdMapArrays`.
        search_offsets: (k, 2) see `FootholdMapArrays`.
        distance_to_goal: (r, c) see `compute_distance_to_goal`.
        start: (2,) start position of the body's center [m].
        goal: (2,) goal position [m].
        start_feet: (l, 3) foot positions at the start [m].
        parameters: Parameters of the problem.
    """

    stance_reach: NDArray[np.uint64]
    swing_reach: NDArray[np.uint64]
    table_origin: Array
    stance_feet: Array
    leg_side: I64
    heights: Array
    obstacle_height: Array
    can_stand: Flags
    foothold_quality: Array
    body_height: Array
    search_offsets: I64
    distance_to_goal: Array
    start: Array
    goal: Array
    start_feet: Array
    parameters: PlanningParameters


class PartialPlans(NamedTuple):
    """Partial plans, one per row.

    Attributes:
        feet: (p, l, 3) foot positions; for swing feet those before lift-off [m].
        in_stance: (p, l) feet on the ground.
        foot_interval: (p, l, 2) first and last sample of the path from which a stance foot is reachable.
        events_since_change: (p, l) events since a foot last changed.
        body_interval: (p, 2) first and last sample where the body can be now.
        body_sample: (p,) sample of the body at the last event.
        max_sample: (p,) largest sample of the body so far.
        lift_off_sample: (p, l) sample of the body at the lift-off of a swing foot.
        last_log_row: (p,) row of the last event in the log.
        sampled_foothold: (p, 2) sampled position of the foot that touched down last [m].
        n_events: (p,) number of events.
        path: (p,) index of the body path.
        edge_buffer: (12, 3) scratch memory for edges of a polygon.
        weight_buffer: (l,) scratch memory for selection weights.
    """

    feet: Array
    in_stance: Flags
    foot_interval: I64
    events_since_change: Array
    body_interval: I64
    body_sample: I64
    max_sample: I64
    lift_off_sample: I64
    last_log_row: I64
    sampled_foothold: Array
    n_events: I64
    path: I64
    edge_buffer: Array
    weight_buffer: Array


class BodyPaths(NamedTuple):
    """Paths of the body.

    Attributes:
        positions: (w, n, 3) positions of the body frame [m].
        n_samples: (w,) number of samples.
    """

    positions: Array
    n_samples: I64


class EventLog(NamedTuple):
    """Events of all plans; each row refers to the previous event of its plan.

    Attributes:
        previous: (n,) row of the previous event, -1 without one.
        leg: (n,) leg; -1 in a plan's first row and at a change of the path.
        kind: (n,) LIFT_OFF, TOUCH_DOWN or PATH_CHANGE.
        position: (n, 3) foot position [m].
        sampled_foothold: (n, 2) sampled position of a foot that touches down [m].
        body_interval: (n, 2) samples where the body can be after the event.
        body_sample: (n,) sample of the body at the event.
        max_sample: (n,) largest sample of the body until then.
        n_rows: (1,) number of rows in use.
    """

    previous: I64
    leg: I64
    kind: I64
    position: Array
    sampled_foothold: Array
    body_interval: I64
    body_sample: I64
    max_sample: I64
    n_rows: I64


class SearchState(NamedTuple):
    """What the kernels that add events to partial plans take: the constant inputs, and the plans under construction.

    Attributes:
        context: Constant inputs of the search.
        paths: Body paths of the plans.
        plans: Partial plans.
        log: Events of the plans.
    """

    context: PlanningContext
    paths: BodyPaths
    plans: PartialPlans
    log: EventLog


def empty_partial_plans(n_plans: int, n_legs: int) -> PartialPlans:
    """Return memory for partial plans."""
    return PartialPlans(
        np.zeros((n_plans, n_legs, 3)),
        np.zeros((n_plans, n_legs), np.bool_),
        np.zeros((n_plans, n_legs, 2), np.int64),
        np.zeros((n_plans, n_legs)),
        np.zeros((n_plans, 2), np.int64),
        np.zeros(n_plans, np.int64),
        np.zeros(n_plans, np.int64),
        np.zeros((n_plans, n_legs), np.int64),
        np.zeros(n_plans, np.int64),
        np.zeros((n_plans, 2)),
        np.zeros(n_plans, np.int64),
        np.zeros(n_plans, np.int64),
        np.zeros((12, 3)),
        np.zeros(n_legs),
    )


def empty_body_paths(n_paths: int) -> BodyPaths:
    """Return memory for body paths."""
    return BodyPaths(np.zeros((n_paths, MAX_PATH_SAMPLES, 3)), np.zeros(n_paths, np.int64))


def empty_event_log(n_rows: int) -> EventLog:
    """Return memory for events."""
    return EventLog(
        np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64), np.zeros((n_rows, 3)),
        np.zeros((n_rows, 2)), np.zeros((n_rows, 2), np.int64), np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64),
        np.zeros(1, np.int64),
    )  # fmt: skip


def example_context() -> PlanningContext:
    """Return the context with which kernels are compiled."""
    grid, points, point, reach_table = np.zeros((2, 2)), np.zeros((1, 3)), np.zeros(2), np.zeros((1, 2, 2), np.uint64)
    return PlanningContext(
        reach_table, reach_table, points, points, np.ones(1, np.int64), grid, grid, grid > 0.0, grid, grid,
        np.zeros((1, 2), np.int64), grid, point, point, points, PlanningParameters(*(0.1,) * 22),
    )  # fmt: skip


def example_search_state() -> SearchState:
    """Return the state with which kernels are compiled; its parts are the first arguments of other kernels."""
    return SearchState(example_context(), empty_body_paths(1), empty_partial_plans(1, 1), empty_event_log(2))


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(empty_partial_plans(2, 1), 0, 1)])
def copy_plan(plans: PartialPlans, source: int, target: int) -> None:
    """Copy a partial plan."""
    for leg in range(plans.in_stance.shape[1]):
        plans.in_stance[target, leg] = plans.in_stance[source, leg]
        plans.events_since_change[target, leg] = plans.events_since_change[source, leg]
        plans.lift_off_sample[target, leg] = plans.lift_off_sample[source, leg]
        plans.foot_interval[target, leg, 0], plans.foot_interval[target, leg, 1] = (
            plans.foot_interval[source, leg, 0],
            plans.foot_interval[source, leg, 1],
        )
        for k in range(3):
            plans.feet[target, leg, k] = plans.feet[source, leg, k]
    plans.body_interval[target, 0], plans.body_interval[target, 1] = (
        plans.body_interval[source, 0],
        plans.body_interval[source, 1],
    )
    plans.body_sample[target], plans.last_log_row[target] = plans.body_sample[source], plans.last_log_row[source]
    plans.max_sample[target] = plans.max_sample[source]
    plans.n_events[target], plans.path[target] = plans.n_events[source], plans.path[source]


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(empty_body_paths(2), 0, 1)])
def copy_path(paths: BodyPaths, source: int, target: int) -> None:
    """Copy a body path."""
    paths.n_samples[target] = paths.n_samples[source]
    for k in range(paths.n_samples[source]):
        for j in range(3):
            paths.positions[target, k, j] = paths.positions[source, k, j]


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(empty_partial_plans(1, 1), empty_event_log(2), 0, 0, StepEvent.TOUCH_DOWN)],
)
def append_event(plans: PartialPlans, log: EventLog, i: int, leg: int, kind: int) -> bool:
    """Append the last event of plan ``i`` to the log; return whether the log has room.  Leg -1: the plan's start."""
    row = log.n_rows[0]
    if row >= log.previous.shape[0]:
        return False
    log.n_rows[0] += 1
    log.previous[row], log.leg[row], log.kind[row], log.body_sample[row] = (
        plans.last_log_row[i],
        leg,
        kind,
        plans.body_sample[i],
    )
    for k in range(3):
        log.position[row, k] = plans.feet[i, max(leg, 0), k]
    log.sampled_foothold[row, 0], log.sampled_foothold[row, 1] = (
        plans.sampled_foothold[i, 0],
        plans.sampled_foothold[i, 1],
    )
    log.body_interval[row, 0], log.body_interval[row, 1] = plans.body_interval[i, 0], plans.body_interval[i, 1]
    log.max_sample[row], plans.last_log_row[i] = plans.max_sample[i], row
    return True
