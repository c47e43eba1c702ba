"""Where robots may begin and be sent to: free places of a world that are joined by free ground."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.geometry import SE2
from roboyard.grids.floor_plan import TopDownMap

Draw = Callable[[np.random.Generator], tuple[SE2, tuple[float, float]]]
"""Gives T_world_start and a goal (x, y) [m]."""

_TRIES = 1000


class FreePlaces:
    """Draws starts and goals evenly from a world's free ground: from a disc where nothing stands about.

    Of several areas that nothing joins it is the largest of those that are enclosed and large enough, as a yard is by
    its walls; without any, the largest that is open.

    Args:
        floor: The world, seen from above.
        room: Distance of the robot's middle to what stands about, at least [m].
        apart: Least and greatest distance between start and goal, straight [m].

    Raises:
        InputError: there is no such room.
    """

    def __init__(self, floor: TopDownMap, room: float, apart: tuple[float, float]) -> None:
        if not 0.0 <= apart[0] < apart[1]:
            raise InputError(f"places {apart[0]} to {apart[1]} m apart", valid="the smaller one first")
        self._apart, self._places = apart, np.zeros((0, 2))
        if floor.is_empty:
            return
        from scipy.ndimage import distance_transform_edt, find_objects, label

        clear = np.asarray(distance_transform_edt(~(floor.low_obstacles | floor.tall_obstacles))) * floor.resolution
        found, count = label(clear - floor.resolution >= room)
        areas = np.asarray(found, np.int64)
        if not count:
            raise InputError(f"the world has no free place of {2.0 * room:.2f} m", valid="a larger world")
        rows, columns = np.nonzero(areas == _yard(areas, find_objects(areas), apart[0] / floor.resolution))
        x, y = floor.cell_centers
        self._places = np.column_stack([x[columns], y[rows]])

    def __call__(self, rng: np.random.Generator) -> tuple[SE2, tuple[float, float]]:
        """T_world_start, its heading evenly drawn, and a goal (x, y) [m]. Raises InputError: none so far apart."""
        heading = float(rng.uniform(-math.pi, math.pi))
        if not len(self._places):
            away, towards = float(rng.uniform(*self._apart)), float(rng.uniform(-math.pi, math.pi))
            return SE2(0.0, 0.0, heading), (away * math.cos(towards), away * math.sin(towards))
        for _ in range(_TRIES):
            x, y = self._places[rng.integers(len(self._places))].tolist()
            away = np.hypot(self._places[:, 0] - x, self._places[:, 1] - y)
            fit = np.flatnonzero((away >= self._apart[0]) & (away <= self._apart[1]))
            if len(fit):
                goal_x, goal_y = self._places[fit[rng.integers(len(fit))]].tolist()
                return SE2(x, y, heading), (goal_x, goal_y)
        raise InputError(f"no two free places are {self._apart[0]} to {self._apart[1]} m apart", valid="nearer ones")


def _yard(areas: NDArray[np.int64], boxes: Sequence[tuple[slice, ...]], wide: float) -> int:
    """Number of the area to drive in: the largest that does not reach the border and is ``wide`` cells or more across;
    without any, the largest."""
    size = np.bincount(areas.ravel())[1:]
    open_ones = np.unique(np.concatenate([areas[0], areas[-1], areas[:, 0], areas[:, -1]]))
    enclosed = [
        number
        for number, box in enumerate(boxes, 1)
        if number not in open_ones and math.hypot(*(side.stop - side.start for side in box)) >= wide
    ]
    return max(enclosed or range(1, len(size) + 1), key=lambda number: int(size[number - 1]))
