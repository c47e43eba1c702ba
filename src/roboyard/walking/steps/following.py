"""Walking a plan of steps: from where body and feet are to where the legs shall put them, moment by moment."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from roboyard.config import Config, parameter
from roboyard.geometry import SE3, wrap_angle
from roboyard.geometry.arrays import Array, Flags
from roboyard.walking.steps.plan import StepPlan, Swing, plan_as_data, plan_of_data
from roboyard.walking.steps.swing import swing_place

_DOWNWARDS: Final = 0.6
"""From this share of a swing on, what a foot feels is the ground."""
_JOIN: Final = 0.2
"""Share of a swing in which the body's place as it shall be gives way to the one that it has."""
_NEAR: Final = 0.01
"""The plan waits while the body is farther from its place in it [m]."""
_TRUST: Final = 0.015
"""A foot whose height is off the map's by less stands as high as the map says [m]."""
_BESIDE: Final = 0.01
"""A foot that feels something farther than this beside its place goes on to it: what it feels may be an edge [m]."""
_SLIPS: Final = 2.0
"""How fast a standing foot is believed to be elsewhere [1/s]."""


class Footing(Config):
    """How feet find the ground."""

    pace: float = parameter(
        0.4, low=0.01, high=1.0, runtime=True, doc="Share of the plan's speed, which is that of the joints."
    )
    depth: float = parameter(
        0.05, unit="m", low=0.0, high=1.0, runtime=True,
        doc="Depth below its place in the plan to which a foot searches for ground.",
    )  # fmt: skip
    search: float = parameter(
        0.15, unit="m/s", low=1e-3, high=10.0, runtime=True, doc="Speed with which a foot searches for ground."
    )
    drift: float = parameter(
        0.05, unit="m/s", low=1e-3, high=10.0, runtime=True,
        doc="Speed with which the body comes back to its place in the plan.",
    )  # fmt: skip
    upright: float = parameter(
        1.0, unit="1/s", low=0.0, high=100.0, runtime=True, doc="Rate at which the body comes back from a tilt."
    )
    delay: float = parameter(
        0.015, unit="s", low=0.0, high=1.0, runtime=True, doc="Time by which joints follow their set-points."
    )


@dataclass(frozen=True)
class Touchdown:
    """A foot that has come down, or found no ground.

    Attributes:
        leg: Number of it.
        planned: (3) where it should be [m].
        found: (3) where its joints say it is [m].
        how: "planned", "early", "late", or "none".
    """

    leg: int
    planned: tuple[float, float, float]
    found: tuple[float, float, float]
    how: str


class PlanFollower:
    """Walks a plan; pure, with explicit state.

    The body goes as the plan says: feet that stand move against it from where they really stand.  Feet in the air go
    to their places in the world, wherever the body is.  One that feels ground early stands there; for one that feels
    none the plan waits while it looks for it below.

    Args:
        plan: What to walk.
        body: T_world_body where the body shall be now: the plan is joined from there.
        feet: (l, 3) where feet stand [m].
        footing: How feet find the ground.

    Attributes:
        time: Of the plan now [s].
        spoilt: The plan is not walked beyond this time, until another one takes over [s].
        anchors: (l, 3) where feet stand, or stood last [m].
        down: (l) which stand.
        lost: A foot that found no ground.
    """

    def __init__(self, plan: StepPlan, body: SE3, feet: Array, footing: Footing | None = None) -> None:
        self.footing = footing or Footing()
        self.time = 0.0
        self.anchors = np.array(feet, dtype=np.float64)
        count = len(self.anchors)
        self.down = np.ones(count, np.bool_)
        self.lost: int | None = None
        self._swing = np.full(count, -1, np.int64)
        self._off, self._depth = np.zeros((count, 3)), np.zeros(count)
        self._lean = np.zeros(2)
        self.spoilt = math.inf
        self._set(plan)
        self._beside = np.array([*(np.asarray(body.translation) - plan.body([0.0])[0]), 0.0])
        self._beside[3] = wrap_angle(body.yaw - plan.heading)

    def _set(self, plan: StepPlan) -> None:
        self.plan = plan
        self._of = [[one for one in plan.swings if one.leg == leg] for leg in range(len(plan.feet))]
        self._lifts = [[one.lifts for one in swings] for swings in self._of]

    def change(self, plan: StepPlan) -> None:
        """Go on with a plan that is the same up to now, and as long as feet are in the air that are so now."""
        self._set(plan)
        self.spoilt = math.inf

    @property
    def done(self) -> bool:
        """Whether the plan is at its end, with all feet down."""
        return self.time >= self.plan.duration and bool(self.down.all()) and not self._far()

    def _far(self) -> bool:
        return bool(np.abs(self._beside[:3]).max() > _NEAR)

    def wanted(self) -> SE3:
        """T_world_body of now."""
        x, y, z = (self.plan.body([self.time])[0] + self._beside[:3]).tolist()
        return SE3.from_xyz_rpy((x, y, z), (*self._lean.tolist(), self.plan.heading + float(self._beside[3])))

    def advance(
        self, dt: float, T_world_body: SE3, felt: Array, touching: Flags | None, lag: float = 0.0
    ) -> tuple[Array, list[Touchdown]]:
        """Where feet shall be (l, 3) in the body after a time [m], and which have come down.

        Args:
            dt: How long [s].
            T_world_body: Where the body is.
            felt: (l, 3) feet in the body, by their joints [m].
            touching: (l) which feel ground; None: feet feel nothing.
            lag: How far joints are behind what they were told, as a share of what may be: the plan waits for them.
        """
        R, p = T_world_body.matrix()[:3, :3], np.asarray(T_world_body.translation)
        are = felt @ R.T + p
        waits = self._far() or bool((self._depth > 0.0).any())
        if not waits:
            on = dt * self.footing.pace * min(max(2.0 - lag, 0.0), 1.0)
            self.time = max(min(self.time + on, self.plan.duration, self.spoilt), self.time)
        step = self.footing.drift * dt
        self._beside[:3] -= np.clip(self._beside[:3], -step, step)
        self._beside[3] -= min(max(self._beside[3], -4.0 * step), 4.0 * step)
        roll, pitch, _ = T_world_body.rpy
        self._lean = np.clip(self._lean - self.footing.upright * dt * np.array([roll, pitch]), -0.15, 0.15)
        target = self.wanted()
        W, w = target.matrix()[:3, :3], np.asarray(target.translation)
        found = []
        stand = self.down
        self.anchors[stand, :2] += min(_SLIPS * dt, 1.0) * (are - self.anchors)[stand, :2]
        for leg in np.flatnonzero(~self.down).tolist():
            down = self._come_down(leg, *self._under_way(leg), are[leg], touching, dt)
            if down is not None:
                found.append(down)
        # nobody rises before all that should be down are
        if all(self._under_way(leg)[1] < 1.0 for leg in np.flatnonzero(~self.down).tolist()):
            for leg in np.flatnonzero(self.down).tolist():
                self._rise(leg)
        # where the body will be when feet in the air are where they are told to be now
        soon = min(self.time + self.footing.delay * self.footing.pace, self.spoilt)
        ahead = p if waits else p + self.plan.body([soon])[0] - self.plan.body([self.time])[0]
        local = (self.anchors - w) @ W
        for leg in np.flatnonzero(~self.down).tolist():
            swing, u = self._under_way(leg)
            place = self._in_air(leg, swing, u)
            share = min(u / _JOIN, 1.0)
            local[leg] = (1.0 - share) * ((place - w) @ W) + share * ((place - ahead) @ R)
        return local, found

    def _under_way(self, leg: int) -> tuple[Swing, float]:
        """The swing of a foot in the air, and which share of it is over."""
        swing = self._of[leg][self._swing[leg]]
        return swing, (self.time - swing.lifts) / (swing.lands - swing.lifts)

    def _rise(self, leg: int) -> None:
        """A foot whose time it is leaves the ground."""
        k = bisect_right(self._lifts[leg], self.time) - 1
        if k <= self._swing[leg]:
            return
        self._swing[leg] = k
        swing = self._of[leg][k]
        self.down[leg] = False
        self._off[leg] = self.anchors[leg] - np.array(swing.source)
        self._depth[leg] = 0.0

    def _come_down(
        self, leg: int, swing: Swing, u: float, are: Array, touching: Flags | None, dt: float
    ) -> Touchdown | None:
        """Whether a foot has come down, and where."""
        near = abs(float(are[2]) - swing.target[2]) < _TRUST
        there = near and math.dist(are[:2], swing.target[:2]) < _BESIDE
        touches = touching is not None and bool(touching[leg]) and (there or u >= 1.0)
        if u < 1.0 and not (touches and u > _DOWNWARDS):
            return None
        if touching is not None and not touches:
            self._depth[leg] += self.footing.search * dt
            if self._depth[leg] < self.footing.depth:
                return None
            self.lost = leg
        how = "none" if self.lost == leg else "early" if u < 1.0 else "late" if self._depth[leg] > 0.02 else "planned"
        self._depth[leg] = 0.0
        self.down[leg] = True
        place = np.array(swing.target)
        z = float(place[2]) if abs(float(are[2] - place[2])) < _TRUST else float(are[2])
        self.anchors[leg] = (are[0], are[1], z)
        return Touchdown(leg, swing.target, (float(are[0]), float(are[1]), float(are[2])), how)

    def _in_air(self, leg: int, swing: Swing, u: float) -> Array:
        """Where a foot in the air shall be in the world."""
        out = np.empty(3)
        first, last, now = self.plan.body([swing.lifts, swing.lands, self.time])
        source, target = np.array(swing.source), np.array(swing.target)
        swing_place(source, target, swing.top, min(u, 1.0), swing.ends, now, first, last, out)
        out += max(1.0 - u / _DOWNWARDS, 0.0) * self._off[leg]
        out[2] -= self._depth[leg]
        return out

    @property
    def place(self) -> tuple[float, float]:
        """Where the body is in the plan [m]."""
        x, y, _ = self.plan.body([self.time])[0].tolist()
        return x, y

    def save_state(self) -> dict[str, Any]:
        """State as plain data, the plan's aside."""
        kept = ("time", "spoilt", "anchors", "down", "lost", "_swing", "_off", "_depth", "_lean", "_beside")
        return {
            name: np.copy(value) if isinstance(value := getattr(self, name), np.ndarray) else value for name in kept
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Take back what ``save`` gave."""
        for name, value in saved.items():
            setattr(self, name, np.array(value) if isinstance(value, np.ndarray) else value)


def walk_as_data(follower: PlanFollower) -> dict[str, Any]:
    """A walk with its plan as plain data."""
    return {"plan": plan_as_data(follower.plan), "follower": follower.save_state()}


def walk_of_data(said: dict[str, Any], footing: Footing) -> PlanFollower:
    """The walk of what `walk_as_data` gave."""
    plan = plan_of_data(said["plan"])
    follower = PlanFollower(plan, SE3.identity(), plan.feet, footing)
    follower.load_state(said["follower"])
    return follower
