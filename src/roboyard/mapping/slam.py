"""What every SLAM algorithm offers, whatever it does inside."""

from __future__ import annotations

from typing import Protocol

from roboyard.geometry import SE2
from roboyard.grids import OccupancyGrid
from roboyard.mapping.pose_graph import PoseGraph
from roboyard.mapping.scan import Scan
from roboyard.mapping.trajectory import Trajectory


class Slam(Protocol):
    """Simultaneous localisation and mapping, one scan at a time.

    Deterministic: the same scans in the same order give the same bits; randomness comes from a seed in the
    configuration.
    """

    def process(self, scan: Scan) -> SE2:
        """Take the next scan; scans come in the order of their times.

        Returns:
            ``T_map_base`` at the scan's time, as it is believed now; later scans may correct it, see ``trajectory``.
        """
        ...

    def finish(self) -> None:
        """Do what was put off: last loop search and optimisation. More scans may follow."""
        ...

    def trajectory(self) -> Trajectory:
        """``T_map_base`` of all scans so far, as they are believed now."""
        ...

    def graph(self) -> PoseGraph:
        """Nodes and edges as they are believed now."""
        ...

    def occupancy(self, resolution: float) -> OccupancyGrid:
        """The map as it is believed now, with cells of that side [m]."""
        ...
