"""Fiducial detector node: markers of one family with their poses."""

from __future__ import annotations

import math
from typing import Any

from roboyard.bus import Node
from roboyard.config import Config, parameter
from roboyard.messages import msg
from roboyard.messages.convert.detections import make_detection, make_detection_array
from roboyard.vision.fiducials import aruco_dictionary, detect_fiducials
from roboyard.vision.nodes.camera_subscriber import CameraImage, CameraSubscriber, CameraTopics

_STALE_NS = 2_000_000_000


class FiducialDetectorNodeConfig(Config):
    """Configuration of `FiducialDetectorNode`."""

    image_topic: str = parameter("image", doc="Topic of the images.")
    info_topic: str = parameter("camera_info", high=math.inf, doc="Topic of their camera_info.")
    family: str = parameter("apriltag_36h11", doc="Family of the markers, such as 4x4_50 and apriltag_36h11.")
    tag_size: float = parameter(0.05, unit="m", low=1e-3, high=10.0, doc="Edge length of the markers.")
    tag_names: tuple[str, ...] = parameter((), doc="Names of the markers 0, 1, …; others have their number.")
    rate: float = parameter(5.0, unit="Hz", low=0.01, high=100.0, runtime=True, doc="Rate of the processed images.")


class FiducialDetectorNode(Node[FiducialDetectorNodeConfig]):
    """Detects fiducials of one family and size.

    in: image (sensor_msgs/Image), camera_info; names by parameters
    out: fiducials (vision_msgs/Detection3DArray in the camera's optical frame; the id is the marker's name, the score
        how unambiguous its pose is), at most ``rate`` times per second

    It subscribes to the camera while it has a subscriber.
    """

    state_fields = ("_last_detection_ns", "_enabled_ns")

    def setup(self) -> None:
        """Advertise the detections."""
        aruco_dictionary(self.config.family)
        self._last_detection_ns = -(10**18)
        self._enabled_ns = self.now_ns
        self._detection_publisher = self.publisher("fiducials", msg.vision_msgs.Detection3DArray)
        topics = CameraTopics(self.config.image_topic, self.config.info_topic)
        self._camera = CameraSubscriber(self, topics, self._on_image)
        self.timer(0.05, self._enable_camera)
        self.timer(1.0, self._monitor_camera)
        self.report_health("ok", "waits for images")

    def _on_image(self, image: CameraImage) -> None:
        if image.time_ns - self._last_detection_ns < round(0.9e9 / self.config.rate):
            return
        self._last_detection_ns = image.time_ns
        messages: list[Any] = []
        for fiducial in detect_fiducials(image.image, self.config.family, image.camera_model, self.config.tag_size):
            if fiducial.T_camera_tag is not None:
                size = (fiducial.size, fiducial.size, 0.0)
                name, score = self._tag_name(fiducial.id), 1.0 - 0.5 * fiducial.ambiguity
                messages.append(
                    make_detection(
                        image.frame_id, image.time_ns, fiducial.T_camera_tag, size, name, score, fiducial.covariance
                    )
                )
        self._detection_publisher.publish(make_detection_array(image.frame_id, image.time_ns, messages))
        self.report_health("ok", f"{len(messages)} fiducials detected")

    def _tag_name(self, tag_id: int) -> str:
        return self.config.tag_names[tag_id] if tag_id < len(self.config.tag_names) else str(tag_id)

    def _enable_camera(self) -> None:
        has_subscribers = bool(self._detection_publisher.topic.subscriptions)
        if has_subscribers and not self._camera.is_enabled:
            self._enabled_ns = self.now_ns
        self._camera.set_enabled(has_subscribers)

    def _monitor_camera(self) -> None:
        if not self._camera.is_enabled:
            return
        cause, text = self._camera.error
        if not cause:
            cause, text = self._camera.find_stale_topic(max(self._enabled_ns, self.now_ns - _STALE_NS))
        if cause:
            self.report_health("error" if self._camera.error[0] else "warn", text, cause=cause)
