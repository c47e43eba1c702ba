"""Ground that goes from under a foot that is about to come down."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from roboyard.geometry import SE3
from roboyard.messages.time import to_nanoseconds
from roboyard.scenarios.ground import TERRAIN, terrain_model

if TYPE_CHECKING:
    from roboyard.scenarios.run import Run


class Undermining:
    """Lowers the square of the terrain of the next foothold to the terrain's lowest height.

    Args:
        run: Where it happens; its terrain is of level squares.
        robot: Whose plan of steps says where feet come down.
        ahead: Of feet that rise no sooner than this, by the plan [s]; no foot stands there, or comes down there before.
    """

    def __init__(self, run: Run, robot: str, ahead: float) -> None:
        self._run, self._ahead = run, ahead
        self._topic = f"{run.robots[robot].namespace}/steps/plan"

    def do(self) -> str:
        """Do it, and say where.  Nothing happens where no foot is about to come down on the terrain."""
        run, terrain = self._run, self._run.terrain
        topic = run.bus.topics.get(self._topic)
        plan: Any = next((one.last for one in topic.publishers if one.last is not None), None) if topic else None
        if plan is None or terrain is None:
            return "foothold_gone: there is no plan"
        now = plan.time + (run.bus.now_ns - to_nanoseconds(plan.header.stamp)) * 1e-9
        lowest = float(terrain.heights.min())

        def square(place: Any) -> tuple[int, int]:
            column, row = (
                np.floor((np.array([place.x, place.y]) - terrain.corner) / terrain.cell_size).astype(int).tolist()
            )
            return row, column

        # the plan may have waited since it was told: its time is from ``plan.time`` to now
        feet = dict(enumerate(plan.feet))
        feet |= {swing.leg: swing.target for swing in plan.swings if swing.touch_down_time <= plan.time}
        soon = [
            swing.target
            for swing in plan.swings
            if plan.time < swing.touch_down_time and swing.lift_off_time < now + self._ahead
        ]
        stood_on = {square(place) for place in (*feet.values(), *soon)}
        for swing in plan.swings:
            place, (row, column) = (swing.target.x, swing.target.y), square(swing.target)
            inside = 0 <= row < terrain.heights.shape[0] and 0 <= column < terrain.heights.shape[1]
            free = inside and (row, column) not in stood_on
            if swing.lift_off_time >= now + self._ahead and free and terrain.heights[row, column] > lowest + 0.02:
                heights = terrain.heights.copy()
                heights[row, column] = lowest
                self._change(replace(terrain, heights=heights))
                return f"the foothold at {place[0]:.2f}, {place[1]:.2f} is gone"
        return "foothold_gone: no foot is about to come down on it"

    def _change(self, terrain: Any) -> None:
        run = self._run
        old = next(name for name in run.simulation.models if name.startswith(TERRAIN))
        number = int(old.removeprefix(TERRAIN).removeprefix("_") or 1) + 1
        run.simulation.remove(old)
        run.add_object(terrain_model(terrain), f"{TERRAIN}_{number}", SE3.identity())
        run.terrain = terrain
