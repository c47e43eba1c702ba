"""A camera's topics: pictures with their lens, and depth that belongs to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from roboyard.bus import Node, Subscription, TransformError
from roboyard.errors import MessageError
from roboyard.geometry import CameraModel
from roboyard.geometry.arrays import F32, U8
from roboyard.grids.depth_registration import register_depth
from roboyard.messages import msg, to_nanoseconds
from roboyard.messages.convert import camera_model_from_msg, image_to_array

_COLOURS = ("rgb8", "bgr8", "rgba8", "bgra8", "mono8")
_DEPTHS = ("32FC1", "16UC1")
_TOGETHER_NS = 20_000_000
"""Depth within this time of a picture is of the same moment [ns]."""


@dataclass(frozen=True, eq=False)
class View:
    """A picture and what belongs to it.

    Attributes:
        image: (h, w, 3) in RGB, or (h, w).
        lens: Of the camera.
        depth: (h, w) registered to it [m]; None if no depth is asked for.
        frame: Optical frame.
        time_ns: Moment of exposure.
    """

    image: U8
    lens: CameraModel
    depth: F32 | None
    frame: str
    time_ns: int


class CameraInput:
    """Joins a camera's messages to views.

    Args:
        node: Whose subscriptions these are.
        image: Topic of pictures.
        info: Of their sensor_msgs/CameraInfo.
        depth: Of depth pictures; empty: none.
        depth_info: Their own CameraInfo, if they are not registered to the colour camera; empty: they are.
        on_view: Called with each view.

    It hears nothing until `listen`: pictures that nobody listens to need not be made.

    ``trouble`` says what is wrong with the newest message: a word and a sentence; empty if nothing is.
    """

    def __init__(
        self, node: Node, image: str, info: str, depth: str, depth_info: str, on_view: Callable[[View], None]
    ) -> None:
        self.trouble = ("", "")
        self._node, self._on_view = node, on_view
        self._topics = {"camera": image, "camera_info": info, "depth": depth, "depth_info": depth_info}
        self._last: dict[str, Any] = {}
        self._heard: list[Subscription] = []

    @property
    def listens(self) -> bool:
        """Whether it hears anything."""
        return bool(self._heard)

    def listen(self, wanted: bool = True) -> None:
        """Listen from now on, or no more."""
        if wanted == self.listens:
            return
        for heard in self._heard:
            self._node.release_endpoint(heard)
        self._heard.clear()
        if wanted:
            for name, topic in self._topics.items():
                kind = msg.CameraInfo if name.endswith("info") else msg.Image
                if topic:
                    self._heard.append(self._node.subscribe(topic, kind, partial(self._take, name)))

    def silent(self, since_ns: int) -> tuple[str, str]:
        """Which topic has said nothing since then: a word and a sentence; empty if all have."""
        for name, topic in self._topics.items():
            if not topic:
                continue
            message = self._last.get(name)
            # what a lens is need not be told again and again
            stale = name in ("camera", "depth") and message is not None and _time(message) < since_ns
            if message is None or stale:
                return f"{name}_silent", f"nothing came on {self._node.resolve(topic)}"
        return "", ""

    def save_state(self) -> dict[str, Any]:
        """What is known of lenses, which need not be told again."""
        return {name: message for name, message in self._last.items() if name.endswith("info")}

    def load_state(self, saved: dict[str, Any]) -> None:
        """Counterpart of `save`."""
        self._last = dict(saved)

    def _take(self, name: str, message: Any) -> None:
        self._last[name] = message
        if name in ("camera_info", "depth_info"):
            return
        image, depth = self._last.get("camera"), self._last.get("depth")
        if image is None or "camera_info" not in self._last:
            return
        if self._topics["depth"]:
            if depth is None or abs(_time(depth) - _time(image)) > _TOGETHER_NS:
                return
            if self._topics["depth_info"] and "depth_info" not in self._last:
                return
        try:
            view = self._view(image, depth)
        except (MessageError, TransformError) as error:
            word = "no_transform" if isinstance(error, TransformError) else "wrong_encoding"
            self.trouble = (word, str(error))
            return
        self.trouble = ("", "")
        self._on_view(view)

    def _view(self, image: Any, depth: Any) -> View:
        pixels = _colours(image)
        lens = camera_model_from_msg(self._last["camera_info"])
        if pixels.shape[:2] != (lens.height, lens.width):
            raise MessageError(
                f"a picture of {pixels.shape[1]} x {pixels.shape[0]} with a camera_info of {lens.width} x {lens.height}"
            )
        frame, time_ns = image.header.frame_id, _time(image)
        if not self._topics["depth"]:
            return View(pixels, lens, None, frame, time_ns)
        metres = _metres(depth)
        if self._topics["depth_info"]:
            other = camera_model_from_msg(self._last["depth_info"])
            T = self._node.transforms.lookup(frame, depth.header.frame_id, time_ns)
            metres = register_depth(metres, other, lens, T)
        if metres.shape != pixels.shape[:2]:
            raise MessageError(
                f"depth of {metres.shape[1]} x {metres.shape[0]} with a picture of {lens.width} x {lens.height}",
                valid="registered depth, or the parameter depth_info_topic",
            )
        return View(pixels, lens, metres, frame, time_ns)


def _time(message: Any) -> int:
    return to_nanoseconds(message.header.stamp)


def _colours(message: Any) -> U8:
    if message.encoding not in _COLOURS:
        raise MessageError(f"a picture encoded as '{message.encoding}'", valid=", ".join(_COLOURS))
    pixels = image_to_array(message)
    if pixels.ndim == 3:
        pixels = pixels[:, :, 2::-1] if message.encoding.startswith("bgr") else pixels[:, :, :3]
    return np.ascontiguousarray(pixels)


def _metres(message: Any) -> F32:
    if message.encoding not in _DEPTHS:
        raise MessageError(f"depth encoded as '{message.encoding}'", valid=", ".join(_DEPTHS))
    depth = image_to_array(message)
    if depth.dtype == np.uint16:
        return np.where(depth > 0, depth * np.float32(1e-3), np.float32(np.nan)).astype(np.float32)
    return np.asarray(depth, dtype=np.float32)
