"""The tool follows a time-table: through poses at given moments and speeds, as beside something that moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics.ik import IkConfig, solve_ik_batch
from roboyard.manipulation.collision.bodies import make_work
from roboyard.manipulation.collision.clearance import free_line
from roboyard.manipulation.planning.errors import GoalUnreachable, LineBlocked
from roboyard.manipulation.planning.goals import T_base_frame
from roboyard.manipulation.planning.plan import Plan, PlanSettings
from roboyard.manipulation.planning.starting import free_start
from roboyard.manipulation.scene import PlanningScene
from roboyard.manipulation.timing import EffortLimits, GivenTimes, JointLimits

STEP: Final = 0.04
"""Between moments at which joints are reckoned [s]."""
_JUMP: Final = 0.3
"""No joint changes by more from one to the next: else the arm would turn about [rad or m]."""
_ALIKE: Final = 0.02
"""A tool that is turned by less is turned at once [rad]."""
_IK: Final = IkConfig(tolerance=1e-5, orientation_tolerance=1e-4)


@dataclass(frozen=True, eq=False)
class Station:
    """Where the tool shall be at a moment, on its way without acceleration.

    Attributes:
        time: From the begin [s].
        pose: Of the tool.
        velocity: (3,) of its tip [m/s].
    """

    time: float
    pose: SE3
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)


def plan_pursuit(
    scene: PlanningScene,
    start: ArrayLike,
    stations: Sequence[Station],
    settings: PlanSettings | None = None,
    *,
    frame: str = "base",
    limits: JointLimits | None = None,
) -> Plan:
    """From rest through stations, each at its moment, with quintics of time between them.

    Seen from a frame that moves straight on at a constant speed these are quintics, too: a tool that rides along with
    something goes there as it would beside something that stands.  An arm of five joints has to be able to turn the
    tool as each station says.

    Args:
        scene: The arm and what must not be touched.
        start: (n,) where it stands.
        stations: In the order of their times, the first later than 0.
        settings: Shares of the limits.
        frame: Of the poses and velocities: base, world, or a link that the group does not move.
        limits: Of the joints; those of the scene's chain unless given.

    Raises:
        GoalUnreachable: the tool cannot be there at some moment, or not without turning about; says when.
        LineBlocked: something touches.
        TooFastError, EffortError: a joint cannot follow.
        StartInCollision, StartOutsideLimits: the start cannot be used.
        InputError: there are no stations, or their times do not grow.
    """
    moments = [0.0, *(one.time for one in stations)]
    if len(moments) < 2 or not np.isfinite(moments).all() or (np.diff(moments) <= 0.0).any():
        raise InputError(f"stations at {moments[1:]} s", valid="one at least, each later than the one before")
    asked, chain = settings or PlanSettings(), scene.chain
    kept = limits or JointLimits.of(chain, speed=asked.speed, acceleration=asked.acceleration)
    begin, _ = free_start(scene, start, 0.0, np.random.default_rng(asked.seed))
    T_base = T_base_frame(scene, frame)
    times, poses, twists = _table(SE3.from_matrix(chain.forward(begin)), stations, T_base)
    states = _joints(scene, begin, times, poses)
    bodies = scene.bodies
    work = make_work(bodies)
    for time, one, other in zip(times[1:], states[:-1], states[1:], strict=True):
        if not free_line(bodies, work, one, other):
            pair = scene.named(work.who) or ("", "")
            raise LineBlocked(
                f"after {time:.2f} s {pair[0]} would touch {pair[1]}", valid="a way that is free",
                share=float(time / times[-1]),
            )  # fmt: skip
    speeds: Array = np.linalg.solve(*_normal(chain.jacobian(states), twists))[:, :, 0].astype(np.float64)
    speeds[0] = 0.0
    found = GivenTimes(chain.joints, times, states, speeds)
    found.check(kept, EffortLimits(scene.dynamics, asked.effort))
    length = float(np.linalg.norm(np.diff(states, axis=0), axis=1).sum())
    return Plan(found, states, 0.0, length, len(states), int(work.looks[0]), "pursuit")


def _normal(J: Array, twists: Array) -> tuple[Array, Array]:
    """Normal equations of joints' speeds (k, n, n), (k, n, 1) for twists (k, 6), a little damped."""
    JT = J.transpose(0, 2, 1)
    return JT @ J + 1e-10 * np.eye(J.shape[2]), JT @ twists[:, :, None]


def _table(first: SE3, stations: Sequence[Station], T_base: SE3) -> tuple[Array, Array, Array]:
    """Times (k,), poses (k, 4, 4) and twists (k, 6) in the chain's base."""
    R = T_base.rotation_matrix()
    at, velocity, since = first, np.zeros(3), 0.0
    begins = T_base @ stations[0].pose
    if first.angle_to(begins) < _ALIKE:  # a measured state is a little off: an arm of five joints cannot keep that
        at = SE3(begins.rotation, first.translation)
    times, poses, twists = [0.0], [first.matrix()], [np.zeros(6)]
    for station in stations:
        T, v = T_base @ station.pose, R @ np.array(station.velocity)
        span = station.time - since
        way, turn = T.translation - at.translation - span * velocity, _between(at, T)
        for share in np.linspace(0.0, 1.0, max(2, round(span / STEP)) + 1)[1:]:
            s, ds = _smooth(share)
            # the quintic whose acceleration is 0 at both ends: an even change of speed, and what is missing of the way
            missing = way - 0.5 * span * (v - velocity)
            drift, speed = _blend(share)
            pose = np.eye(4)
            pose[:3, :3] = at.interpolate(T, s).rotation_matrix()
            pose[:3, 3] = at.translation + span * share * velocity + span * drift * (v - velocity) + s * missing
            twist = velocity + speed * (v - velocity) + ds / span * missing
            times.append(since + share * span)
            poses.append(pose)
            twists.append(np.concatenate([twist, ds / span * turn]))
        at, velocity, since = T, v, station.time
    return np.array(times), np.array(poses), np.array(twists)


def _smooth(u: float) -> tuple[float, float]:
    """The quintic from rest at 0 to rest at 1, and its slope."""
    return u**3 * (10.0 - 15.0 * u + 6.0 * u**2), 30.0 * u**2 * (1.0 - u) ** 2


def _blend(u: float) -> tuple[float, float]:
    """The way of a speed that changes smoothly from 0 to 1, whose acceleration is 0 at both ends, and that speed."""
    return u**3 - 0.5 * u**4, u**2 * (3.0 - 2.0 * u)


def _between(one: SE3, other: SE3) -> Array:
    """(3,) rotation vector from one pose to another, in their common frame."""
    return np.asarray(one.rotation_matrix() @ (one.inverse() @ other).log()[3:])


def _joints(scene: PlanningScene, begin: Array, times: Array, poses: Array) -> Array:
    """(k, n) along poses (k, 4, 4), without a jump. Raises GoalUnreachable."""
    chain = scene.chain
    found = solve_ik_batch(chain, poses[1:], begin, _IK)
    states = [begin]
    for time, count, branches in zip(times[1:], found.n_solutions, found.solutions, strict=True):
        if not count:
            raise GoalUnreachable(f"after {time:.2f} s the tool would be out of reach", valid="a place within reach")
        off = np.abs(branches[:count] - states[-1]).max(axis=1)
        best = int(np.argmin(off))
        if off[best] > _JUMP:
            raise GoalUnreachable(
                f"after {time:.2f} s a joint comes to its limit and would have to turn about", valid="another start"
            )
        states.append(branches[best])
    return np.ascontiguousarray(states)
