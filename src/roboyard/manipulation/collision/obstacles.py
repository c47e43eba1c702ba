"""Obstacles of an arm: shapes with poses, models of worlds, voxels, attached bodies, and people as capsules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.compute import kernel, read_only
from roboyard.config import Config, parameter
from roboyard.description import Box, Capsule, Geometry, Inertial, World
from roboyard.description.inertia import shape_inertia
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.grids import voxel_downsample
from roboyard.kinematics.dynamics import Payload


@dataclass(frozen=True, slots=True)
class Obstacle:
    """A shape in the world.

    Attributes:
        name: Its name in messages and allowed pairs.
        geometry: The shape.
        T_world: Pose of the shape in the world.
    """

    name: str
    geometry: Geometry
    T_world: SE3


@dataclass(frozen=True, slots=True, eq=False)
class VoxelObstacles:
    """Occupied cubes of one size, aligned with the axes of the world.

    Attributes:
        name: Name of all of them.
        centers: (n, 3) centers [m].
        size: Edge length [m].
    """

    name: str
    centers: Array
    size: float

    def __post_init__(self) -> None:
        shape = np.shape(self.centers)
        if len(shape) != 2 or shape[1] != 3 or not np.isfinite(self.centers).all():
            raise InputError(f"centers of shape {shape}", location=f"voxels {self.name}", valid="(n, 3), finite")
        if not 0.0 < self.size < 1e3:
            raise InputError(f"cubes of {self.size} m", location=f"voxels {self.name}", valid="more than 0")


@dataclass(frozen=True, slots=True)
class AttachedBody:
    """A shape attached to a link, as an object that a gripper holds (MoveIt's attached body).

    Attributes:
        name: Its name in messages and allowed pairs.
        link: Link that carries it.
        geometry: The shape.
        T_link: Pose of the shape in the link.
        touch_links: Further links that may touch it; the carrying link and links fixed to it may.
        mass: Mass [kg], distributed evenly in the shape if there is a formula for its inertia, else at its frame; 0 if
            unknown.
    """

    name: str
    link: str
    geometry: Geometry
    T_link: SE3
    touch_links: tuple[str, ...] = ()
    mass: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.mass < 1e6:
            raise InputError(f"a mass of {self.mass} kg", location=f"attached {self.name}", valid="0 or more")
        found = shape_inertia(self.geometry, 1.0)
        if found is not None and not np.isfinite((found[0], *found[2])).all():
            raise InputError(
                f"the volume or inertia of {self.geometry} is too large for floating-point numbers",
                location=f"attached {self.name}",
                valid="smaller sizes [m]",
            )

    def to_payload(self) -> Payload:
        """Return its mass and inertia as a payload of the joints."""
        found = shape_inertia(self.geometry, 1.0)
        if found is None or not found[0] > 0.0:
            return Payload(self.link, Inertial(self.mass, self.T_link, (0.0,) * 6))
        volume, height, moments = found
        x, y, z = (self.mass / volume * one for one in moments)
        T = self.T_link @ SE3(translation=(0.0, 0.0, height))
        return Payload(self.link, Inertial(self.mass, T, (x, y, z, 0.0, 0.0, 0.0)))


def obstacles_from_world(world: World, excluded_models: Iterable[str] = ()) -> list[Obstacle]:
    """Return all collision shapes of a world, named ``model::link::collision``.

    Args:
        world: The world; joints of its models are at zero.
        excluded_models: Names of models to exclude, as that of the robot.
    """
    excluded = set(excluded_models)
    return [
        Obstacle(
            f"{placed.name}::{link.name}::{shape.name}",
            shape.geometry,
            placed.T_world_model @ link.T_model_link @ shape.T_link_geom,
        )
        for placed in world.models
        if placed.name not in excluded
        for link in placed.model.links
        for shape in link.collisions
        if shape.surface.collide
    ]


def box_obstacle(name: str, size: tuple[float, float, float], xyz: ArrayLike, yaw: float = 0.0) -> Obstacle:
    """Return a box with full edge lengths [m] at a position, rotated about z [rad]."""
    return Obstacle(name, Box(size), SE3.from_xyz_rpy(xyz, (0.0, 0.0, yaw)))


def voxels_from_cloud(name: str, points: ArrayLike, size: float) -> VoxelObstacles:
    """Return voxels that enclose the points (n, 3) of a cloud in the world; points that are not finite are ignored."""
    cloud = np.asarray(points, dtype=np.float64).reshape(-1, 3)
    occupied = voxel_downsample(np.ascontiguousarray(cloud[np.isfinite(cloud).all(axis=1)]), None, size)
    return VoxelObstacles(name, np.asarray((occupied.keys + 0.5) * size, dtype=np.float64), size)


_POSITION_STEP, _PART_POSITION_STEP = 0.02, 0.01
"""Quantization of positions and radii of people and of body parts [m]: small motions do not change the scene."""


class PersonModelConfig(Config):
    """Size and clearance of people as obstacles."""

    height: float = parameter(1.9, unit="m", low=0.1, high=3.0, doc="Height of the capsule of a person.")
    radius: float = parameter(
        0.35, unit="m", low=0.05, high=2.0, doc="Radius of the capsule of a standing person, arms included."
    )
    prediction_time: float = parameter(
        0.3,
        unit="s",
        low=0.0,
        high=5.0,
        doc="Time for which a moving person is predicted: the distance walked in it is added to the radius.",
    )
    max_distance: float = parameter(
        1.5, unit="m", low=0.1, high=100.0, doc="Distance from the arm's base beyond which parts of bodies are ignored."
    )
    padding: float = parameter(0.02, unit="m", low=0.0, high=1.0, doc="Clearance around each part of a body.")


def person_obstacle(name: str, position: ArrayLike, speed: float, config: PersonModelConfig) -> Obstacle:
    """Return an upright capsule that encloses a person.

    Args:
        name: Name of the obstacle.
        position: (3,) position between the feet in the world [m].
        speed: Speed of the person [m/s].
        config: Size and clearance.

    Raises:
        InputError: place or speed are not finite, or the speed is negative.
    """
    foot_position = np.asarray(position, dtype=np.float64)
    if foot_position.shape != (3,) or not np.isfinite(foot_position).all() or not 0.0 <= speed < math.inf:
        raise InputError(f"a person at {foot_position.tolist()}, {speed} m/s", location=name, valid="finite numbers")
    radius = (
        math.ceil((config.radius + config.prediction_time * speed) / _POSITION_STEP - 1e-9) * _POSITION_STEP
        + _POSITION_STEP / 2.0
    )
    x, y, z = (np.round(foot_position / _POSITION_STEP) * _POSITION_STEP).tolist()
    length = max(config.height - 2.0 * radius, 0.01)
    return Obstacle(name, Capsule(radius, length), SE3(translation=(x, y, z + config.height / 2.0)))


class BodyPartObstacles:
    """Parts of one person's body as obstacles; parts that have not changed after quantization keep their objects.

    Args:
        config: Size and clearance.
    """

    def __init__(self, config: PersonModelConfig) -> None:
        self._config = config
        self._last_obstacles: dict[str, tuple[tuple[float, ...], Obstacle]] = {}

    def update(
        self, name: str, parts: Sequence[str], capsules: Array, T_world_frame: SE3, base_position: ArrayLike
    ) -> list[Obstacle]:
        """Return the obstacles of the parts within the maximum distance.

        Args:
            name: Name of the person.
            parts: (b) names of the parts.
            capsules: (b, 10) position, orientation w, x, y, z, radius, length and speed of each capsule.
            T_world_frame: Pose of the frame in which the capsules are given.
            base_position: (3,) position of the arm's base [m].

        Raises:
            InputError: something is not finite, or negative.
        """
        config = self._config
        rounded = np.empty((len(capsules), 9))
        pose = np.array([*T_world_frame.translation, *T_world_frame.quaternion])
        near_indices = quantize_parts(
            pose,
            capsules,
            np.asarray(base_position),
            config.max_distance,
            config.padding,
            config.prediction_time,
            _PART_POSITION_STEP,
            rounded,
        )
        found = []
        for k, values in zip(near_indices.tolist(), rounded[near_indices].tolist(), strict=True):
            obstacle_name, key = f"{name} {parts[k]}", tuple(values)
            last_obstacle = self._last_obstacles.get(obstacle_name)
            if last_obstacle is None or last_obstacle[0] != key:
                last_obstacle = self._last_obstacles[obstacle_name] = (
                    key,
                    _part_obstacle(obstacle_name, capsules[k], key),
                )
            found.append(last_obstacle[1])
        return found


def _part_obstacle(name: str, capsule: Array, rounded: tuple[float, ...]) -> Obstacle:
    radius, length, speed = capsule[7:].tolist()
    if not (np.isfinite(capsule).all() and speed >= 0.0 and 0.0 < radius < 1.0 and 0.0 <= length < 3.0):
        raise InputError(
            f"a part of radius {radius}, length {length}, at {speed} m/s", location=name, valid="a capsule"
        )
    padded_radius, padded_length = rounded[7:]
    return Obstacle(name, Capsule(padded_radius, padded_length), SE3(rounded[3:7], rounded[:3]))


@kernel(
    examples=lambda: [(np.zeros(7), np.zeros((1, 10)), read_only(np.zeros(3)), 1.5, 0.02, 0.3, 0.01, np.zeros((1, 9)))],
)
def quantize_parts(
    frame_pose: Array,
    capsules: Array,
    base_position: Array,
    max_distance: float,
    padding: float,
    prediction_time: float,
    step: float,
    out: Array,
) -> NDArray[np.int64]:
    """Return the indices of the body parts within a distance, and fill ``out`` with quantized capsules; invalid parts
    count as near.

    Args:
        frame_pose: (7,) position and orientation of the frame in which the capsules are given.
        capsules: (b, 10) see `BodyPartObstacles.update`.
        base_position: (3,) position of the arm's base [m].
        max_distance: Distance from the base beyond which parts are left out [m].
        padding: Clearance around each part [m].
        prediction_time: Time for which each part moves at its speed, which enlarges it [s].
        step: Quantization step of positions and radii [m].
        out: (b, 9) is filled: place, orientation, radius and length.
    """
    aw, ax, ay, az = frame_pose[3], frame_pose[4], frame_pose[5], frame_pose[6]
    near_indices, count = np.empty(capsules.shape[0], np.int64), 0
    for k in range(capsules.shape[0]):
        x, y, z = capsules[k, 0], capsules[k, 1], capsules[k, 2]
        tx, ty, tz = 2.0 * (ay * z - az * y), 2.0 * (az * x - ax * z), 2.0 * (ax * y - ay * x)
        px = frame_pose[0] + x + aw * tx + ay * tz - az * ty
        py = frame_pose[1] + y + aw * ty + az * tx - ax * tz
        pz = frame_pose[2] + z + aw * tz + ax * ty - ay * tx
        radius, length, speed = capsules[k, 7], capsules[k, 8], capsules[k, 9]
        distance = math.sqrt((px - base_position[0]) ** 2 + (py - base_position[1]) ** 2 + (pz - base_position[2]) ** 2)
        if distance > max_distance + 0.5 * length + radius:
            continue
        near_indices[count] = k
        count += 1
        w, x, y, z = capsules[k, 3], capsules[k, 4], capsules[k, 5], capsules[k, 6]
        qw, qx = aw * w - ax * x - ay * y - az * z, aw * x + ax * w + ay * z - az * y
        qy, qz = aw * y - ax * z + ay * w + az * x, aw * z + ax * y - ay * x + az * w
        size = math.sqrt(qw * qw + qx * qx + qy * qy + qz * qz)
        if qw < 0.0:
            size = -size
        out[k, 0], out[k, 1] = np.rint(px / step) * step, np.rint(py / step) * step
        out[k, 2] = np.rint(pz / step) * step
        if size != 0.0:
            out[k, 3], out[k, 4] = np.rint(100.0 * qw / size) / 100.0, np.rint(100.0 * qx / size) / 100.0
            out[k, 5], out[k, 6] = np.rint(100.0 * qy / size) / 100.0, np.rint(100.0 * qz / size) / 100.0
        else:
            out[k, 3:7] = np.nan
        out[k, 7] = np.ceil((radius + padding + prediction_time * speed) / step - 1e-9) * step
        out[k, 8] = max(length, 1e-3)
    return near_indices[:count]
