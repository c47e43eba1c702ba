"""Descriptions of robots and worlds as text, made of a few parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from roboyard.description import Model
from roboyard.geometry import SE3

INERTIAL = '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>'
"""Of a URDF link that has no inertia of interest."""
ARM_URDF = f"""<robot name="arm">
  <link name="base">{INERTIAL}</link>
  <link name="upper">{INERTIAL}</link>
  <link name="lower">{INERTIAL}</link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/><origin xyz="0 0 0.5" rpy="0.1 0.2 0.3"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="2" effort="30"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/><child link="lower"/><origin xyz="0.4 0 0" rpy="0 0 1.0"/><axis xyz="0 0 2"/>
  </joint>
</robot>"""
"""An arm of a revolute and a continuous joint, with turned frames and an axis that is no unit vector."""


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


def compute_link_poses(model: Model, positions: Mapping[str, float]) -> dict[str, SE3]:
    """Poses of the links, of the joints alone: an independent way to what a reader computes.

    Args:
        model: Its joints of one axis move, others stay.
        positions: Of joints by name [rad or m]; 0 where none is given.
    """
    poses = {link.name: link.T_model_link for link in model.roots}
    poses["world"] = SE3.identity()
    pending = list(model.joints)
    while pending:
        ready = [joint for joint in pending if joint.parent in poses]
        assert ready, "joints do not form a forest"
        for joint in ready:
            T_child_joint = joint.T_child_joint
            q = positions.get(joint.name, 0.0)
            xyz = np.array(joint.axes[0].xyz) if len(joint.axes) == 1 else np.zeros(3)
            motion = (
                np.concatenate([xyz * q, np.zeros(3)]) if joint.type == "prismatic" else np.r_[np.zeros(3), xyz * q]
            )
            T_joint_motion = T_child_joint @ SE3.exp(motion) @ T_child_joint.inverse()
            poses[joint.child] = poses[joint.parent] @ joint.T_parent_child @ T_joint_motion
        pending = [joint for joint in pending if joint not in ready]
    return poses


def check_model(model: Model, atol: float = 1e-9) -> None:
    """Check what every reader promises of a model: unique names, poses that agree with the joints, possible inertia."""
    links = {link.name: link for link in model.links}
    assert len(links) == len(model.links)
    assert len({joint.name for joint in model.joints}) == len(model.joints)
    assert len({sensor.name for sensor in model.sensors}) == len(model.sensors)
    children = [joint.child for joint in model.joints]
    assert len(set(children)) == len(children), "a link is the child of two joints"
    poses = compute_link_poses(model, {})
    for name, link in links.items():
        assert link.T_model_link.almost_equal(poses[name], atol), name
        if link.inertial is not None:
            assert link.inertial.mass > 0.0
            ixx, iyy, izz, ixy, ixz, iyz = link.inertial.inertia
            a, b, c = np.linalg.eigvalsh([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
            assert a > 0.0
            assert c <= (a + b) * (1.0 + 1e-9)
    for joint in model.joints:
        for axis in joint.axes:
            assert np.isclose(np.linalg.norm(axis.xyz), 1.0)
            assert axis.limits.lower <= axis.limits.upper
    for sensor in model.sensors:
        assert sensor.link in links
        assert sensor.update_rate > 0.0
        assert sensor.topic
        assert sensor.frame
    assert model.canonical_link is None or model.canonical_link in links


def _numbers(values: Sequence[float]) -> str:
    return " ".join(repr(float(value)) for value in values)
