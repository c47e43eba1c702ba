"""Generates a URDF from the meshes of a robot's parts; formats elements of URDF and SDF."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from xml.sax.saxutils import quoteattr

import numpy as np

from roboyard.config import write_atomic
from roboyard.description.meshes.distance import SimplifiedMesh, simplify_to_count
from roboyard.description.meshes.files import write_stl
from roboyard.description.meshes.mass_properties import MassProperties, compute_mass_properties
from roboyard.description.meshes.mesh import TriangleMesh
from roboyard.description.meshes.primitives import CollisionApproximation, Primitive, approximate_collision
from roboyard.description.model import MOMENT_NAMES, Inertial
from roboyard.description.shapes import Box, Capsule, Cylinder, Mesh, Sphere
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3

FORMATS = ("urdf", "sdf")
PlacedShape = tuple[Primitive | Mesh, SE3]
"""A shape and its pose in the link."""


def format_inertial(inertial: Inertial, file_format: str) -> str:
    """Format an ``<inertial>`` element. Raises UnknownNameError."""
    _check_format(file_format)
    moments = {name: _format_number(value) for name, value in zip(MOMENT_NAMES, inertial.inertia, strict=True)}
    mass, T_link_com = _format_number(inertial.mass), inertial.T_link_com
    if file_format == "urdf":
        attributes = " ".join(f'{name}="{moments[name]}"' for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
        content = f'  {format_origin(T_link_com)}\n  <mass value="{mass}"/>\n  <inertia {attributes}/>'
    else:
        elements = "".join(f"<{name}>{moments[name]}</{name}>" for name in MOMENT_NAMES)
        content = f"  <pose>{_format_pose(T_link_com)}</pose>\n  <mass>{mass}</mass>\n  <inertia>{elements}</inertia>"
    return f"<inertial>\n{content}\n</inertial>"


def format_collisions(shapes: Iterable[PlacedShape], file_format: str) -> list[str]:
    """Format a ``<collision>`` element per shape; in URDF a capsule is a cylinder and two spheres. Raises
    UnknownNameError.
    """
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
    """Format an ``<origin>`` element of URDF."""
    xyz, rpy = _format_vector(T.translation), _format_vector(T.rpy)
    return f'<origin xyz="{xyz}" rpy="{rpy}"/>'


def format_geometry(shape: Primitive | Mesh) -> str:
    """Format a ``<geometry>`` element of URDF, which has no capsules."""
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
        raise UnknownNameError(f"unknown format {file_format!r}", valid=", ".join(FORMATS))


def _format_pose(T: SE3) -> str:
    return f"{_format_vector(T.translation)} {_format_vector(T.rpy)}"


def _format_vector(values: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    return " ".join(_format_number(float(value)) for value in values)


def _format_number(value: float) -> str:
    return f"{value if abs(value) > 1e-15 else 0.0:.9g}"


JOINT_TYPES = ("fixed", "continuous", "revolute", "prismatic")
AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1), "-x": (-1, 0, 0), "-y": (0, -1, 0), "-z": (0, 0, -1)}


@dataclass(frozen=True)
class LinkAttachment:
    """Connection of a link to its parent: joint type, axis (a key of `AXES`) and parent ("" is the base)."""

    type: str = "fixed"
    axis: str = "z"
    parent: str = ""

    def __post_init__(self) -> None:
        if self.type not in JOINT_TYPES:
            raise UnknownNameError(f"unknown joint type {self.type!r}", valid=", ".join(JOINT_TYPES))
        if self.axis not in AXES:
            raise UnknownNameError(f"unknown axis {self.axis!r}", valid=", ".join(AXES))


@dataclass(frozen=True)
class GeneratedLink:
    """Generated link: its mass properties in the robot's frame, its visual, its collision shapes."""

    name: str
    properties: MassProperties
    visual: SimplifiedMesh
    collision: CollisionApproximation


def distribute_mass(
    volumes: Mapping[str, float], total_mass: float | None, known_masses: Mapping[str, float]
) -> dict[str, float]:
    """Compute the masses [kg] of parts: the known ones, and the remaining total mass distributed by volume.

    Raises:
        UnknownNameError: A known mass belongs to no part.
        InputError: A mass is not positive, or no mass remains for parts without a known mass.
    """
    for name, mass in known_masses.items():
        if name not in volumes:
            raise UnknownNameError(f"unknown link {name!r} in the masses", valid=", ".join(volumes))
        if not 0.0 < mass < np.inf:
            raise InputError(f"mass of {name} must be positive, got {mass:g} kg", valid="above zero")
    unknown_volumes = {name: volume for name, volume in volumes.items() if name not in known_masses}
    if not unknown_volumes:
        return dict(known_masses)
    remaining_mass = (total_mass if total_mass is not None else 0.0) - sum(known_masses.values())
    if not 0.0 < remaining_mass < np.inf:
        raise InputError(
            f"only {remaining_mass:g} kg remain for {', '.join(list(unknown_volumes)[:5])}",
            valid="a total mass above that of the links with known masses",
        )
    unknown_volume = sum(unknown_volumes.values())
    return {name: known_masses.get(name, remaining_mass * volume / unknown_volume) for name, volume in volumes.items()}


def write_robot_urdf(
    parts: Mapping[str, TriangleMesh],
    masses: Mapping[str, float],
    joints: Mapping[str, LinkAttachment],
    folder: Path,
    name: str,
    max_triangles: int = 5000,
    shape_types: Sequence[str] = ("box", "cylinder", "sphere"),
    max_shapes: int = 1,
) -> list[GeneratedLink]:
    """Write ``folder/NAME.urdf`` and its meshes.

    The frame of every link is at its center of mass, with the axes of the parts' common frame.

    Args:
        parts: Closed surfaces in one frame, by link name; the first is the base.
        masses: Masses by link name [kg].
        joints: Connections of links to their parents; links not named are fixed to the base.
        folder: Folder; created if necessary.
        name: Name of the robot and its file.
        max_triangles: Maximum number of triangles of each visual.
        shape_types: Collision shapes, see `approximate_collision`.
        max_shapes: Maximum number of collision shapes per link.

    Raises:
        UnknownNameError: A joint names an unknown link.
        InputError: A link would be its own ancestor.
        OSError: The folder cannot be written.
    """
    names = list(parts)
    for child, attachment in joints.items():
        for link in filter(None, (child, attachment.parent)):
            if link not in parts:
                raise UnknownNameError(f"unknown link {link!r} in the joints", valid=", ".join(names))
    links = {}
    for link, mesh in parts.items():
        properties = compute_mass_properties(mesh, mass=masses[link])
        T = SE3(translation=-properties.com)
        local = mesh.transformed(T)
        links[link] = GeneratedLink(
            link,
            properties,
            simplify_to_count(local, max_triangles),
            approximate_collision(local, shape_types, max_shapes),
        )
    parents = {child: joints.get(child, LinkAttachment()).parent or names[0] for child in names[1:]}
    _reject_cycles(parents, names[0])
    texts = [_format_link(links[link], folder) for link in names]
    for child, parent in parents.items():
        offset = links[child].properties.com - links[parent].properties.com
        texts.append(_format_joint(parent, child, joints.get(child, LinkAttachment()), SE3(translation=offset)))
    body = indent("\n".join(texts), "  ")
    text = f'<?xml version="1.0"?>\n<robot name={quoteattr(name)}>\n{body}\n</robot>\n'
    write_atomic(folder / f"{name}.urdf", text)
    return list(links.values())


def _format_link(link: GeneratedLink, folder: Path) -> str:
    file = f"meshes/{link.name}.stl"
    write_stl(folder / file, link.visual.mesh)
    shapes: list[PlacedShape] = [*link.collision.shapes]
    for number, piece in enumerate(link.collision.pieces):
        piece_file = f"meshes/{link.name}_collision_{number}.stl"
        write_stl(folder / piece_file, piece)
        shapes.append((Mesh(piece_file, None), SE3.identity()))
    com_properties = link.properties.transformed(SE3(translation=-link.properties.com))
    geometry = f"<geometry><mesh filename={quoteattr(file)}/></geometry>"
    visual = f"<visual>\n  {format_origin(SE3.identity())}\n  {geometry}\n</visual>"
    content = "\n".join(
        [format_inertial(com_properties.to_inertial(), "urdf"), visual, *format_collisions(shapes, "urdf")]
    )
    return f"<link name={quoteattr(link.name)}>\n{indent(content, '  ')}\n</link>"


def _format_joint(parent: str, child: str, attachment: LinkAttachment, T_parent_child: SE3) -> str:
    content = f"{format_origin(T_parent_child)}\n<parent link={quoteattr(parent)}/><child link={quoteattr(child)}/>"
    if attachment.type != "fixed":
        content += f'\n<axis xyz="{" ".join(map(str, AXES[attachment.axis]))}"/>'
    if attachment.type in ("revolute", "prismatic"):
        content += '\n<limit lower="-1" upper="1" effort="10" velocity="1"/>'
    attributes = f"name={quoteattr(child + '_joint')} type={quoteattr(attachment.type)}"
    return f"<joint {attributes}>\n{indent(content, '  ')}\n</joint>"


def _reject_cycles(parents: Mapping[str, str], base: str) -> None:
    for start in parents:
        visited, link = {start}, start
        while link != base:
            link = parents[link]
            if link in visited:
                raise InputError(f"link {start!r} is its own ancestor", valid=f"parents that lead to {base!r}")
            visited.add(link)
