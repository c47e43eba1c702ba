"""A compiled world: the MuJoCo model, and the tables that lead from names of the descriptions to its numbers.

Names of bodies, joints, geoms and sites in the MuJoCo model are ``model::link::shape``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Axis, Model
from roboyard.geometry import SE3
from roboyard.hardware.interface import BaseMotion

MIN_FRICTION = 1e-5
"""Smallest friction coefficient that MuJoCo accepts."""


@dataclass(frozen=True, slots=True)
class LinkCompliance:
    """Compliance of a kinematic body part.

    Attributes:
        mass: Effective mass of the part in an impact [kg].
        stiffness_front: Contact stiffness of the side towards the x axis of its link [N/m].
        stiffness_rear: Contact stiffness of the other side [N/m].
        return_frequency: Natural frequency of the damped spring that returns the part [rad/s].
    """

    mass: float
    stiffness_front: float
    stiffness_rear: float
    return_frequency: float


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model to add to the world.

    Attributes:
        name: Name, unique in the world.
        model: Description of the model.
        T_world_model: Initial pose of the model frame.
        base: Components of the base velocity that can be commanded; None: none.
        off_ground_links: Links that must not touch the ground, such as an arm's; others may stand on it.
        compliant_parts: Compliance by link, for a model without joints whose links are kinematic bodies; None: its
            links move by the laws of mechanics.
    """

    name: str
    model: Model
    T_world_model: SE3
    base: BaseMotion | None = None
    off_ground_links: frozenset[str] = frozenset()
    compliant_parts: Mapping[str, LinkCompliance] | None = None


@dataclass(frozen=True, slots=True)
class LinkAddress:
    """Body of a link; links of static models share bodies and have the pose ``T_body_link`` in them."""

    body: int
    T_body_link: SE3


@dataclass(frozen=True, slots=True)
class JointAddress:
    """Addresses of a scalar joint in MuJoCo's arrays: position, velocity, actuator (-1: none) and its first control."""

    name: str
    axis: Axis
    is_prismatic: bool
    joint: int
    qpos: int
    dof: int
    actuator: int
    ctrl: int


@dataclass(frozen=True, slots=True)
class ModelAddresses:
    """Addresses of one model in the compiled world.

    Attributes:
        index: Number of the model in the geom tables.
        entry: The model as it was given to the compiler.
        links: Addresses by link name.
        joints: Addresses of the scalar joints, in the order of the file.
        sites: MuJoCo's site of each sensor, by sensor name.
        bodies: Bodies that belong to this model alone (none for a static model).
        root: Name of the link that carries the model's pose.
    """

    index: int
    entry: ModelEntry
    links: dict[str, LinkAddress]
    joints: tuple[JointAddress, ...]
    sites: dict[str, int]
    bodies: tuple[int, ...]
    root: str

    @property
    def is_movable(self) -> bool:
        """Whether any link of the model can move."""
        return bool(self.bodies)


@dataclass(frozen=True, slots=True)
class GeomTables:
    """Tables with one row for each MuJoCo geom.

    Attributes:
        model_index: Number of the model; -1 for none.
        is_ground: Whether the geom is ground.
        is_off_ground: Whether the geom must not touch the ground.
        link_names: Name of the link.
        shape_names: Name of the collision or visual.
        anisotropy: Anisotropic friction and slip (see `roboyard.physics.kernels.contact_modifiers`); without rows if no
            surface has any.
    """

    model_index: NDArray[np.int32]
    is_ground: NDArray[np.bool_]
    is_off_ground: NDArray[np.bool_]
    link_names: tuple[str, ...]
    shape_names: tuple[str, ...]
    anisotropy: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CompiledWorld:
    """A compiled world.

    Attributes:
        spec: MuJoCo's specification.
        model: MuJoCo's model.
        addresses: Addresses of each model in MuJoCo's arrays, by name.
        geoms: Tables of the geoms.
        warnings: What MuJoCo cannot represent, and what replaces it.
    """

    spec: mujoco.MjSpec
    model: mujoco.MjModel
    addresses: dict[str, ModelAddresses]
    geoms: GeomTables
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FrictionPatch:
    """A rectangle on the ground with its own friction coefficient.

    Attributes:
        x: Center in the world [m].
        y: Center in the world [m].
        yaw: Direction of the length [rad].
        length: Extent along that direction [m].
        width: Extent across that direction [m].
        friction: Friction coefficient of the ground in the rectangle; the smaller one of two surfaces applies.
    """

    x: float
    y: float
    yaw: float
    length: float
    width: float
    friction: float

    def to_row(self) -> list[float]:
        """Return the row of this patch in the table that the step kernel reads."""
        friction_coefficient = max(self.friction, MIN_FRICTION)
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        return [self.x, self.y, c, s, self.length / 2.0, self.width / 2.0, friction_coefficient]


SCOPE_SEPARATOR: Final = "::"


class GeomGroup(IntEnum):
    """MuJoCo's geom groups, as the compiler assigns them.

    Attributes:
        VISUAL_AS_COLLISION: Visuals of a link without collision shapes, and meshes whose convex pieces collide: they
            are rendered, and lidars measure them.
        VISUAL: Visuals of a link that has collision shapes: they are rendered only.
        COLLISION: Collision shapes: they collide, and lidars measure them.
        INVISIBLE_COLLISION: Convex pieces of a mesh: they collide; lidars measure the mesh itself.
    """

    VISUAL_AS_COLLISION = 1
    VISUAL = 2
    COLLISION = 3
    INVISIBLE_COLLISION = 4


RENDERED_GROUPS: Final = (GeomGroup.VISUAL_AS_COLLISION, GeomGroup.VISUAL)
"""Groups that cameras see."""
RAY_VISIBLE_GROUPS: Final = (GeomGroup.VISUAL_AS_COLLISION, GeomGroup.COLLISION)
"""Groups that lidars and other beams measure."""

# MuJoCo's bulk ray caster skips geoms with contype 0 and conaffinity 0, so visuals carry a bit that no geom's
# conaffinity has.
VISUAL_CONTYPE: Final = 2
COLLISION_BITS: Final = 1


def scoped_name(*parts: str) -> str:
    """Return a scoped name, such as ``model::link::collision``."""
    return SCOPE_SEPARATOR.join(parts)
