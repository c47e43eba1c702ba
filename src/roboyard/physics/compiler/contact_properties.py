"""Contact properties of surfaces: friction, softness, anisotropic friction and slip, as MuJoCo's geoms take them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Surface
from roboyard.geometry import SE3
from roboyard.physics.compiled_world import COLLISION_BITS, MIN_FRICTION, ModelAddresses
from roboyard.physics.kernels.contact_modifiers import ANISOTROPY_COLUMNS
from roboyard.physics.kernels.contact_solver import MAX_DENSE_DOFS

MAX_FRICTION = 1.5
"""Largest friction coefficient.  Rubber on dry concrete reaches about 1; files with 100 or 100000 mean "hardly ever
slips".  The convex solver lifts a sliding contact, and more so with a larger coefficient: a light robot with spinning
wheels would hop at 3 and fly off at 100."""


@dataclass(frozen=True, slots=True)
class ContactProperties:
    """Contact properties of a geom, as MuJoCo takes them.

    Attributes:
        friction: Sliding coefficient, torsional and rolling lengths [1, m, m].
        condim: 1 without friction, 3 with sliding, 4 also with torsional, 6 also with rolling friction.
        priority: The geom with the higher priority determines the contact.
        solref: MuJoCo's contact softness; None: its default.
    """

    friction: tuple[float, float, float]
    condim: int
    priority: int
    solref: tuple[float, float] | None


def make_contact_properties(surface: Surface, contact_time: float) -> ContactProperties:
    """Compute the contact properties of a surface.

    A contact has the *smaller* of the two friction coefficients, as in ODE, Bullet and DART; MuJoCo would use the
    larger one.  MuJoCo uses the properties of the geom with the higher priority, so the priority decreases with
    friction: the more slippery surface decides.

    Args:
        surface: Surface of the description.  Where friction differs along two directions, the geometric mean is used
            here; `read_anisotropic_friction` reads the directions.
        contact_time: Time constant of contacts [s]; a stated restitution lowers the damping at this time.
    """
    mu = surface.friction
    if surface.friction2 is not None:
        mu = math.sqrt(max(mu, 0.0) * max(surface.friction2, 0.0))
    mu = min(max(mu, MIN_FRICTION), MAX_FRICTION)
    torsional, rolling = surface.torsional or 0.0, surface.rolling or 0.0
    is_frictionless = mu <= MIN_FRICTION and not is_anisotropic(surface)
    condim = 6 if rolling > 0.0 else 4 if torsional > 0.0 else 1 if is_frictionless else 3
    priority = -round(1000.0 * math.log2(mu))
    return ContactProperties((mu, torsional, rolling), condim, priority, _restitution_solref(surface, contact_time))


def is_anisotropic(surface: Surface) -> bool:
    """Whether friction differs along two directions by more than 5 %."""
    if surface.friction2 is None:
        return False
    first, second = (min(max(value, MIN_FRICTION), MAX_FRICTION) for value in (surface.friction, surface.friction2))
    return abs(first - second) > 0.05 * max(first, second)


def _restitution_solref(surface: Surface, contact_time: float) -> tuple[float, float] | None:
    if surface.restitution <= 0.0:
        return None
    # MuJoCo reads negative numbers as stiffness and damping per unit of mass.
    frequency = 1.0 / contact_time
    return -(frequency**2), -2.0 * restitution_damping_ratio(surface.restitution) * frequency


def restitution_damping_ratio(restitution: float) -> float:
    """Compute the damping ratio at which a spring-damper that only pushes has the coefficient of restitution (0…1)."""
    low, high = 0.0, 20.0
    for _ in range(60):
        midpoint = 0.5 * (low + high)
        low, high = (midpoint, high) if _restitution_at(midpoint) > restitution else (low, midpoint)
    return 0.5 * (low + high)


def _restitution_at(damping_ratio: float) -> float:
    """Coefficient of restitution of a spring-damper that only pushes.

    T. Schwager, T. Pöschel, Granular Matter 9 (2007): the contact ends when the force is zero, not the penetration.
    """
    if damping_ratio < 1e-9:
        return 1.0
    if damping_ratio < 1.0 - 1e-6:
        root = math.sqrt(1.0 - damping_ratio * damping_ratio)
        return math.exp(
            -damping_ratio / root * math.atan2(2.0 * damping_ratio * root, 2.0 * damping_ratio * damping_ratio - 1.0)
        )
    if damping_ratio <= 1.0 + 1e-6:
        return math.exp(-2.0)
    root = math.sqrt(damping_ratio * damping_ratio - 1.0)
    return math.exp(-damping_ratio / root * math.log((damping_ratio + root) / (damping_ratio - root)))


@dataclass(frozen=True, slots=True)
class AnisotropicFriction:
    """Friction and slip along two directions of a surface.

    Attributes:
        coefficients: Coulomb's coefficients along the first and the second direction.
        slip: Slip speed along both directions for each newton of friction [m/(N s)].
        direction: First direction in the frame of the geom's body; None: the same friction in all directions.
        frame_name: Link or frame in which ``direction`` is given; None: the geom's body.
    """

    coefficients: tuple[float, float]
    slip: tuple[float, float]
    direction: tuple[float, float, float] | None
    frame_name: str | None


def read_anisotropic_friction(surface: Surface, T_body_collision: SE3) -> AnisotropicFriction | None:
    """Read the anisotropic friction and slip of a surface; None if the surface has one coefficient and no slip.

    The first direction is in the frame of the collision if the surface names no other frame, as in Gazebo: on a wheel
    the direction rotates with the wheel.
    """
    has_direction = is_anisotropic(surface) and surface.friction_direction is not None
    if not has_direction and not any(surface.slip):
        return None
    second_coefficient = surface.friction if surface.friction2 is None or not has_direction else surface.friction2
    coefficients = (clamp_friction(surface.friction), clamp_friction(second_coefficient))
    if surface.friction_direction is None:
        return AnisotropicFriction(coefficients, surface.slip, None, None)
    direction = np.asarray(surface.friction_direction, float)
    if surface.friction_direction_frame is None:
        direction = T_body_collision.rotation_matrix() @ direction
    x, y, z = (direction / np.linalg.norm(direction)).tolist()
    return AnisotropicFriction(coefficients, surface.slip, (x, y, z), surface.friction_direction_frame)


def clamp_friction(coefficient: float) -> float:
    """Limit a coefficient to the range that the solver handles well."""
    return min(max(coefficient, MIN_FRICTION), MAX_FRICTION)


def make_anisotropy_table(
    model: mujoco.MjModel, surfaces: Iterable[tuple[int, AnisotropicFriction, ModelAddresses]], warnings: list[str]
) -> NDArray[np.float64]:
    """Make the table (geoms, `ANISOTROPY_COLUMNS`) of `SurfaceArrays`; without rows if no surface is anisotropic.

    Args:
        model: The compiled world.
        surfaces: Geom, anisotropic friction of its surface, and addresses of its model.
        warnings: Warnings about unknown frames and unsupported slip are appended.
    """
    surface_list = list(surfaces)
    table = np.zeros((model.ngeom if surface_list else 0, ANISOTROPY_COLUMNS))
    if surface_list:
        table[:, 0] = table[:, 1] = model.geom_friction[:, 0]
    if model.nv > MAX_DENSE_DOFS and any(any(anisotropic_friction.slip) for _, anisotropic_friction, _ in surface_list):
        warnings.append(
            f"slip is not simulated: the world has {model.nv} degrees of freedom, "
            f"at most {MAX_DENSE_DOFS} are supported"
        )
    for geom, anisotropic_friction, addresses in surface_list:
        body, direction = int(model.geom_bodyid[geom]), anisotropic_friction.direction
        if anisotropic_friction.frame_name is not None and direction is not None:
            body, T_body_frame, is_known_frame = _find_frame_body(addresses, anisotropic_friction.frame_name)
            if not is_known_frame:
                warnings.append(
                    f"{model.geom(geom).name}: <fdir1> is expressed in {anisotropic_friction.frame_name!r}, "
                    "which is no link or frame: "
                    f"{addresses.root!r} is used instead"
                )
            x, y, z = T_body_frame.rotation_matrix() @ np.asarray(direction)
            direction = (float(x), float(y), float(z))
        table[geom] = (
            *anisotropic_friction.coefficients,
            *anisotropic_friction.slip,
            body,
            *(direction or (0.0, 0.0, 0.0)),
            1.0,
        )
    return table


def _find_frame_body(addresses: ModelAddresses, frame_name: str) -> tuple[int, SE3, bool]:
    """Find the body of a link or frame, its pose in that body, and whether it is known; else use the root link.

    Gazebo accepts links only and ignores unknown names silently: the direction then rotates with the wheel.  Files for
    several robots name the link ``robot/link``.
    """
    frames = {frame.name: frame for frame in addresses.entry.model.frames}
    for candidate in (frame_name, frame_name.rpartition("/")[2]):
        if candidate in addresses.links:
            link_address = addresses.links[candidate]
            return link_address.body, link_address.T_body_link, True
        if candidate in frames and frames[candidate].link in addresses.links:
            link_address = addresses.links[frames[candidate].link]
            return link_address.body, link_address.T_body_link @ frames[candidate].T_link_frame, True
    link_address = addresses.links[addresses.root]
    return link_address.body, link_address.T_body_link, frame_name == "__model__"


LIGHT_BODY_MASS_RATIO = 50.0
"""A body is light if the mass of its tree is more than this multiple of the body's effective mass in contacts."""


def use_exact_contact_inertia(model: mujoco.MjModel) -> None:
    """Make MuJoCo compute contacts with the exact inertia of the bodies in contact.

    Worlds with loops are left out: most loops have directions in which neither side can move, and the exact inertia in
    those directions is 0 / 0.
    """
    if not np.isin(model.eq_type, (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD)).any():
        model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_DIAGEXACT)


def has_light_contact_bodies(model: mujoco.MjModel) -> bool:
    """Return whether a body that can collide is light compared with the robot that stands on it.

    MuJoCo approximates the inverse inertia of a contact by the mean over all directions.  A shank moves easily sideways
    but not along its length, so that a heavy robot on light feet sinks into the ground by millimeters.  The exact
    inertia prevents this and makes a step one seventh slower.
    """
    collision_bodies = np.unique(model.geom_bodyid[(model.geom_conaffinity & COLLISION_BITS) != 0])
    mass_ratios = (
        model.body_invweight0[collision_bodies, 0] * model.body_subtreemass[model.body_rootid[collision_bodies]]
    )
    return bool((mass_ratios[collision_bodies > 0] > LIGHT_BODY_MASS_RATIO).any())
