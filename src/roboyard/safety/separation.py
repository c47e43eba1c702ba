"""Speed and separation monitoring: how far a robot must stay from somebody, and how fast it may be where it is.

The protective separation distance of ISO/TS 15066:2016, 5.5.4 and ISO 10218-2:2025,

    Sp = Sh + Sr + Ss + C + Zd + Zr,

for each part of the robot and of the body, along the line between them: how far the person comes until the robot
stands, how far the robot goes until it brakes and while it brakes, how far a body intrudes before it is seen, and how
wrong both places may be.  Everything here is arrays that broadcast against each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from roboyard.config import Config, parameter
from roboyard.geometry.arrays import Array

STANDSTILL = 0.02
"""What moves slower counts as standing [m/s]."""
CREEP = 0.5 * STANDSTILL
"""What is allowed to move beside somebody is slower than this: joints that brake overshoot a little [m/s]."""


class SeparationRules(Config):
    """What the distance to be kept depends on, beside speeds."""

    reaction_time: float = parameter(
        0.1,
        unit="s",
        low=0.0,
        high=5.0,
        doc="Time from a person's arrival at a place until the robot begins to brake: sensor and controller.",
    )
    intrusion: float = parameter(
        0.0,
        unit="m",
        low=0.0,
        high=2.0,
        doc="Distance C by which a hand may reach past what is detected; 0 where all parts of the body are.",
    )
    person_uncertainty: float = parameter(
        0.03, unit="m", low=0.0, high=2.0, doc="Uncertainty Zd of the person's position."
    )
    robot_uncertainty: float = parameter(
        0.01, unit="m", low=0.0, high=1.0, doc="Uncertainty Zr of the robot's position."
    )
    person_speed: float = parameter(
        1.6,
        unit="m/s",
        low=0.0,
        high=10.0,
        doc="Speed towards the robot that ISO 13855 assumes of people; 0: as measured.",
    )
    person_acceleration: float = parameter(
        8.0, unit="m/s²", low=0.0, high=100.0, doc="Acceleration that a measured person may have had since."
    )

    @property
    def constant(self) -> float:
        """C + Zd + Zr [m]."""
        return self.intrusion + self.person_uncertainty + self.robot_uncertainty

    def coming(self, measured: ArrayLike, ahead: ArrayLike = 0.0) -> Array:
        """How fast to suppose that somebody comes.

        Args:
            measured: Directed speeds, negative away from the robot [m/s].
            ahead: For so long after they were measured [s].
        """
        if self.person_speed > 0.0:
            return np.full_like(np.asarray(measured, dtype=np.float64), self.person_speed)
        speeds: Array = np.maximum(np.asarray(measured) + self.person_acceleration * np.asarray(ahead), 0.0)
        return speeds


def stopping_time(velocity: ArrayLike, deceleration: ArrayLike) -> Array:
    """How long joints (…, n) take to stop, each with its own deceleration (n,), the slowest of them [s]."""
    times: Array = (np.abs(np.asarray(velocity)) / np.asarray(deceleration)).max(axis=-1)
    return times


def protective_distance(
    rules: SeparationRules, person: ArrayLike, robot: ArrayLike, stopping: ArrayLike, pace: ArrayLike = 1.0
) -> Array:
    """Sp [m].

    Args:
        rules: See there.
        person: Directed speed of the person's part, 0 or more [m/s].
        robot: Directed speed of the robot's part at full pace; what leads away counts as 0 [m/s].
        stopping: How long the robot takes to stop from full pace [s].
        pace: What share of its speed it has; the time to stop goes with it.
    """
    s, vh, vr = np.asarray(pace), np.asarray(person), np.maximum(np.asarray(robot), 0.0)
    braking = s * np.asarray(stopping)
    Sh = vh * (rules.reaction_time + braking)
    Sr = s * vr * rules.reaction_time
    Ss = 0.5 * s * vr * braking
    distance: Array = Sh + Sr + Ss + rules.constant
    return distance


def separation_pace(
    rules: SeparationRules, gap: ArrayLike, person: ArrayLike, robot: ArrayLike, stopping: ArrayLike
) -> Array:
    """The largest pace from 0 to 1 at which ``gap`` [m] is at least `protective_distance`; 0 where there is none."""
    vh, vr, T = np.asarray(person), np.maximum(np.asarray(robot), 0.0), np.asarray(stopping)
    spare = np.asarray(gap) - vh * rules.reaction_time - rules.constant
    a, b = 0.5 * vr * T, vh * T + vr * rules.reaction_time
    room = np.maximum(spare, 0.0)
    bottom = b + np.sqrt(b * b + 4.0 * a * room)
    shape = np.broadcast(room, bottom).shape
    still = np.where(np.broadcast_to(a, shape) > 1e-12, 0.0, 1.0)
    pace = np.divide(2.0 * room, bottom, out=still, where=bottom > 1e-12)
    result: Array = np.where(spare >= 0.0, np.minimum(pace, 1.0), 0.0)
    return result


def pace_to_brake(paces: Array, places: Array, stopping: float, delay: float) -> tuple[float, int]:
    """The pace that is allowed now where further on only others are.

    Braking takes ``stopping`` seconds from full pace, and begins ``delay`` seconds from now.

    Args:
        paces: (k,) allowed at places ahead, the first of which is here.
        places: (k,) how far ahead on the trajectory they are, as time at full pace [s].
        stopping: See above [s].
        delay: See above [s].

    Returns:
        The pace, and the place that it is for.
    """
    if stopping <= 1e-6:
        place = int(np.argmin(paces))
        return float(paces[place]), place
    late = delay / stopping
    allowed = np.maximum(paces, np.sqrt(late**2 + paces**2 + 2.0 * places / stopping) - late)
    place = int(np.argmin(allowed))
    return float(min(allowed[place], 1.0)), place


def drift(rules: SeparationRules, measured: ArrayLike, since: float) -> Array:
    """How far somebody may have come in the ``since`` seconds after they were measured [m]."""
    seen = np.asarray(measured, dtype=np.float64)
    way: Array = np.maximum(rules.coming(seen, since), np.maximum(seen, 0.0)) * since
    return way
