"""What assembly hands to the engine: the compiled model and the tables that lead from names to its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from roboyard.description.model import Axis, Model
from roboyard.geometry import SE3
from roboyard.hardware.interface import BaseMotion


@dataclass(frozen=True, slots=True)
class Flesh:
    """How a part of a body that is led gives way.

    Attributes:
        mass: That an impact on it meets [kg].
        front: Stiffness where its link's x leads out [N/m].
        behind: Stiffness elsewhere [N/m].
        hold: Natural frequency of the damped spring that brings it back [rad/s].
    """

    mass: float
    front: float
    behind: float
    hold: float


@dataclass(frozen=True, slots=True)
class Entry:
    """A model to be put into the world.

    Attributes:
        name: Unique in the world.
        model: Its description.
        T_world_model: Where its model frame starts.
        base: What of its body's velocity can be commanded; None: nothing.
        aloft: Links that are not meant to touch the ground, as an arm's; others may stand on it.
        flesh: By link of a model without joints whose links are led, each for itself, and give way; None: it moves by
            itself.
    """

    name: str
    model: Model
    T_world_model: SE3
    base: BaseMotion | None = None
    aloft: frozenset[str] = frozenset()
    flesh: Mapping[str, Flesh] | None = None


@dataclass(frozen=True, slots=True)
class LinkPlace:
    """A link's body; links of static models share bodies and sit in them at ``T_body_link``."""

    body: int
    T_body_link: SE3


@dataclass(frozen=True, slots=True)
class JointPlace:
    """A scalar joint's addresses: position, velocity, actuator (-1: none) and its first control."""

    name: str
    axis: Axis
    prismatic: bool
    joint: int
    qpos: int
    dof: int
    actuator: int
    ctrl: int


@dataclass(frozen=True, slots=True)
class Placement:
    """One model's place in the compiled world.

    Attributes:
        index: Its number in the geom tables.
        entry: What was put in.
        links: By link name.
        joints: Scalar joints in file order.
        sites: Sensor name to site.
        bodies: Bodies of its own (none for a static model).
        root: Name of the link that carries the model's pose.
    """

    index: int
    entry: Entry
    links: dict[str, LinkPlace]
    joints: tuple[JointPlace, ...]
    sites: dict[str, int]
    bodies: tuple[int, ...]
    root: str

    @property
    def moves(self) -> bool:
        """Whether any part of it can move."""
        return bool(self.bodies)


@dataclass(frozen=True, slots=True)
class GeomTables:
    """Per engine geom: model number (-1: none), whether it is ground, whether it is not meant to touch that, link,
    part, grain (see `grain_loop`)."""

    model: NDArray[np.int32]
    ground: NDArray[np.bool_]
    aloft: NDArray[np.bool_]
    links: tuple[str, ...]
    parts: tuple[str, ...]
    grain: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Assembled:
    """A compiled world.  ``notes`` say what the engine could not represent."""

    spec: mujoco.MjSpec
    model: mujoco.MjModel
    placements: dict[str, Placement]
    geoms: GeomTables
    notes: tuple[str, ...]
