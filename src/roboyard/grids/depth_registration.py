"""Registration of depth images to a color camera, and organized point clouds from depth."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel, read_only
from roboyard.geometry import SE3, CameraModel
from roboyard.geometry.arrays import F32, U8

POINT_XYZRGB = np.dtype({"names": ["x", "y", "z", "rgb"], "formats": ["<f4", "<f4", "<f4", "<u4"], "itemsize": 16})
"""Data type of one point; ``rgb`` has 0x00RRGGBB."""


def register_depth(depth: F32, depth_camera: CameraModel, color_camera: CameraModel, T_color_depth: SE3) -> F32:
    """Register a depth image to the color camera; occluded pixels are NaN.

    Each depth pixel becomes a patch of the color image of its projected size, at its depth; the nearest patch is kept.

    Args:
        depth: (h, w) depth image of the depth camera [m]; not finite or not positive: unknown.
        depth_camera: Camera model of the depth camera.
        color_camera: Camera model of the color camera; a fisheye's patches are single pixels.
        T_color_depth: Pose of the depth camera's optical frame in the color camera's.

    Returns:
        (H, W) float32 [m], NaN if unknown.
    """
    rays = depth_camera.ray_slopes()
    out = np.full((color_camera.height, color_camera.width), np.nan, np.float32)
    rotation = np.ascontiguousarray(T_color_depth.rotation_matrix())
    translation = np.array(T_color_depth.translation, dtype=np.float64)
    if color_camera.model == "plumb_bob":
        intrinsics = np.array([color_camera.fx, color_camera.fy, color_camera.cx, color_camera.cy])
        # Half a depth pixel, projected into the color camera.
        half_pixel = 0.5 * color_camera.fx / depth_camera.fx, 0.5 * color_camera.fy / depth_camera.fy
        projection = intrinsics, np.array(color_camera.distortion), *half_pixel
        _register(read_only(depth), read_only(rays), rotation, translation, *projection, out)
        return out
    is_valid = np.isfinite(depth) & (depth > 0.0)
    points = (np.concatenate([rays, np.ones((*depth.shape, 1), np.float32)], axis=2) * depth[..., None])[is_valid]
    points_color = points @ rotation.T + translation
    pixels = color_camera.project(points_color)
    inside = np.isfinite(pixels).all(axis=1)
    columns, rows = np.round(pixels[inside]).astype(np.int64).T
    z = points_color[inside, 2]
    in_image = (columns >= 0) & (columns < color_camera.width) & (rows >= 0) & (rows < color_camera.height)
    nearest = np.full(out.shape, np.inf, np.float32)
    np.minimum.at(nearest, (rows[in_image], columns[in_image]), z[in_image].astype(np.float32))
    return np.where(np.isfinite(nearest), nearest, np.float32(np.nan)).astype(np.float32)


def make_organized_cloud(depth: F32, rays: F32, color: U8 | None) -> NDArray[np.void]:
    """Make points (h, w) of type `POINT_XYZRGB` in the optical frame; NaN where depth is unknown.

    Args:
        depth: (h, w) depth image [m].
        rays: ``ray_slopes()`` of the camera model of `depth`.
        color: (h, w, 3) or (h, w) registered color image; None: black.
    """
    out = np.empty(depth.shape, POINT_XYZRGB)
    if color is None:
        color = _BLACK
    elif color.ndim == 2:
        color = np.repeat(color[:, :, None], 3, axis=2)
    shape = *depth.shape, 4
    points, packed = out.view(np.float32).reshape(shape), out.view(np.uint32).reshape(shape)
    _fill_cloud(read_only(depth), read_only(rays), read_only(color), points, packed)
    return out


_BLACK = np.zeros((0, 0, 3), np.uint8)


def _cloud_examples() -> list[tuple[object, ...]]:
    depth, cloud = np.zeros((1, 1), np.float32), np.zeros((1, 1, 4), np.float32)
    rays = np.zeros((1, 1, 2), np.float32)
    return [(read_only(depth), read_only(rays), read_only(_BLACK), cloud, cloud.view(np.uint32))]


@kernel(examples=_cloud_examples, error_model="numpy")
def _fill_cloud(depth: F32, rays: F32, color: U8, out: F32, packed: NDArray[np.uint32]) -> None:
    """Write x, y, z to `out` and colors to `packed`, which is the same memory."""
    height, width = depth.shape
    has_color = color.shape[:2] == depth.shape
    for row in range(height):
        for column in range(width):
            z = depth[row, column]
            if not 0.0 < z < math.inf:
                z = np.float32(math.nan)
            out[row, column, 0] = z * rays[row, column, 0]
            out[row, column, 1] = z * rays[row, column, 1]
            out[row, column, 2] = z
            packed[row, column, 3] = np.uint32(0)
            if has_color:
                red, green, blue = color[row, column]
                packed[row, column, 3] = (np.uint32(red) << 16) | (np.uint32(green) << 8) | np.uint32(blue)


def _register_examples() -> list[tuple[object, ...]]:
    image, rays = np.zeros((1, 1), np.float32), np.zeros((1, 1, 2), np.float32)
    camera = np.eye(3), np.zeros(3), np.ones(4), np.zeros(5)
    return [(read_only(image), read_only(rays), *camera, 0.5, 0.5, image)]


@kernel(examples=_register_examples, error_model="numpy")
def _register(
    depth: F32,
    rays: F32,
    rotation: NDArray[np.float64],
    translation: NDArray[np.float64],
    intrinsics: NDArray[np.float64],
    distortion: NDArray[np.float64],
    half_x: float,
    half_y: float,
    out: F32,
) -> None:
    height, width = depth.shape
    rows, columns = out.shape
    k1, k2, p1, p2, k3 = distortion[0], distortion[1], distortion[2], distortion[3], distortion[4]
    has_distortion = k1 != 0.0 or k2 != 0.0 or p1 != 0.0 or p2 != 0.0 or k3 != 0.0
    for row in range(height):
        for column in range(width):
            z = float(depth[row, column])
            if not 0.0 < z < math.inf:
                continue
            x, y = z * float(rays[row, column, 0]), z * float(rays[row, column, 1])
            X = rotation[0, 0] * x + rotation[0, 1] * y + rotation[0, 2] * z + translation[0]
            Y = rotation[1, 0] * x + rotation[1, 1] * y + rotation[1, 2] * z + translation[1]
            Z = rotation[2, 0] * x + rotation[2, 1] * y + rotation[2, 2] * z + translation[2]
            if not Z > 0.0:
                continue
            u, v = X / Z, Y / Z
            if has_distortion:
                r2 = u * u + v * v
                radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
                u, v = (
                    u * radial + 2.0 * p1 * u * v + p2 * (r2 + 2.0 * u * u),
                    v * radial + p1 * (r2 + 2.0 * v * v) + 2.0 * p2 * u * v,
                )
            u, v = intrinsics[0] * u + intrinsics[2], intrinsics[1] * v + intrinsics[3]
            scale = z / Z
            dx, dy = half_x * scale, half_y * scale
            left, right = max(math.ceil(u - dx), 0), min(math.floor(u + dx), columns - 1)
            top, bottom = max(math.ceil(v - dy), 0), min(math.floor(v + dy), rows - 1)
            if left > right and 0.0 <= u <= columns - 1.0:  # smaller than a pixel of the color camera
                left = right = math.floor(u + 0.5)
            if top > bottom and 0.0 <= v <= rows - 1.0:
                top = bottom = math.floor(v + 0.5)
            for j in range(top, bottom + 1):
                for i in range(left, right + 1):
                    if not out[j, i] <= Z:
                        out[j, i] = np.float32(Z)
