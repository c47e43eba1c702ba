"""Conversion of images and camera infos."""

from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.errors import MessageError
from roboyard.geometry import CameraModel
from roboyard.messages.classes import message_type
from roboyard.messages.coercion import as_numbers
from roboyard.messages.convert.poses import make_header

JPEG_QUALITY = 80
# sensor_msgs/image_encodings.hpp: number type and channels
_NAMED_ENCODINGS = {
    "rgb8": ("uint8", 3), "rgba8": ("uint8", 4), "bgr8": ("uint8", 3), "bgra8": ("uint8", 4), "mono8": ("uint8", 1),
    "rgb16": ("uint16", 3), "rgba16": ("uint16", 4), "bgr16": ("uint16", 3), "bgra16": ("uint16", 4),
    "mono16": ("uint16", 1), "bayer_rggb8": ("uint8", 1), "bayer_bggr8": ("uint8", 1), "bayer_gbrg8": ("uint8", 1),
    "bayer_grbg8": ("uint8", 1),
}  # fmt: skip
_DEPTHS = {
    "8U": "uint8", "8S": "int8", "16U": "uint16", "16S": "int16", "32S": "int32", "32F": "float32", "64F": "float64",
}  # fmt: skip
ENCODINGS = _NAMED_ENCODINGS | {f"{code}C{n}": (kind, n) for code, kind in _DEPTHS.items() for n in (1, 2, 3, 4)}
_VALID_ENCODINGS = ", ".join(_NAMED_ENCODINGS) + ", 8UC1 to 64FC4"
_DEFAULT_ENCODINGS = {
    ("uint8", 1): "mono8", ("uint8", 3): "rgb8", ("uint8", 4): "rgba8",
    ("uint16", 1): "16UC1", ("float32", 1): "32FC1",
}  # fmt: skip


def jpeg_to_msg(image: NDArray[np.uint8], frame: str, time_ns: int) -> Any:
    """Compress an image (h, w, 3) in RGB or (h, w) as JPEG in a sensor_msgs/CompressedImage, see `image_to_msg`."""
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(image).save(out, "JPEG", quality=JPEG_QUALITY)
    format_text = "mono8; jpeg compressed" if image.ndim == 2 else "rgb8; jpeg compressed bgr8"
    data = np.frombuffer(out.getvalue(), np.uint8)
    return message_type("sensor_msgs/msg/CompressedImage")(make_header(frame, time_ns), format_text, data)


def image_to_msg(image: NDArray[Any], frame: str, time_ns: int, encoding: str | None = None) -> Any:
    """Convert an array to sensor_msgs/Image.

    Args:
        image: (height, width) or (height, width, channels).
        frame: The camera's optical frame (x right, y down, z forward).
        time_ns: Time of exposure [ns].
        encoding: One of ``ENCODINGS``; None = color ``rgb8`` or ``rgba8``, grayscale ``mono8``, depth ``16UC1`` [mm] or
            ``32FC1`` [m] by the array's type.

    Raises:
        MessageError: The encoding is unknown, or the array does not fit it.
    """
    image = image if isinstance(image, np.ndarray) else as_numbers(image, "image", None)
    channels = image.shape[2] if image.ndim == 3 else 1
    if encoding is None:
        encoding = _DEFAULT_ENCODINGS.get((image.dtype.name, channels), "")
    if encoding not in ENCODINGS or image.ndim not in (2, 3) or (image.dtype.name, channels) != ENCODINGS[encoding]:
        raise MessageError(
            f"an image of {image.dtype} {image.shape} cannot be encoded as '{encoding}'",
            valid=", ".join(sorted(_NAMED_ENCODINGS)) + ", 32FC1, …",
        )
    height, width = image.shape[:2]
    return message_type("sensor_msgs/msg/Image")(
        make_header(frame, time_ns), height, width, encoding, sys.byteorder == "big",
        width * channels * image.dtype.itemsize, np.frombuffer(image.tobytes(), dtype=np.uint8),
    )  # fmt: skip


def image_to_array(message: Any) -> NDArray[Any]:
    """Return the array (height, width) or (height, width, channels) of a sensor_msgs/Image, as encoded; a view if
    possible.

    Raises:
        MessageError: The encoding is unknown, or the data has the wrong size.
    """
    if message.encoding not in ENCODINGS:
        raise MessageError(f"unknown image encoding '{message.encoding}'", valid=_VALID_ENCODINGS)
    kind, channels = ENCODINGS[message.encoding]
    dtype = np.dtype(kind)
    height, width, step = int(message.height), int(message.width), int(message.step)
    row = width * channels * dtype.itemsize
    data = np.asarray(message.data, dtype=np.uint8)
    if step < row or len(data) < step * height:
        raise MessageError(
            f"image {width} x {height} {message.encoding} has {step} bytes per row and {len(data)} in total",
            valid=f"at least {row} per row",
        )
    pixels = data[: step * height].reshape(height, step)[:, :row]
    if step != row:
        pixels = np.ascontiguousarray(pixels)
    image = pixels.reshape(-1).view(dtype).reshape((height, width, channels) if channels > 1 else (height, width))
    if dtype.itemsize > 1 and bool(message.is_bigendian) != (sys.byteorder == "big"):
        image = image.byteswap()
    return image


_COLOR_ENCODINGS = ("rgb8", "bgr8", "rgba8", "bgra8", "mono8")
_DEPTH_ENCODINGS = ("32FC1", "16UC1")


def color_to_array(message: Any) -> NDArray[np.uint8]:
    """Return the contiguous array (h, w, 3) in RGB, or (h, w), of a sensor_msgs/Image of a color camera.

    Raises:
        MessageError: The encoding is none of a color image, or the data has the wrong size.
    """
    if message.encoding not in _COLOR_ENCODINGS:
        raise MessageError(f"an image encoded as '{message.encoding}'", valid=", ".join(_COLOR_ENCODINGS))
    pixels = image_to_array(message)
    if pixels.ndim == 3:
        pixels = pixels[:, :, 2::-1] if message.encoding.startswith("bgr") else pixels[:, :, :3]
    return np.ascontiguousarray(pixels)


def depth_to_array(message: Any) -> NDArray[np.float32]:
    """Return the depth (h, w) of a sensor_msgs/Image [m]; pixels of ``16UC1`` without a measurement are NaN (REP 118).

    Raises:
        MessageError: The encoding is none of a depth image, or the data has the wrong size.
    """
    if message.encoding not in _DEPTH_ENCODINGS:
        raise MessageError(f"depth encoded as '{message.encoding}'", valid=", ".join(_DEPTH_ENCODINGS))
    depth = image_to_array(message)
    if depth.dtype == np.uint16:
        return np.where(depth > 0, depth * np.float32(1e-3), np.float32(np.nan)).astype(np.float32)
    return np.asarray(depth, dtype=np.float32)


def camera_info_to_msg(
    width: int, height: int, K: ArrayLike, frame: str, time_ns: int, *, distortion: ArrayLike = (0.0,) * 5
) -> Any:
    """Make the sensor_msgs/CameraInfo of a pinhole camera.

    Args:
        width: Width of the image [px].
        height: Height of the image [px].
        K: Camera matrix (3, 3) [px].
        frame: The camera's optical frame.
        time_ns: Time of the image [ns].
        distortion: k1, k2, p1, p2, k3 (``plumb_bob``).

    Raises:
        MessageError: A matrix has the wrong size.
    """
    matrix = as_numbers(K, "camera matrix")
    if matrix.shape != (3, 3):
        raise MessageError(f"camera matrix has the shape {matrix.shape}", valid="(3, 3)")
    projection = np.concatenate([matrix, np.zeros((3, 1))], axis=1)
    return message_type("sensor_msgs/msg/CameraInfo")(
        header=make_header(frame, time_ns), width=width, height=height, distortion_model="plumb_bob",
        d=as_numbers(distortion, "distortion"), k=matrix.ravel(), r=np.eye(3).ravel(), p=projection.ravel(),
    )  # fmt: skip


def camera_matrix(message: Any) -> NDArray[np.float64]:
    """Return the camera matrix (3, 3) [px] of a sensor_msgs/CameraInfo."""
    return np.array(message.k, dtype=np.float64).reshape(3, 3)


def camera_model_from_msg(info: Any) -> CameraModel:
    """Return the camera model of a sensor_msgs/CameraInfo.

    Raises:
        MessageError: The message has no camera model, or an unknown one.
    """
    K = camera_matrix(info)
    if not (K[0, 0] > 0.0 and K[1, 1] > 0.0):
        raise MessageError("the camera info has no focal lengths", valid="a calibrated camera")
    if info.distortion_model not in ("", "plumb_bob"):
        raise MessageError(f"unknown distortion_model '{info.distortion_model}'", valid="plumb_bob")
    k = (*(float(value) for value in info.d), 0.0, 0.0, 0.0, 0.0, 0.0)[:5]
    return CameraModel(
        int(info.width), int(info.height), float(K[0, 0]), float(K[1, 1]), float(K[0, 2]), float(K[1, 2]),
        distortion=(k[0], k[1], k[2], k[3], k[4]),
    )  # fmt: skip
