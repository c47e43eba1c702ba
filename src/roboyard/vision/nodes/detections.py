"""What was seen, as messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.messages import msg
from roboyard.messages.convert import covariance_to_msg, make_header, pose_to_msg


def pose_of(position: Array, normal: Array) -> SE3:
    """A pose whose z is the normal; its turn about that is any."""
    side = np.cross([0.0, 1.0, 0.0], normal)
    if np.linalg.norm(side) < 1e-3:
        side = np.cross([1.0, 0.0, 0.0], normal)
    side /= np.linalg.norm(side)
    return SE3.from_rotation_matrix(np.stack([side, np.cross(normal, side), normal], axis=1), position)


def detection(
    frame: str, time_ns: int, pose: SE3, size: tuple[float, float, float], name: str, score: float,
    covariance: Array | None = None,
) -> Any:  # fmt: skip
    """vision_msgs/Detection3D.

    Args:
        frame: Of the pose.
        time_ns: Of the picture.
        pose: Of the thing.
        size: Along its axes [m].
        name: What it is.
        score: How sure, 0 to 1.
        covariance: (6, 6) of the pose; None: not known.
    """
    vision = msg.vision_msgs
    found = vision.ObjectHypothesisWithPose(hypothesis=vision.ObjectHypothesis(class_id=name, score=score))
    found.pose.pose = pose_to_msg(pose)
    if covariance is not None:
        found.pose.covariance = np.asarray(covariance_to_msg(covariance))
    box = vision.BoundingBox3D(center=pose_to_msg(pose))
    box.size.x, box.size.y, box.size.z = size
    return vision.Detection3D(header=make_header(frame, time_ns), results=[found], bbox=box, id=name)


def detections(frame: str, time_ns: int, found: Sequence[Any]) -> Any:
    """vision_msgs/Detection3DArray."""
    return msg.vision_msgs.Detection3DArray(header=make_header(frame, time_ns), detections=list(found))
