"""Where the things of a scenario truly are, for judging."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.bus import Node, resource
from roboyard.geometry import SE3
from roboyard.messages import msg
from roboyard.messages.convert import transforms_to_msg
from roboyard.simulation import Simulation

MOVING, STILL = "/truth/things", "/truth/marks"
"""Topics: things that are moved; marks, as places drawn on the floor, or on carriers that a plugin calls so."""
MARK = "roboyard-mark"
_RATE = 5.0
_COMES = 50.0
"""How often it is looked whether one has come or gone: sooner than anybody acts on it [Hz]."""
_MOVED = 1e-4
"""Less is no motion [m; the same for the matrix of turning]."""


class ThingTruthNode(Node):
    """Tells the true poses of a scenario's things in the world.

    out: /truth/things, /truth/marks (tf2_msgs/TFMessage, latched; one transform from the world a thing, called as the
    thing is): whenever one of them has moved, five times a second at most; when one has come or gone, at once.
    """

    simulation: Simulation = resource(Simulation)
    things: tuple[str, ...] = resource(tuple)

    state_fields = ("_last",)

    def setup(self) -> None:
        """Say where everything is."""
        models = {name: self.simulation.models[name].model for name in self.things}
        marks = [name for name, one in models.items() if one.static or any(p.filename == MARK for p in one.plugins)]
        self._parts = {
            MOVING: tuple(name for name in self.things if name not in marks), STILL: tuple(marks),
        }  # fmt: skip
        self._out = {topic: self.publisher(topic, msg.TFMessage, latched=True) for topic in self._parts}
        self._last: dict[str, list[list[float]]] = {topic: [] for topic in self._parts}
        self._tick()
        self.timer(rate=_RATE, callback=self._tick)
        self.timer(rate=_COMES, callback=self._count)

    def _pose(self, name: str) -> SE3:
        return self.simulation.truth(name).T_world_base

    def _count(self) -> None:
        there = sum(name in self.simulation.models for name in self.things)
        if there != sum(map(len, self._last.values())):
            self._tick()

    def _tick(self) -> None:
        found = {topic: self._there(names) for topic, names in self._parts.items()}
        for topic, there in found.items():
            rows = [[float(value) for value in (*T.translation, *T.rotation_matrix()[:, 2])] for T in there.values()]
            last = self._last[topic]
            if len(rows) != len(last) or (rows and np.abs(np.array(rows) - last).max() >= _MOVED):
                self._last[topic] = rows
                self._out[topic].publish(self._message(there))

    def _there(self, names: tuple[str, ...]) -> dict[str, SE3]:
        return {name: self._pose(name) for name in names if name in self.simulation.models}

    def _message(self, poses: dict[str, SE3]) -> Any:
        return transforms_to_msg(((pose, "world", name) for name, pose in poses.items()), self.now_ns)
