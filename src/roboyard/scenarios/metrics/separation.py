"""How near a robot came to others that move: people, other robots."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from roboyard.geometry import SE2, polygons
from roboyard.scenarios.metrics.collector import Collector, Handler, Value
from roboyard.scenarios.metrics.navigation import Outline
from roboyard.scenarios.planar import position_and_yaw


class Separation(Collector):
    """``min_separation`` [m]: least true distance between the robot's outline and anybody else's; None where nobody is.

    Args:
        truth_topic: Of the robot's nav_msgs/Odometry.
        outline: Its corners [m].
    """

    names = ("min_separation",)

    def __init__(self, truth_topic: str, outline: Outline) -> None:
        self._topic = truth_topic
        self._outline = tuple(outline)
        self._others: dict[str, Outline] = {}
        self._places: dict[str, tuple[float, float, float]] = {}
        self._least = math.inf

    def meet(self, other: Separation) -> Mapping[str, Handler]:
        """Look at another robot as well, from now on; what is to be listened to for that."""
        if len(self._outline) < 3 or len(other._outline) < 3:
            return {}
        self._others[other._topic] = other._outline
        return {other._topic: lambda message, _: self._on_other(other._topic, message)}

    def handlers(self) -> Mapping[str, Handler]:
        """The robot's own truth."""
        return {self._topic: self._on_truth}

    def _on_other(self, topic: str, message: Any) -> None:
        self._places[topic] = position_and_yaw(message.pose.pose)

    def _on_truth(self, message: Any, time_ns: int) -> None:
        here = position_and_yaw(message.pose.pose)
        for topic, there in self._places.items():
            reach = max(math.hypot(*corner) for corner in (*self._outline, *self._others[topic]))
            if math.dist(here[:2], there[:2]) - 2.0 * reach < self._least:
                self._least = min(self._least, _distance(self._outline, here, self._others[topic], there))

    def result(self) -> dict[str, Value]:
        """None until somebody else was seen."""
        return {"min_separation": self._least if math.isfinite(self._least) else None}


def _distance(one: Outline, here: tuple[float, ...], other: Outline, there: tuple[float, ...]) -> float:
    """Between two outlines that do not cross: from a corner of one to the other's border."""
    a, b = SE2(*here) @ np.array(one), SE2(*there) @ np.array(other)
    return float(min(polygons.distance(a, b).min(), polygons.distance(b, a).min()))
