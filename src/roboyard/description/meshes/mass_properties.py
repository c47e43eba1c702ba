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
    """Mass properties of a rigid body.

    Attributes:
        mass: Mass [kg].
        com: (3,) center of mass [m].
        inertia: (3, 3) inertia about the center of mass, along the frame's axes [kg m²].
        volume: Volume [m³].
    """

    mass: float
    com: NDArray[np.float64]
    inertia: NDArray[np.float64]
    volume: float

    @property
    def density(self) -> float:
        """Mass divided by volume [kg/m³]."""
        return self.mass / self.volume

    @property
    def principal_moments(self) -> NDArray[np.float64]:
        """(3,) principal moments, ascending [kg m²]."""
        moments: NDArray[np.float64] = np.asarray(np.linalg.eigvalsh(self.inertia), float)
        return moments

    def inertia_at(self, point: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the inertia (3, 3) about another point by the parallel axis theorem [kg m²]."""
        d = np.asarray(point, float) - self.com
        inertia: NDArray[np.float64] = self.inertia + self.mass * (d @ d * np.eye(3) - np.outer(d, d))
        return inertia

    def transformed(self, T_new_old: SE3) -> MassProperties:
        """Return the mass properties in another frame."""
        R = T_new_old.rotation_matrix()
        return MassProperties(self.mass, T_new_old @ self.com, R @ self.inertia @ R.T, self.volume)

    def to_inertial(self) -> Inertial:
        """Convert to the inertial of a description."""
        i = self.inertia
        six = (i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2])
        ixx, iyy, izz, ixy, ixz, iyz = (float(value) for value in six)
        return Inertial(self.mass, SE3(translation=self.com), (ixx, iyy, izz, ixy, ixz, iyz))


def compute_mass_properties(
    mesh: TriangleMesh, mass: float | None = None, density: float | None = None
) -> MassProperties:
    """Compute the mass properties of the body inside a closed surface, from its mass [kg] or its density [kg/m³].

    Every triangle and a common point form a tetrahedron; volume, first and second moments are their signed sums (D.
    Eberly, "Polyhedral Mass Properties", 2002; here by the second moments of a simplex).

    Raises:
        InputError: Not exactly one of mass and density is given and positive, or the volume is zero.
    """
    inputs = [value for value in (mass, density) if value is not None]
    if len(inputs) != 1 or not 0.0 < inputs[0] < np.inf:
        raise InputError("exactly one of mass and density is required", valid="a positive number")
    reference = mesh.vertices[np.unique(mesh.faces)].mean(axis=0)
    corners = mesh.triangles - reference
    a, b, c = corners.transpose(1, 0, 2)
    volumes = np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0
    volume = float(volumes.sum())
    if not volume > 0.0:
        raise InputError(
            f"the surface encloses a volume of {volume:g} m³", valid="a closed surface with outward normals"
        )
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
    """Combine several bodies into one rigid body. Raises InputError without bodies."""
    if not parts:
        raise InputError("no bodies to combine", valid="at least one")
    mass = sum(part.mass for part in parts)
    com = sum((part.mass * part.com for part in parts), np.zeros(3)) / mass
    inertia = sum((part.inertia_at(com) for part in parts), np.zeros((3, 3)))
    return MassProperties(mass, com, inertia, sum(part.volume for part in parts))


def compute_origin_transform(
    mesh: TriangleMesh, origin: str | Points, rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> SE3:
    """Return the transform that moves a surface so that `origin` becomes its origin, and then rotates it.

    Args:
        mesh: Surface in its old frame.
        origin: "com" (center of mass of the closed body at uniform density), "base" (center of the bottom of the
            bounding box), "center" (of the bounding box), or a point (3,) in the old frame [m].
        rpy: Roll, pitch, yaw of the rotation [rad].

    Raises:
        InputError: `origin` is invalid.
    """
    low, high = mesh.bounds
    if not isinstance(origin, str):
        point = np.asarray(origin, float)
        if point.shape != (3,) or not np.isfinite(point).all():
            raise InputError(f"origin {origin} is not a point", valid="three coordinates")
    elif origin == "com":
        point = compute_mass_properties(mesh, density=1.0).com
    elif origin == "center":
        point = (low + high) / 2.0
    elif origin == "base":
        point = np.array([(low[0] + high[0]) / 2.0, (low[1] + high[1]) / 2.0, low[2]])
    else:
        raise InputError(f"unknown origin {origin!r}", valid="com, base, centre, or x,y,z")
    return SE3.from_xyz_rpy((0.0, 0.0, 0.0), rpy) @ SE3(translation=-point)
