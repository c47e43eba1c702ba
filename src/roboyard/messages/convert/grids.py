"""Conversion of occupancy grids."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import MessageError
from roboyard.geometry import SE2, SE3
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.messages.classes import message_type
from roboyard.messages.convert.poses import make_header, pose_to_msg, pose_to_se2
from roboyard.messages.time import time_to_msg


def grid_to_msg(cells: ArrayLike, resolution: float, T_frame_origin: SE2 | SE3, frame: str, time_ns: int) -> Any:
    """Convert cells to nav_msgs/OccupancyGrid.

    Args:
        cells: (rows, columns): row along y, column along x of the origin's frame; -1 unknown, 0 free to 100 occupied.
        resolution: Edge length of a cell [m].
        T_frame_origin: Pose of the corner of cell (0, 0).
        frame: Frame of the map.
        time_ns: Time stamp [ns].

    Raises:
        MessageError: A value is out of range, the shape is wrong, or the resolution is not positive.
    """
    values = np.asarray(cells)
    if values.ndim != 2 or not 0.0 < resolution < math.inf:
        raise MessageError(
            f"grid has the shape {values.shape} and the resolution {resolution}", valid="(rows, columns) and > 0"
        )
    if values.size and not (values.dtype.kind in "iu" and values.min() >= -1 and values.max() <= 100):
        raise MessageError(
            f"grid has the type {values.dtype} and values from {values.min()} to {values.max()}",
            valid="integers from -1 to 100",
        )
    rows, columns = values.shape
    info = message_type("nav_msgs/msg/MapMetaData")(
        time_to_msg(time_ns), float(resolution), columns, rows, pose_to_msg(T_frame_origin)
    )
    return message_type("nav_msgs/msg/OccupancyGrid")(make_header(frame, time_ns), info, values.astype(np.int8).ravel())


def grid_to_array(message: Any) -> NDArray[np.int8]:
    """Return the cells (rows, columns) of a nav_msgs/OccupancyGrid; a view.

    Raises:
        MessageError: The size of the data is not width times height.
    """
    data = np.asarray(message.data, dtype=np.int8)
    width, height = int(message.info.width), int(message.info.height)
    if len(data) != width * height:
        raise MessageError(f"grid of {width} x {height} cells with {len(data)} values")
    return data.reshape(height, width)


def grid_origin(message: Any) -> SE2:
    """Return ``T_frame_origin``, the pose of the corner of cell (0, 0) in the map's frame.

    Raises:
        MessageError: The pose is invalid.
    """
    return pose_to_se2(message.info.origin)


def occupancy_grid_to_msg(grid: OccupancyGrid, frame: str, time_ns: int) -> Any:
    """nav_msgs/OccupancyGrid of a map in ``frame``."""
    geometry = grid.geometry
    return grid_to_msg(grid.cells, geometry.resolution, geometry.T_map_grid, frame, time_ns)


def occupancy_grid_from_msg(message: Any, *, exact_resolution: bool = False) -> OccupancyGrid:
    """Return the map in a nav_msgs/OccupancyGrid.

    Args:
        message: The message.
        exact_resolution: Keep the 32 bits of the message's resolution, 0.05000000074505806 m for 0.05 m; False: round
            it
            to seven decimals.

    Raises:
        MessageError: The sizes in the message contradict each other.
        InputError: A value is not from -1 to 100.
    """
    cells = grid_to_array(message)
    resolution = float(message.info.resolution)
    resolution = resolution if exact_resolution else round(resolution, 7)
    return OccupancyGrid(cells, GridGeometry(resolution, cells.shape, grid_origin(message)))
