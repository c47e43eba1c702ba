"""Driving an arm by hand: speeds that somebody wants become set-points that keep every limit and touch nothing.

Each step proves the next one before it is taken: that the joints can brake from there, each as hard as it can, without
leaving their range or touching anything.  If that cannot be shown they brake, on the way that was proven before.  So
there always is a way to stand, whatever is commanded and whenever commands cease.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from roboyard.config import Config, parameter
from roboyard.geometry.arrays import Array
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.ik.differential_ik import velocity_bounds
from roboyard.manipulation.collision.bodies import Bodies, Work, make_work
from roboyard.manipulation.collision.clearance import distances, free_piece
from roboyard.manipulation.scene import PlanningScene

_CREEP = 0.02
"""Slower than this share of what is wanted is standing still."""
_RISES = 1e-9
_NO_PAIRS = np.zeros((0, 2), np.int64)


class ServoCode(IntEnum):
    """What becomes of a command, as MoveIt Servo numbers it."""

    INVALID = -1
    NO_WARNING = 0
    DECELERATE_FOR_APPROACHING_SINGULARITY = 1
    HALT_FOR_SINGULARITY = 2
    DECELERATE_FOR_LEAVING_SINGULARITY = 3
    DECELERATE_FOR_COLLISION = 4
    HALT_FOR_COLLISION = 5
    JOINT_BOUND = 6


class ServoingSettings(Config):
    """When an arm that is driven by hand gets slower."""

    singular_slow: float = parameter(
        40.0,
        low=1.0,
        high=1e6,
        doc="Condition number of the Jacobian above which a motion that raises it is slowed down.",
    )
    singular_stop: float = parameter(
        120.0, low=1.0, high=1e6, doc="Condition number of the Jacobian at which such a motion stops."
    )
    near_slow: float = parameter(
        0.08,
        unit="m",
        low=0.001,
        high=10.0,
        doc="Distance to things in the world below which a motion that lessens it is slowed down.",
    )
    near_stop: float = parameter(
        0.02, unit="m", low=0.0, high=10.0, doc="Distance to things in the world at which such a motion stops."
    )
    resume: float = parameter(
        0.005,
        unit="m",
        low=0.0,
        high=1.0,
        doc="Additional distance from which a stopped motion goes on, or where it leads away.",
    )
    ahead: float = parameter(0.1, unit="s", low=0.001, high=10.0, doc="Time by which a motion is looked at ahead.")
    metres_per_radian: float = parameter(
        0.3, unit="m", low=1e-4, high=100.0, doc="Weight of a turn against a translation in the condition number."
    )
    weak: float = parameter(
        0.03,
        low=1e-6,
        high=1.0,
        doc="Speed of the tool per speed of the joints below which a direction is given up [m/rad].",
    )


@dataclass(frozen=True, slots=True)
class Servoed:
    """A set-point, and what became of the command.

    Attributes:
        position: (n,) [rad or m].
        velocity: (n,) [rad/s or m/s].
        code: Why it is slower than wanted.
        text: The same in words; empty where nothing is to be said.
    """

    position: Array
    velocity: Array
    code: ServoCode = ServoCode.NO_WARNING
    text: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Speeds of the joints that a command comes to, before anybody looks for what is in the way.

    Attributes:
        speeds: (n,) [rad/s or m/s].
        code: Why they are less than asked for.
        text: The same in words.
        alike: Whether all joints are to get faster in proportion, so that the way of the tool is straight.
    """

    speeds: Array
    code: ServoCode = ServoCode.NO_WARNING
    text: str = ""
    alike: bool = True

    def slowed(self, share: float) -> Wanted:
        """A share of it, because people are near."""
        if share >= 1.0 or not self.speeds.any():
            return self
        code = ServoCode.DECELERATE_FOR_COLLISION if share > 0.0 else ServoCode.HALT_FOR_COLLISION
        return Wanted(share * self.speeds, code, f"the guard allows {100.0 * share:.0f} %", self.alike)


def tip_speeds(chain: Chain, q: Array, twist: Array, axis: Array, weak: float = ServoingSettings.weak) -> Array:
    """Speeds of joints (n,) for a tool's twist, what it cannot do left out in a fixed order of priorities.

    The tool's place comes first, then the direction in which it points, then its turning about that: each as far as it
    does not disturb those before it (Y. Nakamura, H. Hanafusa, T. Yoshikawa, "Task-priority based redundancy control of
    robot manipulators", Int. J. Robotics Research 6(2), 1987).  So an arm of five joints moves its tool as asked, and
    turns it as far as it can.

    Args:
        chain: To the tool.
        q: (n,) where the joints are.
        twist: (6,) linear [m/s], then angular [rad/s], in the axes of the base.
        axis: (3,) direction in which the tool points, in its own frame.
        weak: Motions that joints can hardly make are damped below this [m/rad].
    """
    J = chain.jacobian(q)
    points = chain.forward(q)[:3, :3] @ (axis / np.linalg.norm(axis))
    across = np.linalg.svd(points[None])[2][1:]
    levels = (
        (J[:3], twist[:3]),
        (across @ J[3:], across @ twist[3:]),
        (points[None] @ J[3:], points[None] @ twist[3:]),
    )
    speeds, free = np.zeros(chain.dof), np.eye(chain.dof)
    for rows, wanted in levels:
        U, strength, V = np.linalg.svd(rows @ free, full_matrices=False)
        damping = weak**2 * np.clip(1.0 - (strength / weak) ** 2, 0.0, 1.0)
        inverse = strength / np.maximum(strength**2 + damping, 1e-12)
        speeds = speeds + free @ (V.T @ (inverse * (U.T @ (wanted - rows @ speeds))))
        taken = V[strength > 0.1 * weak]
        free = free - free @ taken.T @ taken
    return speeds


def condition(chain: Chain, q: Array, metres_per_radian: float) -> float:
    """Condition number of the Jacobian, with turning weighed beside moving; infinite where it is singular."""
    J = chain.jacobian(q)
    J[3:] *= metres_per_radian
    strength = np.linalg.svd(J, compute_uv=False)
    return float(strength[0] / max(float(strength[-1]), 1e-300))


class Servoing:
    """Joints that are driven by hand.

    Args:
        chain: To the tool.
        speed: (n,) greatest of each joint [rad/s or m/s].
        acceleration: (n,) greatest, also to slow down [rad/s² or m/s²].
        position: (n,) where they stand.
        settings: When they get slower.
    """

    def __init__(
        self, chain: Chain, speed: Array, acceleration: Array, position: Array, settings: ServoingSettings
    ) -> None:
        self._chain = chain.with_acceleration_limits(acceleration, np.full(chain.dof, np.inf))
        self._most, self._rate, self._settings = speed, acceleration, settings
        self.be_at(position)

    @property
    def standing(self) -> bool:
        """Whether all joints stand."""
        return not self.velocity.any()

    def be_at(self, position: Array) -> None:
        """Go on from (n,) at rest: something else moved the joints."""
        self.position = np.clip(position, self._chain.lower, self._chain.upper)
        self.velocity = np.zeros(self._chain.dof)
        self._halted = False

    # -- wanted --------------------------------------------------------------------------------------------------------
    def wants_twist(self, twist: Array, axis: Array, dt: float) -> Wanted:
        """What the joints are to do for a twist (6,) of the tool in the axes of the base.

        All joints are slowed alike, so that the tool keeps its direction.
        """
        found = self._settings
        wanted = tip_speeds(self._chain, self.position, twist, axis, found.weak)
        share, code, text = self._bounded(wanted, dt)
        ahead = np.clip(self.position + share * found.ahead * wanted, self._chain.lower, self._chain.upper)
        near = condition(self._chain, self.position, found.metres_per_radian)
        if near > found.singular_slow and condition(self._chain, ahead, found.metres_per_radian) > near + _RISES:
            slower = max(0.0, (found.singular_stop - near) / (found.singular_stop - found.singular_slow))
            share *= slower if slower > _CREEP else 0.0
            code = ServoCode.DECELERATE_FOR_APPROACHING_SINGULARITY if share else ServoCode.HALT_FOR_SINGULARITY
            text = f"near a singular position: condition number {near:.0f}"
        return Wanted(share * wanted, code, text)

    def wants_joints(self, speeds: Array, dt: float) -> Wanted:
        """The same for speeds (n,) of the joints, each slowed for itself at its limits."""
        low, high = velocity_bounds(self._chain, self.position, dt)
        fast = np.clip(speeds, -self._most, self._most)
        wanted = np.clip(fast, low, high)
        stopped = np.abs(wanted - fast) > 1e-9
        code, text = ServoCode.NO_WARNING, ""
        if stopped.any():
            code, text = ServoCode.JOINT_BOUND, f"{self._chain.joints[int(np.argmax(stopped))]} nears its limit"
        return Wanted(wanted, code, text, alike=False)

    def step_twist(self, scene: PlanningScene, twist: Array, axis: Array, dt: float) -> Servoed:
        """The set-point ``dt`` seconds later for a twist (6,) of the tool in the axes of the base."""
        return self.step(scene, self.wants_twist(twist, axis, dt), dt)

    def step_joints(self, scene: PlanningScene, speeds: Array, dt: float) -> Servoed:
        """The set-point ``dt`` seconds later for speeds (n,) of the joints."""
        return self.step(scene, self.wants_joints(speeds, dt), dt)

    def _bounded(self, wanted: Array, dt: float) -> tuple[float, ServoCode, str]:
        """The share of speeds that every joint may have."""
        size = np.maximum(np.abs(wanted), 1e-12)
        share = min(1.0, float((self._most / size).min()))
        low, high = velocity_bounds(self._chain, self.position, dt)
        room = np.maximum(np.where(wanted > 0.0, high, -low), 0.0) / size
        k = int(np.argmin(room))
        if room[k] >= share - 1e-9:
            return share, ServoCode.NO_WARNING, ""
        return float(room[k]), ServoCode.JOINT_BOUND, f"{self._chain.joints[k]} nears its limit"

    # -- taken ---------------------------------------------------------------------------------------------------------
    def step(self, scene: PlanningScene, want: Wanted, dt: float) -> Servoed:
        """The set-point ``dt`` seconds later on the way to what is wanted."""
        wanted, code, text, alike = want.speeds, want.code, want.text, want.alike
        bodies = scene.bodies
        work = make_work(bodies)
        share, distance = self._clear(bodies._replace(pairs=_NO_PAIRS), work, wanted)
        if share < 1.0 and wanted.any():
            wanted = share * wanted
            code = ServoCode.DECELERATE_FOR_COLLISION if share else ServoCode.HALT_FOR_COLLISION
            text = f"{1e3 * distance:.0f} mm from touching something"
        change = wanted - self.velocity
        most = self._rate * dt
        each = np.clip(change, -most, most)
        each = np.where(self._stops_within(self.velocity + each, dt), each, np.clip(-self.velocity, -most, most))
        together = change * min(1.0, float((most / np.maximum(np.abs(change), 1e-12)).min()))
        # where something is nearer already than it should be, the arm may leave it, and nothing else
        left = float(distances(bodies, work, self.position[None], bodies.margin)[0])
        near = left < bodies.margin
        bodies = bodies._replace(margin=0.5 * left) if 0.0 < left < bodies.margin else bodies
        for candidate in (together, each) if alike else (each,):
            if self._proven(bodies, work, self.velocity + candidate, dt, left if near else 0.0):
                self._go(self.velocity + candidate, dt)
                break
        else:
            if self.velocity.any() or wanted.any():
                who = scene.named(work.who) if work.who[0] >= 0 else None
                code = ServoCode.DECELERATE_FOR_COLLISION if self.velocity.any() else ServoCode.HALT_FOR_COLLISION
                text = "no room to brake" if who is None else f"{who[0]} would come too near to {who[1]}"
            self.brake(dt)
        return Servoed(self.position.copy(), self.velocity.copy(), code, text)

    def _clear(self, bodies: Bodies, work: Work, wanted: Array) -> tuple[float, float]:
        """The share of speeds that leaves room to everything, and how near the nearest thing is [m]."""
        found = self._settings
        ahead = np.clip(self.position + found.ahead * wanted, self._chain.lower, self._chain.upper)
        here, there = distances(bodies, work, np.stack([self.position, ahead]), found.near_slow).tolist()
        if there >= here - _RISES:
            self._halted = False
            return 1.0, here
        stop = found.near_stop + (found.resume if self._halted else 0.0)
        share = min(max((min(here, there) - stop) / (found.near_slow - found.near_stop), 0.0), 1.0)
        self._halted = share < _CREEP
        return (0.0 if self._halted else share), here

    def _proven(self, bodies: Bodies, work: Work, velocity: Array, dt: float, left: float) -> bool:
        """Whether the joints can take on a velocity within ``dt``, and brake from there to where ``left`` is left."""
        work.who[0] = -1
        if not self._stops_within(velocity, dt).all():
            return False
        end = self.position + 0.5 * dt * (self.velocity + velocity)
        if not (self.velocity.any() or velocity.any()):
            return True
        rows = np.stack([self.position, self.velocity, (velocity - self.velocity) / (2.0 * dt)])
        if not free_piece(bodies, work, rows, dt):
            return False
        rest = end + 0.5 * velocity * np.abs(velocity) / self._rate
        if left and distances(bodies, work, rest[None], 2.0 * left)[0] < left:
            return False
        return all(free_piece(bodies, work, rows, length) for rows, length in braking(end, velocity, self._rate))

    def _stops_within(self, velocity: Array, dt: float) -> NDArray[np.bool_]:
        """(n,) whether each joint can take on a velocity within ``dt`` and then come to stand within its range."""
        end = self.position + 0.5 * dt * (self.velocity + velocity)
        rest = end + 0.5 * velocity * np.abs(velocity) / self._rate
        low, high = self._chain.lower - 1e-12, self._chain.upper + 1e-12
        within: NDArray[np.bool_] = (np.minimum(end, rest) >= low) & (np.maximum(end, rest) <= high)
        return within

    def _go(self, velocity: Array, dt: float) -> None:
        self.position = self._held(self.position + 0.5 * dt * (self.velocity + velocity))
        self.velocity = velocity

    def brake(self, dt: float) -> Servoed:
        """The set-point ``dt`` seconds later with each joint slowing down as hard as it can: the proven way."""
        lasts = np.minimum(np.abs(self.velocity) / self._rate, dt)
        slower = self.velocity - np.sign(self.velocity) * self._rate * lasts
        self.position = self._held(self.position + 0.5 * lasts * (self.velocity + slower))
        self.velocity = np.where(np.abs(self.velocity) <= self._rate * dt, 0.0, slower)
        return Servoed(self.position.copy(), self.velocity.copy())

    def _held(self, position: Array) -> Array:
        held: Array = np.clip(position, self._chain.lower, self._chain.upper)
        return held

    # -- state ---------------------------------------------------------------------------------------------------------
    def save_state(self) -> tuple[Array, Array, bool]:
        """State as plain data."""
        return self.position.copy(), self.velocity.copy(), self._halted

    def load_state(self, saved: Sequence[object]) -> None:
        """Take back what ``save`` gave."""
        self.position, self.velocity = np.array(saved[0]), np.array(saved[1])
        self._halted = bool(saved[2])


def braking(position: Array, velocity: Array, rate: Array) -> list[tuple[Array, float]]:
    """The way of joints that all brake as hard as they can: pieces (3, n) of powers of time, and how long each lasts.

    Args:
        position: (n,) where they begin.
        velocity: (n,) how fast they are there.
        rate: (n,) how fast they get slower.
    """
    until = np.abs(velocity) / rate
    slowing = -np.sign(velocity) * rate
    found, begin = [], 0.0
    for end in np.unique(until).tolist():
        if end - begin < 1e-9:
            continue
        moving = until > begin + 1e-12
        at = np.minimum(begin, until)
        rows = np.stack([
            position + at * (velocity + 0.5 * at * slowing),
            np.where(moving, velocity + at * slowing, 0.0),
            np.where(moving, 0.5 * slowing, 0.0),
        ])  # fmt: skip
        found.append((np.ascontiguousarray(rows), end - begin))
        begin = end
    return found
