"""What the tools found, as elements of URDF and SDF."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.sax.saxutils import quoteattr

import numpy as np

from roboyard.description.mesh_tools.fitting import Simple
from roboyard.description.model import Inertial
from roboyard.description.shapes import Box, Capsule, Cylinder, Mesh, Sphere
from roboyard.errors import UnknownNameError
from roboyard.geometry import SE3

FORMATS = ("urdf", "sdf")
Placed = tuple[Simple | Mesh, SE3]
"""A shape and its pose in the link."""


def inertial_text(inertial: Inertial, dialect: str) -> str:
    """An ``<inertial>`` element. Raises UnknownNameError."""
    _known(dialect)
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    moments = {name: _number(value) for name, value in zip(names, inertial.inertia, strict=True)}
    mass, place = _number(inertial.mass), inertial.T_link_com
    if dialect == "urdf":
        attributes = " ".join(f'{name}="{moments[name]}"' for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
        inside = f'  {origin(place)}\n  <mass value="{mass}"/>\n  <inertia {attributes}/>'
    else:
        elements = "".join(f"<{name}>{moments[name]}</{name}>" for name in names)
        inside = f"  <pose>{_six(place)}</pose>\n  <mass>{mass}</mass>\n  <inertia>{elements}</inertia>"
    return f"<inertial>\n{inside}\n</inertial>"


def collision_texts(shapes: Iterable[Placed], dialect: str) -> list[str]:
    """A ``<collision>`` element a shape; in URDF a capsule is a cylinder and two balls. Raises UnknownNameError."""
    _known(dialect)
    texts = []
    for shape, T in shapes:
        if dialect == "urdf":
            texts += [f"<collision>\n  {origin(at)}\n  {geometry(part)}\n</collision>" for part, at in _urdf(shape, T)]
        else:
            number = len(texts)
            texts.append(
                f'<collision name="collision_{number}">\n  <pose>{_six(T)}</pose>\n  {_sdf(shape)}\n</collision>'
            )
    return texts


def origin(T: SE3) -> str:
    """An ``<origin>`` element of URDF."""
    xyz, rpy = _triple(T.translation), _triple(T.rpy)
    return f'<origin xyz="{xyz}" rpy="{rpy}"/>'


def geometry(shape: Simple | Mesh) -> str:
    """A ``<geometry>`` element of URDF, which knows no capsules."""
    match shape:
        case Box(size):
            inside = f'<box size="{_triple(size)}"/>'
        case Cylinder(radius, length) | Capsule(radius, length):
            inside = f'<cylinder radius="{_number(radius)}" length="{_number(length)}"/>'
        case Sphere(radius):
            inside = f'<sphere radius="{_number(radius)}"/>'
        case Mesh():
            inside = f"<mesh filename={quoteattr(shape.uri)}/>"
    return f"<geometry>{inside}</geometry>"


def _urdf(shape: Simple | Mesh, T: SE3) -> list[Placed]:
    if not isinstance(shape, Capsule):
        return [(shape, T)]
    ends = [SE3(T.rotation, T @ np.array([0.0, 0.0, side * shape.length / 2.0])) for side in (-1.0, 1.0)]
    middle: list[Placed] = [(Cylinder(shape.radius, shape.length), T)] if shape.length > 0.0 else []
    return [*middle, *((Sphere(shape.radius), end) for end in ends[: 1 if shape.length <= 0.0 else 2])]


def _sdf(shape: Simple | Mesh) -> str:
    match shape:
        case Box(size):
            inside = f"<box><size>{_triple(size)}</size></box>"
        case Cylinder(radius, length):
            inside = f"<cylinder><radius>{_number(radius)}</radius><length>{_number(length)}</length></cylinder>"
        case Capsule(radius, length):
            inside = f"<capsule><radius>{_number(radius)}</radius><length>{_number(length)}</length></capsule>"
        case Sphere(radius):
            inside = f"<sphere><radius>{_number(radius)}</radius></sphere>"
        case Mesh():
            inside = f"<mesh><uri>{quoteattr(shape.uri)[1:-1]}</uri></mesh>"
    return f"<geometry>{inside}</geometry>"


def _known(dialect: str) -> None:
    if dialect not in FORMATS:
        raise UnknownNameError(f"no format {dialect!r}", valid=", ".join(FORMATS))


def _six(T: SE3) -> str:
    return f"{_triple(T.translation)} {_triple(T.rpy)}"


def _triple(values: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    return " ".join(_number(float(value)) for value in values)


def _number(value: float) -> str:
    return f"{value if abs(value) > 1e-15 else 0.0:.9g}"
