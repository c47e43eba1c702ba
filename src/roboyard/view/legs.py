"""Legs: what a robot stands on, and where it will set its feet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bus.names import frame_prefix
from roboyard.geometry import SE3
from roboyard.scenarios import Run
from roboyard.view.drawings import Drawing
from roboyard.view.places import Places
from roboyard.walking.legged_robot import LeggedRobot

GAIT, PLAN = "roboyard_msgs/msg/GaitState", "roboyard_msgs/msg/FootstepPlan"


@dataclass(frozen=True, slots=True)
class Support:
    """Feet (n, 3) of a robot in the world [m], and which are down."""

    feet: NDArray[np.float64]
    down: tuple[bool, ...]


class Feet:
    """Finds the feet of robots on legs.

    Args:
        run: Whose robots.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._tips: dict[str, dict[str, str]] = {}

    def support(self, topic: str, message: Any, places: Places, body: Callable[[int], SE3]) -> Support | None:
        """What a roboyard_msgs/GaitState means in the world, on the run's thread; None if its robot is not known."""
        robot = next((one for one in self._run.robots.values() if topic.startswith(f"{one.namespace}/")), None)
        if robot is None:
            return None
        name = robot.name
        if name not in self._tips:
            legged_robot = robot.resources().get("legged_robot")
            legs = legged_robot.legs if isinstance(legged_robot, LeggedRobot) else ()
            self._tips[name] = {leg.name: f"{frame_prefix(robot.namespace)}{leg.chain.tip}" for leg in legs}
        tips = self._tips[name]
        known = [index for index, leg in enumerate(message.legs) if leg in tips]
        feet = [places.place(tips[message.legs[index]], body).translation for index in known]
        return Support(np.array(feet).reshape(-1, 3), tuple(bool(message.in_stance[index]) for index in known))


def support_drawing(support: Any) -> Drawing:
    """Feet, and the polygon of those that are down."""
    if not isinstance(support, Support):
        return Drawing({"shape": "none"})
    held = support.feet[np.array(support.down, dtype=bool)] if len(support.feet) else support.feet
    middle = held.mean(axis=0) if len(held) else np.zeros(3)
    order = np.argsort(np.arctan2(held[:, 1] - middle[1], held[:, 0] - middle[0]))
    arrays = (held[order].astype(np.float32), support.feet.astype(np.float32))
    return Drawing({"shape": "support"}, arrays)


def plan_drawing(message: Any) -> Drawing:
    """The way of the body, and where feet are set down, with the number of the leg."""
    track = np.array([[p.x, p.y, p.z] for p in message.body_path], dtype=np.float32).reshape(-1, 3)
    holds = [[s.target.x, s.target.y, s.target.z, float(s.leg)] for s in message.swings]
    return Drawing({"shape": "steps"}, (track, np.array(holds, dtype=np.float32).reshape(-1, 4)))
