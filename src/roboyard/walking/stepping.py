"""Walking on a gait: where all feet are from one moment to the next, at any twist, through changes of gait and speed.

The gait is only asked when feet rise.  Feet that are down are moved against the body, whatever comes; a foot whose turn
it is rises as soon as the others hold the body, and the body goes no faster than all feet that are down can bear until
their turn.  So changes need no standstill, and feet may come down sooner or later than the gait has it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.walking.gait_kernels import held_by
from roboyard.walking.gaits import Gait, Pace, pace_of
from roboyard.walking.stepping_kernels import CLOCK, CYCLE, STILL, Feet, Numbers, fastest, standing_feet, step_on
from roboyard.walking.walker import Walker

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
        upright: How fast it comes back from a tilt that is told [1/s].
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
    upright: float = 1.0

    def __post_init__(self) -> None:
        for name in ("stride", "lift", "slowest", "acceleration", "speed", "search"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} of {getattr(self, name):g}", valid="above zero")
        for name in ("margin", "depth", "climb", "levelling", "upright"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise InputError(f"{name} of {getattr(self, name):g}", valid="zero or more")


class Stepper:
    """Feet of a walking robot, seen from its body; pure, with explicit state.

    Args:
        walker: Who.
        gait: On which.
        steps: How.
    """

    def __init__(self, walker: Walker, gait: Gait, steps: Steps = Steps()) -> None:
        self.walker, self.steps = walker, steps
        self._home = walker.stance_feet
        self._state = standing_feet(self._home, steps.slowest)
        self._reach = float(np.hypot(*self._home[:, :2].T).max())
        self._nobody = np.zeros(len(walker.legs), np.bool_)
        self._paces: dict[tuple[int, ...], Pace] = {}
        self._asked: tuple[tuple[float, ...], tuple[Array, float]] | None = None
        self.gait = gait
        self._tell()

    # -- what it is told -----------------------------------------------------------------------------------------------
    def change(self, gait: Gait | None = None, steps: Steps | None = None) -> None:
        """Go on with another gait, or other steps, without standing still."""
        self.gait, self.steps = gait or self.gait, steps or self.steps
        self._paces.clear()
        self._tell()
        if gait is not None:
            self._state.turns[:] = np.floor(self.clock - self._phases)

    def _tell(self) -> None:
        """Put steps and gait as the kernel takes them."""
        s = self.steps
        self._numbers = Numbers(
            s.stride, s.lift, s.acceleration, s.margin, s.depth, s.search, s.climb, s.levelling, self.gait.duty,
            s.upright,
        )  # fmt: skip
        self._phases = np.array(self.gait.phases)
        self._asked = None

    def executable(self, twist: ArrayLike) -> tuple[Array, float]:
        """The twist (3,) in the wanted one's direction that legs can do, and its cycle [s].

        Raises:
            InputError: feet cannot rise that far in the stance.
        """
        wanted = np.asarray(twist, dtype=np.float64)
        speed = float(fastest(self._home, wanted))
        if speed < STILL:
            return np.zeros(3), float(self._state.times[CYCLE])
        vx, vy, turn = wanted.tolist()
        fine = _DIRECTIONS / speed
        key = round(vx * fine), round(vy * fine), round(turn * self._reach * fine)
        if key not in self._paces:
            direction = np.array([key[0], key[1], key[2] / self._reach])
            self._paces[key] = pace_of(
                self.walker, self.gait, direction, self.steps.stride, self.steps.lift, self.steps.speed
            )
        pace = self._paces[key]
        done = min(speed, pace.speed)
        cycle = min(pace.stride / (self.gait.duty * done), self.steps.slowest)
        return wanted * (done / speed), max(cycle, pace.cycle)

    # -- how it is -----------------------------------------------------------------------------------------------------
    @property
    def feet(self) -> Array:
        """(l, 3) where feet shall be in the body [m]."""
        return self._state.place

    @property
    def down(self) -> NDArray[np.bool_]:
        """(l) which feet are on the ground."""
        return self._state.down

    @property
    def twist(self) -> Array:
        """(3,) what the body does: m/s, m/s, rad/s."""
        return self._state.twist

    @property
    def carried(self) -> Array:
        """(3,) how fast the feet that are down have just carried it: no faster than they can bear."""
        return self._state.carried

    @property
    def clock(self) -> float:
        """Cycles so far."""
        return float(self._state.times[CLOCK])

    @property
    def standing(self) -> bool:
        """Whether the body stands with all feet down."""
        return bool(self.down.all()) and not self.twist.any()

    def margin(self) -> float:
        """How far the body's middle is inside of the polygon of the feet that are down [m]."""
        return float(held_by(self.feet, self.down, 0.0, 0.0))

    # -- going on ------------------------------------------------------------------------------------------------------
    def advance(
        self, dt: float, twist: ArrayLike, touching: ArrayLike | None = None, tilt: ArrayLike = (0.0, 0.0)
    ) -> Array:
        """Where the feet (l, 3) shall be in the body [m] after a time.

        Args:
            dt: How long [s], much shorter than a swing.
            twist: (3,) wanted of the body: m/s, m/s, rad/s; slowed down to what legs can do.
            touching: (l) which feet feel ground; None: nobody knows, the ground is even.
            tilt: (2,) roll and pitch of the body [rad], which stepping takes back.
        """
        asked = tuple(np.asarray(twist, dtype=np.float64).tolist())
        if self._asked is None or self._asked[0] != asked or not any(asked):
            self._asked = asked, self.executable(asked)
        wanted, cycle = self._asked[1]
        self._state.times[CYCLE] = cycle
        felt = self._nobody if touching is None else np.asarray(touching, np.bool_)
        tilted, known = np.asarray(tilt, np.float64), touching is not None
        step_on(self._state, self._home, self._phases, self._numbers, wanted, felt, known, tilted, dt)
        return self.feet

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> dict[str, Any]:
        """State as plain data, the gait's aside."""
        return {name: value.copy() for name, value in self._state._asdict().items()}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        self._state = Feet(**{name: np.array(value) for name, value in saved.items()})
