"""Descriptions of robots and worlds as text, made of a few parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

INERTIAL = '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>'
"""Of a URDF link that has no inertia of interest."""


def urdf(*inside: str, name: str = "r") -> str:
    """A URDF document around its elements."""
    return f'<robot name="{name}">{"".join(inside)}</robot>'


def urdf_link(name: str, inside: str = "", inertial: str = INERTIAL) -> str:
    """A URDF link."""
    return f'<link name="{name}">{inertial}{inside}</link>'


@dataclass(frozen=True)
class UrdfJoint:
    """A joint of a URDF.

    Attributes:
        name: Its name.
        parent: Name of the parent link.
        child: Name of the child link.
        type: Its type.
        xyz: Place of its frame in the parent's [m].
        rpy: Turn of its frame [rad].
        axis: Direction in its frame.
        limits: Lower and upper [rad or m]; None: no ``limit`` element.
        velocity: Greatest speed [rad/s or m/s].
        effort: Greatest effort [N m or N].
    """

    name: str
    parent: str
    child: str
    type: str = "revolute"
    xyz: tuple[float, float, float] = (0.0, 0.0, 0.0)
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    limits: tuple[float, float] | None = (-1.0, 1.0)
    velocity: float = 2.0
    effort: float = 30.0

    def text(self) -> str:
        """The element."""
        axis = "" if self.type == "fixed" else f'<axis xyz="{_numbers(self.axis)}"/>'
        limit = ""
        if self.type in ("revolute", "prismatic") and self.limits is not None:
            limit = (
                f'<limit lower="{self.limits[0]!r}" upper="{self.limits[1]!r}" velocity="{self.velocity!r}" '
                f'effort="{self.effort!r}"/>'
            )
        return (
            f'<joint name="{self.name}" type="{self.type}"><parent link="{self.parent}"/><child link="{self.child}"/>'
            f'<origin xyz="{_numbers(self.xyz)}" rpy="{_numbers(self.rpy)}"/>{axis}{limit}</joint>'
        )


def urdf_chain(joints: Sequence[UrdfJoint], name: str = "r") -> str:
    """A URDF of joints and of every link that they name."""
    links = dict.fromkeys(link for joint in joints for link in (joint.parent, joint.child))
    return urdf(*(urdf_link(link) for link in links), *(joint.text() for joint in joints), name=name)


def sdf(*inside: str, version: str = "1.9") -> str:
    """An SDF document around its elements."""
    return f'<sdf version="{version}">{"".join(inside)}</sdf>'


def sdf_model(*inside: str, name: str = "m", version: str = "1.9", attributes: str = "") -> str:
    """An SDF document with one model."""
    return sdf(f'<model name="{name}"{attributes}>{"".join(inside)}</model>', version=version)


def sdf_world(*inside: str, name: str = "w", version: str = "1.9") -> str:
    """An SDF document with one world."""
    return sdf(f'<world name="{name}">{"".join(inside)}</world>', version=version)


def mjcf(*worldbody: str, before: str = "", after: str = "", name: str = "m") -> str:
    """An MJCF document: elements of the world's body, and sections before and after it."""
    return f'<mujoco model="{name}">{before}<worldbody>{"".join(worldbody)}</worldbody>{after}</mujoco>'


def _numbers(values: Sequence[float]) -> str:
    return " ".join(repr(float(value)) for value in values)
