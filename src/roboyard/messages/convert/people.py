"""People's bodies from messages: capsules as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import MessageError
from roboyard.geometry import quaternions

Array = NDArray[np.float64]


def body_capsules(message: Any) -> tuple[tuple[str, ...], Array, Array]:
    """Of a roboyard_msgs/PersonBody: names of the parts (b), ends of their middle lines (b, 2, 3) in the frame of the
    header, and radii (b,) [m].

    Raises:
        MessageError: sizes do not fit each other, or a number is not finite.
    """
    poses = [
        (p.position.x, p.position.y, p.position.z, p.orientation.w, p.orientation.x, p.orientation.y, p.orientation.z)
        for p in message.poses
    ]
    table = np.array(poses, dtype=np.float64).reshape(-1, 7)
    radii, lengths = (np.array(values, dtype=np.float64) for values in (message.radii, message.lengths))
    parts = tuple(message.parts)
    if not len(parts) == len(table) == len(radii) == len(lengths):
        raise MessageError(
            f"{len(parts)} parts, {len(table)} poses, {len(radii)} radii, {len(lengths)} lengths of {message.name!r}",
            valid="as many of each",
        )
    if not (np.isfinite(table).all() and np.isfinite(radii).all() and np.isfinite(lengths).all()):
        raise MessageError(f"a number of {message.name!r}'s body is not finite", valid="finite poses and sizes")
    along = quaternions.z_axis(table[:, 3:]) * (0.5 * lengths[:, None])
    return parts, np.stack([table[:, :3] - along, table[:, :3] + along], axis=1), radii
