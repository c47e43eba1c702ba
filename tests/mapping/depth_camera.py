"""What a depth camera sees of ground that a function tells: rays, gone along in small steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from roboyard.geometry import SE3
from roboyard.mapping.elevation import StructuredLightNoise

Array = NDArray[np.float64]
HeightFunction = Callable[[Array, Array], Array]

EXACT = StructuredLightNoise(normal_factor_a=1e-4, normal_factor_b=0.0, lateral_factor=1e-4)
_OPTICAL = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])


def camera_pose(x: float, y: float, z: float, *, down: float = 0.7, yaw: float = 0.0) -> SE3:
    """T_map_optical of a camera that looks ahead and down by an angle [rad]."""
    T_map_camera = SE3.from_xyz_rpy((x, y, z), (0.0, down, yaw))
    return T_map_camera @ SE3.from_rotation_matrix(_OPTICAL, np.zeros(3))


def render_cloud(
    ground: HeightFunction, T_map_optical: SE3, shape: tuple[int, int] = (90, 120), max_distance: float = 3.0
) -> Array:
    """(h, w, 3) points in the camera's optical frame [m], not a number beyond ``max_distance``."""
    h, w = shape
    u, v = np.meshgrid(np.linspace(-0.55, 0.55, w), np.linspace(-0.41, 0.41, h))
    rays = np.stack([u, v, np.ones_like(u)], axis=-1).reshape(-1, 3)
    rays /= np.linalg.norm(rays, axis=1)[:, None]
    R, eye = T_map_optical.rotation_matrix(), np.array(T_map_optical.translation)
    directions_in_map = rays @ R.T

    def is_above(t: Array, directions: Array = directions_in_map) -> NDArray[np.bool_]:
        positions = eye + directions * t[:, None]
        return positions[:, 2] > ground(positions[:, 0], positions[:, 1])

    free, hit = np.full(len(rays), 0.05), np.full(len(rays), np.inf)
    active = np.arange(len(rays))
    for step in np.arange(0.05, max_distance, 0.01):
        is_above_ground = is_above(np.full(len(active), step), directions_in_map[active])
        hit[active[~is_above_ground]] = step
        active = active[is_above_ground]
        free[active] = step
    is_hit = np.isfinite(hit)
    hit[~is_hit] = free[~is_hit]
    for _ in range(16):
        midpoint = 0.5 * (free + hit)
        is_above_ground = is_above(midpoint)
        free, hit = np.where(is_above_ground, midpoint, free), np.where(is_above_ground, hit, midpoint)
    points: Array = rays * np.where(is_hit, hit, np.nan)[:, None]
    return points.reshape(h, w, 3)


def add_depth_noise(points: Array, noise: StructuredLightNoise, random: np.random.Generator) -> Array:
    """Points with the errors that a processor expects, along each ray and across."""
    d = np.linalg.norm(points, axis=-1, keepdims=True)
    sigma = noise.normal_factor_a + noise.normal_factor_b * (d - noise.normal_factor_c) ** 2
    ray = points / d
    shift = random.normal(size=points.shape)
    lateral = shift - (shift * ray).sum(axis=-1, keepdims=True) * ray
    noisy_points: Array = points + ray * sigma * random.normal(size=d.shape) + lateral * noise.lateral_factor * d
    return noisy_points
