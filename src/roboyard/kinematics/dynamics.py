"""Inverse dynamics of a serial chain with payloads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from roboyard.config.wording import did_you_mean
from roboyard.description import Inertial, Model
from roboyard.description.inertia import inertia_matrix
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry.arrays import Array
from roboyard.geometry.constants import GRAVITY_VECTOR
from roboyard.kinematics.chain import Chain
from roboyard.kinematics.dynamics_kernels import ChainMasses, compute_inverse_dynamics, compute_mass_matrix


@dataclass(frozen=True, slots=True)
class Payload:
    """Body carried by a link.

    Attributes:
        link: Name of the link.
        body: Mass, center of mass and inertia of the payload, in the link frame.
    """

    link: str
    body: Inertial


@dataclass(frozen=True, eq=False)
class ChainDynamics:
    """Dynamics of a serial chain with n free joints.

    Links on branches move with the link that carries them: joints outside the chain do not move.

    Attributes:
        chain: The chain.
        masses: Mass properties in the form that kernels use.
        damping: (n,) viscous damping [N m s/rad or N s/m].
        friction: (n,) Coulomb friction [N m or N].
    """

    chain: Chain
    masses: ChainMasses = field(repr=False)
    damping: Array
    friction: Array

    @classmethod
    def from_model(
        cls, model: Model, chain: Chain, payloads: Iterable[Payload] = (), gravity: ArrayLike = GRAVITY_VECTOR
    ) -> ChainDynamics:
        """Make the dynamics of a chain from a robot model.

        Args:
            model: The chain's robot.
            chain: The chain.
            payloads: Payloads of the links.
            gravity: (3,) gravity in the chain's base [m/s²].

        Raises:
            InputError: Gravity is not a vector, or a payload's mass is invalid.
            UnknownNameError: The link of a payload does not exist.
        """
        gravity_vector = np.asarray(gravity, dtype=np.float64)
        if gravity_vector.shape != (3,) or not np.isfinite(gravity_vector).all():
            raise InputError(
                f"gravity must be a vector of three numbers, got {gravity_vector}", valid="three numbers [m/s²]"
            )
        bodies = [(link.name, link.inertial, link.gravity) for link in model.links if link.inertial is not None]
        for payload in payloads:
            if payload.link not in chain.link_mounts:
                message = f"unknown link {payload.link!r}{did_you_mean(payload.link, chain.link_mounts)}"
                raise UnknownNameError(message, location=chain.robot, valid=", ".join(chain.link_mounts))
            if not 0.0 <= payload.body.mass < 1e6:
                raise InputError(
                    f"payload mass must not be negative, got {payload.body.mass} kg",
                    location=payload.link,
                    valid="0 or more",
                )
            bodies.append((payload.link, payload.body, True))
        count = len(chain.moving_joints) + 1
        mass, moment, origin_inertia = np.zeros(count), np.zeros((count, 3)), np.zeros((count, 3, 3))
        gravity_mass, gravity_com = np.zeros(count), np.zeros((count, 3))
        for link, inertial, has_gravity in bodies:
            frame, T = chain.link_mounts[link]
            position = T[:3, :3] @ inertial.T_link_com.translation + T[:3, 3]
            R = T[:3, :3] @ inertial.T_link_com.rotation_matrix()
            mass[frame] += inertial.mass
            moment[frame] += inertial.mass * position
            origin_inertia[frame] += R @ inertia_matrix(inertial.inertia) @ R.T + inertial.mass * _point_inertia(
                position
            )  # about the frame's origin
            if has_gravity:
                gravity_mass[frame] += inertial.mass
                gravity_com[frame] += inertial.mass * position
        com = moment / np.where(mass > 0.0, mass, 1.0)[:, None]
        gravity_com /= np.where(gravity_mass > 0.0, gravity_mass, 1.0)[:, None]
        inertia = origin_inertia - np.array([m * _point_inertia(c) for m, c in zip(mass, com, strict=True)])
        axes = [model.joint(name).axes[0].dynamics for name in chain.moving_joints]
        ratio, driving_joint = chain.arrays.multiplier, chain.arrays.driving_joint
        joints: list[Array] = []
        for values, factor in (
            ([max(one.armature, 0.0) for one in axes], ratio**2),
            ([max(one.damping, 0.0) for one in axes], ratio**2),
            ([max(one.friction, 0.0) for one in axes], np.abs(ratio)),
        ):
            weights = factor * np.array(values, dtype=np.float64)
            joints.append(np.array([weights[driving_joint == j].sum() for j in range(chain.dof)]))
        rotor_inertia, damping, friction = joints
        spring_stiffness, spring_reference = (
            np.array([getattr(one, name) for one in axes]) for name in ("stiffness", "reference")
        )
        return cls(
            chain,
            ChainMasses(
                mass,
                com,
                inertia,
                gravity_mass,
                gravity_com,
                rotor_inertia,
                spring_stiffness,
                spring_reference,
                gravity_vector,
            ),
            damping,
            friction,
        )

    def inverse_dynamics(
        self, q: ArrayLike, velocity: ArrayLike | None = None, acceleration: ArrayLike | None = None
    ) -> Array:
        """Compute the efforts (n,) or (k, n) of a motion [N m or N]; without velocity and acceleration the static
        efforts.

        Includes damping but not Coulomb friction, whose sign depends on the direction of the driving force. Raises
        InputError.
        """
        positions = self.chain.as_positions(q)
        v, a = (
            np.zeros_like(positions) if one is None else self.chain.as_positions(one)
            for one in (velocity, acceleration)
        )
        if not positions.shape == v.shape == a.shape:
            raise InputError(
                f"shapes of positions, velocities and accelerations differ: {positions.shape}, {v.shape}, {a.shape}",
                valid="equal shapes",
            )
        out = np.empty_like(positions)
        flat = (one.reshape(-1, self.chain.dof) for one in (positions, v, a, out))
        compute_inverse_dynamics(self.chain.arrays, self.masses, *flat)
        return out + self.damping * v

    def mass_matrix(self, q: ArrayLike) -> Array:
        """Compute the joint-space mass matrix (n, n) at positions (n,). Raises InputError."""
        positions = self.chain.as_positions(q)
        if positions.ndim != 1:
            raise InputError(f"positions have the shape {positions.shape}", valid=f"({self.chain.dof},)")
        out = np.empty((self.chain.dof, self.chain.dof))
        compute_mass_matrix(self.chain.arrays, self.masses, positions, out)
        return out


def _point_inertia(position: Array) -> Array:
    """Return the inertia of one kilogram at a position, about the origin."""
    inertia: Array = float(position @ position) * np.eye(3) - np.outer(position, position)
    return inertia
