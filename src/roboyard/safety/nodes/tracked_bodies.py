"""Messages of people whom sensors follow."""

from __future__ import annotations

from typing import Any

from roboyard.messages import msg
from roboyard.messages.convert.poses import make_header
from roboyard.safety.body_columns import BodyColumns
from roboyard.safety.people_tracking import Track


def columns_to_msg(columns: BodyColumns, track: Track, time_ns: int) -> Any:
    """A roboyard_msgs/PersonBody in the world: each column counts as a chest, since nobody saw what it is."""
    middles, lengths = columns.middle_lines()
    count, (u, v) = len(middles), track.velocity
    upright = msg.Quaternion(0.0, 0.0, 0.0, 1.0)
    return msg.PersonBody(
        header=make_header("world", time_ns), name=f"person {track.number}", parts=["chest"] * count,
        poses=[
            msg.Pose(msg.Point(x, y, z), upright)
            for (x, y), z in zip(columns.places.tolist(), middles.tolist(), strict=True)
        ],
        radii=columns.radii, lengths=lengths, velocities=[msg.Vector3(u, v, 0.0)] * count,
        peak_forces=[msg.Vector3()] * count, contact_regions=[""] * count,
    )  # fmt: skip
