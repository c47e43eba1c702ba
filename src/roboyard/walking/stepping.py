"""Walking on a gait: where all feet are from one moment to the next, at any twist, through changes of gait and speed.

The gait is only asked when feet rise.  Feet that are down are moved against the body, whatever comes; a foot whose turn
it is rises as soon as the others hold the body, and the body goes no faster than all feet that are down can bear until
their turn.  So changes need no standstill, and feet may come down sooner or later than the gait has it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.config import Config, parameter
from roboyard.geometry.arrays import Array
from roboyard.walking.gait_kernels import held_by
from roboyard.walking.gaits import Gait, Pace, pace_of
from roboyard.walking.stepping_kernels import CLOCK, CYCLE, STILL, Feet, Numbers, fastest, standing_feet, step_on
from roboyard.walking.walker import Walker

_DIRECTIONS: Final = 32
"""Paces are worked out for directions on a grid so fine a side."""
_SLOWEST: Final = 4.0
"""The longest cycle [s]; slower bodies take shorter strides."""
_SPEED: Final = 0.98
"""Share of the joints' speeds that is used."""


class Steps(Config):
    """How feet step."""

    stride: float = parameter(
        0.08, unit="m", low=0.005, high=2.0, runtime=True, doc="Largest travel of a foot on the ground in a stance."
    )
    lift: float = parameter(0.03, unit="m", low=0.001, high=1.0, runtime=True, doc="Height to which feet rise.")
    acceleration: float = parameter(
        0.2, unit="m/s²", low=1e-3, high=100.0, runtime=True,
        doc="Largest acceleration of the fastest foot against the body.",
    )  # fmt: skip
    margin: float = parameter(
        0.01, unit="m", low=0.0, high=1.0, runtime=True,
        doc="Smallest distance of the body's middle from the edge of the support polygon.",
    )  # fmt: skip
    depth: float = parameter(
        0.0, unit="m", low=0.0, high=1.0, runtime=True,
        doc="Depth below its place in the stance to which a foot searches for ground; 0: no search.",
    )  # fmt: skip
    search: float = parameter(
        0.1, unit="m/s", low=1e-3, high=10.0, runtime=True, doc="Speed with which a foot searches for ground."
    )
    climb: float = parameter(
        0.06, unit="m", low=0.0, high=1.0, runtime=True,
        doc="Height above `lift` to which a foot rises that has run into something.",
    )  # fmt: skip
    levelling: float = parameter(
        1.0, unit="1/s", low=0.0, high=100.0, runtime=True,
        doc="Rate at which the body comes back to its height above the feet.",
    )  # fmt: skip
    upright: float = parameter(
        1.0, unit="1/s", low=0.0, high=100.0, runtime=True, doc="Rate at which the body comes back from a tilt."
    )


class Stepper:
    """Feet of a walking robot, seen from its body; pure, with explicit state.

    Args:
        walker: Who.
        gait: On which.
        steps: How.
    """

    def __init__(self, walker: Walker, gait: Gait, steps: Steps | None = None) -> None:
        self.walker, self.steps = walker, steps or Steps()
        self._home = walker.stance_feet
        self._state = standing_feet(self._home, _SLOWEST)
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
            self._paces[key] = pace_of(self.walker, self.gait, direction, self.steps.stride, self.steps.lift, _SPEED)
        pace = self._paces[key]
        done = min(speed, pace.speed)
        cycle = min(pace.stride / (self.gait.duty * done), _SLOWEST)
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
