"""Fiducials in a live run."""

from __future__ import annotations

import math
from typing import Any

from roboyard.bus import Node
from roboyard.config import Config, parameter
from roboyard.messages import msg
from roboyard.vision.fiducials import dictionary, find_fiducials
from roboyard.vision.nodes.camera_input import CameraInput, View
from roboyard.vision.nodes.detections import detection, detections

_SILENT_NS = 2_000_000_000


class FiducialFinderNodeConfig(Config):
    """Configuration of `FiducialFinderNode`."""

    image_topic: str = parameter("image", doc="Topic of the images.")
    info_topic: str = parameter("camera_info", high=math.inf, doc="Topic of their camera_info.")
    family: str = parameter("apriltag_36h11", doc="Family of the markers, such as 4x4_50 and apriltag_36h11.")
    size: float = parameter(0.05, unit="m", low=1e-3, high=10.0, doc="Edge of the markers.")
    names: tuple[str, ...] = parameter((), doc="Names of the markers 0, 1, …; others have their number.")
    rate: float = parameter(5.0, unit="Hz", low=0.01, high=100.0, runtime=True, doc="Rate of the processed images.")


class FiducialFinderNode(Node[FiducialFinderNodeConfig]):
    """Finds fiducials of one family and size.

    in: image (sensor_msgs/Image), camera_info; names by parameters
    out: fiducials (vision_msgs/Detection3DArray in the camera's optical frame; the id is the marker's name, the score
        how clearly its pose is the right one of two), at most ``rate`` times a second

    It listens to the camera while somebody listens to it.
    """

    state_fields = ("_looked_ns", "_begun_ns")

    def setup(self) -> None:
        """Connect."""
        dictionary(self.config.family)
        self._looked_ns = -(10**18)
        self._begun_ns = self.now_ns
        self._found = self.publisher("fiducials", msg.vision_msgs.Detection3DArray)
        self._camera = CameraInput(self, self.config.image_topic, self.config.info_topic, "", "", self._on_view)
        self.timer(0.05, self._listen)
        self.timer(1.0, self._watch)
        self.report_health("ok", "waits for pictures")

    def _on_view(self, view: View) -> None:
        if view.time_ns - self._looked_ns < round(0.9e9 / self.config.rate):
            return
        self._looked_ns = view.time_ns
        found: list[Any] = []
        for one in find_fiducials(view.image, self.config.family, view.lens, self.config.size):
            if one.T_camera_tag is not None:
                size = (one.size, one.size, 0.0)
                name, score = self._name(one.id), 1.0 - 0.5 * one.ambiguity
                found.append(detection(view.frame, view.time_ns, one.T_camera_tag, size, name, score, one.covariance))
        self._found.publish(detections(view.frame, view.time_ns, found))
        self.report_health("ok", f"{len(found)} fiducials seen")

    def _name(self, number: int) -> str:
        return self.config.names[number] if number < len(self.config.names) else str(number)

    def _listen(self) -> None:
        heard = bool(self._found.topic.subscriptions)
        if heard and not self._camera.listens:
            self._begun_ns = self.now_ns
        self._camera.listen(heard)

    def _watch(self) -> None:
        if not self._camera.listens:
            return
        cause, text = self._camera.trouble
        if not cause:
            cause, text = self._camera.silent(max(self._begun_ns, self.now_ns - _SILENT_NS))
        if cause:
            self.report_health("error" if self._camera.trouble[0] else "warn", text, cause=cause)
