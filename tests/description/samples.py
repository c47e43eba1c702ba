"""Small descriptions that the tests vary, and independent ways to compute what they say."""

from collections.abc import Mapping

import numpy as np

from roboyard.description import Model
from roboyard.geometry import SE3

INERTIAL = '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>'
ARM = f"""<robot name="arm">
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


def robot(inside: str, name: str = "r") -> str:
    """A URDF around ``inside``."""
    return f'<robot name="{name}">{inside}</robot>'


def sdf(inside: str, version: str = "1.9") -> str:
    """An SDF document around ``inside``."""
    return f'<sdf version="{version}">{inside}</sdf>'


def model(inside: str, version: str = "1.9", attributes: str = "") -> str:
    """An SDF model around ``inside``."""
    return sdf(f'<model name="m"{attributes}>{inside}</model>', version)


def world(inside: str, version: str = "1.9") -> str:
    """An SDF world around ``inside``."""
    return sdf(f'<world name="w">{inside}</world>', version)


def posed(model: Model, positions: Mapping[str, float]) -> dict[str, SE3]:
    """Poses of the links, from the joints alone, with one-axis joints at ``positions`` [rad or m]."""
    poses = {link.name: link.T_model_link for link in model.roots}
    poses["world"] = SE3.identity()
    waiting = list(model.joints)
    while waiting:
        ready = [joint for joint in waiting if joint.parent in poses]
        assert ready, "joints do not form a forest"
        for joint in ready:
            T_child_joint = joint.T_child_joint
            q = positions.get(joint.name, 0.0)
            xyz = np.array(joint.axes[0].xyz) if len(joint.axes) == 1 else np.zeros(3)
            motion = (
                np.concatenate([xyz * q, np.zeros(3)]) if joint.type == "prismatic" else np.r_[np.zeros(3), xyz * q]
            )
            moved = T_child_joint @ SE3.exp(motion) @ T_child_joint.inverse()
            poses[joint.child] = poses[joint.parent] @ joint.T_parent_child @ moved
        waiting = [joint for joint in waiting if joint not in ready]
    return poses


def consistent(model: Model, atol: float = 1e-9) -> None:
    """What every reader promises of a model."""
    links = {link.name: link for link in model.links}
    assert len(links) == len(model.links)
    assert len({joint.name for joint in model.joints}) == len(model.joints)
    assert len({sensor.name for sensor in model.sensors}) == len(model.sensors)
    children = [joint.child for joint in model.joints]
    assert len(set(children)) == len(children), "a link is the child of two joints"
    poses = posed(model, {})
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
