"""Nodes that draw from the random generator of the run: a weighted choice of a child, and a pause of random length."""

from __future__ import annotations

import math
from typing import ClassVar

from roboyard.behavior.basic_types import IDLE, RUNNING, SKIPPED, SUCCESS, NodeStatus
from roboyard.behavior.errors import PortError, TreeNodeError
from roboyard.behavior.nodes.leaf_host import BusLeaf
from roboyard.behavior.ports import input_port
from roboyard.behavior.tree_node import ControlNode, StatefulActionNode


class WeightedRandom(BusLeaf, ControlNode):
    """Draws one of its children by weight with the run's seed, and ticks it until it has finished."""

    ports: ClassVar = {"weights": input_port(list[float], doc="Weight of each child, at least 0, as `3;1;1`.")}
    state_fields: ClassVar = ("_index",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._index = 0

    def tick(self) -> NodeStatus:
        """See `TreeNode.tick`."""
        if self.status is not RUNNING:
            self._index = self._draw_child()
            self.set_status(RUNNING)
        child_status = self.children[self._index].execute_tick()
        if child_status is RUNNING:
            return RUNNING
        if child_status is IDLE:
            raise TreeNodeError(f"[{self.name}]: a child should not return IDLE")
        self.reset_children()
        return SKIPPED if child_status is SKIPPED else child_status

    def _draw_child(self) -> int:
        weights = self.get_input("weights")
        are_valid = all(math.isfinite(weight) and weight >= 0.0 for weight in weights) and sum(weights) > 0.0
        if len(weights) != len(self.children) or not are_valid:
            raise PortError(
                f"[weights] are {weights} for {len(self.children)} children", valid="one for each, from 0 on"
            )
        remaining = float(self.require_host().node.random.uniform(0.0, sum(weights)))
        for index, weight in enumerate(weights):
            remaining -= weight
            if remaining < 0.0:
                return index
        return max(index for index, weight in enumerate(weights) if weight > 0.0)


class RandomSleep(BusLeaf, StatefulActionNode):
    """Waits for a time that is drawn from a uniform distribution with the run's seed."""

    ports: ClassVar = {
        "low": input_port(float, doc="Shortest duration [s]."),
        "high": input_port(float, doc="Longest duration [s]."),
    }
    state_fields: ClassVar = ("_deadline_ns",)

    def setup(self) -> None:
        """See `TreeNode.setup`."""
        self._deadline_ns = 0

    def on_start(self) -> NodeStatus:
        """See `StatefulActionNode.on_start`."""
        low, high = self.get_input("low"), self.get_input("high")
        if not 0.0 <= low <= high < math.inf:
            raise PortError(f"[low] {low}, [high] {high}", valid="the lesser one first, from 0 on")
        self._deadline_ns = self.now_ns + round(float(self.require_host().node.random.uniform(low, high)) * 1e9)
        return self.on_running()

    def on_running(self) -> NodeStatus:
        """See `StatefulActionNode.on_running`."""
        return RUNNING if self.now_ns < self._deadline_ns else SUCCESS
