"""Maps of heights as grid_map_msgs have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from roboyard.errors import InputError
from roboyard.geometry.arrays import Array
from roboyard.grids.height_map import HeightMap
from roboyard.messages import msg
from roboyard.messages.time import time_to_msg

HEIGHTS = "elevation"
"""The layer of heights [m], as elevation_mapping calls it."""
VARIANCE = "variance"
"""That of their variances [m²], likewise."""
CEILING = "ceiling"
"""That of what all in a cell is lower than, seen or not [m]."""


def grid_map_to_msg(
    layers: Mapping[str, Array], corner: tuple[float, float], cell: float, time_ns: int, frame: str
) -> Any:
    """grid_map_msgs/GridMap of layers by name, each (rows along y, columns along x).

    A grid map's rows go from the greatest x down, its columns from the greatest y; its data are column by column.
    """
    rows, columns = layers[HEIGHTS].shape
    layout = msg.MultiArrayLayout(
        dim=[
            msg.MultiArrayDimension(label="column_index", size=rows, stride=rows * columns),
            msg.MultiArrayDimension(label="row_index", size=columns, stride=columns),
        ]
    )
    middle = msg.Point(x=corner[0] + 0.5 * columns * cell, y=corner[1] + 0.5 * rows * cell)
    return msg.GridMap(
        header=msg.Header(stamp=time_to_msg(time_ns), frame_id=frame),
        info=msg.GridMapInfo(
            resolution=cell, length_x=columns * cell, length_y=rows * cell,
            pose=msg.Pose(position=middle, orientation=msg.Quaternion(w=1.0)),
        ),
        layers=list(layers),
        basic_layers=[HEIGHTS],
        data=[
            msg.Float32MultiArray(layout=layout, data=layer[::-1, ::-1].astype(np.float32).ravel())
            for layer in layers.values()
        ],
    )  # fmt: skip


def heights_to_msg(ground: HeightMap, time_ns: int, frame: str) -> Any:
    """grid_map_msgs/GridMap with the layer "elevation" alone."""
    return grid_map_to_msg({HEIGHTS: ground.heights}, ground.corner, ground.resolution, time_ns, frame)


def heights_from_msg(message: Any) -> HeightMap:
    """The layer "elevation" of a grid_map_msgs/GridMap, and "variance" and "ceiling" where it has them.

    Raises:
        InputError: it has no such layer, or is turned, or its buffer begins elsewhere.
    """
    heights = layer_from_msg(message, HEIGHTS)
    if heights is None:
        raise InputError(
            f"a grid map of {', '.join(message.layers) or 'nothing'}", valid=f"one with a layer '{HEIGHTS}'"
        )
    info = message.info
    p = info.pose.position
    corner = (p.x - 0.5 * info.length_x, p.y - 0.5 * info.length_y)
    variance, ceiling = layer_from_msg(message, VARIANCE), layer_from_msg(message, CEILING)
    return HeightMap(heights, corner, float(info.resolution), variance, ceiling)


def layer_from_msg(message: Any, name: str) -> Array | None:
    """A layer (rows along y, columns along x) of a grid_map_msgs/GridMap; None where it has none of that name.

    Raises:
        InputError: it is turned, or its buffer begins elsewhere, or it contradicts itself.
    """
    if name not in message.layers:
        return None
    info, q = message.info, message.info.pose.orientation
    if message.outer_start_index or message.inner_start_index or abs(q.x) + abs(q.y) + abs(q.z) > 1e-9:
        raise InputError("a grid map that is turned, or whose buffer does not begin at 0", valid="along its frame")
    if not 0.0 < info.resolution < np.inf or len(message.data) != len(message.layers):
        raise InputError(
            f"a grid map of {len(message.layers)} layers with cells of {info.resolution:g} m and data of "
            f"{len(message.data)}",
            valid="cells of more than 0 m, data for each layer",
        )
    columns, rows = (round(length / info.resolution) for length in (info.length_x, info.length_y))
    data = np.asarray(message.data[message.layers.index(name)].data, np.float64)
    if data.size != rows * columns:
        raise InputError(f"a grid map of {data.size} numbers", valid=f"{columns} x {rows}")
    return np.ascontiguousarray(data.reshape(rows, columns)[::-1, ::-1])
