"""How well a robot's octree map agrees with the world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.errors import RoboyardError
from roboyard.mapping.octree.agreement import spread
from roboyard.mapping.octree.stream import read_full
from roboyard.scenarios.metrics.collector import Collector, Handler, Value

Surfaces = Callable[
    [NDArray[np.float64], tuple[int, int, int], float, float], tuple[NDArray[np.bool_], NDArray[np.bool_]]
]
"""Voxels that true surfaces touch and cross: of a box by its lowest corner [m], its voxels along x, y, z, their edge
[m] and the tolerance [m]."""

TOLERANCE: Final = 0.02
"""A surface this near to the border of two voxels, in edges of a voxel, may be in either of them."""


class OctreeQuality(Collector):
    """The last full octree that was published, against the true surfaces of the world, robots left out.

    ``octree_iou``: of the voxels that the map knows, those occupied in map and truth by those occupied in either;
    ``octree_precision``: share of the map's occupied voxels that a surface touches; ``octree_recall``: share of the
    true ones it has, of all that it looked at.  What the map does not know does not count: no camera saw it.  The map's
    frame is taken for the world's.  See `roboyard.mapping.octree.agreement`.
    """

    names = ("octree_iou", "octree_precision", "octree_recall")

    def __init__(self, topic: str, surfaces: Surfaces | None) -> None:
        self._topic, self._surfaces = topic, surfaces
        self._message: Any = None
        self._found: dict[str, Value] | None = None

    def handlers(self) -> Mapping[str, Handler]:
        """The map."""
        return {self._topic: self._on_map}

    def _on_map(self, message: Any, time_ns: int) -> None:
        expect_kernels(spread, read_full)  # of the comparison at the end
        self._message, self._found = message, None

    def result(self) -> dict[str, Value]:
        """All None while no map was published that can be read, or where nobody knows the world."""
        if self._found is None:
            self._found = self._compare()
        return dict(self._found)

    def _compare(self) -> dict[str, Value]:
        from roboyard.mapping.nodes.octree_messages import octree_from_msg
        from roboyard.mapping.octree.agreement import agreement, dense
        from roboyard.mapping.octree.blocks import ORIGIN

        nothing: dict[str, Value] = dict.fromkeys(self.names)
        if self._message is None or self._surfaces is None:
            return nothing
        try:
            leaves = octree_from_msg(self._message)
            state, low = dense(leaves)
            edge = leaves.resolution
            corner = np.asarray((low - ORIGIN) * edge, dtype=np.float64)
            touched, crossed = self._surfaces(corner, state.shape, edge, TOLERANCE * edge)
        except RoboyardError:
            return nothing
        found = agreement(state, touched, crossed)
        return dict(zip(self.names, (found.iou, found.precision, found.recall), strict=True))

    def save_state(self) -> dict[str, Any]:
        """All it knows, as plain data."""
        return {"message": self._message}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._message, self._found = saved["message"], None
