"""Submaps: stretches of the way short enough to be free of drift, each a rigid piece of the map.

Two are under construction at any time, the younger begun when the older is half full.  A scan is matched against the
older and goes into both, so no scan meets an empty map, and neighbouring submaps share scans.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import expect_kernels
from roboyard.geometry import SE2
from roboyard.mapping.matching.cells import CellMap, insert_points
from roboyard.mapping.preparation import Prepared


@dataclass(frozen=True, slots=True)
class SubmapConfig:
    """How large submaps become.

    Attributes:
        nodes: Scans after which the next submap begins; a submap ends when the next but one begins.
        path: Or way after which it does [m].
        margin: Room around the laser's reach that a submap has [m]; more than twice ``path``.
    """

    nodes: int = 24
    path: float = 6.0
    margin: float = 15.0


@dataclass(slots=True)
class Submap:
    """A rigid piece of the map, in the frame of its anchor.

    Attributes:
        anchor: The node that it began with.
        path: Way driven until then [m].
        part: Number of the connected part of the map that it belongs to.
        cells: (n, 5) surface cells, once it is finished.
        nodes: Nodes whose scans are in it.
        centre: (2,) middle of its surfaces in the anchor's frame [m].
        radius: From there to the farthest but for a twentieth of them [m].
    """

    anchor: int
    path: float
    part: int = 0
    cells: NDArray[np.float64] | None = None
    nodes: list[int] = field(default_factory=list)
    centre: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2))
    radius: float = 0.0

    def finish(self, surface: CellMap) -> None:
        """Keep what is in ``surface``, compactly."""
        self.cells = surface.cells.copy()
        self.measure()

    def measure(self) -> None:
        """Find middle and radius of the surfaces."""
        if self.cells is None or not len(self.cells):
            return
        means = self.cells[:, 1:3] / self.cells[:, :1]
        self.centre = np.median(means, axis=0)
        self.radius = float(np.percentile(np.linalg.norm(means - self.centre, axis=1), 95.0))


@dataclass(slots=True)
class _Active:
    number: int
    surface: CellMap
    T_local_anchor: SE2
    version: int = 0


class SubmapChain:
    """The submaps so far, the last two of them under construction.

    Args:
        config: How large they become.
        reach: Of the laser [m].
    """

    def __init__(self, config: SubmapConfig, reach: float) -> None:
        expect_kernels(insert_points)
        self.config = config
        self.half = reach + config.margin
        self.all: list[Submap] = []
        self._active: list[_Active] = []
        self._spare: list[CellMap] = []
        self._nothing: NDArray[np.float64] = np.zeros((0, 5))

    @property
    def target(self) -> _Active | None:
        """What scans are matched against: the oldest under construction."""
        return self._active[0] if self._active else None

    def finished(self) -> list[int]:
        """Numbers of the submaps that no longer change."""
        under_way = {active.number for active in self._active}
        return [number for number in range(len(self.all)) if number not in under_way]

    def snapshot(self) -> list[int]:
        """Let those under construction show what they hold by now; returns their numbers."""
        for active in self._active:
            self.all[active.number].finish(active.surface)
        return [active.number for active in self._active]

    def insert(self, node: int, scan: Prepared, T_local_base: SE2, path: float, part: int) -> list[int]:
        """Add a node's scan; begins and ends submaps as they fill.  Returns the numbers of those that ended."""
        ended: list[int] = []
        newest = self.all[self._active[-1].number] if self._active else None
        if newest is None or len(newest.nodes) >= self.config.nodes or path - newest.path >= self.config.path:
            if len(self._active) == 2:
                ended.append(self._end(0))
            surface = self._spare.pop() if self._spare else CellMap(self.half)
            self._active.append(_Active(len(self.all), surface, T_local_base))
            self.all.append(Submap(node, path, part))
        for active in self._active:
            active.surface.insert(scan.points, scan.normals, active.T_local_anchor.inverse() @ T_local_base)
            active.version += 1
            self.all[active.number].nodes.append(node)
        return ended

    def close(self) -> list[int]:
        """End those under construction; the next scan begins anew.  Returns their numbers."""
        ended = []
        while self._active:
            ended.append(self._end(0))
        return ended

    def _end(self, which: int) -> int:
        active = self._active.pop(which)
        self.all[active.number].finish(active.surface)
        active.surface.load(self._nothing)
        self._spare.append(active.surface)
        return active.number
