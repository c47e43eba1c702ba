"""What efforts a chain's motions take: from the masses of its links and of what they carry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from roboyard.chains.chain import Chain
from roboyard.chains.masses import Masses, fill_efforts, fill_inertia
from roboyard.config.describe import near
from roboyard.description import Inertial, Model
from roboyard.errors import InputError, UnknownNameError

Array = NDArray[np.float64]
GRAVITY = (0.0, 0.0, -9.81)
"""On Earth, z up [m/s²]."""


@dataclass(frozen=True, slots=True)
class Load:
    """Something that a link carries.

    Attributes:
        link: That carries it.
        body: Its mass, where its middle is on the link, and its inertia.
    """

    link: str
    body: Inertial


@dataclass(frozen=True, eq=False)
class Dynamics:
    """A chain's n free joints, its masses, and what its joints lose.

    What hangs on branches moves with the link that carries it: joints that are not the chain's stand still.

    Attributes:
        chain: The joints.
        masses: What kernels take.
        damping: (n,) effort for each unit of speed [N m s/rad or N s/m].
        friction: (n,) effort against any motion [N m or N].
    """

    chain: Chain
    masses: Masses = field(repr=False)
    damping: Array
    friction: Array

    @classmethod
    def of(cls, model: Model, chain: Chain, loads: Iterable[Load] = (), gravity: ArrayLike = GRAVITY) -> Dynamics:
        """Those of a chain of a model.

        Args:
            model: The chain's robot.
            chain: The joints.
            loads: What its links carry beside what they are.
            gravity: (3,) in the chain's base [m/s²].

        Raises:
            InputError: gravity is no direction, or a load's mass is none.
            UnknownNameError: there is no link that shall carry a load.
        """
        pull = np.asarray(gravity, dtype=np.float64)
        if pull.shape != (3,) or not np.isfinite(pull).all():
            raise InputError(f"gravity {pull}", valid="three numbers [m/s²]")
        bodies = [(link.name, link.inertial, link.gravity) for link in model.links if link.inertial is not None]
        for load in loads:
            if load.link not in chain.links:
                what = f"no link {load.link!r}{near(load.link, chain.links)}"
                raise UnknownNameError(what, where=chain.robot, valid=", ".join(chain.links))
            if not 0.0 <= load.body.mass < 1e6:
                raise InputError(f"a load of {load.body.mass} kg", where=load.link, valid="0 or more")
            bodies.append((load.link, load.body, True))
        count = len(chain.moving) + 1
        mass, moment, spread = np.zeros(count), np.zeros((count, 3)), np.zeros((count, 3, 3))
        weight, heavy = np.zeros(count), np.zeros((count, 3))
        for link, inertial, falls in bodies:
            frame, T = chain.links[link]
            at = T[:3, :3] @ inertial.T_link_com.translation + T[:3, 3]
            R = T[:3, :3] @ inertial.T_link_com.rotation_matrix()
            mass[frame] += inertial.mass
            moment[frame] += inertial.mass * at
            spread[frame] += R @ _tensor(inertial) @ R.T + inertial.mass * _about(at)  # about the frame's origin
            if falls:
                weight[frame] += inertial.mass
                heavy[frame] += inertial.mass * at
        middle = moment / np.where(mass > 0.0, mass, 1.0)[:, None]
        heavy /= np.where(weight > 0.0, weight, 1.0)[:, None]
        inertia = spread - np.array([m * _about(c) for m, c in zip(mass, middle, strict=True)])
        axes = [model.joint(name).axes[0].dynamics for name in chain.moving]
        ratio, source = chain.rows.multiplier, chain.rows.source
        joints: list[Array] = []
        for values, factor in (
            ([max(one.armature, 0.0) for one in axes], ratio**2),
            ([max(one.damping, 0.0) for one in axes], ratio**2),
            ([max(one.friction, 0.0) for one in axes], np.abs(ratio)),
        ):
            weights = factor * np.array(values, dtype=np.float64)
            joints.append(np.array([weights[source == j].sum() for j in range(chain.dof)]))
        rotor, damping, friction = joints
        spring, slack = (np.array([getattr(one, name) for one in axes]) for name in ("stiffness", "reference"))
        return cls(chain, Masses(mass, middle, inertia, weight, heavy, rotor, spring, slack, pull), damping, friction)

    def efforts(self, q: ArrayLike, velocity: ArrayLike | None = None, acceleration: ArrayLike | None = None) -> Array:
        """Efforts (n,) or (k, n) of a motion [N m or N]; without velocities and accelerations those that hold still.

        Damping counts, friction does not: what it takes depends on who pushes. Raises InputError.
        """
        at = self.chain.positions(q)
        v, a = (np.zeros_like(at) if one is None else self.chain.positions(one) for one in (velocity, acceleration))
        if not at.shape == v.shape == a.shape:
            raise InputError(f"motions of shapes {at.shape}, {v.shape} and {a.shape}", valid="all alike")
        out = np.empty_like(at)
        flat = (one.reshape(-1, self.chain.dof) for one in (at, v, a, out))
        fill_efforts(self.chain.rows, self.masses, *flat)
        return out + self.damping * v

    def inertia(self, q: ArrayLike) -> Array:
        """(n, n) efforts for each unit of each joint's acceleration, at (n,) positions. Raises InputError."""
        at = self.chain.positions(q)
        if at.ndim != 1:
            raise InputError(f"positions of shape {at.shape}", valid=f"({self.chain.dof},)")
        out = np.empty((self.chain.dof, self.chain.dof))
        fill_inertia(self.chain.rows, self.masses, at, out)
        return out


def _tensor(inertial: Inertial) -> Array:
    ixx, iyy, izz, ixy, ixz, iyz = inertial.inertia
    return np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])


def _about(at: Array) -> Array:
    """Inertia of one kilogram at a place, about the origin."""
    found: Array = float(at @ at) * np.eye(3) - np.outer(at, at)
    return found
