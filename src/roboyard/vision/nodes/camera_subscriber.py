"""Subscriber of a camera: images with their camera model, and depth of the same moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from roboyard.bus import Node, Subscription, TransformError
from roboyard.errors import MessageError
from roboyard.geometry import CameraModel
from roboyard.geometry.arrays import F32, U8
from roboyard.grids.depth_registration import register_depth
from roboyard.messages import msg, to_nanoseconds
from roboyard.messages.convert import camera_model_from_msg, color_to_array, depth_to_array

_SYNC_TOLERANCE_NS = 20_000_000
"""Largest time difference of an image and a depth image of the same moment [ns]."""


@dataclass(frozen=True, eq=False)
class CameraImage:
    """An image with its camera model, and with depth if the subscriber has a depth topic.

    Attributes:
        image: (h, w, 3) in RGB, or (h, w).
        camera_model: Camera model of the image.
        depth: (h, w) depth registered to the image [m]; None without a depth topic.
        frame_id: Optical frame.
        time_ns: Time of the exposure.
    """

    image: U8
    camera_model: CameraModel
    depth: F32 | None
    frame_id: str
    time_ns: int


class CameraTopics(NamedTuple):
    """Topics of a camera.

    Attributes:
        image: Topic of the images.
        info: Topic of their sensor_msgs/CameraInfo.
        depth: Topic of the depth images; empty: none.
        depth_info: Topic of the depth camera's CameraInfo if depth is not registered; empty: it is registered.
    """

    image: str
    info: str
    depth: str = ""
    depth_info: str = ""


class CameraSubscriber:
    """Combines the messages of a camera: image, camera info, and depth of the same moment.

    Args:
        node: Node that owns the subscriptions.
        topics: Topics of the camera.
        on_image: Callback that gets each combined image.

    It subscribes to nothing until `set_enabled`: a camera without subscribers renders nothing.

    ``error`` is the cause and the text of the newest message's error; both are empty without one.
    """

    def __init__(self, node: Node, topics: CameraTopics, on_image: Callable[[CameraImage], None]) -> None:
        self.error = ("", "")
        self._node, self._on_image = node, on_image
        self._topics = {
            "camera": topics.image,
            "camera_info": topics.info,
            "depth": topics.depth,
            "depth_info": topics.depth_info,
        }
        self._last_messages: dict[str, Any] = {}
        self._subscriptions: list[Subscription] = []

    @property
    def is_enabled(self) -> bool:
        """Whether it is subscribed to the topics."""
        return bool(self._subscriptions)

    def set_enabled(self, enabled: bool = True) -> None:
        """Subscribe to the topics, or release the subscriptions."""
        if enabled == self.is_enabled:
            return
        for subscription in self._subscriptions:
            self._node.release_endpoint(subscription)
        self._subscriptions.clear()
        if enabled:
            for name, topic in self._topics.items():
                message_type = msg.CameraInfo if name.endswith("info") else msg.Image
                if topic:
                    self._subscriptions.append(
                        self._node.subscribe(topic, message_type, partial(self._on_message, name))
                    )

    def find_stale_topic(self, since_ns: int) -> tuple[str, str]:
        """Return cause and text for the first topic without a message since a time; both are empty if all have one."""
        for name, topic in self._topics.items():
            if not topic:
                continue
            message = self._last_messages.get(name)
            # camera infos do not become stale
            is_stale = name in ("camera", "depth") and message is not None and _stamp_ns(message) < since_ns
            if message is None or is_stale:
                return f"{name}_silent", f"nothing came on {self._node.resolve(topic)}"
        return "", ""

    def save_state(self) -> dict[str, Any]:
        """Return the last camera infos, which cameras need not repeat."""
        return {name: message for name, message in self._last_messages.items() if name.endswith("info")}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._last_messages = dict(saved)

    def _on_message(self, input_name: str, message: Any) -> None:
        self._last_messages[input_name] = message
        if input_name in ("camera_info", "depth_info"):
            return
        image, depth = self._last_messages.get("camera"), self._last_messages.get("depth")
        if image is None or "camera_info" not in self._last_messages:
            return
        if self._topics["depth"]:
            if depth is None or abs(_stamp_ns(depth) - _stamp_ns(image)) > _SYNC_TOLERANCE_NS:
                return
            if self._topics["depth_info"] and "depth_info" not in self._last_messages:
                return
        try:
            camera_image = self._make_image(image, depth)
        except (MessageError, TransformError) as error:
            cause = "no_transform" if isinstance(error, TransformError) else "wrong_encoding"
            self.error = (cause, str(error))
            return
        self.error = ("", "")
        self._on_image(camera_image)

    def _make_image(self, image: Any, depth: Any) -> CameraImage:
        pixels = color_to_array(image)
        camera_model = camera_model_from_msg(self._last_messages["camera_info"])
        if pixels.shape[:2] != (camera_model.height, camera_model.width):
            raise MessageError(
                f"an image of {pixels.shape[1]} x {pixels.shape[0]} with a camera_info of "
                f"{camera_model.width} x {camera_model.height}"
            )
        frame_id, time_ns = image.header.frame_id, _stamp_ns(image)
        if not self._topics["depth"]:
            return CameraImage(pixels, camera_model, None, frame_id, time_ns)
        depth_image = depth_to_array(depth)
        if self._topics["depth_info"]:
            depth_camera_model = camera_model_from_msg(self._last_messages["depth_info"])
            T = self._node.transforms.lookup(frame_id, depth.header.frame_id, time_ns)
            depth_image = register_depth(depth_image, depth_camera_model, camera_model, T)
        if depth_image.shape != pixels.shape[:2]:
            raise MessageError(
                f"depth of {depth_image.shape[1]} x {depth_image.shape[0]} with an image of "
                f"{camera_model.width} x {camera_model.height}",
                valid="registered depth, or the parameter depth_info_topic",
            )
        return CameraImage(pixels, camera_model, depth_image, frame_id, time_ns)


def _stamp_ns(message: Any) -> int:
    return to_nanoseconds(message.header.stamp)
