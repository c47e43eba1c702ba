"""Regular gaits: in which order legs step, and how fast a body can go on them.

A gait is a duty, the share of its cycle in which a foot is on the ground, and a phase for each leg, at which its foot
rises.  On the ground a foot moves exactly against the body; in the air it goes where it will be in the middle of its
place half a stance later.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.config.wording import did_you_mean as similar
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry.arrays import Array
from roboyard.walking.gait_kernels import FEWEST, RAMP
from roboyard.walking.walker import Walker

_SAMPLES: Final = 16
_SHRINK: Final = 0.8


@dataclass(frozen=True)
class Gait:
    """A regular gait.

    Attributes:
        name: Of it.
        duty: Share of the cycle in which a foot is on the ground.
        phases: (l) when each leg's foot rises, as a share of the cycle.
    """

    name: str
    duty: float
    phases: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 0.0 < self.duty < 1.0 or any(not 0.0 <= phase < 1.0 for phase in self.phases):
            raise InputError(f"duty {self.duty:g}, phases {self.phases}", location=f"gait {self.name}", valid="0 to 1")

    def lifted(self, phase: float) -> NDArray[np.bool_]:
        """(l) which feet are in the air at a phase of the cycle."""
        along = np.mod(phase - np.array(self.phases), 1.0)
        return along < 1.0 - self.duty - 1e-9

    def fewest_down(self) -> int:
        """Least number of feet on the ground at any time."""
        return int(min((~self.lifted(phase + 1e-6)).sum() for phase in self.phases))


def _rows(walker: Walker) -> list[tuple[int, int]]:
    """Side (0 left, 1 right) and row (0 at the rear) of each leg; Raises InputError where sides differ."""
    feet = walker.stance_feet
    sides = (feet[:, 1] < 0.0).astype(int).tolist()
    if sides.count(0) != sides.count(1):
        raise InputError(
            f"{sides.count(0)} legs on the left, {sides.count(1)} on the right",
            location=walker.robot,
            valid="as many on either side",
        )
    order = np.argsort(feet[:, 0], kind="stable").tolist()
    ranks = {side: [i for i in order if sides[i] == side] for side in (0, 1)}
    return [(side, ranks[side].index(i)) for i, side in enumerate(sides)]


def _tripod(side: int, row: int, half: int) -> float:
    return 0.5 * ((side + row + half + 1) % 2)


def _wave(side: int, row: int, half: int) -> float:
    return (side * half + row) / (2 * half)


def _ripple(side: int, row: int, half: int) -> float:
    shift = 0.5 if half % 2 else 0.5 + 0.5 / half
    return (row / half + side * shift) % 1.0


GAITS: Final[dict[str, tuple[Callable[[int, int, int], float], Callable[[int], float]]]] = {
    "wave": (_wave, lambda legs: 1.0 - 1.0 / legs),
    "ripple": (_ripple, lambda legs: 1.0 - 1.5 / legs),
    "tripod": (_tripod, lambda legs: 0.5),
}
"""By name, for a robot's sides and rows: the phase of a leg, and the least duty."""


def make_gait(name: str, walker: Walker, duty: float = 0.0) -> Gait:
    """A gait for a robot with as many legs on either side.

    Args:
        name: "wave": one leg at a time, from the rear to the front, one side after the other; "ripple": sides in turn,
            each swing overlapping the next by a third; "tripod": every other leg of either side at once.
        walker: Whose legs.
        duty: Share of the cycle on the ground; the gait's own, which is the least, unless larger.

    Raises:
        UnknownNameError: there is no such gait.
        InputError: fewer than three feet would be down, the sides differ, or the duty is not below 1.
    """
    if name not in GAITS:
        raise UnknownNameError(f"no gait {name!r}{similar(name, GAITS)}", valid=", ".join(GAITS))
    phase, least = GAITS[name]
    legs = len(walker.legs)
    where = _rows(walker)
    made = Gait(name, max(duty, least(legs)), tuple(phase(side, row, legs // 2) for side, row in where))
    if made.fewest_down() < FEWEST:
        fitting = [other for other in GAITS if other != name] if legs > FEWEST + 1 else ["wave"]
        raise InputError(
            f"gait {name} leaves {made.fewest_down()} of {legs} feet down",
            location=walker.robot,
            valid=f"gaits with {FEWEST} or more: {', '.join(fitting)}",
        )
    return made


def moved(feet: ArrayLike, twist: ArrayLike, time: float) -> Array:
    """Feet (…, 3) on the ground as the body sees them when it has moved.

    Args:
        feet: In the body [m].
        twist: (3,) forward [m/s], to the left [m/s], turning [rad/s], constant in the body's own frame.
        time: How long [s]; may be negative.
    """
    places = np.asarray(feet, dtype=np.float64)
    vx, vy, w = (float(value) for value in np.asarray(twist, dtype=np.float64))
    angle = w * time
    c, s = math.cos(angle), math.sin(angle)
    sinc = math.sin(angle) / angle if abs(angle) > 1e-9 else 1.0
    cosc = 2.0 * math.sin(0.5 * angle) ** 2 / angle if abs(angle) > 1e-9 else 0.5 * angle
    dx, dy = time * (sinc * vx - cosc * vy), time * (cosc * vx + sinc * vy)
    out = places.copy()
    x, y = places[..., 0] - dx, places[..., 1] - dy
    out[..., 0], out[..., 1] = c * x + s * y, c * y - s * x
    return out


def against(feet: ArrayLike, twist: ArrayLike) -> Array:
    """(…, 2) velocities of feet (…, 3) on the ground as the body sees them [m/s]; ``twist`` as in `moved`."""
    places = np.asarray(feet, dtype=np.float64)
    vx, vy, w = (float(value) for value in np.asarray(twist, dtype=np.float64))
    return np.stack([w * places[..., 1] - vx, -w * places[..., 0] - vy], axis=-1)


def eased(share: ArrayLike, ramp: float = RAMP) -> Array:
    """0 to 1 as a share of the time goes from 0 to 1: at rest at both ends, evenly accelerated for ``ramp`` of it."""
    s = np.clip(np.asarray(share, dtype=np.float64), 0.0, 1.0)
    top = 1.0 / (1.0 - ramp)
    low, high = 0.5 * top * s * s / ramp, 1.0 - 0.5 * top * (1.0 - s) ** 2 / ramp
    out: Array = np.where(s < ramp, low, np.where(s > 1.0 - ramp, high, top * (s - 0.5 * ramp)))
    return out


def swung(start: ArrayLike, end: ArrayLike, drift: ArrayLike, share: ArrayLike) -> Array:
    """(…, 2) where a foot in the air is, seen from above: it leaves the ground, and comes to it, with its motion.

    Args:
        start: (…, 2) where it rose.
        end: (…, 2) where it will be set down.
        drift: (…, 2) how far the ground moves in the whole swing, as the body sees it.
        share: (…) of the swing.
    """
    a, b, d = (np.asarray(value, dtype=np.float64) for value in (start, end, drift))
    s = np.asarray(share, dtype=np.float64)[..., None]
    out: Array = a + d * s + eased(s) * (b - a - d)
    return out


def arch(share: ArrayLike) -> Array:
    """Height of a foot in the air as a share of its lift: 0, 1 in the middle of the swing, 0; smooth."""
    s = np.asarray(share, dtype=np.float64)
    return eased(1.0 - np.abs(2.0 * np.clip(s, 0.0, 1.0) - 1.0))


@dataclass(frozen=True)
class Pace:
    """What is possible in a direction.

    Attributes:
        stride: How far a foot goes on the ground [m], at most.
        cycle: The shortest cycle [s].
        speed: How fast the fastest foot can go against the body [m/s].
    """

    stride: float
    cycle: float
    speed: float


def fastest_foot(walker: Walker, twist: ArrayLike) -> float:
    """How fast the fastest foot of the stance goes against the body [m/s]."""
    return float(np.hypot(*against(walker.stance_feet, twist).T).max())


def cycle_feet(walker: Walker, gait: Gait, twist: ArrayLike, stride: float, lift: float) -> tuple[Array, Array]:
    """Feet of one even cycle that lasts 1 s, on the ground and in the air: (n, l, 3) each, evenly over both times.

    Args:
        walker: Who.
        gait: For the share of time on the ground.
        twist: Direction only.
        stride: How far the fastest foot goes on the ground [m].
        lift: How high feet rise [m].
    """
    way = np.asarray(twist, dtype=np.float64) * (stride / gait.duty / max(fastest_foot(walker, twist), 1e-12))
    home = walker.stance_feet
    down = np.stack([moved(home, way, time) for time in np.linspace(-0.5, 0.5, _SAMPLES + 1) * gait.duty])
    shares = np.linspace(0.0, 1.0, _SAMPLES + 1)
    drift = 0.5 * (against(down[0], way) + against(down[-1], way)) * (1.0 - gait.duty)
    up = np.repeat(home[None], len(shares), axis=0)
    up[:, :, :2] = swung(down[-1, :, :2], down[0, :, :2], drift, shares[:, None])
    up[:, :, 2] += lift * arch(shares)[:, None]
    return down, up


def pace_of(walker: Walker, gait: Gait, twist: ArrayLike, stride: float, lift: float, share: float = 0.95) -> Pace:
    """How fast a robot can go in a direction: its strides within the legs' reach, its joints within their speeds.

    Args:
        walker: Who.
        gait: On which.
        twist: Direction only, not zero.
        stride: How far feet shall go on the ground [m].
        lift: How high they shall rise [m].
        share: Of the joints' speeds that is used.

    Raises:
        InputError: feet cannot rise that far in the stance.
    """
    while stride > 1e-3:
        down, up = cycle_feet(walker, gait, twist, stride, lift)
        if walker.reached(np.concatenate([down, up])).all():
            rates = [
                np.abs(np.diff(walker.reach(feet), axis=0)).max(axis=0) * (_SAMPLES / time)
                for feet, time in ((down, gait.duty), (up, 1.0 - gait.duty))
            ]
            cycle = float((np.maximum(*rates) / (share * walker.speeds)).max())
            return Pace(stride, cycle, stride / (gait.duty * cycle))
        stride *= _SHRINK
    raise InputError(f"a lift of {lift:g} m", location=walker.robot, valid="what all legs reach in the stance")
