"""Somebody meddles with the things that an arm goes for: knocks them over, takes them, covers where they belong."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from roboyard.description import Box, Link, Material, Model, Visual
from roboyard.description.extent import half_length
from roboyard.geometry import SE3
from roboyard.messages.convert import vector_to_array
from roboyard.scenarios.faults.kinds import Meddle
from roboyard.simulation.carrying import put
from roboyard.simulation.truth import link_pose

if TYPE_CHECKING:
    from roboyard.scenarios.run import Run

_ASIDE = 0.07
"""What slips out of the hand comes to lie so far aside, and from other things [m]."""
_CLEAR = 0.2
"""Nor does it lie nearer to the robot's root [m]."""
_TOUCH = 2e-4
"""Between things that are pushed together [m]."""
_SHEET = (0.11, 0.06, 4e-4)
_DONE = {
    "knock_over": "{} was knocked over",
    "take_away": "{} was taken away",
    "slip": "{} slipped out of the hand",
    "cover": "{} was covered",
    "erase": "{} was wiped out",
}


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
        if event.has_position:
            self._about = self._run.robots[self._robot].truth.T_world_base @ vector_to_array(event.position)

    def do(self) -> str:
        """Meddle, and say with what.  Nothing happens where there is nothing to meddle with."""
        hand = self._hand()
        what = self._fault.what
        about = hand if what == "slip" or self._about is None else self._about
        things = self._things(still=what in ("cover", "erase"))
        name = self._fault.thing or _nearest(things, about)
        if name not in things:
            return f"{what}: there is nothing"
        x, y, z = (float(value) for value in things[name].translation)
        simulation = self._run.simulation
        match what:
            case "take_away" | "erase":
                self._run.remove(name)
            case "cover":
                self._cover(things[name])
            case "knock_over":
                put(simulation, name, self._lying(name, x, y, z))
            case "slip":
                u, v = self._beside(hand, [pose for other, pose in things.items() if other != name])
                put(simulation, name, self._lying(name, u, v, 0.0))
            case "push_together" | "occupy":
                others = {other: pose for other, pose in things.items() if other != name}
                if not others:
                    return f"{what}: there is no other thing"
                return self._bring(name, things[name], others, about)
        return _DONE[what].format(name)

    def _lying(self, name: str, x: float, y: float, floor: float) -> SE3:
        """On its side, a hair above the floor."""
        height = floor + half_length(self._run.simulation.models[name].model) + 1e-4
        return SE3.from_xyz_rpy((x, y, height), (0.5 * math.pi, 0.0, float(self._rng.uniform(-math.pi, math.pi))))

    def _beside(self, hand: NDArray[np.float64], others: list[SE3]) -> tuple[float, float]:
        """Where on the floor something comes to lie that slips out of the hand: clear of robot and other things."""
        root = self._run.robots[self._robot].truth.T_world_base.translation
        for _ in range(100):
            angle = float(self._rng.uniform(-math.pi, math.pi))
            way = np.array((math.cos(angle), math.sin(angle)))
            place = np.asarray(hand[:2] + _ASIDE * way)
            if np.linalg.norm(place - root[:2]) < _CLEAR:
                place = np.asarray(root[:2] + 1.5 * _CLEAR * way)
            if all(np.linalg.norm(place - other.translation[:2]) > _ASIDE for other in others):
                break
        return float(place[0]), float(place[1])

    def _bring(self, name: str, pose: SE3, others: dict[str, SE3], about: NDArray[np.float64]) -> str:
        """Another thing is put beside the nearest one, so that they touch, or where the skill is about to set down."""
        simulation = self._run.simulation
        angle = float(self._rng.uniform(-math.pi, math.pi))
        if self._fault.what == "occupy":
            other = max(others, key=lambda one: float(np.linalg.norm((others[one].translation - about)[:2])))
            put(simulation, other, SE3.from_xyz_rpy((float(about[0]), float(about[1]), float(about[2]) + 1e-3)))
            return f"{other} was put where a thing shall stand"
        other = _nearest(others, pose.translation)
        way = half_length(simulation.models[name].model) + half_length(simulation.models[other].model) + _TOUCH
        x, y, z = (float(value) for value in pose.translation)
        put(simulation, other, SE3.from_xyz_rpy((x + way * math.cos(angle), y + way * math.sin(angle), z)))
        return f"{other} was pushed to {name}"

    def _cover(self, mark: SE3) -> None:
        visual = Visual("sheet", Box(_SHEET), SE3.identity(), Material("paper", (0.75, 0.72, 0.6, 1.0)))
        sheet = Model("sheet", (Link("sheet", SE3.identity(), visuals=(visual,)),), static=True)
        called = next(f"sheet_{k}" for k in range(1, 10**6) if f"sheet_{k}" not in self._run.simulation.models)
        self._run.add_object(sheet, called, mark @ SE3.from_xyz_rpy((0.0, 0.0, 0.0018)))

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
