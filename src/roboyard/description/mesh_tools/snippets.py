"""What the tools found, as elements of URDF and SDF."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.sax.saxutils import quoteattr

import numpy as np

from roboyard.description.mesh_tools.fitting import Primitive
from roboyard.description.model import Inertial
from roboyard.description.shapes import Box, Capsule, Cylinder, Mesh, Sphere
from roboyard.errors import UnknownNameError
from roboyard.geometry import SE3

FORMATS = ("urdf", "sdf")
PlacedShape = tuple[Primitive | Mesh, SE3]
"""A shape and its pose in the link."""


def format_inertial(inertial: Inertial, file_format: str) -> str:
    """An ``<inertial>`` element. Raises UnknownNameError."""
    _check_format(file_format)
    names = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
    moments = {name: _format_number(value) for name, value in zip(names, inertial.inertia, strict=True)}
    mass, T_link_com = _format_number(inertial.mass), inertial.T_link_com
    if file_format == "urdf":
        attributes = " ".join(f'{name}="{moments[name]}"' for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
        content = f'  {format_origin(T_link_com)}\n  <mass value="{mass}"/>\n  <inertia {attributes}/>'
    else:
        elements = "".join(f"<{name}>{moments[name]}</{name}>" for name in names)
        content = f"  <pose>{_format_pose(T_link_com)}</pose>\n  <mass>{mass}</mass>\n  <inertia>{elements}</inertia>"
    return f"<inertial>\n{content}\n</inertial>"


def format_collisions(shapes: Iterable[PlacedShape], file_format: str) -> list[str]:
    """A ``<collision>`` element a shape; in URDF a capsule is a cylinder and two balls. Raises UnknownNameError."""
    _check_format(file_format)
    texts = []
    for shape, T in shapes:
        if file_format == "urdf":
            texts += [
                f"<collision>\n  {format_origin(T_part)}\n  {format_geometry(part)}\n</collision>"
                for part, T_part in _split_capsule(shape, T)
            ]
        else:
            number = len(texts)
            texts.append(
                f'<collision name="collision_{number}">\n  <pose>{_format_pose(T)}</pose>\n'
                f"  {_format_sdf_geometry(shape)}\n</collision>"
            )
    return texts


def format_origin(T: SE3) -> str:
    """An ``<origin>`` element of URDF."""
    xyz, rpy = _format_vector(T.translation), _format_vector(T.rpy)
    return f'<origin xyz="{xyz}" rpy="{rpy}"/>'


def format_geometry(shape: Primitive | Mesh) -> str:
    """A ``<geometry>`` element of URDF, which knows no capsules."""
    match shape:
        case Box(size):
            content = f'<box size="{_format_vector(size)}"/>'
        case Cylinder(radius, length) | Capsule(radius, length):
            content = f'<cylinder radius="{_format_number(radius)}" length="{_format_number(length)}"/>'
        case Sphere(radius):
            content = f'<sphere radius="{_format_number(radius)}"/>'
        case Mesh():
            content = f"<mesh filename={quoteattr(shape.uri)}/>"
    return f"<geometry>{content}</geometry>"


def _split_capsule(shape: Primitive | Mesh, T: SE3) -> list[PlacedShape]:
    if not isinstance(shape, Capsule):
        return [(shape, T)]
    ends = [SE3(T.rotation, T @ np.array([0.0, 0.0, side * shape.length / 2.0])) for side in (-1.0, 1.0)]
    tube: list[PlacedShape] = [(Cylinder(shape.radius, shape.length), T)] if shape.length > 0.0 else []
    return [*tube, *((Sphere(shape.radius), end) for end in ends[: 1 if shape.length <= 0.0 else 2])]


def _format_sdf_geometry(shape: Primitive | Mesh) -> str:
    match shape:
        case Box(size):
            content = f"<box><size>{_format_vector(size)}</size></box>"
        case Cylinder(radius, length):
            content = (
                f"<cylinder><radius>{_format_number(radius)}</radius>"
                f"<length>{_format_number(length)}</length></cylinder>"
            )
        case Capsule(radius, length):
            content = (
                f"<capsule><radius>{_format_number(radius)}</radius><length>{_format_number(length)}</length></capsule>"
            )
        case Sphere(radius):
            content = f"<sphere><radius>{_format_number(radius)}</radius></sphere>"
        case Mesh():
            content = f"<mesh><uri>{quoteattr(shape.uri)[1:-1]}</uri></mesh>"
    return f"<geometry>{content}</geometry>"


def _check_format(file_format: str) -> None:
    if file_format not in FORMATS:
        raise UnknownNameError(f"no format {file_format!r}", valid=", ".join(FORMATS))


def _format_pose(T: SE3) -> str:
    return f"{_format_vector(T.translation)} {_format_vector(T.rpy)}"


def _format_vector(values: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    return " ".join(_format_number(float(value)) for value in values)


def _format_number(value: float) -> str:
    return f"{value if abs(value) > 1e-15 else 0.0:.9g}"
