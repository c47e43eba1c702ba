"""Slippery patches of ground and surfaces that move, as the tables the step loop reads."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from roboyard.errors import InputError
from roboyard.geometry.arrays import Vec3
from roboyard.simulation.assembly import Assembled
from roboyard.simulation.assembly.surfaces import MIN_FRICTION


@dataclass(frozen=True, slots=True)
class Patch:
    """A rectangle on the ground with a friction of its own.

    Attributes:
        x: Its centre in the world [m].
        y: …
        yaw: Direction of its length [rad].
        length: Along that direction [m].
        width: Across it [m].
        friction: Coulomb's coefficient of the ground there; as everywhere the smaller one of two surfaces holds.
    """

    x: float
    y: float
    yaw: float
    length: float
    width: float
    friction: float

    def row(self) -> list[float]:
        """Its row in the step loop's table."""
        friction = max(self.friction, MIN_FRICTION)
        c, s = math.cos(self.yaw), math.sin(self.yaw)
        return [self.x, self.y, c, s, self.length / 2.0, self.width / 2.0, friction]


@dataclass(slots=True)
class SurfaceTables:
    """What the step loop looks at, for one compiled world.

    Attributes:
        patches: (n, 7), see `surface_loop`.
        belts: (geoms, 3) velocity of each geom's surface in the world [m/s]; no rows if none moves.
        friction: (geoms, 3) the engine's coefficients.
        grain: (geoms, 9), see `grain_loop`; no rows if no surface has one.
    """

    friction: NDArray[np.float64]
    grain: NDArray[np.float64]
    patches: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 7)))
    belts: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 3)))

    @classmethod
    def of(cls, assembled: Assembled) -> SurfaceTables:
        """Of a compiled world in which nothing is slippery and no surface moves."""
        return cls(np.ascontiguousarray(assembled.model.geom_friction, float), assembled.geoms.grain)

    def set(self, assembled: Assembled, patches: list[Patch], belts: dict[tuple[str, str], Vec3]) -> None:
        """Take these patches, and these velocities [m/s] of the surfaces of (model, link), in the link's frame.

        Raises:
            InputError: a link is not there, or it moves itself.
        """
        self.patches = np.array([patch.row() for patch in patches], float).reshape(-1, 7)
        running = {key: velocity for key, velocity in belts.items() if any(velocity)}
        self.belts = np.zeros((len(assembled.geoms.model) if running else 0, 3))
        for (model, link), velocity in running.items():
            placement = assembled.placements.get(model)
            if placement is None or link not in placement.links:
                raise InputError(f"no link {link!r} of a model {model!r}", location="moving surface")
            place = placement.links[link]
            if place.body:
                raise InputError(f"link {link!r} of {model!r} moves itself", valid="a link that stands still")
            geoms = [
                geom
                for geom, owner in enumerate(assembled.geoms.model)
                if owner == placement.index and assembled.geoms.links[geom] == link
            ]
            self.belts[geoms] = place.T_body_link.rotation_matrix() @ np.asarray(velocity, float)
