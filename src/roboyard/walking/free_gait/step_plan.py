"""Step plan: body track and swings over time, the trajectory of a swing foot, and conversion to a foot movement."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from roboyard.compute import kernel
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array, Flags, Vec3
from roboyard.walking.foot_movement import TICK_PERIOD, FootMovement
from roboyard.walking.legged_robot import LeggedRobot

RISE_FRACTION: Final = 0.3
"""Fraction of a swing in which the foot rises, and in which it comes down."""
LEAD_FRACTION: Final = 0.1
"""Fraction of a swing after which, and before whose end, the foot moves evenly in the body frame."""
HOLD_FRACTION: Final = 0.15
"""Fraction of a swing in which the foot stays above its foothold, at either end."""


@kernel(no_refcount=True, forceinline=True, examples=lambda: [(0.5,)])
def cosine_ease(fraction: float) -> float:
    """Return progress 0 to 1 for a fraction 0 to 1 by half a cosine, as the thesis's playback."""
    if fraction <= 0.0:
        return 0.0
    return 0.5 - 0.5 * math.cos(math.pi * fraction) if fraction < 1.0 else 1.0


class SwingGeometry(NamedTuple):
    """Where a swing leads.

    Attributes:
        start: (3,) lift-off position [m].
        end: (3,) touch-down position [m].
        apex_height: Height of the apex [m].
        vertical_scale: Factor on the fractions of the swing that lift-off and touch-down take: less than 1 for long
            swings.
    """

    start: Array
    end: Array
    apex_height: float
    vertical_scale: float


@kernel(
    no_refcount=True,
    forceinline=True,
    examples=lambda: [(SwingGeometry(np.zeros(3), np.zeros(3), 0.1, 1.0), 0.5, *(np.zeros(3),) * 4)],
)
def swing_position(
    swing: SwingGeometry, fraction: float, body: Array, body_start: Array, body_end: Array, out: Array
) -> None:
    """Compute the position (3,) of a swing foot at a fraction of its swing: up, across, down, overlapping.

    Off the ground the foot moves evenly in the body frame rather than in the world, so that its leg reaches it however
    unevenly the body moves.

    Args:
        swing: The swing.
        fraction: Fraction of its duration, 0 to 1.
        body: (3,) position of the body at that time [m].
        body_start: (3,) position of the body at lift-off [m].
        body_end: (3,) position of the body at touch-down [m].
        out: (3,) receives the position of the foot [m].
    """
    start, end, apex_height, vertical_scale = swing
    progress = cosine_ease((fraction - HOLD_FRACTION * vertical_scale) / (1.0 - 2.0 * HOLD_FRACTION * vertical_scale))
    height_fraction, body_lead = (
        cosine_ease(min(fraction, 1.0 - fraction) / (RISE_FRACTION * vertical_scale)),
        cosine_ease(min(fraction, 1.0 - fraction) / (LEAD_FRACTION * vertical_scale)),
    )
    for k in range(2):
        body_offset = body[k] - body_start[k] - progress * (body_end[k] - body_start[k])
        out[k] = start[k] + progress * (end[k] - start[k]) + body_lead * body_offset
    base_height = start[2] if fraction < 0.5 else end[2]
    out[2] = base_height + (apex_height - base_height) * height_fraction


@dataclass(frozen=True)
class Swing:
    """One swing of a foot.

    Attributes:
        leg: Index of the leg.
        lift_off_time: Time of lift-off [s].
        touch_down_time: Time of touch-down [s].
        source: (3) lift-off position [m].
        target: (3) touch-down position [m].
        apex_height: Height of the swing's apex [m].
        vertical_time: Duration of a swing in which lift-off and touch-down take their usual fractions; longer swings
            keep those times [s].
        sampled_foothold: (2) position around which the foothold was searched, nearest first [m]; None: unknown.
    """

    leg: int
    lift_off_time: float
    touch_down_time: float
    source: Vec3
    target: Vec3
    apex_height: float
    vertical_time: float
    sampled_foothold: tuple[float, float] | None = field(default=None, compare=False)

    @property
    def vertical_scale(self) -> float:
        """Factor on the usual fractions of lift-off and touch-down, at most 1."""
        return min(1.0, self.vertical_time / max(self.touch_down_time - self.lift_off_time, 1e-12))


@dataclass(frozen=True)
class SearchStatistics:
    """Statistics of a search.

    Attributes:
        planner: Name of the planner.
        seed: Seed of the random numbers.
        events: Events that were tried.
        candidates: Candidates that were started.
        arrivals: Candidates that reached the goal.
        evaluated: Arrivals that were evaluated exactly.
        rejected: Evaluated plans that were rejected.
    """

    planner: str = ""
    seed: int = 0
    events: int = 0
    candidates: int = 0
    arrivals: int = 0
    evaluated: int = 0
    rejected: int = 0

    def __add__(self, other: SearchStatistics) -> SearchStatistics:
        return SearchStatistics(
            self.planner, self.seed, self.events + other.events, self.candidates + other.candidates,
            self.arrivals + other.arrivals, self.evaluated + other.evaluated, self.rejected + other.rejected,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class StepPlan:
    """A step plan.

    Attributes:
        heading: Constant heading of the body [rad].
        start_feet: (l, 3) foot positions at the start [m].
        body_track: (n, 4) time [s] and position [m] of the body frame, linear in between.
        swings: The swings in the order of lift-off.
        cost: Duration, increased by small stability margins and poor footholds [s].
        tipping_cost: Mean closeness to tipping, 0 to 1.
        statistics: Statistics of the search.
    """

    heading: float
    start_feet: Array = field(repr=False)
    body_track: Array = field(repr=False)
    swings: tuple[Swing, ...] = field(repr=False)
    cost: float = math.nan
    tipping_cost: float = math.nan
    statistics: SearchStatistics = SearchStatistics()

    @property
    def duration(self) -> float:
        """Duration of the plan [s]."""
        return float(self.body_track[-1, 0])

    @property
    def path_length(self) -> float:
        """Length of the body's path [m]."""
        return float(np.linalg.norm(np.diff(self.body_track[:, 1:], axis=0), axis=1).sum())

    def body_positions(self, times: ArrayLike) -> Array:
        """Return (n, 3) positions of the body frame [m] at times (n,) [s]."""
        t = np.asarray(times, dtype=np.float64)
        return np.stack([np.interp(t, self.body_track[:, 0], self.body_track[:, 1 + k]) for k in range(3)], axis=-1)

    def body_velocity(self, time: float) -> Array:
        """Return the planar velocity (3,) of the body in its own frame over the next tenth of a second [m/s]."""
        (x0, y0, _), (x1, y1, _) = self.body_positions([time, time + 0.1]).tolist()
        c, s = math.cos(self.heading), math.sin(self.heading)
        vx, vy = 10.0 * (x1 - x0), 10.0 * (y1 - y0)
        return np.array([c * vx + s * vy, c * vy - s * vx, 0.0])

    @property
    def footholds(self) -> Array:
        """(n, 3) touch-down positions [m]."""
        return np.array([swing.target for swing in self.swings], np.float64).reshape(-1, 3)

    def foot_states(self, times: ArrayLike) -> tuple[Array, Flags]:
        """Return foot positions (n, l, 3) in the world [m] and which feet are in stance (n, l), at times (n,) [s]."""
        t = np.asarray(times, dtype=np.float64)
        foot_positions = np.repeat(self.start_feet[None], len(t), axis=0)
        in_stance = np.ones(foot_positions.shape[:2], np.bool_)
        for swing in self.swings:
            leg, a, b = swing.leg, np.array(swing.source), np.array(swing.target)
            foot_positions[t >= swing.touch_down_time, leg] = b
            is_swinging = (t > swing.lift_off_time) & (t < swing.touch_down_time)
            fraction = (t[is_swinging] - swing.lift_off_time) / max(swing.touch_down_time - swing.lift_off_time, 1e-12)
            foot_positions[is_swinging, leg] = _swing_positions(
                a,
                b,
                swing.apex_height,
                fraction,
                swing.vertical_scale,
                *(self.body_positions(u) for u in (t[is_swinging], [swing.lift_off_time], [swing.touch_down_time])),
            )
            in_stance[is_swinging, leg] = False
        return foot_positions, in_stance

    def foot_positions_in_body(self, times: ArrayLike) -> Array:
        """Return foot positions (n, l, 3) in the body frame [m] at times (n,) [s]."""
        foot_positions, _ = self.foot_states(times)
        rotation = SE3.from_xyz_rpy((0.0, 0.0, 0.0), (0.0, 0.0, self.heading)).matrix()[:3, :3]
        local_positions: Array = (foot_positions - self.body_positions(times)[:, None]) @ rotation
        return local_positions

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        swings, statistics = [asdict(swing) for swing in self.swings], asdict(self.statistics)
        return {
            "heading": self.heading,
            "start_feet": self.start_feet.copy(),
            "body_track": self.body_track.copy(),
            "cost": self.cost,
            "tipping_cost": self.tipping_cost,
            "swings": swings,
            "statistics": statistics,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> StepPlan:
        """Return the plan that `to_dict` converted."""
        tuple_fields = ("source", "target", "sampled_foothold")
        swings = tuple(
            Swing(**(swing | {name: tuple(swing[name]) for name in tuple_fields if swing[name] is not None}))
            for swing in data["swings"]
        )
        return cls(
            data["heading"],
            np.array(data["start_feet"]),
            np.array(data["body_track"]),
            swings,
            data["cost"],
            data["tipping_cost"],
            SearchStatistics(**data["statistics"]),
        )


def _swing_positions(
    a: Array,
    b: Array,
    apex_height: float,
    fraction: Array,
    vertical_scale: float,
    body_positions: Array,
    body_at_lift_off: Array,
    body_at_touch_down: Array,
) -> Array:
    """Return (n, 3) positions of a swing foot at fractions of its swing, see `swing_position`; body positions (n or 1,
    3)."""

    def cosine_ease_array(x: Array) -> Array:
        return 0.5 - 0.5 * np.cos(np.pi * np.clip(x, 0.0, 1.0))

    progress = cosine_ease_array(
        (fraction - HOLD_FRACTION * vertical_scale) / (1.0 - 2.0 * HOLD_FRACTION * vertical_scale)
    )
    out = a + progress[:, None] * (b - a)
    height_fraction, base_height = (
        cosine_ease_array(np.minimum(fraction, 1.0 - fraction) / (RISE_FRACTION * vertical_scale)),
        np.where(fraction < 0.5, a[2], b[2]),
    )
    body_lead = cosine_ease_array(np.minimum(fraction, 1.0 - fraction) / (LEAD_FRACTION * vertical_scale))
    out[:, :2] += (
        body_lead[:, None]
        * (body_positions - body_at_lift_off - progress[:, None] * (body_at_touch_down - body_at_lift_off))
    )[:, :2]
    out[:, 2] = base_height + (apex_height - base_height) * height_fraction
    return out


_MAX_MOVEMENT_STEPS: Final = 12_000
"""Largest number of steps of a movement, so that its XML file for six feet can be read with the usual limits."""


def to_foot_movement(
    plan: StepPlan, legged_robot: LeggedRobot, *, speed_scale: float = 1.0, name: str = "plan"
) -> FootMovement:
    """Return the foot movement of a plan, with one step for each period of 20 ms.

    The movement contains all motion: stance feet move backward in the body frame as the body advances, and down as it
    climbs.  Played with one tick per step, as it states, the feet have the plan's positions in each period.

    Args:
        plan: The plan.
        legged_robot: The robot.
        speed_scale: Fraction of the plan's speed.
        name: Name of the movement.

    Raises:
        InputError: The speed scale is not valid, or the plan has too many periods.
    """
    if not 0.0 < speed_scale <= 1.0:
        raise InputError(f"speed scale {speed_scale:g}", valid="more than 0, up to 1")
    n_steps = math.ceil(plan.duration / (TICK_PERIOD * speed_scale) - 1e-9) + 1
    if n_steps > _MAX_MOVEMENT_STEPS:
        raise InputError(
            f"a movement of {n_steps} steps",
            valid=f"up to {_MAX_MOVEMENT_STEPS}: a shorter plan, or a larger speed scale",
        )
    times = np.minimum(np.arange(n_steps) * TICK_PERIOD * speed_scale, plan.duration)
    return FootMovement(
        (plan.foot_positions_in_body(times) - legged_robot.stance_feet).transpose(1, 0, 2), name, step_ticks=1
    )
