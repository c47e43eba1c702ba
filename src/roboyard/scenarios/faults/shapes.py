"""What a scenario lets appear: named shapes, and descriptions."""

from __future__ import annotations

import math
from pathlib import Path

from roboyard.description import Box, Collision, Cylinder, Inertial, Link, Material, Model, Sphere, Visual, load_model
from roboyard.geometry import SE3
from roboyard.scenarios.catalog import find_file
from roboyard.scenarios.faults.kinds import Spawn

_DENSITY = 150.0
"""Of the named shapes [kg/m³]: cardboard with something in it; a rover can push a small one."""
_SHAPES = ("box", "cylinder", "sphere")


def model_of(fault: Spawn, base: Path | None) -> Model:
    """The model that a fault spawns: a named shape, or a description's.

    Raises:
        InputError: there is no such file; DescriptionError: it cannot be read.
    """
    if fault.model in _SHAPES:
        return _shape(fault.model, fault.size)
    return load_model(find_file(fault.model, base))


def _shape(kind: str, size: tuple[float, float, float]) -> Model:
    """A solid of homogeneous density; ``size`` is length, width, height (diameter first for round ones) [m]."""
    x, y, z = size
    if kind == "box":
        geometry: Box | Cylinder | Sphere = Box(size)
        mass = _DENSITY * x * y * z
        inertia = (y * y + z * z, x * x + z * z, x * x + y * y)
        moments = tuple(mass * value / 12.0 for value in inertia)
    elif kind == "cylinder":
        geometry, mass = Cylinder(x / 2.0, z), _DENSITY * math.pi * x * x / 4.0 * z
        side = mass * (3.0 * x * x / 4.0 + z * z) / 12.0
        moments = (side, side, mass * x * x / 8.0)
    else:
        geometry, mass = Sphere(x / 2.0), _DENSITY * math.pi * x**3 / 6.0
        moments = (mass * x * x / 10.0,) * 3
    here = SE3.identity()
    link = Link(
        "link",
        here,
        Inertial(mass, here, (moments[0], moments[1], moments[2], 0.0, 0.0, 0.0)),
        (Collision("collision", geometry, here),),
        (Visual("visual", geometry, here, Material("cardboard", (0.76, 0.6, 0.42, 1.0))),),
    )
    return Model(kind, (link,))
