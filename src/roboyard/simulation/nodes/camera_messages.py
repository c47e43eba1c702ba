"""Camera readings as ROS messages, output by output."""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.description.sensors import CameraSpec, Sensor, camera_frames
from roboyard.geometry import CameraModel
from roboyard.grids.depth_registration import POINT_XYZRGB, make_organized_cloud, ray_slopes, register_depth
from roboyard.messages import msg
from roboyard.messages.convert import image_to_msg, jpeg_to_msg
from roboyard.messages.time import time_to_msg
from roboyard.simulation.sensors.cameras.camera import CameraReading
from roboyard.simulation.sensors.cameras.depth_noise import SUBPIXEL
from roboyard.simulation.sensors.cameras.stereo import projection

NEEDS: dict[str, frozenset[str]] = {
    "image": frozenset(("image",)),
    "depth": frozenset(("depth",)),
    "registered": frozenset(("depth",)),
    "infrared": frozenset(("infrared",)),
    "points": frozenset(("image", "depth")),
    "depth_points": frozenset(("depth",)),
    "right": frozenset(("right",)),
    "disparity": frozenset(("disparity",)),
    "image/compressed": frozenset(("image",)),
    "depth/compressed": frozenset(("depth",)),
}
"""What of a reading each output is made of; camera_info needs none."""
TYPES: dict[str, type] = {
    "image": msg.Image, "info": msg.CameraInfo, "depth": msg.Image, "depth_info": msg.CameraInfo,
    "registered": msg.Image, "infrared": msg.Image, "infrared_info": msg.CameraInfo, "points": msg.PointCloud2,
    "depth_points": msg.PointCloud2, "right": msg.Image, "right_info": msg.CameraInfo, "disparity": msg.DisparityImage,
    "image/compressed": msg.CompressedImage, "depth/compressed": msg.CompressedImage,
}  # fmt: skip


class CameraMessages:
    """Makes the messages of one camera.

    Args:
        sensor: The camera.
        spec: What it is.
        prefix: Of the robot's frames.
    """

    def __init__(self, sensor: Sensor, spec: CameraSpec, prefix: str) -> None:
        self._spec = spec
        frames = camera_frames(sensor, spec)
        self._colour, self._depth, self._right = (prefix + name for name in (frames.color, frames.depth, frames.right))
        self._slopes: dict[CameraModel, NDArray[np.float32]] = {}
        self._make: dict[str, Callable[[CameraReading], Any]] = {
            "image": lambda r: None if r.colour is None else image_to_msg(r.colour, self._colour, r.time_ns),
            "right": lambda r: None if r.right is None else image_to_msg(r.right, self._right, r.time_ns),
            "infrared": lambda r: None if r.infrared is None else image_to_msg(r.infrared, self._depth, r.time_ns),
            "depth": lambda r: None if r.depth is None else self._depth_image(r.depth, self._depth, r.time_ns),
            "registered": self._registered,
            "points": self._points,
            "depth_points": self._depth_points,
            "disparity": self._disparity,
            "info": lambda r: self._info(spec.color, self._colour, r.time_ns),
            "depth_info": lambda r: self._info(spec.depth, self._depth, r.time_ns),
            "infrared_info": lambda r: self._info(spec.depth, self._depth, r.time_ns),
            "right_info": lambda r: self._info(spec.color, self._right, r.time_ns, spec.baseline),
            "image/compressed": self._jpeg,
            "depth/compressed": self._png,
        }

    def make(self, reading: CameraReading, outputs: frozenset[str]) -> dict[str, Any]:
        """The messages of the outputs that the reading holds, by output; what has a picture goes before its info."""
        made = {name: self._make[name](reading) for name in sorted(outputs)}
        return {name: message for name, message in made.items() if message is not None}

    def _depth_image(self, depth: NDArray[np.float32], frame: str, time_ns: int) -> Any:
        return image_to_msg(millimetres(depth) if self._spec.depth_in_mm else depth, frame, time_ns)

    def _in_colour(self, reading: CameraReading) -> NDArray[np.float32] | None:
        """Depth as the colour camera sees it."""
        spec, depth = self._spec, reading.depth
        if depth is None or spec.depth is None or spec.color is None or not spec.has_separate_depth_lens:
            return depth
        return register_depth(depth, spec.depth, spec.color, spec.T_color_depth)

    def _registered(self, reading: CameraReading) -> Any:
        depth = self._in_colour(reading)
        return None if depth is None else self._depth_image(depth, self._colour, reading.time_ns)

    def _points(self, reading: CameraReading) -> Any:
        depth, lens = self._in_colour(reading), self._spec.color or self._spec.depth
        if depth is None or lens is None:
            return None
        frame = self._colour if self._spec.color else self._depth
        return self._cloud(depth, lens, reading.colour, frame, reading.time_ns)

    def _depth_points(self, reading: CameraReading) -> Any:
        if reading.depth is None or self._spec.depth is None:
            return None
        return self._cloud(reading.depth, self._spec.depth, None, self._depth, reading.time_ns)

    def _cloud(
        self, depth: NDArray[np.float32], lens: CameraModel, colour: NDArray[np.uint8] | None, frame: str, time_ns: int
    ) -> Any:
        if lens not in self._slopes:
            self._slopes[lens] = ray_slopes(lens)
        points = make_organized_cloud(depth, self._slopes[lens], colour)
        height, width = points.shape
        names = ("x", "y", "z") if colour is None else ("x", "y", "z", "rgb")
        fields = [msg.PointField(name=name, offset=4 * i, datatype=7, count=1) for i, name in enumerate(names)]
        return msg.PointCloud2(
            header=_header(time_ns, frame), height=height, width=width, fields=fields,
            is_bigendian=sys.byteorder == "big", point_step=POINT_XYZRGB.itemsize,
            row_step=POINT_XYZRGB.itemsize * width, data=points.view(np.uint8).reshape(-1), is_dense=False,
        )  # fmt: skip

    def _disparity(self, reading: CameraReading) -> Any:
        found, lens, spec = reading.disparity, self._spec.color, self._spec
        if found is None or lens is None:
            return None
        least = lens.fx * spec.baseline / max(spec.depth_far, 1e-3)
        most = lens.fx * spec.baseline / max(spec.depth_near, 1e-3)
        window = msg.RegionOfInterest(height=lens.height, width=lens.width)
        return msg.DisparityImage(
            header=_header(reading.time_ns, self._colour),
            image=image_to_msg(found, self._colour, reading.time_ns),
            f=lens.fx, t=spec.baseline, valid_window=window, min_disparity=least, max_disparity=most,
            delta_d=SUBPIXEL,
        )  # fmt: skip

    def _info(self, lens: CameraModel | None, frame: str, time_ns: int, baseline: float = 0.0) -> Any:
        if lens is None:
            return None
        bent = lens.distortion if lens.model == "plumb_bob" else (0.0, 0.0, 0.0, 0.0)
        return msg.CameraInfo(
            header=_header(time_ns, frame), width=lens.width, height=lens.height,
            distortion_model=lens.model, d=np.array(bent), k=lens.matrix.ravel(), r=np.eye(3).ravel(),
            p=projection(lens, baseline).ravel(),
        )  # fmt: skip

    def _jpeg(self, reading: CameraReading) -> Any:
        if reading.colour is None:
            return None
        return jpeg_to_msg(reading.colour, self._colour, reading.time_ns)

    def _png(self, reading: CameraReading) -> Any:
        if reading.depth is None:
            return None
        return msg.CompressedImage(
            header=_header(reading.time_ns, self._depth), format="16UC1; png compressed",
            data=png(millimetres(reading.depth)),
        )  # fmt: skip


def _header(time_ns: int, frame: str) -> Any:
    return msg.Header(stamp=time_to_msg(time_ns), frame_id=frame)


def millimetres(depth: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Depth in whole millimetres, 0 where it is unknown or out of range (REP 118)."""
    known = np.isfinite(depth) & (depth > 0.0) & (depth < 65.535)
    return np.where(known, np.round(1000.0 * np.where(known, depth, 0.0)), 0.0).astype(np.uint16)


def png(picture: NDArray[np.uint16]) -> NDArray[np.uint8]:
    """The picture (h, w) of 16 bits as PNG.

    Each pixel is told by what differs from the one before; runs and frequencies do the rest.  Noise has no patterns to
    look for, so this takes a third of the time of Pillow's PNG, and fewer bytes.
    """
    height, width = picture.shape
    plain = picture.astype(">u2").view(np.uint8).reshape(height, 2 * width)
    rows = np.empty((height, 1 + 2 * width), np.uint8)
    rows[:, 0] = _SUB
    rows[:, 1:3] = plain[:, :2]
    np.subtract(plain[:, 2:], plain[:, :-2], out=rows[:, 3:])
    packer = zlib.compressobj(1, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_RLE)
    data = packer.compress(rows.tobytes()) + packer.flush()
    parts = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 0, 0, 0, 0)), (b"IDAT", data), (b"IEND", b"")]
    chunks = (
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in parts
    )
    return np.frombuffer(b"\x89PNG\r\n\x1a\n" + b"".join(chunks), np.uint8)


_SUB = 1  # PNG's filter: what differs from the pixel to the left
