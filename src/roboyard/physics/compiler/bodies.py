"""Links as MuJoCo bodies and joints as MuJoCo joints: order of the links, massless links, joint types, couplings."""

from __future__ import annotations

import math
from collections.abc import Container
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from roboyard.description.joint_interfaces import LOCKED_RANGE, OPEN_LIMIT
from roboyard.description.model import Axis, Inertial, Joint, Link, Model
from roboyard.errors import DescriptionError
from roboyard.geometry import SE3
from roboyard.physics.compiled_world import scoped_name

_JointType = mujoco.mjtJoint
HARD_SOLIMP = (0.9999, 0.9999, 0.001, 0.5, 2.0)
"""Impedance (MuJoCo's ``solimp``) of constraints that must hold: as hard as MuJoCo allows."""


@dataclass(frozen=True, slots=True)
class ScalarJoint:
    """One scalar degree of freedom of a joint: its name in the description, its name in MuJoCo, and its axis."""

    name: str
    mujoco_name: str
    axis: Axis
    is_prismatic: bool


def add_joint(body: mujoco.MjsBody, joint: Joint, scope: str, warnings: list[str]) -> list[ScalarJoint]:
    """Add the MuJoCo joints of ``joint`` to ``body`` (the child link); returns the scalar joints.

    A joint with several axes has the scalar joints ``name``, ``name_2``, ``name_3`` in the order of its axes.
    """
    origin = np.asarray(joint.T_child_joint.translation, float)
    R_child_joint = joint.T_child_joint.rotation_matrix()
    scalars: list[ScalarJoint] = []

    def add_scalar(joint_type: int, axis: Axis, direction: tuple[float, float, float] | None = None) -> None:
        suffix = f"_{len(scalars) + 1}" if scalars else ""
        mujoco_name = scoped_name(scope, joint.name + suffix)
        mujoco_joint = body.add_joint(
            name=mujoco_name, type=joint_type, pos=origin, axis=R_child_joint @ np.asarray(direction or axis.xyz, float)
        )
        _set_limits(mujoco_joint, axis, mujoco_name, warnings)
        _set_dynamics(mujoco_joint, axis)
        scalars.append(ScalarJoint(joint.name + suffix, mujoco_name, axis, joint_type == _JointType.mjJNT_SLIDE))

    axes = joint.axes or (Axis(),)
    match joint.type:
        case "revolute" | "continuous":
            add_scalar(_JointType.mjJNT_HINGE, axes[0])
        case "prismatic":
            add_scalar(_JointType.mjJNT_SLIDE, axes[0])
        case "universal" | "revolute2":
            add_scalar(_JointType.mjJNT_HINGE, axes[0])
            add_scalar(_JointType.mjJNT_HINGE, axes[-1])
        case "gearbox":
            add_scalar(_JointType.mjJNT_HINGE, axes[-1])
            warnings.append(f"{scoped_name(scope, joint.name)}: the gearbox turns freely; its ratio is not simulated")
        case "screw":
            add_scalar(_JointType.mjJNT_HINGE, axes[0])
            add_scalar(_JointType.mjJNT_SLIDE, Axis(axes[0].xyz))
        case "planar":
            normal = np.asarray(axes[0].xyz, float)
            u = np.cross(normal, np.eye(3)[int(np.argmin(np.abs(normal)))])
            u /= np.linalg.norm(u)
            v = np.cross(normal, u)
            add_scalar(_JointType.mjJNT_SLIDE, Axis(), (float(u[0]), float(u[1]), float(u[2])))
            add_scalar(_JointType.mjJNT_SLIDE, Axis(), (float(v[0]), float(v[1]), float(v[2])))
            add_scalar(_JointType.mjJNT_HINGE, Axis(axes[0].xyz))
        case "ball":
            mujoco_joint = body.add_joint(name=scoped_name(scope, joint.name), type=_JointType.mjJNT_BALL, pos=origin)
            if joint.ball_axis is not None:
                _set_limits(mujoco_joint, joint.ball_axis, scoped_name(scope, joint.name), warnings)
                _set_dynamics(mujoco_joint, joint.ball_axis)
        case "floating":
            for index, direction in enumerate(np.eye(3)):
                body.add_joint(
                    name=scoped_name(scope, f"{joint.name}/{'xyz'[index]}"),
                    type=_JointType.mjJNT_SLIDE,
                    pos=origin,
                    axis=direction,
                )
            body.add_joint(name=scoped_name(scope, f"{joint.name}/rotation"), type=_JointType.mjJNT_BALL, pos=origin)
        case "fixed":
            pass
    return scalars


def add_couplings(
    spec: mujoco.MjSpec, joint: Joint, scalars: list[ScalarJoint], scope: str, *, fixed_joints: Container[str] = ()
) -> None:
    """Add the couplings of mimicking and screw joints: position = multiplier · other + offset, as constraints.

    A joint that mimics one of ``fixed_joints``, which MuJoCo does not have, stays at its offset.
    """
    if joint.mimic is not None and scalars:
        leader = scoped_name(scope, joint.mimic.joint) if joint.mimic.joint not in fixed_joints else ""
        add_joint_coupling(spec, scalars[0].mujoco_name, leader, joint.mimic.offset, joint.mimic.multiplier)
    if joint.type == "screw" and len(scalars) == 2:
        # thread_pitch is the travel in meters for one revolution.
        add_joint_coupling(
            spec, scalars[1].mujoco_name, scalars[0].mujoco_name, 0.0, joint.thread_pitch / (2.0 * math.pi)
        )


def add_joint_coupling(spec: mujoco.MjSpec, follower: str, leader: str, offset: float, ratio: float) -> None:
    """Constrain two MuJoCo joints: ``follower = offset + ratio · leader``, without leader ``follower = offset``."""
    equality = spec.add_equality(name=f"{follower}@{leader}", type=mujoco.mjtEq.mjEQ_JOINT)
    equality.objtype = mujoco.mjtObj.mjOBJ_JOINT
    equality.name1 = follower
    if leader:
        equality.name2 = leader
    data = np.zeros(mujoco.mjNEQDATA)
    data[:2] = offset, ratio
    equality.data = data
    equality.solref = (2.0 * spec.option.timestep, 0.5)  # see `loop_joints.add_connect_or_weld`
    equality.solimp = HARD_SOLIMP


def _set_limits(mujoco_joint: mujoco.MjsJoint, axis: Axis, name: str, warnings: list[str]) -> None:
    lower, upper = axis.limits.lower, axis.limits.upper
    if lower > upper:
        warnings.append(f"{name}: its lower limit {lower} is above its upper limit {upper}; neither is used")
        return
    if lower == upper:
        lower, upper = lower - LOCKED_RANGE, upper + LOCKED_RANGE
    if math.isfinite(lower) or math.isfinite(upper):
        mujoco_joint.range = [max(lower, -OPEN_LIMIT), min(upper, OPEN_LIMIT)]
        mujoco_joint.limited = mujoco.mjtLimited.mjLIMITED_TRUE
        mujoco_joint.solref_limit = [0.005, 1.0]


def _set_dynamics(mujoco_joint: mujoco.MjsJoint, axis: Axis) -> None:
    dynamics = axis.dynamics
    mujoco_joint.damping = [max(dynamics.damping, 0.0), 0.0, 0.0]
    mujoco_joint.frictionloss = max(dynamics.friction, 0.0)
    mujoco_joint.solimp_friction = HARD_SOLIMP  # dry friction holds a joint without drift
    mujoco_joint.stiffness = [max(dynamics.stiffness, 0.0), 0.0, 0.0]
    mujoco_joint.springref = dynamics.reference
    mujoco_joint.armature = max(dynamics.armature, 0.0)


LENT_MASS_FRACTION = 1e-6
"""Fraction of a child's mass given to a massless link between two joints (MuJoCo refuses moving massless bodies)."""

LENT_MIMIC_INERTIA_FRACTION = 0.5
"""Fraction of the inertia of a mimicking joint's link given to the massless link of the joint that it mimics."""

MIN_LENT_MASS = 1e-14
"""Smallest mass [kg] and moment of inertia [kg m²] given to a massless link."""


@dataclass(frozen=True, slots=True)
class LinkNode:
    """A link as a node of the tree of links.

    Attributes:
        link: The link.
        parent: Name of the parent link; None for a root.
        T_parent_link: Pose in the parent with the joint at zero; of a root its pose in the model.
        joint: Joint that moves the link in its parent; None if it is fixed or free.
        is_free: Whether the link is a free root.
        inertial: Its inertial properties after massless links received mass; None for none.
    """

    link: Link
    parent: str | None
    T_parent_link: SE3
    joint: Joint | None
    is_free: bool
    inertial: Inertial | None


def order_links(model: Model, warnings: list[str]) -> list[LinkNode]:
    """Order all links of ``model``, parents before children; the order depends on the file alone.

    A movable link without mass is fixed to its parent if no link behind it has mass.  A massless link *between* two
    joints takes a millionth of its child's mass.  A massless link whose joint is mimicked takes mass of a mimicking
    link, and half of that link's inertia, because its servo moves that link through the coupling.  The total mass stays
    as described.

    Raises:
        DescriptionError: the joints form a ring, or a link has two parents.
    """
    nodes = _order_tree(model)
    children: dict[str, list[str]] = {}
    for node in nodes.values():
        if node.parent is not None:
            children.setdefault(node.parent, []).append(node.link.name)

    child_of_joint = {joint.name: joint.child for joint in model.joints}
    mimic_children: dict[str, list[str]] = {}
    for joint in model.joints:
        if joint.mimic is not None and joint.mimic.joint in child_of_joint:
            mimic_children.setdefault(child_of_joint[joint.mimic.joint], []).append(joint.child)

    # Leaves first, so that a massless finger is fixed joint by joint.
    for name in reversed(list(nodes)):
        node = nodes[name]
        is_movable = node.is_free or node.joint is not None
        if not is_movable or _total_mass(_rigid_link_names(name, nodes, children), nodes) > 0.0:
            continue
        lender, inertia_fraction = _find_first_with_mass(name, nodes, children), LENT_MASS_FRACTION
        if lender is None:
            lender, inertia_fraction = _find_first_with_mass(name, nodes, mimic_children), LENT_MIMIC_INERTIA_FRACTION
        if lender is None:
            nodes[name] = replace(node, joint=None, is_free=False)
            warnings.append(
                f"{scoped_name(model.name, name)}: is movable but has no mass; it is fixed to its parent link"
            )
        else:
            lent, remaining = _split_inertial(nodes[lender].inertial, node, nodes[lender], inertia_fraction)
            nodes[name] = replace(node, inertial=lent)
            nodes[lender] = replace(nodes[lender], inertial=remaining)
    return list(nodes.values())


def _order_tree(model: Model) -> dict[str, LinkNode]:
    by_child: dict[str, Joint] = {}
    child_joints: dict[str, list[Joint]] = {}
    for joint in model.joints:
        if joint.child in by_child:
            raise DescriptionError(f"link {joint.child} is the child of two joints", location=f"model {model.name}")
        by_child[joint.child] = joint
        child_joints.setdefault(joint.parent, []).append(joint)

    links = {link.name: link for link in model.links}
    nodes: dict[str, LinkNode] = {}
    for root in model.links:
        root_joint = by_child.get(root.name)
        if root_joint is not None and root_joint.parent != "world":
            continue
        stack = [_make_link_node(root, root_joint, model)]
        while stack:
            node = stack.pop()
            nodes[node.link.name] = node
            stack.extend(
                _make_link_node(links[j.child], j, model) for j in reversed(child_joints.get(node.link.name, []))
            )
    if len(nodes) != len(model.links):
        missing = ", ".join(link.name for link in model.links if link.name not in nodes)
        raise DescriptionError(f"joints form a ring through the links {missing}", location=f"model {model.name}")
    return nodes


def _make_link_node(link: Link, joint: Joint | None, model: Model) -> LinkNode:
    is_static = model.static
    if joint is None:
        return LinkNode(link, None, link.T_model_link, None, not is_static, link.inertial)
    parent = None if joint.parent == "world" else joint.parent
    moving_joint = None if is_static or joint.type == "fixed" else joint
    return LinkNode(link, parent, joint.T_parent_child, moving_joint, False, link.inertial)


def _rigid_link_names(name: str, nodes: dict[str, LinkNode], children: dict[str, list[str]]) -> list[str]:
    group = [name]
    for member in group:
        group.extend(child for child in children.get(member, []) if nodes[child].joint is None)
    return group


def _total_mass(link_names: list[str], nodes: dict[str, LinkNode]) -> float:
    return sum(inertial.mass for name in link_names if (inertial := nodes[name].inertial) is not None)


def _find_first_with_mass(name: str, nodes: dict[str, LinkNode], children: dict[str, list[str]]) -> str | None:
    queue = [name]
    for member in queue:
        if member != name and _total_mass([member], nodes) > 0.0:
            return member
        queue.extend(children.get(member, []))
    return None


def _split_inertial(
    inertial: Inertial | None, borrower: LinkNode, lender: LinkNode, requested_fraction: float
) -> tuple[Inertial, Inertial]:
    """What is lent, ``requested_fraction`` of the inertia, and what is kept."""
    if inertial is None:
        raise DescriptionError(f"link {lender.link.name} has no mass that could be given to {borrower.link.name}")
    # MuJoCo refuses masses and moments below 1e-15; a light link gives a larger fraction.
    mass_fraction = min(max(LENT_MASS_FRACTION, MIN_LENT_MASS / inertial.mass), 0.5)
    inertia_fraction = min(max(requested_fraction, mass_fraction, MIN_LENT_MASS / max(inertial.inertia[:3])), 0.5)
    xx, yy, zz, *_ = (float(value) for value in np.asarray(inertial.inertia) * inertia_fraction)
    isotropic_moment = max(xx, yy, zz)
    lent = Inertial(
        inertial.mass * mass_fraction,
        SE3.identity(),
        (isotropic_moment, isotropic_moment, isotropic_moment, 0.0, 0.0, 0.0),
    )
    ixx, iyy, izz, ixy, ixz, iyz = (value * (1.0 - inertia_fraction) for value in inertial.inertia)
    return lent, Inertial(inertial.mass * (1.0 - mass_fraction), inertial.T_link_com, (ixx, iyy, izz, ixy, ixz, iyz))
