"""A body cut in two halves, so that a second joint can carry one of them: how loops of joints are closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from roboyard.description.model import Joint
from roboyard.description.sdf.joint_graph import reverse_joint
from roboyard.geometry import SE3
from roboyard.simulation.assembly.closures import hold
from roboyard.simulation.assembly.joints import Scalar, add_joint
from roboyard.simulation.assembly.tree import Branch

End = tuple[mujoco.MjsBody | None, SE3, Mapping[str, tuple[mujoco.MjsBody, SE3]]]
"""One end of a joint: its body (None: it stands still), the link's pose in it (of what stands still: in the world), and
the bodies that move as one with it with their poses in the link."""
HALF = "#half"
"""Ends the name of a body that is a part of another one."""


def rigid_group(link: str, branches: Sequence[Branch]) -> dict[str, SE3]:
    """Links that move as one with ``link``, itself among them, with their poses in it."""
    near: dict[str, list[tuple[str, SE3]]] = {}
    for branch in branches:
        if branch.joint is None and not branch.free and branch.parent is not None:
            near.setdefault(branch.parent, []).append((branch.link.name, branch.T_parent_link))
            near.setdefault(branch.link.name, []).append((branch.parent, branch.T_parent_link.inverse()))
    found, waiting = {link: SE3.identity()}, [link]
    for here in waiting:
        for other, T in near.get(here, ()):
            if other not in found:
                found[other] = found[here] @ T
                waiting.append(other)
    return found


def close_by_halves(
    spec: mujoco.MjSpec,
    joint: Joint,
    scope: str,
    ends: Mapping[str, End],
    notes: list[str],
) -> list[Scalar]:
    """Close a loop by ``joint``; returns its scalar degrees of freedom.

    Args:
        spec: Takes the parts.
        joint: The joint.
        scope: What its parts are called after.
        ends: What is at its parent and its child.
        notes: Takes what cannot be.
    """
    if ends[joint.child][0] is None:
        joint = reverse_joint(joint)
    (upper, T_upper_parent, _), (lower, _, group) = ends[joint.parent], ends[joint.child]
    if lower is None:
        return []
    lender, T_child_lender = max(group.values(), key=lambda one: float(one[0].mass))
    if lender.mass <= 0.0:
        notes.append(f"{scope}::{joint.name}: it closes a loop on a link without mass: not simulated")
        return []
    T = T_upper_parent @ joint.T_parent_child
    half = (upper or spec.worldbody).add_body(name=f"{scope}::{joint.name}{HALF}", pos=T.translation, quat=T.rotation)
    if upper is None:
        half.sleep = mujoco.mjtSleepPolicy.mjSLEEP_NEVER
    scalars = add_joint(half, joint, scope, notes)
    lender.mass, lender.inertia = 0.5 * lender.mass, 0.5 * np.asarray(lender.inertia)
    T_child_com = T_child_lender @ SE3(lender.iquat, lender.ipos)
    half.mass, half.inertia = lender.mass, lender.inertia
    half.ipos, half.iquat = T_child_com.translation, T_child_com.rotation
    half.explicitinertial, half.gravcomp = True, lender.gravcomp
    hold(spec, mujoco.mjtEq.mjEQ_WELD, f"{scope}::{joint.name}", half.name, lower.name, np.zeros(3))
    return scalars
