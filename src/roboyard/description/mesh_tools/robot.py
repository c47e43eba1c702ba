"""A whole robot's parts become a URDF: a link for each, with a light visual, collision shapes and weighed inertia."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from xml.sax.saxutils import quoteattr

import numpy as np

from roboyard.config import write_atomic
from roboyard.description.mesh_tools.covering import Cover, cover
from roboyard.description.mesh_tools.files import write_stl
from roboyard.description.mesh_tools.inertia import MassProperties, mass_properties
from roboyard.description.mesh_tools.reducing import Reduced, to_triangles
from roboyard.description.mesh_tools.snippets import Placed, collision_texts, inertial_text, origin
from roboyard.description.mesh_tools.surface import Surface
from roboyard.description.shapes import Mesh
from roboyard.errors import InputError, UnknownNameError
from roboyard.geometry import SE3

JOINTS = ("fixed", "continuous", "revolute", "prismatic")
AXES = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1), "-x": (-1, 0, 0), "-y": (0, -1, 0), "-z": (0, 0, -1)}


@dataclass(frozen=True)
class Attached:
    """How a link hangs on another: the joint's type, its axis (a key of `AXES`) and the parent ("" is the base)."""

    type: str = "fixed"
    axis: str = "z"
    parent: str = ""

    def __post_init__(self) -> None:
        if self.type not in JOINTS:
            raise UnknownNameError(f"no joint type {self.type!r}", valid=", ".join(JOINTS))
        if self.axis not in AXES:
            raise UnknownNameError(f"no axis {self.axis!r}", valid=", ".join(AXES))


@dataclass(frozen=True)
class MadeLink:
    """What became of a part: its mass properties in the robot's frame, its visual, its collision shapes."""

    name: str
    properties: MassProperties
    visual: Reduced
    cover: Cover


def share_mass(volumes: Mapping[str, float], total: float | None, weighed: Mapping[str, float]) -> dict[str, float]:
    """Masses [kg] of parts: those that were weighed, the rest of the total by volume.

    Raises:
        UnknownNameError: something else was weighed.
        InputError: a mass is not positive, or nothing is left for parts that were not weighed.
    """
    for name, mass in weighed.items():
        if name not in volumes:
            raise UnknownNameError(f"no link {name!r} to weigh", valid=", ".join(volumes))
        if not 0.0 < mass < np.inf:
            raise InputError(f"{name} weighs {mass:g} kg", valid="above zero")
    rest = {name: volume for name, volume in volumes.items() if name not in weighed}
    if not rest:
        return dict(weighed)
    left = (total if total is not None else 0.0) - sum(weighed.values())
    if not 0.0 < left < np.inf:
        raise InputError(
            f"{left:g} kg are left for {', '.join(list(rest)[:5])}",
            valid="a total mass above that of the weighed links",
        )
    whole = sum(rest.values())
    return {name: weighed.get(name, left * volume / whole) for name, volume in volumes.items()}


def make_robot(
    parts: Mapping[str, Surface],
    masses: Mapping[str, float],
    joints: Mapping[str, Attached],
    folder: Path,
    name: str,
    triangles: int = 5000,
    kinds: Sequence[str] = ("box", "cylinder", "sphere"),
    most: int = 1,
) -> list[MadeLink]:
    """Write ``folder/NAME.urdf`` and its meshes.

    Every link's frame lies in its centre of mass, its axes along those of the parts' common frame.

    Args:
        parts: Closed surfaces in one frame, by link name; the first is the base.
        masses: Of each [kg].
        joints: How links other than the base hang on their parents; fixed to the base if not named.
        folder: Made if need be.
        name: Of the robot and its file.
        triangles: Of each visual at most.
        kinds: Collision shapes, see `cover`.
        most: Of them for each link.

    Raises:
        UnknownNameError: a joint names no link.
        InputError: a link would hang on itself.
        OSError: the folder cannot be written.
    """
    names = list(parts)
    for child, attached in joints.items():
        for link in filter(None, (child, attached.parent)):
            if link not in parts:
                raise UnknownNameError(f"no link {link!r} for a joint", valid=", ".join(names))
    made = {}
    for link, surface in parts.items():
        properties = mass_properties(surface, mass=masses[link])
        T = SE3(translation=-properties.centre)
        local = surface.moved(T)
        made[link] = MadeLink(link, properties, to_triangles(local, triangles), cover(local, kinds, most))
    parents = {child: joints.get(child, Attached()).parent or names[0] for child in names[1:]}
    _refuse_rings(parents, names[0])
    texts = [_link(made[link], folder) for link in names]
    for child, parent in parents.items():
        away = made[child].properties.centre - made[parent].properties.centre
        texts.append(_joint(parent, child, joints.get(child, Attached()), SE3(translation=away)))
    body = indent("\n".join(texts), "  ")
    text = f'<?xml version="1.0"?>\n<robot name={quoteattr(name)}>\n{body}\n</robot>\n'
    write_atomic(folder / f"{name}.urdf", text)
    return list(made.values())


def _link(link: MadeLink, folder: Path) -> str:
    file = f"meshes/{link.name}.stl"
    write_stl(folder / file, link.visual.surface)
    shapes: list[Placed] = [*link.cover.shapes]
    for number, piece in enumerate(link.cover.pieces):
        own = f"meshes/{link.name}_collision_{number}.stl"
        write_stl(folder / own, piece)
        shapes.append((Mesh(own, None), SE3.identity()))
    centred = link.properties.moved(SE3(translation=-link.properties.centre))
    visual = (
        f"<visual>\n  {origin(SE3.identity())}\n  <geometry><mesh filename={quoteattr(file)}/></geometry>\n</visual>"
    )
    inside = "\n".join([inertial_text(centred.inertial(), "urdf"), visual, *collision_texts(shapes, "urdf")])
    return f"<link name={quoteattr(link.name)}>\n{indent(inside, '  ')}\n</link>"


def _joint(parent: str, child: str, attached: Attached, T_parent_child: SE3) -> str:
    inside = f"{origin(T_parent_child)}\n<parent link={quoteattr(parent)}/><child link={quoteattr(child)}/>"
    if attached.type != "fixed":
        inside += f'\n<axis xyz="{" ".join(map(str, AXES[attached.axis]))}"/>'
    if attached.type in ("revolute", "prismatic"):
        inside += '\n<limit lower="-1" upper="1" effort="10" velocity="1"/>'
    return (
        f"<joint name={quoteattr(child + '_joint')} type={quoteattr(attached.type)}>\n{indent(inside, '  ')}\n</joint>"
    )


def _refuse_rings(parents: Mapping[str, str], base: str) -> None:
    for start in parents:
        seen, at = {start}, start
        while at != base:
            at = parents[at]
            if at in seen:
                raise InputError(
                    f"link {start!r} hangs on itself by its parents", valid=f"parents that lead to {base!r}"
                )
            seen.add(at)
