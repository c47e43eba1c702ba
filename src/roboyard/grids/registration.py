"""Depth moved into the colour camera's picture, and points made of depth."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from roboyard.compute import kernel, read_only
from roboyard.geometry import SE3, Lens

F32 = NDArray[np.float32]
U8 = NDArray[np.uint8]

POINT = np.dtype({"names": ["x", "y", "z", "rgb"], "formats": ["<f4", "<f4", "<f4", "<u4"], "itemsize": 16})
"""One point of a cloud; ``rgb`` holds 0x00RRGGBB."""


def registered_depth(depth: F32, depth_lens: Lens, colour_lens: Lens, T_colour_depth: SE3) -> F32:
    """Depth as the colour camera would see it; what is hidden from the depth camera stays unknown.

    Each depth pixel becomes a patch of the colour picture as large as the pixel is there, at the depth it has there;
    the nearest patch wins.

    Args:
        depth: (h, w) in the depth camera's picture [m]; not finite or not above 0: unknown.
        depth_lens: Of that camera.
        colour_lens: Of the colour camera; a fisheye's patches are single pixels.
        T_colour_depth: Pose of the depth camera's optical frame in the colour camera's.

    Returns:
        (H, W) float32 [m], not a number where unknown.
    """
    rays = slopes(depth_lens)
    out = np.full((colour_lens.height, colour_lens.width), np.nan, np.float32)
    rotation = np.ascontiguousarray(T_colour_depth.rotation_matrix())
    place = np.array(T_colour_depth.translation, dtype=np.float64)
    if colour_lens.model == "plumb_bob":
        intrinsics = np.array([colour_lens.fx, colour_lens.fy, colour_lens.cx, colour_lens.cy])
        # Half a depth pixel, seen through the colour camera's lens.
        half = 0.5 * colour_lens.fx / depth_lens.fx, 0.5 * colour_lens.fy / depth_lens.fy
        lens = intrinsics, np.array(colour_lens.distortion), *half
        _register(read_only(depth), read_only(rays), rotation, place, *lens, out)
        return out
    good = np.isfinite(depth) & (depth > 0.0)
    points = (np.concatenate([rays, np.ones((*depth.shape, 1), np.float32)], axis=2) * depth[..., None])[good]
    moved = points @ rotation.T + place
    pixels = colour_lens.project(moved)
    inside = np.isfinite(pixels).all(axis=1)
    columns, rows = np.round(pixels[inside]).astype(np.int64).T
    z = moved[inside, 2]
    seen = (columns >= 0) & (columns < colour_lens.width) & (rows >= 0) & (rows < colour_lens.height)
    nearest = np.full(out.shape, np.inf, np.float32)
    np.minimum.at(nearest, (rows[seen], columns[seen]), z[seen].astype(np.float32))
    return np.where(np.isfinite(nearest), nearest, np.float32(np.nan)).astype(np.float32)


@lru_cache(maxsize=8)
def slopes(lens: Lens) -> F32:
    """(h, w, 2) x / z and y / z of each pixel's ray; not a number where there is none or it does not look forward.

    Reckoned once a lens: it takes longer than all that is done with them in a picture.  Read-only.
    """
    rays = lens.all_rays()
    with np.errstate(invalid="ignore", divide="ignore"):
        flat = np.where(rays[..., 2:] > 1e-6, rays[..., :2] / rays[..., 2:], np.nan).astype(np.float32)
    flat.flags.writeable = False
    return flat


def organised_cloud(depth: F32, rays: F32, colour: U8 | None) -> NDArray[np.void]:
    """Points (h, w) of type `POINT` in the optical frame, not a number where depth is unknown.

    Args:
        depth: (h, w) [m].
        rays: From `slopes` of the camera that ``depth`` is seen from.
        colour: (h, w, 3) or (h, w), the same picture; None: black.
    """
    out = np.empty(depth.shape, POINT)
    if colour is None:
        colour = _BLACK
    elif colour.ndim == 2:
        colour = np.repeat(colour[:, :, None], 3, axis=2)
    shape = *depth.shape, 4
    points, packed = out.view(np.float32).reshape(shape), out.view(np.uint32).reshape(shape)
    _fill_cloud(read_only(depth), read_only(rays), read_only(colour), points, packed)
    return out


_BLACK = np.zeros((0, 0, 3), np.uint8)


def _cloud_examples() -> list[tuple[object, ...]]:
    depth, cloud = np.zeros((1, 1), np.float32), np.zeros((1, 1, 4), np.float32)
    rays = np.zeros((1, 1, 2), np.float32)
    return [(read_only(depth), read_only(rays), read_only(_BLACK), cloud, cloud.view(np.uint32))]


@kernel(examples=_cloud_examples, error_model="numpy")
def _fill_cloud(depth: F32, rays: F32, colour: U8, out: F32, packed: NDArray[np.uint32]) -> None:
    """Write x, y, z to ``out`` and colours to ``packed``, which is the same memory."""
    height, width = depth.shape
    coloured = colour.shape[:2] == depth.shape
    for row in range(height):
        for column in range(width):
            z = depth[row, column]
            if not 0.0 < z < math.inf:
                z = np.float32(math.nan)
            out[row, column, 0] = z * rays[row, column, 0]
            out[row, column, 1] = z * rays[row, column, 1]
            out[row, column, 2] = z
            packed[row, column, 3] = np.uint32(0)
            if coloured:
                red, green, blue = colour[row, column]
                packed[row, column, 3] = (np.uint32(red) << 16) | (np.uint32(green) << 8) | np.uint32(blue)


def _register_examples() -> list[tuple[object, ...]]:
    picture, rays = np.zeros((1, 1), np.float32), np.zeros((1, 1, 2), np.float32)
    camera = np.eye(3), np.zeros(3), np.ones(4), np.zeros(5)
    return [(read_only(picture), read_only(rays), *camera, 0.5, 0.5, picture)]


@kernel(examples=_register_examples, error_model="numpy")
def _register(
    depth: F32,
    rays: F32,
    rotation: NDArray[np.float64],
    place: NDArray[np.float64],
    intrinsics: NDArray[np.float64],
    distortion: NDArray[np.float64],
    half_x: float,
    half_y: float,
    out: F32,
) -> None:
    height, width = depth.shape
    rows, columns = out.shape
    k1, k2, p1, p2, k3 = distortion[0], distortion[1], distortion[2], distortion[3], distortion[4]
    bent = k1 != 0.0 or k2 != 0.0 or p1 != 0.0 or p2 != 0.0 or k3 != 0.0
    for row in range(height):
        for column in range(width):
            z = float(depth[row, column])
            if not 0.0 < z < math.inf:
                continue
            x, y = z * float(rays[row, column, 0]), z * float(rays[row, column, 1])
            X = rotation[0, 0] * x + rotation[0, 1] * y + rotation[0, 2] * z + place[0]
            Y = rotation[1, 0] * x + rotation[1, 1] * y + rotation[1, 2] * z + place[1]
            Z = rotation[2, 0] * x + rotation[2, 1] * y + rotation[2, 2] * z + place[2]
            if not Z > 0.0:
                continue
            u, v = X / Z, Y / Z
            if bent:
                r2 = u * u + v * v
                radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
                u, v = (
                    u * radial + 2.0 * p1 * u * v + p2 * (r2 + 2.0 * u * u),
                    v * radial + p1 * (r2 + 2.0 * v * v) + 2.0 * p2 * u * v,
                )
            u, v = intrinsics[0] * u + intrinsics[2], intrinsics[1] * v + intrinsics[3]
            grow = z / Z
            dx, dy = half_x * grow, half_y * grow
            left, right = max(math.ceil(u - dx), 0), min(math.floor(u + dx), columns - 1)
            top, bottom = max(math.ceil(v - dy), 0), min(math.floor(v + dy), rows - 1)
            if left > right and 0.0 <= u <= columns - 1.0:  # a pixel smaller than the colour camera's
                left = right = math.floor(u + 0.5)
            if top > bottom and 0.0 <= v <= rows - 1.0:
                top = bottom = math.floor(v + 0.5)
            for j in range(top, bottom + 1):
                for i in range(left, right + 1):
                    if not out[j, i] <= Z:
                        out[j, i] = np.float32(Z)
