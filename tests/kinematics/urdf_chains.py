"""Random serial chains as URDF texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_INERTIAL = '<inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>'


@dataclass(frozen=True)
class JointText:
    """The attributes of a joint in URDF."""

    type: str
    xyz: tuple[float, ...]
    rpy: tuple[float, ...]
    axis: tuple[float, ...]
    limits: tuple[float, float] = (-2.0, 2.5)
    extra: str = ""


def make_random_inertial(rng: np.random.Generator) -> str:
    """Return an inertial element with random mass, pose and size of an equivalent box."""
    m, (x, y, z) = rng.uniform(0.2, 3.0), rng.uniform(0.02, 0.3, 3)
    xyz, rpy = (" ".join(map(repr, map(float, rng.uniform(-size, size, 3)))) for size in (0.2, 3.0))
    moments = (m / 12 * (y * y + z * z), m / 12 * (x * x + z * z), m / 12 * (x * x + y * y))
    ixx, iyy, izz = map(float, moments)
    return (
        f'<inertial><origin xyz="{xyz}" rpy="{rpy}"/><mass value="{float(m)!r}"/>'
        f'<inertia ixx="{ixx!r}" iyy="{iyy!r}" izz="{izz!r}" ixy="0" ixz="0" iyz="0"/></inertial>'
    )


def make_urdf(joints: Sequence[JointText], name: str = "chain", inertials: Sequence[str] = ()) -> str:
    """Return a robot whose links ``link_0`` … are connected in series by joints ``joint_1`` …."""

    def numbers(values: Sequence[float]) -> str:
        return " ".join(repr(float(value)) for value in values)

    parts = [
        f'<robot name="{name}"><mujoco><compiler fusestatic="false"/></mujoco><link name="link_0">{_INERTIAL}</link>'
    ]
    for k, joint in enumerate(joints, 1):
        parts.append(f'<link name="link_{k}">{inertials[k - 1] if inertials else _INERTIAL}</link>')
        parts.append(
            f'<joint name="joint_{k}" type="{joint.type}"><parent link="link_{k - 1}"/><child link="link_{k}"/>'
            f'<origin xyz="{numbers(joint.xyz)}" rpy="{numbers(joint.rpy)}"/>'
        )
        if joint.type != "fixed":
            parts.append(f'<axis xyz="{numbers(joint.axis)}"/>')
        if joint.type in ("revolute", "prismatic"):
            parts.append(f'<limit lower="{joint.limits[0]}" upper="{joint.limits[1]}" effort="10" velocity="1"/>')
        parts.append(f"{joint.extra}</joint>")
    return "".join([*parts, "</robot>"])


def make_random_joint(
    rng: np.random.Generator, kinds: Sequence[str] = ("revolute", "prismatic", "continuous", "fixed")
) -> JointText:
    """Return a joint of a random type with random pose and axis."""
    axis = rng.normal(size=3)
    return JointText(
        str(rng.choice(list(kinds))),
        tuple(rng.uniform(-0.4, 0.4, 3)),
        tuple(rng.uniform(-3.0, 3.0, 3)),
        tuple(axis / np.linalg.norm(axis)),
    )
