"""Detections of objects as messages of vision_msgs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.messages import msg
from roboyard.messages.convert import covariance_to_msg, make_header, pose_to_msg


def make_detection(
    frame_id: str, time_ns: int, pose: SE3, size: tuple[float, float, float], name: str, score: float,
    covariance: Array | None = None,
) -> Any:  # fmt: skip
    """Return a vision_msgs/Detection3D.

    Args:
        frame_id: Frame of the pose.
        time_ns: Time of the image.
        pose: Pose of the object.
        size: Size along its axes [m].
        name: Class of the object, and id of the detection.
        score: Confidence, 0 to 1.
        covariance: (6, 6) covariance of the pose; None: unknown.
    """
    vision_msgs = msg.vision_msgs
    hypothesis = vision_msgs.ObjectHypothesisWithPose(
        hypothesis=vision_msgs.ObjectHypothesis(class_id=name, score=score)
    )
    hypothesis.pose.pose = pose_to_msg(pose)
    if covariance is not None:
        hypothesis.pose.covariance = np.asarray(covariance_to_msg(covariance))
    box = vision_msgs.BoundingBox3D(center=pose_to_msg(pose))
    box.size.x, box.size.y, box.size.z = size
    return vision_msgs.Detection3D(header=make_header(frame_id, time_ns), results=[hypothesis], bbox=box, id=name)


def make_detection_array(frame_id: str, time_ns: int, detections: Sequence[Any]) -> Any:
    """Return a vision_msgs/Detection3DArray."""
    return msg.vision_msgs.Detection3DArray(header=make_header(frame_id, time_ns), detections=list(detections))
