"""Planning problem: robot, foothold map, start, goal and cost weights."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.walking.errors import InvalidStepGoalError, InvalidStepStartError
from roboyard.walking.free_gait.body_paths import compute_distance_to_goal
from roboyard.walking.free_gait.foothold_map import FootholdMap, interpolate_body_height
from roboyard.walking.free_gait.partial_plans import MAX_PATH_SAMPLES, PATH_SPACING, PlanningContext, PlanningParameters
from roboyard.walking.free_gait.plan_draft import PlanDraft
from roboyard.walking.free_gait.robot_model import FreeGaitModel, LegArrays
from roboyard.walking.statics import MIN_SUPPORT_FEET, stability_margin

_FORWARD_STEP: Final = 0.05
_STEP_SPREAD: Final = 0.05
_SWING_CLEARANCE: Final = 0.03
_MAX_DETOUR: Final = 0.5
"""Largest length of a detour, for the Akrobat [m]."""


@dataclass(frozen=True)
class PlanCostWeights:
    """Cost of a plan besides its duration: each weight is the fraction by which the worst case extends the duration.

    Attributes:
        tipping: Weight of small stability margins.
        foothold: Weight of poor footholds.
        joint_work: Weight of the joints' work; 1: lifting the robot at full speed counts as its duration.
        leg_loss: Weight of the instability after the loss of any one foot.
    """

    tipping: float = 0.3
    foothold: float = 0.3
    joint_work: float = 0.0
    leg_loss: float = 0.0

    def __post_init__(self) -> None:
        for name, weight in asdict(self).items():
            if not 0.0 <= weight <= 100.0:
                raise InputError(f"weight {weight:g}", location=f"rating, {name}", valid="0 to 100")


@dataclass(frozen=True, eq=False)
class StepPlanningProblem:
    """A planning problem from a start to a goal; the body keeps its heading.

    Attributes:
        robot_model: The robot.
        foothold_map: The terrain.
        start: (2,) start position of the body's center [m].
        goal: (2,) goal position [m].
        feet: (l, 3) foot positions at the start [m].
        cost_weights: Cost of a plan.
        committed: Events and path that all plans start with, of a running plan, see `committed_events`.
    """

    robot_model: FreeGaitModel
    foothold_map: FootholdMap
    start: Array
    goal: Array
    feet: Array = field(repr=False)
    cost_weights: PlanCostWeights = field(default_factory=PlanCostWeights)
    committed: tuple[PlanDraft, Array] | None = field(default=None, repr=False)

    @classmethod
    def create(
        cls,
        robot_model: FreeGaitModel,
        foothold_map: FootholdMap,
        start: ArrayLike,
        goal: ArrayLike,
        cost_weights: PlanCostWeights | None = None,
        *,
        feet: ArrayLike | None = None,
    ) -> StepPlanningProblem:
        """Return a problem after a check of start and goal.

        Args:
            robot_model: The robot.
            foothold_map: The terrain.
            start: (2,) start position of the body's center [m].
            goal: (2,) goal position [m].
            cost_weights: Cost of a plan.
            feet: (l, 3) foot positions [m]; None: those of the stance, each on the nearest foothold.

        Raises:
            InvalidStepStartError: The start is outside the map, in a wall, out of reach of the legs, or unstable.
            InvalidStepGoalError: The goal is outside the map, in a wall, or too far away.
            InputError: An argument is not two finite numbers.
        """
        first, last = as_position(start, "start"), as_position(goal, "goal")
        for position, error, name in ((first, InvalidStepStartError, "start"), (last, InvalidStepGoalError, "goal")):
            _validate_body_position(foothold_map, position, error, name)
            _validate_stance(robot_model, foothold_map, position, error, name)
        if math.dist(first, last) > PATH_SPACING * (MAX_PATH_SAMPLES - 2):
            raise InvalidStepGoalError(
                f"goal {math.dist(first, last):.1f} m away",
                valid=f"{PATH_SPACING * (MAX_PATH_SAMPLES - 2):.1f} m or less",
            )
        start_feet = (
            _stance_footholds(robot_model, foothold_map, first, InvalidStepStartError, "start")
            if feet is None
            else _raise_to_ground(foothold_map, feet)
        )
        _validate_start_reach(robot_model, foothold_map, first, start_feet)
        margin = stability_margin(start_feet, first)
        if margin < robot_model.min_stability_margin:
            raise InvalidStepStartError(
                f"at ({first[0]:.2f}, {first[1]:.2f}) the body is {margin:.3f} m inside of its feet",
                location="start",
                valid=f"{robot_model.min_stability_margin:.3f} m or more",
            )
        return cls(robot_model, foothold_map, first, last, start_feet, cost_weights or PlanCostWeights())

    @cached_property
    def distance_to_goal(self) -> Array:
        """See `compute_distance_to_goal`."""
        return compute_distance_to_goal(self.robot_model, self.foothold_map, self.goal)

    @property
    def context(self) -> PlanningContext:
        """Constant inputs of a search as arguments of kernels."""
        body_speed, foot_speed = _estimate_speeds(self.robot_model)
        c, s = math.cos(self.foothold_map.heading), math.sin(self.foothold_map.heading)
        model_arrays, map_arrays, scale = self.robot_model.arrays, self.foothold_map.arrays, self.robot_model.scale
        parameters = PlanningParameters(
            map_arrays.x,
            map_arrays.y,
            map_arrays.cell_size,
            1.0 / model_arrays.cell_size,
            1.0 / model_arrays.layer_height,
            model_arrays.min_foot_gap,
            model_arrays.limb_radius,
            c,
            s,
            self.robot_model.min_stability_margin,
            _FORWARD_STEP * scale,
            _STEP_SPREAD * scale,
            _SWING_CLEARANCE * scale,
            body_speed,
            foot_speed,
            self.cost_weights.tipping,
            self.cost_weights.foothold,
            self.cost_weights.joint_work,
            self.cost_weights.leg_loss,
            map_arrays.height_tolerance,
            _MAX_DETOUR * scale,
            scale,
        )
        return PlanningContext(
            model_arrays.stance_reach,
            model_arrays.swing_reach,
            model_arrays.table_origin,
            model_arrays.stance_feet,
            model_arrays.leg_side,
            map_arrays.heights,
            map_arrays.obstacle_height,
            map_arrays.can_stand,
            map_arrays.foothold_quality,
            map_arrays.body_height,
            map_arrays.search_offsets,
            self.distance_to_goal,
            self.start,
            self.goal,
            self.feet,
            parameters,
        )

    @property
    def leg_arrays(self) -> LegArrays:
        """The legs as arguments of kernels."""
        model_arrays = self.robot_model.arrays
        return LegArrays(
            model_arrays.legs,
            model_arrays.knee_side,
            model_arrays.max_joint_speeds,
            model_arrays.leading_leg,
            model_arrays.mass_fractions,
        )


def as_position(values: ArrayLike, name: str) -> Array:
    """Return a position (2,) in the plane [m]; ``name`` names it in the InputError for other values."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{values!r}", location=name, valid="two finite numbers [m]") from None
    if numbers.shape != (2,) or not np.isfinite(numbers).all():
        raise InputError(f"{numbers.tolist()}", location=name, valid="two finite numbers [m]")
    return numbers


def as_pose(values: ArrayLike, name: str) -> tuple[Array, float]:
    """Return a position (2,) in the plane [m] and a heading [rad], 0 for two numbers.

    ``name`` names the pose in the InputError for other values.
    """
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape not in ((2,), (3,)) or not np.isfinite(numbers).all():
        raise InputError(f"{values!r}", location=name, valid="two or three finite numbers [m, m, rad]")
    return numbers[:2].copy(), float(numbers[2]) if len(numbers) == 3 else 0.0


def _validate_body_position(
    foothold_map: FootholdMap, position: Array, error: type[InvalidStepStartError | InvalidStepGoalError], name: str
) -> None:
    arrays, x, y = foothold_map.arrays, float(position[0]), float(position[1])
    r, c = foothold_map.cell_at(x, y)
    height_extent, width_extent = np.array(arrays.heights.shape) * arrays.cell_size
    if r < 0:
        raise error(
            f"({x:.2f}, {y:.2f}) is outside of the map",
            location=name,
            valid=f"x {arrays.x:.2f} to {arrays.x + width_extent:.2f}, y {arrays.y:.2f} to "
            f"{arrays.y + height_extent:.2f} m",
        )
    if math.isnan(interpolate_body_height(arrays.body_height, arrays.x, arrays.y, arrays.cell_size, x, y)):
        height = "a hole" if math.isnan(arrays.heights[r, c]) else f"{arrays.heights[r, c]:.2f} m high"
        raise error(
            f"at ({x:.2f}, {y:.2f}) there is no room for the body: the ground of cell ({r}, {c}) is {height}",
            location=name,
            valid="where ground that feet may stand on is about, and none as high as the body",
        )


def _validate_stance(
    robot_model: FreeGaitModel,
    foothold_map: FootholdMap,
    position: Array,
    error: type[InvalidStepStartError | InvalidStepGoalError],
    name: str,
) -> None:
    """Check whether three feet, not all of one side, reach the ground there."""
    arrays, x, y = foothold_map.arrays, float(position[0]), float(position[1])
    is_reachable = _reachable_feet(
        robot_model, foothold_map, position, _stance_footholds(robot_model, foothold_map, position, error, name)
    )
    if is_reachable.sum() < MIN_SUPPORT_FEET or len(set(robot_model.arrays.leg_side[is_reachable].tolist())) < 2:
        cell = foothold_map.cell_at(x, y)
        raise error(
            f"at ({x:.2f}, {y:.2f}), cell {cell} of {arrays.heights[cell]:.2f} m, legs {int(is_reachable.sum())} of "
            f"{len(is_reachable)} reach the ground: there is no room for the body",
            location=name,
            valid="where three legs, not all on one side, have ground",
        )


def _validate_start_reach(robot_model: FreeGaitModel, foothold_map: FootholdMap, start: Array, feet: Array) -> None:
    """Check whether all feet (l, 3) at the start are in reach. Raises InvalidStepStartError."""
    is_reachable = _reachable_feet(robot_model, foothold_map, start, feet)
    if not is_reachable.all():
        leg = int(np.argmin(is_reachable))
        x, y, z = feet[leg].tolist()
        raise InvalidStepStartError(
            f"leg {robot_model.legged_robot.legs[leg].name} cannot reach the ground nearest to its place, cell "
            f"{foothold_map.cell_at(x, y)} at ({x:.2f}, {y:.2f}), {z:.2f} m high",
            location="start",
            valid="where all feet find ground to stand on",
        )


def _reachable_feet(
    robot_model: FreeGaitModel, foothold_map: FootholdMap, position: Array, feet: Array
) -> NDArray[np.bool_]:
    """Return (l,) which feet (l, 3) in the world the legs reach, with the body above a position (2,)."""
    arrays, c, s = foothold_map.arrays, math.cos(foothold_map.heading), math.sin(foothold_map.heading)
    x, y = float(position[0]), float(position[1])
    offsets = feet - (x, y, interpolate_body_height(arrays.body_height, arrays.x, arrays.y, arrays.cell_size, x, y))
    local_positions = np.stack(
        [c * offsets[:, 0] + s * offsets[:, 1], c * offsets[:, 1] - s * offsets[:, 0], offsets[:, 2]], axis=-1
    )
    return robot_model.legged_robot.is_reachable(local_positions)


def _stance_footholds(
    robot_model: FreeGaitModel,
    foothold_map: FootholdMap,
    start: Array,
    error: type[InvalidStepStartError | InvalidStepGoalError],
    location: str,
) -> Array:
    """Return (l, 3) footholds of the stance at a position."""
    arrays, c, s = foothold_map.arrays, math.cos(foothold_map.heading), math.sin(foothold_map.heading)
    out = np.empty_like(robot_model.arrays.stance_feet)
    for leg, (hx, hy, _) in enumerate(robot_model.arrays.stance_feet.tolist()):
        r0, c0 = foothold_map.cell_at(start[0] + c * hx - s * hy, start[1] + s * hx + c * hy)
        cells = arrays.search_offsets + np.array([r0, c0])
        is_inside = (cells >= 0).all(axis=1) & (cells < arrays.can_stand.shape).all(axis=1) & (r0 >= 0)
        cells = cells[is_inside]
        standable = cells[arrays.can_stand[cells[:, 0], cells[:, 1]]]
        if not len(standable):
            name = robot_model.legged_robot.legs[leg].name
            cell_text = f"cell ({r0}, {c0})" if r0 >= 0 else "outside of the map"
            raise error(
                f"foot {name} has no ground near its place, {cell_text}", location=location, valid="another place"
            )
        row, column = standable[0]
        out[leg] = (
            arrays.x + (column + 0.5) * arrays.cell_size,
            arrays.y + (row + 0.5) * arrays.cell_size,
            arrays.heights[row, column],
        )
    return out


def _raise_to_ground(foothold_map: FootholdMap, feet: ArrayLike) -> Array:
    """Return feet (l, 3), raised to the ground where they are below it. Raises InvalidStepStartError."""
    out, arrays = np.array(feet, dtype=np.float64), foothold_map.arrays
    for k, (x, y, z) in enumerate(out.tolist()):
        cell = foothold_map.cell_at(x, y)
        if cell[0] < 0 or math.isnan(arrays.heights[cell]):
            raise InvalidStepStartError(
                f"a foot stands at ({x:.2f}, {y:.2f}), where no ground is", location="start", valid="on the map"
            )
        out[k, 2] = max(z, float(arrays.heights[cell]))
    return out


def _estimate_speeds(robot_model: FreeGaitModel) -> tuple[float, float]:
    """Return approximate maximum speeds of the body in its stance and of a swing foot [m/s]."""
    legged_robot, step = robot_model.legged_robot, 1e-4
    stance_joints = legged_robot.solve_ik(legged_robot.stance_feet)
    rates = []
    for axis in range(3):
        shifted_feet = legged_robot.stance_feet.copy()
        shifted_feet[:, axis] += step
        rates.append(
            float((np.abs(legged_robot.solve_ik(shifted_feet) - stance_joints) / legged_robot.max_joint_speeds).max())
            / step
        )
    return 1.0 / max(rates[0], rates[1]), 1.0 / max(rates)
