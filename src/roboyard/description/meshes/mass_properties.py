"""Mass, center of mass and inertia of a closed mesh of uniform density, and the choice of its origin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roboyard.description.meshes.mesh import Points, TriangleMesh
from roboyard.description.model import Inertial
from roboyard.errors import InputError
from roboyard.geometry import SE3


@dataclass(frozen=True)
class MassProperties:
    """Of a rigid body.

    Attributes:
        mass: [kg].
        com: (3,) centre of mass [m].
        inertia: (3, 3) about the centre of mass, along the frame's axes [kg m²].
        volume: [m³].
    """

    mass: float
    com: NDArray[np.float64]
    inertia: NDArray[np.float64]
    volume: float

    @property
    def density(self) -> float:
        """Mass over volume [kg/m³]."""
        return self.mass / self.volume

    @property
    def principal_moments(self) -> NDArray[np.float64]:
        """(3,) principal moments, rising [kg m²]."""
        moments: NDArray[np.float64] = np.asarray(np.linalg.eigvalsh(self.inertia), float)
        return moments

    def inertia_at(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """(3, 3) inertia about another point: the parallel axis theorem [kg m²]."""
        d = np.asarray(point, float) - self.com
        inertia: NDArray[np.float64] = self.inertia + self.mass * (d @ d * np.eye(3) - np.outer(d, d))
        return inertia

    def transformed(self, T_new_old: SE3) -> MassProperties:
        """In another frame."""
        R = T_new_old.rotation_matrix()
        return MassProperties(self.mass, T_new_old @ self.com, R @ self.inertia @ R.T, self.volume)

    def to_inertial(self) -> Inertial:
        """As descriptions have it."""
        i = self.inertia
        six = (i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2])
        ixx, iyy, izz, ixy, ixz, iyz = (float(value) for value in six)
        return Inertial(self.mass, SE3(translation=self.com), (ixx, iyy, izz, ixy, ixz, iyz))


def compute_mass_properties(
    mesh: TriangleMesh, mass: float | None = None, density: float | None = None
) -> MassProperties:
    """Of the body inside a closed surface, by its mass [kg] or its density [kg/m³].

    Every triangle and a point make a tetrahedron; volumes, first and second moments are their signed sums
    (D. Eberly, "Polyhedral Mass Properties", 2002; here by the second moments of a simplex).

    Raises:
        InputError: not exactly one of mass and density is given and above zero; or there is no volume.
    """
    inputs = [value for value in (mass, density) if value is not None]
    if len(inputs) != 1 or not 0.0 < inputs[0] < np.inf:
        raise InputError("a mass or a density is needed", valid="one of them, above zero")
    reference = mesh.vertices[np.unique(mesh.faces)].mean(axis=0)
    corners = mesh.triangles - reference
    a, b, c = corners.transpose(1, 0, 2)
    volumes = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0
    volume = float(volumes.sum())
    if not volume > 0.0:
        raise InputError(f"the surface encloses {volume:g} m³", valid="a closed surface with its normals outwards")
    sums = corners.sum(axis=1)
    first = (volumes[:, None] * sums).sum(axis=0) / 4.0
    # ∫ x xᵀ over a tetrahedron from the origin: V/20 (Σ vᵢ vᵢᵀ + s sᵀ)
    second = (
        np.einsum("i,ijk,ijl->kl", volumes, corners, corners) + np.einsum("i,ik,il->kl", volumes, sums, sums)
    ) / 20.0
    com = first / volume
    second -= volume * np.outer(com, com)
    body_density = density if density is not None else inputs[0] / volume
    inertia = body_density * (np.trace(second) * np.eye(3) - second)
    return MassProperties(body_density * volume, reference + com, (inertia + inertia.T) / 2.0, volume)


def combine_mass_properties(parts: Sequence[MassProperties]) -> MassProperties:
    """Several bodies as one rigid body. Raises InputError without any."""
    if not parts:
        raise InputError("no body", valid="at least one")
    mass = sum(part.mass for part in parts)
    com = sum((part.mass * part.com for part in parts), np.zeros(3)) / mass
    inertia = sum((part.inertia_at(com) for part in parts), np.zeros((3, 3)))
    return MassProperties(mass, com, inertia, sum(part.volume for part in parts))


def compute_origin_transform(
    mesh: TriangleMesh, origin: str | Points, rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> SE3:
    """The pose that moves a surface so that ``origin`` becomes its origin, and then turns it.

    Args:
        mesh: In its old frame.
        origin: "com" (centre of mass of the closed body at uniform density), "base" (centre of the bottom of the
            bounding box), "center" (of the bounding box), or a point (3,) in the old frame [m].
        rpy: Roll, pitch, yaw of the turn [rad].

    Raises:
        InputError: ``origin`` is none of these.
    """
    low, high = mesh.bounds
    if not isinstance(origin, str):
        point = np.asarray(origin, float)
        if point.shape != (3,) or not np.isfinite(point).all():
            raise InputError(f"an origin at {origin}", valid="three coordinates")
    elif origin == "com":
        point = compute_mass_properties(mesh, density=1.0).com
    elif origin == "center":
        point = (low + high) / 2.0
    elif origin == "base":
        point = np.array([(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0, low[2]])
    else:
        raise InputError(f"an origin at {origin!r}", valid="com, base, center, or x,y,z")
    return SE3.from_xyz_rpy((0.0, 0.0, 0.0), rpy) @ SE3(translation=-point)
