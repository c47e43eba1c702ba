"""Somebody meddles with the things that an arm goes for: knocks them over, takes them, covers where they belong."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roboyard.description import Box, Link, Material, Model, Visual
from roboyard.geometry import SE3
from roboyard.messages.convert import vector_to_array
from roboyard.scenarios.faults.kinds import Meddle
from roboyard.scenarios.size import half_width
from roboyard.simulation.carrying import put
from roboyard.simulation.truth import link_pose

if TYPE_CHECKING:
    from roboyard.scenarios.run import Run

_BELOW, _ASIDE = 0.09, 0.02
"""Where a thing is that slips out of the hand: below the fingers' middle, and aside at most [m]."""
_TOUCH = 2e-4
"""Between things that are pushed together [m]."""
_SHEET = (0.11, 0.06, 4e-4)


class Meddling:
    """One such deed.

    Args:
        run: Where it happens.
        robot: Whose skills and hand it is about.
        fault: What the scenario says.
        rng: Draws what is left open.
    """

    def __init__(self, run: Run, robot: str, fault: Meddle, rng: np.random.Generator) -> None:
        self._run, self._robot, self._fault, self._rng = run, robot, fault, rng
        self._about: NDArray[np.float64] | None = None

    def tell(self, event: Any) -> None:
        """Take the place that a skill's event names, from now on."""
        if event.located:
            self._about = self._run.robots[self._robot].truth.T_world_base @ vector_to_array(event.position)

    def do(self) -> None:
        """Meddle.  Nothing happens where there is nothing to meddle with."""
        hand = self._hand()
        about = hand if self._fault.what == "slip" or self._about is None else self._about
        if self._fault.what == "cover":
            self._cover(about)
            return
        things = self._things(still=False)
        name = self._fault.thing or _nearest(things, about)
        if name not in things:
            return
        x, y, z = (float(value) for value in things[name].translation)
        match self._fault.what:
            case "take_away":
                self._run.remove(name)
            case "knock_over":
                put(self._run.simulation, name, self._lying(name, x, y, z))
            case "slip":
                dx, dy = (float(value) for value in self._rng.uniform(-_ASIDE, _ASIDE, 2))
                low = max(float(hand[2]) - _BELOW, 0.0)
                put(self._run.simulation, name, self._lying(name, float(hand[0]) + dx, float(hand[1]) + dy, low))
            case "push_together":
                self._push(name, things)

    def _lying(self, name: str, x: float, y: float, floor: float) -> SE3:
        """On its side, a hair above the floor."""
        height = floor + half_width(self._run.simulation.models[name].model) + 1e-4
        return SE3.from_xyz_rpy((x, y, height), (0.5 * math.pi, 0.0, float(self._rng.uniform(-math.pi, math.pi))))

    def _push(self, name: str, things: dict[str, SE3]) -> None:
        others = {other: pose for other, pose in things.items() if other != name}
        if not others:
            return
        pose = things[name]
        other = _nearest(others, pose.translation)
        models = self._run.simulation.models
        way = half_width(models[name].model) + half_width(models[other].model) + _TOUCH
        angle = float(self._rng.uniform(-math.pi, math.pi))
        x, y, z = (float(value) for value in pose.translation)
        at = (x + way * math.cos(angle), y + way * math.sin(angle), z)
        put(self._run.simulation, other, SE3.from_xyz_rpy(at))

    def _cover(self, about: NDArray[np.float64]) -> None:
        marks = self._things(still=True)
        name = self._fault.thing or _nearest(marks, about)
        if name not in marks:
            return
        visual = Visual("sheet", Box(_SHEET), SE3.identity(), Material("paper", (0.75, 0.72, 0.6, 1.0)))
        sheet = Model("sheet", (Link("sheet", SE3.identity(), visuals=(visual,)),), static=True)
        called = next(f"sheet_{k}" for k in range(1, 10**6) if f"sheet_{k}" not in self._run.simulation.models)
        self._run.add_object(sheet, called, marks[name] @ SE3.from_xyz_rpy((0.0, 0.0, 0.0018)))

    def _things(self, *, still: bool) -> dict[str, SE3]:
        """Poses of the scenario's things that can be moved, or of those that cannot."""
        models = self._run.simulation.models
        return {
            name: self._run.simulation.truth(name).T_world_base
            for name in self._run.things
            if name in models and models[name].model.static == still
        }

    def _hand(self) -> NDArray[np.float64]:
        """The middle between the fingers; without a gripper the robot's base."""
        simulation, robot = self._run.simulation, self._run.robots[self._robot]
        links = [link for gripper in robot.groups.grippers.values() for link in gripper.links]
        places = simulation.placement(self._robot).links
        if not links:
            return np.asarray(robot.truth.T_world_base.translation)
        found = np.array([link_pose(simulation.data, places[link]).translation for link in links])
        return np.asarray(found.mean(axis=0), dtype=np.float64)


def _nearest(poses: dict[str, SE3], about: NDArray[np.float64]) -> str:
    """Name of the one that is nearest, seen from above; empty if there is none."""
    return min(poses, key=lambda name: float(np.linalg.norm((poses[name].translation - about)[:2])), default="")
