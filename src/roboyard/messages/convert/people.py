"""Converts messages about people's bodies into capsules as arrays."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np

from roboyard.errors import MessageError
from roboyard.geometry.arrays import Array

_POSE_VALUES = attrgetter(
    "position.x", "position.y", "position.z", "orientation.w", "orientation.x", "orientation.y", "orientation.z"
)


def person_capsules_from_msg(message: Any) -> tuple[tuple[str, ...], Array, Array]:
    """Convert a roboyard_msgs/PersonBody: part names (b), ends of the capsule axes (b, 2, 3) in the frame of the
    header, and radii (b,) [m].

    Raises:
        MessageError: The sizes do not match, or a number is not finite.
    """
    table = np.array(list(map(_POSE_VALUES, message.poses)), dtype=np.float64).reshape(-1, 7)
    radii, lengths = (np.array(values, dtype=np.float64) for values in (message.radii, message.lengths))
    parts = tuple(message.parts)
    if not len(parts) == len(table) == len(radii) == len(lengths):
        raise MessageError(
            f"{message.name!r} has {len(parts)} parts, {len(table)} poses, {len(radii)} radii, {len(lengths)} lengths",
            valid="equal numbers",
        )
    if not np.isfinite(np.concatenate((table.ravel(), radii, lengths))).all():
        raise MessageError(
            f"the body of {message.name!r} has a number that is not finite", valid="finite poses and sizes"
        )
    w, x, y, z = table[:, 3], table[:, 4], table[:, 5], table[:, 6]
    half_axes = np.empty((len(table), 3))  # z axes, half as long as the capsules
    half_axes[:, 0], half_axes[:, 1] = 2.0 * (x * z + w * y), 2.0 * (y * z - w * x)
    half_axes[:, 2] = 1.0 - 2.0 * (x * x + y * y)
    half_axes *= (0.5 * lengths)[:, None]
    ends = np.empty((len(table), 2, 3))
    ends[:, 0], ends[:, 1] = table[:, :3] - half_axes, table[:, :3] + half_axes
    return parts, ends, radii
