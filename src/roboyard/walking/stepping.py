"""Walking on a gait: where all feet are from one moment to the next, at any twist, through changes of gait and speed.

The gait is only asked when feet rise.  Feet that are down are moved against the body, whatever comes; a foot whose turn
it is rises as soon as the others hold the body, and the body goes no faster than all feet that are down can bear until
their turn.  So changes need no standstill, and feet may come down sooner or later than the gait has it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.walking.gaits import Gait, Pace, against, arch, fastest_foot, moved, pace_of, swung
from roboyard.walking.stability import FEWEST, stability_margin
from roboyard.walking.walker import Walker

Array = NDArray[np.float64]

_STILL: Final = 1e-4
"""Feet slower than this against the body stand [m/s]."""
_AT_HOME: Final = 2e-3
"""A foot so near to its place in the stance need not step when the body stands [m]."""
_SLACK: Final = 1.1
"""Feet that are down may leave their stride by this factor."""
_LEAVING: Final = 0.15
"""Share of a swing in which a foot may still feel the ground that it leaves."""
_NEARLY: Final = 0.005
"""A foot that feels ground when it is no higher above its place in the stance just sets down there [m]."""
_BENDING: Final = 0.1
"""How fast the end of a swing follows a change of the twist [m/s]."""
_DIRECTIONS: Final = 32
"""Paces are worked out for directions on a grid so fine a side."""


@dataclass(frozen=True)
class Steps:
    """How feet step.

    Attributes:
        stride: How far a foot goes on the ground in a stance [m], at most.
        lift: How high feet rise [m].
        slowest: The longest cycle [s]; slower bodies take shorter strides.
        acceleration: Of the fastest foot against the body [m/s²].
        margin: Feet rise only if the body's middle stays so far inside of the others' polygon [m].
        speed: Share of the joints' speeds that is used.
        depth: How far below its place in the stance a foot searches for ground [m]; 0: it does not.
        search: How fast it does [m/s].
        climb: How much higher than ``lift`` a foot rises that has run into something [m].
        levelling: How fast the body comes back to its height above the feet [1/s].
    """

    stride: float = 0.08
    lift: float = 0.03
    slowest: float = 4.0
    acceleration: float = 0.2
    margin: float = 0.01
    speed: float = 0.98
    depth: float = 0.0
    search: float = 0.1
    climb: float = 0.06
    levelling: float = 1.0

    def __post_init__(self) -> None:
        for name in ("stride", "lift", "slowest", "acceleration", "speed", "search"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} of {getattr(self, name):g}", valid="above zero")
        for name in ("margin", "depth", "climb", "levelling"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} of {getattr(self, name):g}", valid="zero or more")


class Stepper:
    """Feet of a walking robot, seen from its body; pure, with explicit state.

    Args:
        walker: Who.
        gait: On which.
        steps: How.

    Attributes:
        feet: (l, 3) where they shall be [m].
        down: (l) which of them are on the ground.
        twist: (3,) what the body does: m/s, m/s, rad/s.
        carried: (3,) how fast the feet that are down have just carried it: no faster than they can bear.
        clock: Cycles so far.
    """

    _STATE = (
        "feet", "down", "twist", "carried", "clock", "_share", "_start", "_end", "_drift", "_swing", "_due",
        "_raised", "_from", "_clear", "_cycle", "_count",
    )  # fmt: skip

    def __init__(self, walker: Walker, gait: Gait, steps: Steps = Steps()) -> None:
        self.walker, self.steps = walker, steps
        count = len(walker.legs)
        self._home = walker.stance_feet
        self.feet = self._home.copy()
        self.down = np.ones(count, bool)
        self.twist = np.zeros(3)
        self.carried = np.zeros(3)
        self.clock = 0.0
        self._share = np.zeros(count)
        self._start, self._end = self._home[:, :2].copy(), self._home[:, :2].copy()
        self._drift, self._swing = np.zeros((count, 2)), np.ones(count)
        self._due = np.zeros(count, bool)
        self._raised, self._from = np.zeros(count), self._home[:, 2].copy()
        self._clear = np.zeros(count, bool)
        self._cycle = steps.slowest
        self._paces: dict[tuple[int, ...], Pace] = {}
        self._count = np.full(count, -1)
        self.gait = gait

    # -- what it is told -----------------------------------------------------------------------------------------------
    def change(self, gait: Gait | None = None, steps: Steps | None = None) -> None:
        """Go on with another gait, or other steps, without standing still."""
        self.gait, self.steps = gait or self.gait, steps or self.steps
        self._paces.clear()
        if gait is not None:
            self._count = np.floor(self.clock - np.array(gait.phases)).astype(int)

    def executable(self, twist: ArrayLike) -> tuple[Array, float]:
        """The twist (3,) in the wanted one's direction that legs can do, and its cycle [s].

        Raises:
            InputError: feet cannot rise that far in the stance.
        """
        wanted = np.asarray(twist, dtype=np.float64)
        speed = fastest_foot(self.walker, wanted)
        if speed < _STILL:
            return np.zeros(3), self._cycle
        reach = float(np.hypot(*self._home[:, :2].T).max())
        grid = np.round(wanted * np.array([1.0, 1.0, reach]) / speed * _DIRECTIONS).astype(int)
        key = tuple(grid.tolist())
        if key not in self._paces:
            direction = grid / np.array([1.0, 1.0, reach])
            self._paces[key] = pace_of(
                self.walker, self.gait, direction, self.steps.stride, self.steps.lift, self.steps.speed
            )
        pace = self._paces[key]
        done = min(speed, pace.speed)
        cycle = min(pace.stride / (self.gait.duty * done), self.steps.slowest)
        return wanted * (done / speed), max(cycle, pace.cycle)

    @property
    def standing(self) -> bool:
        """Whether the body stands with all feet down."""
        return bool(self.down.all()) and not self.twist.any()

    def margin(self) -> float:
        """How far the body's middle is inside of the polygon of the feet that are down [m]."""
        return stability_margin(self.feet[self.down])

    # -- going on ------------------------------------------------------------------------------------------------------
    def advance(self, dt: float, twist: ArrayLike, touching: Sequence[bool] | None = None) -> Array:
        """Where the feet (l, 3) shall be in the body [m] after a time.

        Args:
            dt: How long [s], much shorter than a swing.
            twist: (3,) wanted of the body: m/s, m/s, rad/s; slowed down to what legs can do.
            touching: (l) which feet feel ground; None: nobody knows, the ground is even.
        """
        wanted, self._cycle = self.executable(twist)
        self._ramp(wanted, dt)
        self.carried = self.twist * self._bearable(dt)
        self._carry(dt)
        self._land(dt, touching)
        going = bool(self.twist.any())
        if going or self._astray().any() or not self.down.all():
            self._turns(dt)
            self._rise(dt, going)
        else:
            self._due[:] = False
        return self.feet

    def _ramp(self, wanted: Array, dt: float) -> None:
        change = wanted - self.twist
        most, size = self.steps.acceleration * dt, fastest_foot(self.walker, change)
        self.twist = wanted.copy() if size <= most else self.twist + change * (most / size)

    def _astray(self) -> NDArray[np.bool_]:
        """(l) which feet are not where they stand in the stance."""
        away: NDArray[np.bool_] = np.hypot(*(self.feet - self._home)[:, :2].T) > _AT_HOME
        return away

    def _turns(self, dt: float) -> None:
        """Whose turn to rise comes up in this time."""
        self.clock += dt / self._cycle
        count = np.floor(self.clock - np.array(self.gait.phases)).astype(int)
        self._due |= (count > self._count) & self.down
        self._count = count

    def _along(self) -> Array:
        """(l) cycles since it was each foot's turn."""
        along: Array = self.clock - np.array(self.gait.phases) - self._count
        return along

    def _rise(self, dt: float, going: bool) -> None:
        """Let feet rise whose turn it is, as far as the others hold the body until they are down again."""
        swing = (1.0 - self.gait.duty) * self._cycle
        astray, along = self._astray(), self._along()
        for i in sorted(np.flatnonzero(self._due & self.down).tolist(), key=lambda i: -along[i]):
            if not going and not astray[i]:
                self._due[i] = False
                continue
            others = self.down.copy()
            others[i] = False
            if others.sum() < FEWEST:
                continue
            later = moved(self.feet[others], self.twist, swing)
            if min(stability_margin(self.feet[others]), stability_margin(later)) < self.steps.margin:
                continue
            self.down[i] = self._due[i] = self._clear[i] = False
            late = float(along[i]) * self._cycle
            self._share[i] = late / swing if late <= dt else 0.0
            self._raised[i] = 0.0
            self._start[i], self._swing[i], self._from[i] = self.feet[i, :2], swing, self.feet[i, 2]
            self._end[i], self._drift[i] = self._aimed(i)

    def _land(self, dt: float, touching: Sequence[bool] | None) -> None:
        """Move the feet that are in the air, and set down those that are through, or feel the ground."""
        for i in np.flatnonzero(~self.down).tolist():
            swing = float(self._swing[i])
            felt = touching is not None and bool(touching[i])
            self._clear[i] = self._clear[i] or (not felt and self._share[i] > _LEAVING)
            hit = felt and bool(self._clear[i])
            above = self.feet[i, 2] - self._home[i, 2] > _NEARLY
            if hit and self._share[i] > 0.5 and above:
                self.down[i] = True
                continue
            if hit and self._share[i] <= 0.5 and self._raised[i] < self.steps.climb:
                self._raised[i] += self.steps.lift / (0.5 * swing) * dt
            else:
                self._share[i] += dt / swing
            share = min(float(self._share[i]), 1.0)
            for kept, wanted in zip((self._end[i], self._drift[i]), self._aimed(i), strict=True):
                kept += np.clip(wanted - kept, -_BENDING * dt, _BENDING * dt)
            low = self._from[i] + (self._home[i, 2] - self._from[i]) * share
            height = (self.steps.lift + self._raised[i]) * float(arch(share))
            bottom = self.feet[i, 2] - self.steps.search * dt
            self.feet[i, :2] = swung(self._start[i], self._end[i], self._drift[i], share)
            self.feet[i, 2] = low + height
            if share >= 1.0:
                self._settle(i, bottom, felt=touching is None or felt)

    def _aimed(self, i: int) -> tuple[Array, Array]:
        """Where a foot shall be set down, and how far the ground moves while it is in the air, as it looks now."""
        away = (moved(self._home[i], self.twist, -0.5 * self.gait.duty * self._cycle) - self._home[i])[:2]
        size = float(np.hypot(*away))
        end = self._home[i, :2] + away * min(1.0, 0.5 * self.steps.stride / max(size, 1e-12))
        ends = np.array([self._start[i], end])
        return end, float(self._swing[i]) * np.asarray(against(ends, self.twist)).mean(axis=0)

    def _settle(self, i: int, bottom: float, *, felt: bool) -> None:
        """A foot is through with its swing: it stands, or searches the ground below."""
        lowest = self._home[i, 2] - self.steps.depth
        if self._share[i] > 1.0 + 1e-9:
            self.feet[i, 2] = max(min(bottom, self._home[i, 2]), lowest)
        self.down[i] = felt or self.feet[i, 2] <= lowest + 1e-9

    def _bearable(self, dt: float) -> float:
        """Share of the twist at which all feet that are down are within their strides until their turn."""
        share = 1.0
        turns = np.where(self._due, 0.0, 1.0 - self._along()) * self._cycle
        velocity = against(self.feet, self.twist)
        radius = 0.5 * _SLACK * max(self.steps.stride, 1e-6)
        for i in np.flatnonzero(self.down).tolist():
            vx, vy = velocity[i].tolist()
            speed = math.hypot(vx, vy)
            if speed < _STILL:
                continue
            x, y = (self.feet[i] - self._home[i])[:2].tolist()
            along = (x * vx + y * vy) / speed
            room = along * along + radius * radius - x * x - y * y
            left = math.sqrt(room) - along if room > 0.0 else -along
            share = min(share, max(left, 0.0) / (speed * max(float(turns[i]), dt)))
        return share

    def _carry(self, dt: float) -> None:
        """Move the feet that are down against the body, and bring the body back to its height above them."""
        down = self.down
        self.feet[down] = moved(self.feet[down], self.carried, dt)
        sunk = float((self._home[down, 2] - self.feet[down, 2]).mean())
        self.feet[down, 2] += sunk * min(self.steps.levelling * dt, 1.0)

    # -- state ---------------------------------------------------------------------------------------------------------
    def save(self) -> dict[str, Any]:
        """State as plain data, the gait's aside."""
        return {
            name: np.copy(value) if isinstance(value := getattr(self, name), np.ndarray) else value
            for name in self._STATE
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        for name in self._STATE:
            value = saved[name]
            setattr(self, name, np.array(value) if isinstance(getattr(self, name), np.ndarray) else value)
