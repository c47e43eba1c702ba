"""What a planner of steps is asked: where from, where to, over which ground, on which legs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.walking.errors import BadGoal, BadStart
from roboyard.walking.stability import stability_margin
from roboyard.walking.steps.draft import Draft
from roboyard.walking.steps.ground import Ground
from roboyard.walking.steps.ground_kernels import body_height
from roboyard.walking.steps.guide import way_lengths
from roboyard.walking.steps.herd import LONGEST, STEP, Numbers, PlanningContext
from roboyard.walking.steps.rig import Rig
from roboyard.walking.steps.rig_kernels import Limbs
from roboyard.walking.steps.support import FEWEST

_STEP: Final = 0.05
_SPREAD: Final = 0.05
_LIFT: Final = 0.03
_BEND: Final = 0.5
"""Of the Akrobat [m]."""


@dataclass(frozen=True)
class Rating:
    """What a plan costs beside its duration: each weight is the share by which the worst makes it longer.

    Attributes:
        tipping: Weight of how near the body is to tipping.
        footing: Weight of how poor the ground is under the feet.
        energy: Weight of the work that the joints do; 1: raising the robot as fast as it can go counts as its time.
        leg_loss: Weight of how near to tipping the body would be if one foot gave way, whichever would be worst.
    """

    tipping: float = 0.3
    footing: float = 0.3
    energy: float = 0.0
    leg_loss: float = 0.0

    def __post_init__(self) -> None:
        for name, weight in asdict(self).items():
            if not 0.0 <= weight <= 100.0:
                raise InputError(f"weight {weight:g}", location=f"rating, {name}", valid="0 to 100")


@dataclass(frozen=True, eq=False)
class Problem:
    """From a start to a goal; the body keeps its heading.

    Attributes:
        rig: Who walks.
        ground: On what.
        start: (2,) of the body's middle [m].
        goal: (2,) [m].
        feet: (l, 3) where the feet stand at the start [m].
        rating: What a plan costs.
        past: What all plans begin with, of one that is under way, see `settled`.
    """

    rig: Rig
    ground: Ground
    start: Array
    goal: Array
    feet: Array = field(repr=False)
    rating: Rating = field(default_factory=Rating)
    past: tuple[Draft, Array] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        rig: Rig,
        ground: Ground,
        start: ArrayLike,
        goal: ArrayLike,
        rating: Rating | None = None,
        *,
        feet: ArrayLike | None = None,
    ) -> Problem:
        """From a start to a goal.

        Args:
            rig: Who walks.
            ground: On what.
            start: (2,) of the body's middle [m].
            goal: (2,) [m].
            rating: What a plan costs.
            feet: (l, 3) where feet stand [m]; None: those of the stance, each on the nearest place where it may stand.

        Raises:
            BadStart: outside of the map, in a wall, feet that legs cannot reach, or unstable: with what and where.
            BadGoal: outside, in a wall, or farther than plans are made for.
            InputError: what is given is no two finite numbers.
        """
        first, last = as_position(start, "start"), as_position(goal, "goal")
        for place, error, what in ((first, BadStart, "start"), (last, BadGoal, "goal")):
            _check_body(ground, place, error, what)
            _check_stance(rig, ground, place, error, what)
        if math.dist(first, last) > STEP * (LONGEST - 2):
            raise BadGoal(f"goal {math.dist(first, last):.1f} m away", valid=f"{STEP * (LONGEST - 2):.1f} m or less")
        stand = _standing(rig, ground, first, BadStart, "start") if feet is None else _on_ground(ground, feet)
        _check_reach(rig, ground, first, stand)
        margin = stability_margin(stand, first)
        if margin < rig.margin:
            raise BadStart(
                f"at ({first[0]:.2f}, {first[1]:.2f}) the body is {margin:.3f} m inside of its feet",
                location="start",
                valid=f"{rig.margin:.3f} m or more",
            )
        return cls(rig, ground, first, last, stand, rating or Rating())

    @cached_property
    def guide(self) -> Array:
        """See `way_lengths`."""
        return way_lengths(self.rig, self.ground, self.goal)

    @property
    def world(self) -> PlanningContext:
        """What kernels take."""
        speed_body, speed_foot = _speeds(self.rig)
        c, s = math.cos(self.ground.heading), math.sin(self.ground.heading)
        rig, ground, scale = self.rig.rows, self.ground.rows, self.rig.scale
        number = Numbers(
            ground.x, ground.y, ground.cell, 1.0 / rig.cell, 1.0 / rig.layer, rig.gap, rig.limb, c, s, self.rig.margin,
            _STEP * scale, _SPREAD * scale, _LIFT * scale, speed_body, speed_foot, self.rating.tipping,
            self.rating.footing, self.rating.energy, self.rating.leg_loss, ground.slack, _BEND * scale,
            scale,
        )  # fmt: skip
        return PlanningContext(
            rig.table, rig.air, rig.low, rig.home, rig.side, ground.heights, ground.tops, ground.stand, ground.quality,
            ground.body, ground.rings, self.guide, self.start, self.goal, self.feet, number,
        )  # fmt: skip

    @property
    def limbs(self) -> Limbs:
        """What kernels take."""
        rig = self.rig.rows
        return Limbs(rig.legs, rig.knee, rig.rates, rig.ahead, rig.share)


def as_position(values: ArrayLike, what: str) -> Array:
    """Return a position (2,) in the plane [m]; ``what`` names it in the InputError for other values."""
    try:
        given = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{values!r}", location=what, valid="two finite numbers [m]") from None
    if given.shape != (2,) or not np.isfinite(given).all():
        raise InputError(f"{given.tolist()}", location=what, valid="two finite numbers [m]")
    return given


def _check_body(ground: Ground, place: Array, error: type[BadStart | BadGoal], what: str) -> None:
    rows, x, y = ground.rows, float(place[0]), float(place[1])
    r, c = ground.cell_at(x, y)
    high, wide = np.array(rows.heights.shape) * rows.cell
    if r < 0:
        raise error(
            f"({x:.2f}, {y:.2f}) is outside of the map",
            location=what,
            valid=f"x {rows.x:.2f} to {rows.x + wide:.2f}, y {rows.y:.2f} to {rows.y + high:.2f} m",
        )
    if math.isnan(body_height(rows.body, rows.x, rows.y, rows.cell, x, y)):
        height = "a hole" if math.isnan(rows.heights[r, c]) else f"{rows.heights[r, c]:.2f} m high"
        raise error(
            f"at ({x:.2f}, {y:.2f}) there is no room for the body: the ground of cell ({r}, {c}) is {height}",
            location=what,
            valid="where ground that feet may stand on is about, and none as high as the body",
        )


def _check_stance(rig: Rig, ground: Ground, place: Array, error: type[BadStart | BadGoal], what: str) -> None:
    """Whether three feet, not all on one side, reach ground there."""
    rows, x, y = ground.rows, float(place[0]), float(place[1])
    reached = _reached(rig, ground, place, _standing(rig, ground, place, error, what))
    if reached.sum() < FEWEST or len(set(rig.rows.side[reached].tolist())) < 2:
        cell = ground.cell_at(x, y)
        raise error(
            f"at ({x:.2f}, {y:.2f}), cell {cell} of {rows.heights[cell]:.2f} m, legs {int(reached.sum())} of "
            f"{len(reached)} reach the ground: there is no room for the body",
            location=what,
            valid="where three legs, not all on one side, have ground",
        )


def _check_reach(rig: Rig, ground: Ground, start: Array, feet: Array) -> None:
    """Whether all feet (l, 3) of the start are within their legs' reach. Raises BadStart."""
    reached = _reached(rig, ground, start, feet)
    if not reached.all():
        leg = int(np.argmin(reached))
        x, y, z = feet[leg].tolist()
        raise BadStart(
            f"leg {rig.walker.legs[leg].name} cannot reach the ground nearest to its place, cell "
            f"{ground.cell_at(x, y)} at ({x:.2f}, {y:.2f}), {z:.2f} m high",
            location="start",
            valid="where all feet find ground to stand on",
        )


def _reached(rig: Rig, ground: Ground, place: Array, feet: Array) -> NDArray[np.bool_]:
    """(l,) which feet (l, 3) of the world legs reach, with the body over a place (2,)."""
    rows, c, s = ground.rows, math.cos(ground.heading), math.sin(ground.heading)
    x, y = float(place[0]), float(place[1])
    away = feet - (x, y, body_height(rows.body, rows.x, rows.y, rows.cell, x, y))
    local = np.stack([c * away[:, 0] + s * away[:, 1], c * away[:, 1] - s * away[:, 0], away[:, 2]], axis=-1)
    return rig.walker.reached(local)


def _standing(rig: Rig, ground: Ground, start: Array, error: type[BadStart | BadGoal], what: str) -> Array:
    """(l, 3) places of the feet."""
    rows, c, s = ground.rows, math.cos(ground.heading), math.sin(ground.heading)
    out = np.empty_like(rig.rows.home)
    for leg, (hx, hy, _) in enumerate(rig.rows.home.tolist()):
        r0, c0 = ground.cell_at(start[0] + c * hx - s * hy, start[1] + s * hx + c * hy)
        around = rows.rings + np.array([r0, c0])
        inside = (around >= 0).all(axis=1) & (around < rows.stand.shape).all(axis=1) & (r0 >= 0)
        around = around[inside]
        free = around[rows.stand[around[:, 0], around[:, 1]]]
        if not len(free):
            name = rig.walker.legs[leg].name
            said = f"cell ({r0}, {c0})" if r0 >= 0 else "outside of the map"
            raise error(f"foot {name} has no ground near its place, {said}", location=what, valid="another place")
        row, column = free[0]
        out[leg] = (
            rows.x + (column + 0.5) * rows.cell,
            rows.y + (row + 0.5) * rows.cell,
            rows.heights[row, column],
        )
    return out


def _on_ground(ground: Ground, feet: ArrayLike) -> Array:
    """(l, 3) feet that stand somewhere, none of them below the ground of its cell. Raises BadStart."""
    out, rows = np.array(feet, dtype=np.float64), ground.rows
    for k, (x, y, z) in enumerate(out.tolist()):
        cell = ground.cell_at(x, y)
        if cell[0] < 0 or math.isnan(rows.heights[cell]):
            raise BadStart(
                f"a foot stands at ({x:.2f}, {y:.2f}), where no ground is", location="start", valid="on the map"
            )
        out[k, 2] = max(z, float(rows.heights[cell]))
    return out


def _speeds(rig: Rig) -> tuple[float, float]:
    """About how fast the body can go on its stance, and a foot in the air [m/s]."""
    walker, tiny = rig.walker, 1e-4
    home = walker.reach(walker.stance_feet)
    rates = []
    for axis in range(3):
        moved = walker.stance_feet.copy()
        moved[:, axis] += tiny
        rates.append(float((np.abs(walker.reach(moved) - home) / walker.speeds).max()) / tiny)
    return 1.0 / max(rates[0], rates[1]), 1.0 / max(rates)
