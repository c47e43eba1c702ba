"""What a depth camera sees of ground that a function tells: rays, gone along in small steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE3
from roboyard.mapping.elevation import SensorProcessor

Array = NDArray[np.float64]
Heights = Callable[[Array, Array], Array]

EXACT = SensorProcessor(normal_factor_a=1e-4, normal_factor_b=0.0, lateral_factor=1e-4)
_OPTICAL = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])


def looking(x: float, y: float, z: float, *, down: float = 0.7, yaw: float = 0.0) -> SE3:
    """T_map_optical of a camera that looks ahead and down by an angle [rad]."""
    turned = SE3.from_xyz_rpy((x, y, z), (0.0, down, yaw))
    return turned @ SE3.from_rotation_matrix(_OPTICAL, np.zeros(3))


def seen(ground: Heights, T_map_optical: SE3, shape: tuple[int, int] = (90, 120), far: float = 3.0) -> Array:
    """(h, w, 3) points in the camera's optical frame [m], not a number beyond ``far``."""
    h, w = shape
    u, v = np.meshgrid(np.linspace(-0.55, 0.55, w), np.linspace(-0.41, 0.41, h))
    rays = np.stack([u, v, np.ones_like(u)], axis=-1).reshape(-1, 3)
    rays /= np.linalg.norm(rays, axis=1)[:, None]
    R, eye = T_map_optical.rotation_matrix(), np.array(T_map_optical.translation)
    ways = rays @ R.T

    def above(t: Array, directions: Array = ways) -> NDArray[np.bool_]:
        at = eye + directions * t[:, None]
        return at[:, 2] > ground(at[:, 0], at[:, 1])

    free, hit = np.full(len(rays), 0.05), np.full(len(rays), np.inf)
    going = np.arange(len(rays))
    for step in np.arange(0.05, far, 0.01):
        still = above(np.full(len(going), step), ways[going])
        hit[going[~still]] = step
        going = going[still]
        free[going] = step
    touched = np.isfinite(hit)
    hit[~touched] = free[~touched]
    for _ in range(16):
        middle = 0.5 * (free + hit)
        still = above(middle)
        free, hit = np.where(still, middle, free), np.where(still, hit, middle)
    points: Array = rays * np.where(touched, hit, np.nan)[:, None]
    return points.reshape(h, w, 3)


def noisy(points: Array, noise: SensorProcessor, random: np.random.Generator) -> Array:
    """Points with the errors that a processor expects, along each ray and across."""
    d = np.linalg.norm(points, axis=-1, keepdims=True)
    along = noise.normal_factor_a + noise.normal_factor_b * (d - noise.normal_factor_c) ** 2
    ray = points / d
    shift = random.normal(size=points.shape)
    beside = shift - (shift * ray).sum(axis=-1, keepdims=True) * ray
    moved: Array = points + ray * along * random.normal(size=d.shape) + beside * noise.lateral_factor * d
    return moved
