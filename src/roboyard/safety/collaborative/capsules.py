"""Capsules around a robot's links and around people: the shapes between which distances are measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.description import Capsule, Geometry, Mesh, Model, Polyline, Sphere
from roboyard.description.shapes import bounding_half_extents
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics import Chain, build_chain
from roboyard.kinematics.chain import ONE_AXIS_TYPES
from roboyard.people.skeleton import segment_name

SWINGING_PARTS = ("shank", "foot")
"""Parts of a leg that swing ahead of a walking person."""

_TOLERANCE = 1e-9
"""Capsules whose numbers differ by less are the same capsule [m]."""


class LinkCapsuleArrays(NamedTuple):
    """Capsules that are fixed to the frames of a chain, n of them, as kernels take them.

    Attributes:
        frame_indices: (n,) number of the frame of each, see `Chain`.
        ends: (n, 2, 3) ends of the axes in these frames [m].
        radii: (n,) [m].
    """

    frame_indices: NDArray[np.int64]
    ends: Array
    radii: Array


class PersonCapsuleArrays(NamedTuple):
    """Capsules of people, b of them, as kernels take them.

    Attributes:
        ends: (b, 2, 3) ends of the axes in the base of the chain [m].
        radii: (b,) [m].
        velocities: (b, 2, 3) velocities of the ends [m/s].
    """

    ends: Array
    radii: Array
    velocities: Array


@dataclass(frozen=True, eq=False)
class LinkCapsules:
    """Capsules that are fixed to the frames of a chain, n of them.

    Attributes:
        links: (n) name of the link of each.
        frame_indices: (n,) index of its frame, see `Chain`; 0 is the base.
        ends: (n, 2, 3) ends of its axis in that frame [m].
        radii: (n,) [m].
    """

    links: tuple[str, ...]
    frame_indices: NDArray[np.int64]
    ends: Array
    radii: Array

    @classmethod
    def from_model(cls, model: Model, chain: Chain) -> LinkCapsules:
        """Return the capsules of all collision shapes of the links that a chain carries or that are fixed to its base.

        Links on branches, such as a gripper's fingers, count at both ends of their joints' ranges.

        Args:
            model: The robot.
            chain: The arm's joints.

        Raises:
            DescriptionError: a shape is a plane or a terrain, or a mesh cannot be read.
        """
        capsules: dict[tuple[str, int, tuple[float, ...]], tuple[Array, float]] = {}
        for link_poses in _link_poses_at_joint_limits(model, chain):
            for link in model.links:
                if link.name not in link_poses:
                    continue
                frame, T = link_poses[link.name]
                for collision in link.collisions:
                    ends, radius = fit_capsule(collision.geometry, link.name)
                    T_frame_shape = T @ collision.T_link_geom.matrix()
                    ends = ends @ T_frame_shape[:3, :3].T + T_frame_shape[:3, 3]
                    key = tuple(np.round(np.append(ends, radius) / _TOLERANCE).tolist())
                    capsules.setdefault((link.name, frame, key), (ends, radius))
        return cls(
            tuple(name for name, _, _ in capsules),
            np.array([frame for _, frame, _ in capsules], dtype=np.int64),
            np.array([ends for ends, _ in capsules.values()], dtype=np.float64).reshape(-1, 2, 3),
            np.array([radius for _, radius in capsules.values()], dtype=np.float64),
        )

    @cached_property
    def arrays(self) -> LinkCapsuleArrays:
        """Return the capsules as arguments of kernels."""
        return LinkCapsuleArrays(self.frame_indices, self.ends, self.radii)

    def without_fixed(self) -> LinkCapsules:
        """Return the capsules without those that are fixed to the base."""
        rows = np.flatnonzero(self.frame_indices > 0)
        return LinkCapsules(
            tuple(self.links[i] for i in rows), self.frame_indices[rows], self.ends[rows], self.radii[rows]
        )


def fit_capsule(shape: Geometry, location: str = "") -> tuple[Array, float]:
    """Return the capsule along the longest edge of a shape's bounding box that contains the shape.

    Returns:
        Ends of the axis (2, 3) in the shape's frame, and the radius [m].

    Raises:
        DescriptionError: the shape is unbounded, or is a mesh that cannot be read.
    """
    match shape:
        case Capsule(radius, length):
            return _axis_ends(2, 0.5 * length), radius
        case Sphere(radius):
            return np.zeros((2, 3)), radius
        case Mesh():
            from roboyard.description.meshes.files import load_mesh

            return _fit_capsule_to_points(load_mesh(shape)[0])
        case Polyline(outlines, height):
            flat = np.array([point for outline in outlines for point in outline])
            return _fit_capsule_to_points(
                np.concatenate([np.column_stack([flat, np.full(len(flat), z)]) for z in (0.0, height)])
            )
    half_extents = bounding_half_extents(shape)
    if half_extents is None:
        raise DescriptionError(
            f"a {type(shape).__name__.lower()} has no capsule",
            location=location or None,
            valid="a bounded shape",
        )
    if type(shape).__name__ in ("Cylinder", "Cone") and half_extents[2] >= half_extents[0]:
        return _axis_ends(2, half_extents[2]), half_extents[0]
    axis = int(np.argmax(half_extents))
    radius_across = math.hypot(*(value for k, value in enumerate(half_extents) if k != axis))
    return _axis_ends(axis, half_extents[axis]), radius_across


def _axis_ends(axis: int, half_length: float) -> Array:
    ends = np.zeros((2, 3))
    ends[0, axis], ends[1, axis] = -half_length, half_length
    return ends


def _fit_capsule_to_points(points: Array) -> tuple[Array, float]:
    """Return the capsule along the longest edge of the points' bounding box that contains the points."""
    low, high = points.min(axis=0), points.max(axis=0)
    center, half_extents = 0.5 * (low + high), 0.5 * (high - low)
    axis = int(np.argmax(half_extents))
    offsets = np.delete(points - center, axis, axis=1)
    return center + _axis_ends(axis, float(half_extents[axis])), float(np.linalg.norm(offsets, axis=1).max())


def _link_poses_at_joint_limits(model: Model, chain: Chain) -> list[dict[str, tuple[int, Array]]]:
    """Return the links' poses with the joints of branches at the lower and at the upper ends of their ranges."""
    branch_limits = {
        joint.name: joint.axes[0].limits
        for joint in model.joints
        if joint.type in ONE_AXIS_TYPES
        and joint.type != "continuous"
        and joint.mimic is None
        and joint.name not in chain.joints
    }
    poses = []
    for end in ("lower", "upper"):
        branch_positions = {
            name: getattr(limits, end) for name, limits in branch_limits.items() if math.isfinite(getattr(limits, end))
        }
        chain_at_limits = build_chain(
            model, chain.base, _tip_link(model, chain), joints=chain.joints, fixed_positions=branch_positions
        )
        poses.append({name: (frame, np.asarray(T)) for name, (frame, T) in chain_at_limits.link_mounts.items()})
    return poses


def _tip_link(model: Model, chain: Chain) -> str:
    """Return the link of the last moving joint, since the tip may be a tool that the description does not contain."""
    return model.joint(chain.moving_joints[-1]).child


def transform_ends(ends: Array, T: SE3) -> Array:
    """Return ends (..., 3) transformed by ``T`` [m]."""
    R, t = T.rotation_matrix(), np.asarray(T.xyz)
    transformed: Array = ends @ R.T + t
    return transformed


@dataclass(frozen=True, eq=False)
class PersonCapsules:
    """Capsules of people, b of them, in the base of the robot's chain.

    Attributes:
        people: (b) name of the person of each.
        parts: (b) name of the part of the body.
        ends: (b, 2, 3) ends of its axis [m].
        radii: (b,) [m].
        velocities: (b, 2, 3) velocities of its ends [m/s].
    """

    people: tuple[str, ...]
    parts: tuple[str, ...]
    ends: Array
    radii: Array
    velocities: Array

    @cached_property
    def arrays(self) -> PersonCapsuleArrays:
        """Return the capsules as arguments of kernels."""
        return PersonCapsuleArrays(self.ends, self.radii, self.velocities)

    @classmethod
    def concatenate(cls, items: Iterable[PersonCapsules]) -> PersonCapsules:
        """Return the capsules of several people as one object."""
        capsules = list(items)
        if len(capsules) == 1:
            return capsules[0]
        return cls(
            tuple(name for one in capsules for name in one.people),
            tuple(name for one in capsules for name in one.parts),
            np.concatenate([np.zeros((0, 2, 3)), *(one.ends for one in capsules)]),
            np.concatenate([np.zeros(0), *(one.radii for one in capsules)]),
            np.concatenate([np.zeros((0, 2, 3)), *(one.velocities for one in capsules)]),
        )

    def with_pelvis_velocity(self) -> PersonCapsules:
        """Return the capsules with the velocity of the pelvis for shanks and feet.

        A swinging foot is three times as fast as the walking person, but only during one step; extrapolated, its
        velocity would be that of a running person.
        """
        swinging, pelvises = _swinging_parts(self.people, self.parts)
        velocities = self.velocities.copy()
        velocities[swinging] = self.velocities[pelvises].mean(axis=1)[:, None]
        return PersonCapsules(self.people, self.parts, self.ends, self.radii, velocities)


@lru_cache(maxsize=64)
def _swinging_parts(people: tuple[str, ...], parts: tuple[str, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices of swinging parts, and of the pelvis of each; parts without a pelvis are omitted."""
    pelvises = {person: k for k, person in enumerate(people) if parts[k] == "pelvis"}
    pairs = [
        (k, pelvises[people[k]])
        for k, part in enumerate(parts)
        if segment_name(part) in SWINGING_PARTS and people[k] in pelvises
    ]
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


@dataclass(frozen=True, eq=False)
class UprightCapsules:
    """Upright capsules around a body, n of them; for sensors that see that a person is there but not the parts of the
    body.

    Attributes:
        positions: (n, 2) horizontal positions of their axes [m].
        z_min: (n,) heights of their lowest points [m].
        z_max: (n,) heights of their highest points [m].
        radii: (n,) [m].
    """

    positions: Array
    z_min: Array
    z_max: Array
    radii: Array

    @classmethod
    def single(cls, position: tuple[float, float], height: float, radius: float) -> UprightCapsules:
        """Return one capsule from the floor up that contains a whole person."""
        return cls(np.array([position], dtype=np.float64), np.zeros(1), np.array([height]), np.array([radius]))

    def translated(self, offset: tuple[float, float]) -> UprightCapsules:
        """Return the capsules moved by an offset [m]."""
        return UprightCapsules(self.positions + np.asarray(offset), self.z_min, self.z_max, self.radii)

    def axis_centers_and_lengths(self) -> tuple[Array, Array]:
        """Return the heights of the centers of the axes (n,) and the lengths of the axes (n,), 0 of a sphere [m]."""
        return 0.5 * (self.z_min + self.z_max), np.maximum(self.z_max - self.z_min - 2.0 * self.radii, 0.0)


@dataclass(frozen=True, eq=False)
class OccupiedCells:
    """Cells of a grid on the floor above which points were measured, n of them.

    Attributes:
        positions: (n, 2) their centers [m].
        z_min: (n,) height of the lowest point above each [m].
        z_max: (n,) height of the highest point above each [m].
    """

    positions: Array
    z_min: Array
    z_max: Array

    @classmethod
    def from_points(cls, points: Array, cell_size: float, min_points: int) -> OccupiedCells:
        """Return the cells with enough points.

        Args:
            points: (k, 3) [m].
            cell_size: Side of the square cells [m].
            min_points: Smallest number of points of a cell.
        """
        if not len(points):
            return cls(np.zeros((0, 2)), np.zeros(0), np.zeros(0))
        indices, cell_of_point, counts = np.unique(
            np.floor(points[:, :2] / cell_size).astype(np.int64), axis=0, return_inverse=True, return_counts=True
        )
        z_min, z_max = np.full(len(indices), np.inf), np.full(len(indices), -np.inf)
        np.minimum.at(z_min, cell_of_point.ravel(), points[:, 2])
        np.maximum.at(z_max, cell_of_point.ravel(), points[:, 2])
        is_occupied = counts >= min_points
        return cls(cell_size * (indices[is_occupied].astype(np.float64) + 0.5), z_min[is_occupied], z_max[is_occupied])

    def select(self, rows: NDArray[np.int64]) -> OccupiedCells:
        """Return the cells with these indices."""
        return OccupiedCells(self.positions[rows], self.z_min[rows], self.z_max[rows])
