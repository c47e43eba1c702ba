"""Movements: places of every foot, step after step, beside the stance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError, RoboyardError
from roboyard.geometry.arrays import Array
from roboyard.walking.walker import Walker

Between = Literal["cosine", "spline"]

PERIOD: Final = 0.02
"""Between two set-points [s]."""
TICKS: Final = 8
"""Periods from one step to the next, unless a joint would be too fast."""
_MOST_TICKS: Final = 100_000


@dataclass(frozen=True, eq=False)
class Movement:
    """Steps of feet.

    Attributes:
        steps: (l, k, 3) where each foot is at each step, beside its place in the stance, in the body's frame [m].
        name: Of it.
        ticks: Periods from one step to the next that it was made for; None: whatever the player takes.
    """

    steps: Array = field(repr=False)
    name: str = ""
    ticks: int | None = None

    def __post_init__(self) -> None:
        if self.ticks is not None and not 1 <= self.ticks <= _MOST_TICKS:
            raise InputError(
                f"{self.ticks} ticks", location=f"movement {self.name}".strip(), valid=f"1 to {_MOST_TICKS}"
            )
        steps = np.array(self.steps, dtype=np.float64)
        if steps.ndim != 3 or steps.shape[2] != 3 or 0 in steps.shape or not np.isfinite(steps).all():
            raise InputError(
                f"steps of shape {steps.shape}",
                location=f"movement {self.name}".strip(),
                valid="finite numbers (l, k, 3)",
            )
        steps.flags.writeable = False
        object.__setattr__(self, "steps", steps)

    @property
    def legs(self) -> int:
        """Number of feet."""
        return len(self.steps)

    @property
    def count(self) -> int:
        """Number of steps."""
        return int(self.steps.shape[1])


@dataclass(frozen=True, eq=False)
class Played:
    """A movement as set-points, one each period.

    Attributes:
        q: (t, l, 3) joints [rad].
        ticks: (k - 1) periods from each step to the next.
        period: Between two set-points [s].
    """

    q: Array = field(repr=False)
    ticks: NDArray[np.int64]
    period: float

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return (len(self.q) - 1) * self.period


def feet_of(movement: Movement, walker: Walker) -> Array:
    """(k, l, 3) places of the feet in the body [m]. Raises InputError where the robot has other feet."""
    if movement.legs != len(walker.legs):
        raise InputError(
            f"{movement.legs} feet",
            location=f"movement {movement.name}".strip(),
            valid=f"{len(walker.legs)}, as {walker.robot} has",
        )
    return walker.stance_feet + movement.steps.transpose(1, 0, 2)


def check_movement(movement: Movement, walker: Walker) -> Array:
    """Joints (k, l, 3) [rad] at each step.

    Raises:
        RoboyardError: a foot cannot be there; with step, leg, joint, value and limit.
    """
    near, found = walker.stance, []
    for number, feet in enumerate(feet_of(movement, walker)):
        try:
            near = walker.reach(feet, near)
        except RoboyardError as error:
            error.message = f"step {number}: {error.message}"
            raise
        found.append(near)
    return np.array(found)


def play(
    movement: Movement,
    walker: Walker,
    *,
    between: Between = "cosine",
    period: float = PERIOD,
    ticks: int | None = None,
    speed: float = 1.0,
    start: ArrayLike | None = None,
) -> Played:
    """Set-points of a movement: feet go from step to step, as slowly as the slowest joint asks.

    Args:
        movement: What to play.
        walker: Who.
        between: "cosine": each foot goes straight, gently at both ends; "spline": a cubic one through all steps, at
            rest at its ends.
        period: Between two set-points [s].
        ticks: Periods from one step to the next; more where a joint would be too fast.  None: those that the movement
            was made for, or else `TICKS`; and `TICKS` or more to its first step.
        speed: Share of the joints' speeds that is used.
        start: (l, 3) feet in the body to begin at [m]; the movement's first step unless given.

    Raises:
        RoboyardError: a foot cannot be where it shall.
        InputError: a parameter is none.
    """
    if ticks is None:
        ticks = movement.ticks or TICKS
    if not 0.0 < period <= 1.0 or not 1 <= ticks <= _MOST_TICKS or not 0.0 < speed <= 1.0:
        raise InputError(
            f"period {period} s, {ticks} ticks, speed {speed}", valid="up to 1 s; 1 tick or more; a share up to 1"
        )
    check_movement(movement, walker)
    places = feet_of(movement, walker)
    if start is not None:
        places = np.concatenate([np.asarray(start, dtype=np.float64).reshape(1, -1, 3), places])
    counts = np.full(max(len(places) - 1, 0), ticks, np.int64)
    if start is not None:
        counts[0] = max(ticks, TICKS)
    most = walker.speeds * speed * period * (1.0 + 1e-9)
    while True:
        way = _between(places, counts, between)
        q = _followed(walker, way)
        if len(q) < 2:
            return Played(q, counts, period)
        share = (np.abs(np.diff(q, axis=0)) / most).max(axis=(1, 2))
        ends = np.concatenate([[0], np.cumsum(counts)])
        worst = np.array([share[a:b].max() for a, b in pairwise(ends)])
        slow = worst > 1.0
        if not slow.any():
            return Played(q, counts, period)
        counts = np.where(slow, np.maximum(counts + 1, np.ceil(counts * worst).astype(np.int64)), counts)
        if counts.max() > _MOST_TICKS:
            raise InputError("a joint would have to be endlessly slow", valid="feet away from their first axes")


def _between(places: Array, counts: NDArray[np.int64], between: Between) -> Array:
    """(t, l, 3) feet at each period."""
    if len(places) == 1:
        return places
    if between == "spline":
        from scipy.interpolate import CubicSpline  # it brings half of SciPy, and few movements are splines

        knots = np.concatenate([[0], np.cumsum(counts)]).astype(np.float64)
        curve = CubicSpline(knots, places.reshape(len(places), -1), bc_type="clamped")
        found: Array = curve(np.arange(int(knots[-1]) + 1)).reshape(-1, *places.shape[1:])
        return found
    pieces = [places[:1]]
    for a, b, count in zip(places, places[1:], counts.tolist(), strict=False):
        share = 0.5 - 0.5 * np.cos(math.pi * np.arange(1, count + 1) / count)
        pieces.append(a + share[:, None, None] * (b - a))
    return np.concatenate(pieces)


def _followed(walker: Walker, way: Array) -> Array:
    """Joints (t, l, 3) along a way of the feet, each near to those before."""
    near, out = walker.stance, np.empty_like(way)
    for k, feet in enumerate(way):
        near = out[k] = walker.reach(feet, near)
    return out
