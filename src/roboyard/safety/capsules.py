"""Capsules that hold a robot's links: what its distance from people is measured to."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.description import Capsule, Geometry, Mesh, Model, Polyline, Sphere
from roboyard.description.shapes import bounding_half_extents
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.geometry.arrays import Array
from roboyard.kinematics import Chain, build_chain
from roboyard.kinematics.chain import ONE_AXIS_TYPES

_SAME = 1e-9
"""Capsules that differ by less are one [m]."""


@dataclass(frozen=True, eq=False)
class LinkCapsules:
    """Capsules that ride on the frames of a chain, n of them.

    Attributes:
        links: (n) the link that each holds a shape of.
        frame: (n,) number of its frame, see `Chain`; 0 stands still.
        ends: (n, 2, 3) ends of its middle line in that frame [m].
        radii: (n,) [m].
    """

    links: tuple[str, ...]
    frame: NDArray[np.int64]
    ends: Array
    radii: Array

    @classmethod
    def of(cls, model: Model, chain: Chain) -> LinkCapsules:
        """Those of every collision shape of the links that a chain carries or that stand with its base.

        What hangs on branches, a gripper's fingers say, counts where its joints are at both ends of their ranges.

        Args:
            model: The chain's robot.
            chain: Its joints.

        Raises:
            DescriptionError: a shape is a plane or a terrain, or a mesh cannot be read.
        """
        found: dict[tuple[str, int, tuple[float, ...]], tuple[Array, float]] = {}
        for links in _poses(model, chain):
            for link in model.links:
                if link.name not in links:
                    continue
                frame, T = links[link.name]
                for collision in link.collisions:
                    ends, radius = capsule_round(collision.geometry, link.name)
                    T_frame_shape = T @ collision.T_link_geom.matrix()
                    ends = ends @ T_frame_shape[:3, :3].T + T_frame_shape[:3, 3]
                    key = tuple(np.round(np.append(ends, radius) / _SAME).tolist())
                    found.setdefault((link.name, frame, key), (ends, radius))
        return cls(
            tuple(name for name, _, _ in found),
            np.array([frame for _, frame, _ in found], dtype=np.int64),
            np.array([ends for ends, _ in found.values()], dtype=np.float64).reshape(-1, 2, 3),
            np.array([radius for _, radius in found.values()], dtype=np.float64),
        )

    def moving(self) -> LinkCapsules:
        """Without those that stand with the base."""
        rows = np.flatnonzero(self.frame > 0)
        return LinkCapsules(tuple(self.links[i] for i in rows), self.frame[rows], self.ends[rows], self.radii[rows])


def capsule_round(shape: Geometry, where: str = "") -> tuple[Array, float]:
    """The capsule along a shape's longest edge that holds it: its ends (2, 3) in the shape's frame, and its radius [m].

    Raises:
        DescriptionError: the shape has no end, or is a mesh that cannot be read.
    """
    match shape:
        case Capsule(radius, length):
            return _line(2, 0.5 * length), radius
        case Sphere(radius):
            return np.zeros((2, 3)), radius
        case Mesh():
            from roboyard.description.meshes.files import load_mesh

            return _of_points(load_mesh(shape)[0])
        case Polyline(outlines, height):
            flat = np.array([point for outline in outlines for point in outline])
            return _of_points(np.concatenate([np.column_stack([flat, np.full(len(flat), z)]) for z in (0.0, height)]))
    half = bounding_half_extents(shape)
    if half is None:
        raise DescriptionError(
            f"a {type(shape).__name__.lower()} has no capsule",
            location=where or None,
            valid="a shape that ends somewhere",
        )
    if type(shape).__name__ in ("Cylinder", "Cone") and half[2] >= half[0]:
        return _line(2, half[2]), half[0]
    along = int(np.argmax(half))
    across = math.hypot(*(value for k, value in enumerate(half) if k != along))
    return _line(along, half[along]), across


def _line(axis: int, half: float) -> Array:
    ends = np.zeros((2, 3))
    ends[0, axis], ends[1, axis] = -half, half
    return ends


def _of_points(points: Array) -> tuple[Array, float]:
    """Along the edge of the points' box that is longest: as thick as the points ask."""
    low, high = points.min(axis=0), points.max(axis=0)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    axis = int(np.argmax(half))
    off = np.delete(points - middle, axis, axis=1)
    return middle + _line(axis, float(half[axis])), float(np.linalg.norm(off, axis=1).max())


def _poses(model: Model, chain: Chain) -> list[dict[str, tuple[int, Array]]]:
    """Links' poses with the joints of branches at the least of their ranges, and at the greatest."""
    free = {
        joint.name: joint.axes[0].limits
        for joint in model.joints
        if joint.type in ONE_AXIS_TYPES
        and joint.type != "continuous"
        and joint.mimic is None
        and joint.name not in chain.joints
    }
    found = []
    for end in ("lower", "upper"):
        held = {name: getattr(limits, end) for name, limits in free.items() if math.isfinite(getattr(limits, end))}
        there = build_chain(model, chain.base, _tip_link(model, chain), joints=chain.joints, fixed_positions=held)
        found.append({name: (frame, np.asarray(T)) for name, (frame, T) in there.link_mounts.items()})
    return found


def _tip_link(model: Model, chain: Chain) -> str:
    """Link that the last moving joint carries: the tip may be a tool that no description knows."""
    return model.joint(chain.moving_joints[-1]).child


def placed(ends: Array, T: SE3) -> Array:
    """Ends (..., 3) in another frame."""
    R, t = T.rotation_matrix(), np.asarray(T.xyz)
    moved: Array = ends @ R.T + t
    return moved
