"""Occupancy maps as messages and back, and the files that services name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from roboyard.errors import InputError
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.mapping.map_files import MapMode, save_map
from roboyard.messages.convert import grid_origin, grid_to_array, grid_to_msg


def map_to_msg(grid: OccupancyGrid, frame: str, time_ns: int) -> Any:
    """nav_msgs/OccupancyGrid of a map in ``frame``."""
    where = grid.geometry
    return grid_to_msg(grid.cells, where.resolution, where.T_map_grid, frame, time_ns)


def map_from_msg(message: Any) -> OccupancyGrid:
    """The map in a nav_msgs/OccupancyGrid.

    Raises:
        MessageError: its sizes contradict each other.
        InputError: its values are none of a map.
    """
    cells = grid_to_array(message)
    resolution = round(float(message.info.resolution), 7)  # 32 bits: 0.05 for 0.05000000074505806
    return OccupancyGrid(cells, GridGeometry(resolution, cells.shape, grid_origin(message)))


def file_of(url: str) -> Path:
    """The file that a service's ``map_url`` names: a path, also as ``file://``.

    Raises:
        InputError: another kind of address, or nothing.
    """
    path = url.removeprefix("file://")
    if not path or "://" in path or "\0" in path:
        raise InputError(f"'{url[:200]}' is no file", valid="a path, or file:///…")
    return Path(path)


def save_as_asked(grid: OccupancyGrid, request: Any) -> Path:
    """Save a map as a nav2_msgs/SaveMap request asks; what it leaves open is chosen.

    Raises:
        InputError: it cannot be written that way.
    """
    modes = {mode.value: mode for mode in MapMode}
    if request.map_mode and request.map_mode not in modes:
        raise InputError(f"no map mode '{request.map_mode[:40]}'", valid=", ".join(modes))
    mode = modes.get(request.map_mode, MapMode.TRINARY)
    trinary = mode is MapMode.TRINARY  # thresholds mean nothing in the other modes
    return save_map(
        file_of(request.map_url),
        grid,
        mode,
        image_format=request.image_format,
        occupied_thresh=_given(request.occupied_thresh) if trinary else None,
        free_thresh=_given(request.free_thresh) if trinary else None,
    )


def _given(threshold: float) -> float | None:
    return round(float(threshold), 6) if threshold else None
