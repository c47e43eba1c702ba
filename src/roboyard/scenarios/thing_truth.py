"""Where the things of a scenario truly are, for judging."""

from __future__ import annotations

from typing import Any

import numpy as np

from roboyard.bus import Node, resource
from roboyard.geometry import SE3
from roboyard.messages import msg
from roboyard.messages.convert import tf_message
from roboyard.simulation import Simulation

MOVING, STILL = "/truth/things", "/truth/marks"
"""Topics: things that can be moved; those that cannot, as places drawn on the floor."""
_RATE = 5.0
_MOVED = 1e-4
"""Less is no motion [m; the same for the matrix of turning]."""


class ThingTruthNode(Node):
    """Tells the true poses of a scenario's things in the world.

    out: /truth/things, /truth/marks (tf2_msgs/TFMessage, latched; one transform from the world a thing, called as the
    thing is): those that can be moved whenever one of them has, five times a second at most; the others at the start.
    """

    simulation: Simulation = resource(Simulation)
    things: tuple[str, ...] = resource(tuple)

    fields = ("_last",)

    def setup(self) -> None:
        """Say where everything is."""
        self._last: list[list[float]] = []
        models = self.simulation.models
        self._moving = tuple(name for name in self.things if not models[name].model.static)
        self._poses = self.publisher(MOVING, msg.TFMessage, latched=True)
        still = tuple(name for name in self.things if name not in self._moving)
        marks = self.publisher(STILL, msg.TFMessage, latched=True)
        marks.publish(self._message({name: self._pose(name) for name in still}))
        self._tick()
        self.timer(rate=_RATE, callback=self._tick)

    def _pose(self, name: str) -> SE3:
        return self.simulation.truth(name).T_world_base

    def _tick(self) -> None:
        there = {name: self._pose(name) for name in self._moving if name in self.simulation.models}
        rows = [[*pose.translation, *pose.rotation_matrix()[:, 2]] for pose in there.values()]
        same = len(rows) == len(self._last) and (not rows or np.abs(np.array(rows) - self._last).max() < _MOVED)
        if not same:
            self._last = [[float(value) for value in row] for row in rows]
            self._poses.publish(self._message(there))

    def _message(self, poses: dict[str, SE3]) -> Any:
        return tf_message(((pose, "world", name) for name, pose in poses.items()), self.now_ns)
