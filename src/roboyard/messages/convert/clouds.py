"""Conversion of point clouds."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import MessageError
from roboyard.messages.classes import message_type
from roboyard.messages.coercion import as_numbers
from roboyard.messages.convert.poses import make_header

# sensor_msgs/PointField: constants of the data types
_DTYPE_NAMES = {1: "int8", 2: "uint8", 3: "int16", 4: "uint16", 5: "int32", 6: "uint32", 7: "float32", 8: "float64"}
_DATATYPES = {kind: number for number, kind in _DTYPE_NAMES.items()}


def cloud_to_msg(points: ArrayLike, frame: str, time_ns: int, *, fields: Mapping[str, ArrayLike] | None = None) -> Any:
    """Convert points to sensor_msgs/PointCloud2, unorganized (height 1).

    Args:
        points: (n, 3) points in `frame` [m]; stored with 32 bits.
        frame: Frame of the points.
        time_ns: Time stamp [ns].
        fields: Further values of the points, (n,) each, stored in their type, e.g. ``intensity``, or ``rgb`` from
            `pack_rgb`.

    Raises:
        MessageError: An array has the wrong size or type.
    """
    xyz = as_numbers(points, "points", np.float32)
    if xyz.ndim != 2 or xyz.shape[1] != 3:
        raise MessageError(f"points have the shape {xyz.shape}", valid="(n, 3)")
    columns: dict[str, NDArray[Any]] = {name: xyz[:, index] for index, name in enumerate("xyz")}
    for name, values in (fields or {}).items():
        column = np.asarray(values)
        if column.shape != (len(xyz),) or column.dtype.name not in _DATATYPES or name in columns:
            raise MessageError(
                f"field '{name}' has the type {column.dtype} and the shape {column.shape}",
                valid=f"({len(xyz)},) of {', '.join(_DATATYPES)}",
            )
        columns[name] = column
    dtype = np.dtype([(name, column.dtype.newbyteorder("=")) for name, column in columns.items()])
    table = np.empty(len(xyz), dtype)
    make_field = message_type("sensor_msgs/msg/PointField")
    described = []
    for name, column in columns.items():
        table[name] = column
        kind, offset = dtype.fields[name][:2]  # type: ignore[index]
        described.append(make_field(name, offset, _DATATYPES[kind.name], 1))
    return message_type("sensor_msgs/msg/PointCloud2")(
        header=make_header(frame, time_ns), height=1, width=len(table), fields=described,
        is_bigendian=sys.byteorder == "big", point_step=dtype.itemsize, row_step=dtype.itemsize * len(table),
        data=np.frombuffer(table.tobytes(), dtype=np.uint8), is_dense=bool(np.all(np.isfinite(xyz))),
    )  # fmt: skip


def cloud_to_arrays(message: Any, *, stride: int = 1) -> dict[str, NDArray[Any]]:
    """Return all fields of a sensor_msgs/PointCloud2 by name, (n,) or (n, count) each, row after row.

    Args:
        message: The cloud.
        stride: Step of rows and columns of an organized cloud, else of points.

    Raises:
        MessageError: Fields or sizes contradict each other or the data.
    """
    step, row, width, height = (int(getattr(message, name)) for name in ("point_step", "row_step", "width", "height"))
    data = np.asarray(message.data, dtype=np.uint8)
    if row < step * width or len(data) < row * height:
        raise MessageError(
            f"cloud of {width} x {height} points of {step} bytes with {row} bytes per row and {len(data)} in total",
            valid="rows that contain their points",
        )
    rows = data[: row * height].reshape(height, row)[:, : step * width]
    selected = rows.reshape(height, width, step)[:: stride if height > 1 else 1, ::stride]
    table = np.ascontiguousarray(selected).reshape(selected.shape[0] * selected.shape[1], step)
    arrays = {}
    for field in message.fields:
        if int(field.datatype) not in _DTYPE_NAMES:
            raise MessageError(
                f"cloud field '{field.name}' has the unknown type {field.datatype}", valid="1 to 8, see PointField"
            )
        dtype = np.dtype(_DTYPE_NAMES[int(field.datatype)])
        count = max(int(field.count), 1)  # some writers store 0 instead of 1
        end = int(field.offset) + count * dtype.itemsize
        if end > step:
            raise MessageError(f"cloud field '{field.name}' ends at byte {end}", valid=f"at most {step}")
        values = np.ascontiguousarray(table[:, int(field.offset) : end]).reshape(-1).view(dtype)
        if dtype.itemsize > 1 and bool(message.is_bigendian) != (sys.byteorder == "big"):
            values = values.byteswap()
        arrays[field.name] = values.reshape(-1, count) if count > 1 else values
    return arrays


def cloud_points(message: Any, *, finite: bool = True, stride: int = 1) -> NDArray[np.float64]:
    """Return the points (n, 3) [m] of a sensor_msgs/PointCloud2; by default without those that are not finite.

    Args:
        message: The cloud.
        finite: Whether to remove points that are not finite.
        stride: As in `cloud_to_arrays`.

    Raises:
        MessageError: The cloud has no x, y, z, or as `cloud_to_arrays`.
    """
    arrays = cloud_to_arrays(message, stride=stride)
    if any(axis not in arrays or arrays[axis].ndim != 1 for axis in "xyz"):
        raise MessageError(f"cloud without x, y, z; its fields: {', '.join(arrays) or 'none'}")
    points = np.stack([arrays[axis].astype(np.float64) for axis in "xyz"], axis=-1)
    return points[np.isfinite(points).all(axis=1)] if finite else points


def pack_rgb(colors: ArrayLike) -> NDArray[np.float32]:
    """Pack colors (n, 3) uint8 into a field ``rgb`` (n,), as PCL and RViz require: three bytes inside a float's bits.

    Raises:
        MessageError: The colors have another shape.
    """
    values = as_numbers(colors, "colours", np.uint8)
    if values.ndim != 2 or values.shape[1] != 3:
        raise MessageError(f"colors have the shape {values.shape}", valid="(n, 3)")
    r, g, b = values.astype(np.uint32).T
    packed: NDArray[np.float32] = ((r << 16) | (g << 8) | b).view(np.float32)
    return packed


def unpack_rgb(field: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the colors (n, 3) of a cloud's field ``rgb`` or ``rgba``.

    Raises:
        MessageError: The field does not have 32 bits.
    """
    if np.asarray(field).dtype.itemsize != 4:
        raise MessageError(f"the color field has the type {np.asarray(field).dtype}", valid="float32 or uint32")
    bits = np.ascontiguousarray(field).view(np.uint32)
    return np.stack([(bits >> shift) & 255 for shift in (16, 8, 0)], axis=-1).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class PointCloudColumns:
    """What a cloud's message holds.

    Attributes:
        xyz: (n,) x, y and z in the sensor's frame [m], maybe not finite.
        packed_rgb: (n,) colours as PCL packs them; None if there are none.
    """

    xyz: tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
    packed_rgb: NDArray[Any] | None


def cloud_from_msg(message: Any, *, color: bool) -> PointCloudColumns:
    """What a sensor_msgs/PointCloud2 shows, organised or not.

    Args:
        message: The cloud; colours are in a field ``rgb`` or ``rgba``.
        color: Whether they are wanted.

    Raises:
        MessageError: no x, y, z, or fields that contradict the data.
    """
    fields = cloud_to_arrays(message)
    if any(axis not in fields or fields[axis].ndim != 1 for axis in "xyz"):
        raise MessageError(f"cloud has no x, y, z but {', '.join(fields) or 'nothing'}")
    x, y, z = (fields[axis].astype(np.float32, copy=False) for axis in "xyz")
    packed_rgb = next((fields[name] for name in ("rgb", "rgba") if name in fields), None) if color else None
    return PointCloudColumns((x, y, z), packed_rgb)
