"""Joints of a body: a body that several joints move hangs on a chain of massless links, one for each but the last."""

from __future__ import annotations

import math

from roboyard.description.mjcf.compiled import Compiled
from roboyard.description.model import Axis, Dynamics, Joint, JointType, Limits, Link, Mimic
from roboyard.description.reading import Reading
from roboyard.geometry import SE3

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint


def chain(
    reading: Reading, source: Compiled, body: int, parent: str, T_parent_body: SE3
) -> tuple[list[Link], list[Joint]]:
    """The joints between ``parent`` and a body, and the massless links between them.

    Positions count from where the file draws the body: a joint's ``ref`` shifts its limits and its spring.

    Args:
        reading: Takes findings.
        source: The compiled document.
        body: Number of the body.
        parent: Name of the parent link.
        T_parent_body: The body's pose in it.
    """
    numbers = source.joints_of(body)
    name = source.bodies[body]
    if not numbers:
        fixed = Joint(f"{name}_fixed", "fixed", parent, name, T_parent_body, SE3.identity())
        return [], [fixed]
    links: list[Link] = []
    joints: list[Joint] = []
    for number in numbers:
        last = number == numbers[-1]
        child = name if last else f"{name}_{source.joints[number]}"
        joints.append(_joint(reading, source, number, parent, child, T_parent_body))
        if not last:
            links.append(Link(child, SE3.identity()))
        parent, T_parent_body = child, SE3.identity()
    return links, joints


def _joint(reading: Reading, source: Compiled, number: int, parent: str, child: str, T_parent_child: SE3) -> Joint:
    m, name = source.model, source.joints[number]
    kind, node = int(m.jnt_type[number]), source.joint_nodes[number]
    T_child_joint = SE3(translation=m.jnt_pos[number])
    if kind == BALL:
        if m.jnt_limited[number]:
            reading.note(node, f"the limit of ball joint '{name}' has no effect here")
        return Joint(name, "ball", parent, child, T_parent_child, T_child_joint)
    limits = _limits(source, number)
    endless = math.isinf(limits.lower) and math.isinf(limits.upper)
    written: JointType = "prismatic" if kind == SLIDE else "continuous" if endless else "revolute"
    zero = float(m.qpos0[m.jnt_qposadr[number]])
    if zero:
        reading.note(node, f"joint '{name}' stands at {zero:g} where it is drawn: here that is its zero")
    x, y, z = (float(value) for value in m.jnt_axis[number])
    axis = Axis((x, y, z), limits, _dynamics(reading, source, number))
    return Joint(name, written, parent, child, T_parent_child, T_child_joint, (axis,))


def _limits(source: Compiled, number: int) -> Limits:
    m = source.model
    zero = float(m.qpos0[m.jnt_qposadr[number]])
    lower, upper, effort = -math.inf, math.inf, math.inf
    if m.jnt_limited[number]:
        lower, upper = (float(value) - zero for value in m.jnt_range[number])
    if m.jnt_actfrclimited[number]:
        effort = float(abs(m.jnt_actfrcrange[number]).max())
    return Limits(lower, upper, math.inf, effort)


def _dynamics(reading: Reading, source: Compiled, number: int) -> Dynamics:
    m = source.model
    dof, address = int(m.jnt_dofadr[number]), int(m.jnt_qposadr[number])
    if m.dof_dampingpoly[dof].any() or m.jnt_stiffnesspoly[number].any():
        reading.note(
            source.joint_nodes[number], f"joint '{source.joints[number]}': only linear damping and stiffness are taken"
        )
    return Dynamics(
        damping=float(m.dof_damping[dof]),
        friction=float(m.dof_frictionloss[dof]),
        stiffness=float(m.jnt_stiffness[number]),
        reference=float(m.qpos_spring[address] - m.qpos0[address]),
        armature=float(m.dof_armature[dof]),
    )


def mimics(reading: Reading, source: Compiled) -> dict[str, Mimic]:
    """Joints that an active ``<equality><joint>`` couples to another, by name."""
    m = source.model
    found: dict[str, Mimic] = {}
    for number in range(m.neq):
        if int(m.eq_type[number]) != _EQ_JOINT or not m.eq_active0[number]:
            continue
        follower, leader = source.joints[int(m.eq_obj1id[number])], int(m.eq_obj2id[number])
        terms = [float(value) for value in m.eq_data[number][:5]]
        if leader < 0:
            reading.note(source.root, f"the equality that holds joint '{follower}' still is left out")
        elif any(terms[2:]):
            reading.note(source.root, f"joint '{follower}' follows another by more than a straight line: left out")
        else:
            found[follower] = Mimic(source.joints[leader], terms[1], terms[0])
    return found


def leaders(source: Compiled) -> dict[int, tuple[int, float, float]]:
    """By the number of each joint that follows another by a straight line: whom, multiplier and offset."""
    m = source.model
    found = {}
    for number in range(m.neq):
        if int(m.eq_type[number]) == _EQ_JOINT and m.eq_active0[number] and int(m.eq_obj2id[number]) >= 0:
            terms = [float(value) for value in m.eq_data[number][:5]]
            if not any(terms[2:]):
                found[int(m.eq_obj1id[number])] = int(m.eq_obj2id[number]), terms[1], terms[0]
    return found


_EQ_CONNECT, _EQ_WELD, _EQ_JOINT = range(3)  # mjtEq


def closures(reading: Reading, source: Compiled) -> list[Joint]:
    """Loops closed by an active ``<connect>`` (a ball) or ``<weld>`` (fixed)."""
    m = source.model
    found = []
    for number in range(m.neq):
        kind = int(m.eq_type[number])
        if kind == _EQ_JOINT or not m.eq_active0[number]:
            continue
        name = m.equality(number).name or f"equality_{number}"
        one, other = int(m.eq_obj1id[number]), int(m.eq_obj2id[number])
        if kind not in (_EQ_CONNECT, _EQ_WELD) or int(m.eq_objtype[number]) != _BODY or one <= 0:
            reading.note(source.root, f"the equality '{name}' is not understood")
            continue
        data = m.eq_data[number]
        if kind == _EQ_CONNECT:
            T_other_one = SE3(translation=data[3:6]) @ SE3(translation=data[0:3]).inverse()
            T_one_joint = SE3(translation=data[0:3])
        else:
            T_other_one = SE3(data[6:10], data[3:6]).inverse()
            T_one_joint = SE3.identity()
        shape: JointType = "ball" if kind == _EQ_CONNECT else "fixed"
        found.append(Joint(name, shape, source.bodies[other], source.bodies[one], T_other_one, T_one_joint))
    return found


_BODY = 1  # mjtObj
