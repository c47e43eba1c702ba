"""What stands around an arm: shapes with poses, worlds from files, voxels of clouds and octree maps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from roboyard.description import Box, Geometry, Inertial, World
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
        name: For messages and for pairs that may touch.
        geometry: The shape.
        T_world: Its frame in the world.
    """

    name: str
    geometry: Geometry
    T_world: SE3


@dataclass(frozen=True, slots=True, eq=False)
class Voxels:
    """Occupied cubes, all of one size and along the axes of the world.

    Attributes:
        name: Of all of them.
        middles: (n, 3) [m].
        size: Of their sides [m].
    """

    name: str
    middles: Array
    size: float

    def __post_init__(self) -> None:
        shape = np.shape(self.middles)
        if len(shape) != 2 or shape[1] != 3 or not np.isfinite(self.middles).all():
            raise InputError(f"middles of shape {shape}", location=f"voxels {self.name}", valid="(n, 3), finite")
        if not 0.0 < self.size < 1e3:
            raise InputError(f"cubes of {self.size} m", location=f"voxels {self.name}", valid="more than 0")


@dataclass(frozen=True, slots=True)
class Attached:
    """A shape that a link carries, as a gripper does what it holds.

    Attributes:
        name: For messages and for pairs that may touch.
        link: That carries it.
        geometry: The shape.
        T_link: Its frame in the link's.
        touches: Further links that may touch it; the one that carries it may, and those fixed to it.
        mass: Evenly in the shape, where there is a formula for that, else at its frame [kg]; 0 where nobody knows.
    """

    name: str
    link: str
    geometry: Geometry
    T_link: SE3
    touches: tuple[str, ...] = ()
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

    def load(self) -> Payload:
        """What it is to the joints that move it."""
        found = shape_inertia(self.geometry, 1.0)
        if found is None or not found[0] > 0.0:
            return Payload(self.link, Inertial(self.mass, self.T_link, (0.0,) * 6))
        volume, height, moments = found
        x, y, z = (self.mass / volume * one for one in moments)
        T = self.T_link @ SE3(translation=(0.0, 0.0, height))
        return Payload(self.link, Inertial(self.mass, T, (x, y, z, 0.0, 0.0, 0.0)))


def obstacles_of(world: World, without: Iterable[str] = ()) -> list[Obstacle]:
    """Everything in a world that can be touched, named ``model::link::collision``.

    Args:
        world: The world; joints of its models stand at zero.
        without: Names of models to leave out, as the robot's own.
    """
    left_out = set(without)
    return [
        Obstacle(
            f"{placed.name}::{link.name}::{shape.name}",
            shape.geometry,
            placed.T_world_model @ link.T_model_link @ shape.T_link_geom,
        )
        for placed in world.models
        if placed.name not in left_out
        for link in placed.model.links
        for shape in link.collisions
        if shape.surface.collide
    ]


def box_obstacle(name: str, size: tuple[float, float, float], xyz: ArrayLike, yaw: float = 0.0) -> Obstacle:
    """A box of full edge lengths [m] at a place, turned about z [rad]."""
    return Obstacle(name, Box(size), SE3.from_xyz_rpy(xyz, (0.0, 0.0, yaw)))


def voxels_of_cloud(name: str, points: ArrayLike, size: float) -> Voxels:
    """Cubes that hold a cloud's points (n, 3) in the world; points that are not finite are left out."""
    cloud = np.asarray(points, dtype=np.float64).reshape(-1, 3)
    kept = voxel_downsample(np.ascontiguousarray(cloud[np.isfinite(cloud).all(axis=1)]), None, size)
    return Voxels(name, np.asarray((kept.keys + 0.5) * size, dtype=np.float64), size)
