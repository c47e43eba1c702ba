"""The contract of all SLAM algorithms, the registry of algorithms, and the occupancy map of a trajectory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from roboyard.config.registry import Registry
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, InverseSensorModel, OccupancyGrid, OccupancyMapBuilder
from roboyard.mapping.pose_graph import PoseGraph
from roboyard.mapping.scan import LaserScan, PreprocessedScan
from roboyard.mapping.trajectory import PoseTrajectory


class Slam(Protocol):
    """Simultaneous localization and mapping, one scan at a time.

    An algorithm is deterministic: equal scans in the same order give equal bytes; random numbers come from a seed in
    the configuration. An algorithm does not change the scans. `roboyard.mapping.conformance.check_slam` tests all of
    this. An algorithm may also offer `SavesSlamState` and `SavesSlamMap`.
    """

    def process(self, scan: LaserScan) -> SE2:
        """Process the next scan; scans come in the order of their time stamps.

        A scan whose stamp is not later than that of the scan before it is dropped: the algorithm raises no error, adds
        no pose to the trajectory, and counts the scan in ``warnings``. A scan without a valid reading moves the robot
        by odometry only.

        Returns:
            The current estimate of ``T_map_base`` at the time of the scan; later scans may correct it in
            ``trajectory``.
        """
        ...

    def finish(self) -> None:
        """Do deferred work, such as the last loop search and optimization. More scans may follow."""
        ...

    def trajectory(self) -> PoseTrajectory:
        """Return the current estimate of ``T_map_base`` for all scans so far, with strictly increasing time stamps."""
        ...

    def graph(self) -> PoseGraph:
        """Return the current estimate of the pose graph: nodes and edges."""
        ...

    def occupancy(self, resolution: float) -> OccupancyGrid:
        """Return the current occupancy map with cells of that side [m]."""
        ...

    @property
    def warnings(self) -> Sequence[str]:
        """Return one sentence for each kind of irregularity in the scans so far."""
        ...


@runtime_checkable
class SavesSlamState(Protocol):
    """An algorithm whose complete state can be saved as plain data, for snapshots of a run."""

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data: numbers, strings, lists and arrays."""
        ...

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what ``save_state`` returned, in an algorithm with the same configuration."""
        ...


@runtime_checkable
class SavesSlamMap(Protocol):
    """An algorithm that writes its map into a file from which it can resume."""

    def save_map(self, path: str | Path) -> Path:
        """Write the map; return the path of the file.

        Raises:
            InputError: The file cannot be written.
        """
        ...


@dataclass(frozen=True, slots=True)
class SlamAlgorithm:
    """A registered SLAM algorithm: what an entry point of the group ``roboyard.slam`` names.

    Attributes:
        title: Name of the algorithm in reports, within a sentence: "graph SLAM".
        create: Create the algorithm with its default configuration and an empty map.
        resume: Create the algorithm with the map of a file that ``save_map`` wrote; None: it cannot extend maps.
        localize: Create an algorithm that localizes in the map of a file and does not change the map; None: it cannot.
    """

    title: str
    create: Callable[[], Slam]
    resume: Callable[[Path], Slam] | None = None
    localize: Callable[[Path], Slam] | None = None


SLAM_ALGORITHMS: Final[Registry[SlamAlgorithm]] = Registry("SLAM algorithm", group="roboyard.slam")
"""All SLAM algorithms by name, of Roboyard and of installed packages."""


def find_slam_algorithm(name: str) -> SlamAlgorithm:
    """Return a SLAM algorithm by its registered name, or by ``module:OBJECT`` or ``file.py:OBJECT``.

    Raises:
        UnknownNameError: There is no algorithm of this name.
        ConfigError: The entry point cannot be loaded, or names no `SlamAlgorithm`.
    """
    algorithm = SLAM_ALGORITHMS.resolve(name)
    if not isinstance(algorithm, SlamAlgorithm):
        raise ConfigError("is no SLAM algorithm", location=name, valid="an object of the class SlamAlgorithm")
    return algorithm


def make_slam(algorithm: str, *, resume_from: Path | None = None, localize_in: Path | None = None) -> Slam:
    """Create a SLAM algorithm by its name, with its default configuration.

    Args:
        algorithm: Name, as for `find_slam_algorithm`.
        resume_from: File of a map to extend.
        localize_in: File of a map that does not change; the robot only localizes in it.

    Raises:
        UnknownNameError: There is no algorithm of this name.
        InputError: The algorithm has no map files, or the file holds no map of this algorithm.
    """
    entry = find_slam_algorithm(algorithm)
    if resume_from and localize_in:
        raise InputError("--resume and --localize exclude each other", valid="one of the two")
    if not (resume_from or localize_in):
        return entry.create()
    create, path = (entry.resume, resume_from) if resume_from else (entry.localize, localize_in)
    if create is None or path is None:
        capable = [name for name in SLAM_ALGORITHMS.names() if _has_map_files(name, resume=resume_from is not None)]
        raise InputError(f"the algorithm {algorithm} has no pose graph maps", valid=", ".join(capable))
    return create(path)


def _has_map_files(name: str, *, resume: bool) -> bool:
    algorithm = find_slam_algorithm(name)
    return (algorithm.resume if resume else algorithm.localize) is not None


MAX_CELLS = 100_000_000
"""Largest number of cells of a map, which bounds its memory."""
_MARGIN = 1.0


def draw_occupancy_map(
    poses: Sequence[SE2], scans: Sequence[PreprocessedScan], resolution: float, model: InverseSensorModel | None = None
) -> OccupancyGrid:
    """Draw scans into an occupancy map that is just large enough for them.

    Args:
        poses: ``T_map_base`` of each scan.
        scans: The scans, as many as poses.
        resolution: Side of a cell [m].
        model: Log-odds that a beam adds to the cells of its end and its path; None: the default model.

    Raises:
        InputError: The resolution is not positive, or so fine that the map would have more than `MAX_CELLS` cells.
    """
    if not (math.isfinite(resolution) and resolution > 0.0):
        raise InputError(f"a map with a resolution of {resolution}", valid="metres, more than 0")
    low, high = np.zeros(2), np.zeros(2)
    for pose, scan in zip(poses, scans, strict=True):
        ends = pose @ scan.ends if len(scan.ends) else pose.xy[None]
        low, high = np.minimum(low, ends.min(axis=0)), np.maximum(high, ends.max(axis=0))
    size = (high - low + 2.0 * _MARGIN) / resolution
    if not size[0] * size[1] <= MAX_CELLS:
        raise InputError(f"a map of {size[0]:.0f} × {size[1]:.0f} cells", valid=f"at most {MAX_CELLS} cells")
    builder = OccupancyMapBuilder(GridGeometry.covering(low - _MARGIN, high + _MARGIN, resolution), model)
    for pose, scan in zip(poses, scans, strict=True):
        if len(scan.ends):
            builder.add_beams(pose @ scan.origin, pose @ scan.ends)
    return builder.to_grid()
