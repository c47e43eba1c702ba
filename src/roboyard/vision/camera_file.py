"""A camera's intrinsics in the YAML that ROS's camera calibration writes and its drivers read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from roboyard.config import load
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import CameraModel


@dataclass(frozen=True)
class MatrixText:
    """A matrix, row by row."""

    rows: int
    cols: int
    data: tuple[float, ...]


@dataclass(frozen=True)
class CameraText:
    """The file; ``rectification_matrix`` and ``projection_matrix`` are of stereo cameras and left aside."""

    image_width: int
    image_height: int
    camera_matrix: MatrixText
    distortion_coefficients: MatrixText
    camera_name: str = "camera"
    distortion_model: Literal["plumb_bob", "rational_polynomial", "equidistant"] = "plumb_bob"
    rectification_matrix: MatrixText | None = None
    projection_matrix: MatrixText | None = None


def camera_text(lens: CameraModel, name: str = "camera") -> str:
    """The text of such a file.

    Raises:
        InputError: a fisheye.
    """
    if lens.model != "plumb_bob":
        raise InputError(f"lens {lens.model}", location="camera file", valid="plumb_bob")
    K = lens.matrix
    rows: list[tuple[str, int, int, list[float]]] = [
        ("camera_matrix", 3, 3, K.ravel().tolist()),
        ("distortion_coefficients", 1, 5, list(lens.distortion)),
        ("rectification_matrix", 3, 3, [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]),
        ("projection_matrix", 3, 4, [*K[0], 0.0, *K[1], 0.0, *K[2], 0.0]),
    ]
    lines = [f"image_width: {lens.width}", f"image_height: {lens.height}", f"camera_name: {name}"]
    for key, tall, wide, data in rows:
        if key == "distortion_coefficients":
            lines.append("distortion_model: plumb_bob")
        lines += [f"{key}:", f"  rows: {tall}", f"  cols: {wide}", f"  data: {_numbers(data)}"]
    return "\n".join(lines) + "\n"


def read_camera(path: str | Path) -> CameraModel:
    """The lens that a file describes.

    Raises:
        ConfigError: unreadable, not of this form, or a model other than ``plumb_bob``.
    """
    data = load(CameraText, path)
    if data.distortion_model != "plumb_bob":
        raise ConfigError(f"distortion_model {data.distortion_model}", location=str(path), valid="plumb_bob")
    for key, matrix, count in (
        ("camera_matrix", data.camera_matrix, (9,)),
        ("distortion_coefficients", data.distortion_coefficients, (4, 5)),
    ):
        if len(matrix.data) not in count:
            valid = " or ".join(map(str, count))
            raise ConfigError(f"{key}.data has {len(matrix.data)} numbers", location=str(path), valid=valid)
    fx, skew, cx, _, fy, cy = data.camera_matrix.data[:6]
    if not (fx > 0.0 and fy > 0.0 and abs(skew) < 1e-9):
        raise ConfigError(f"camera_matrix with focal lengths {fx:g}, {fy:g}, skew {skew:g}", location=str(path),
                          valid="focal lengths above 0, no skew")  # fmt: skip
    k = (*data.distortion_coefficients.data, 0.0)[:5]
    return CameraModel(data.image_width, data.image_height, fx, fy, cx, cy, "plumb_bob", (k[0], k[1], k[2], k[3], k[4]))


def _numbers(values: Sequence[float]) -> str:
    return "[" + ", ".join(f"{float(value):.10g}" for value in values) + "]"
