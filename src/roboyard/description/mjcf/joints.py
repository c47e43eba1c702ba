"""Joints of a body: a body that several joints move hangs on a chain of massless links, one for each but the last."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

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
        limits = Limits(0.0, float(m.jnt_range[number][1])) if m.jnt_limited[number] else Limits()
        swing = Axis(limits=limits, dynamics=_dynamics(reading, source, number))
        bare = swing == Axis()
        return Joint(name, "ball", parent, child, T_parent_child, T_child_joint, swing=None if bare else swing)
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
    if number in (held := held_at(source)):
        lower = upper = held[number]
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
    """Joints that an active ``<equality><joint>`` couples to another by a straight line, by name."""
    m = source.model
    for number in range(m.neq):
        node = source.equality_nodes[number]
        if int(m.eq_type[number]) == _EQ_JOINT and m.eq_active0[number] and any(m.eq_data[number][2:5]):
            follower = source.joints[int(m.eq_obj1id[number])]
            if int(m.eq_obj2id[number]) >= 0:
                reading.note(node, f"joint '{follower}' follows another by more than a straight line: left out")
    led: set[int] = set()
    for number in _straight(source):
        joint = int(m.eq_obj1id[number])
        if joint in led:
            node, name = source.equality_nodes[number], source.joints[joint]
            reading.note(node, f"joint '{name}' follows one already: it follows the last that is told")
        led.add(joint)
    return {
        source.joints[follower]: Mimic(source.joints[leader], multiplier, offset)
        for follower, (leader, multiplier, offset) in leaders(source).items()
    }


def leaders(source: Compiled) -> dict[int, tuple[int, float, float]]:
    """By the number of each joint that follows another by a straight line: whom, multiplier and offset."""
    m = source.model
    return {
        int(m.eq_obj1id[number]): (int(m.eq_obj2id[number]), float(m.eq_data[number][1]), float(m.eq_data[number][0]))
        for number in _straight(source)
    }


def _straight(source: Compiled) -> Iterator[int]:
    """Active couplings of one joint to another by a straight line."""
    m = source.model
    for number in range(m.neq):
        joints = int(m.eq_type[number]) == _EQ_JOINT and int(m.eq_obj2id[number]) >= 0
        if joints and m.eq_active0[number] and not any(m.eq_data[number][2:5]):
            yield number


def held_at(source: Compiled) -> dict[int, float]:
    """Joints that an active ``<equality><joint>`` without a second joint holds still, and where, from as drawn."""
    m = source.model
    return {
        int(m.eq_obj1id[number]): float(m.eq_data[number][0])
        for number in range(m.neq)
        if int(m.eq_type[number]) == _EQ_JOINT and m.eq_active0[number] and int(m.eq_obj2id[number]) < 0
    }


_EQ_CONNECT, _EQ_WELD, _EQ_JOINT = range(3)  # mjtEq


def closures(reading: Reading, source: Compiled) -> list[Joint]:
    """Loops closed by an active ``<connect>`` (a ball) or ``<weld>`` (fixed), between bodies or sites."""
    m = source.model
    found = []
    for number in range(m.neq):
        kind, node = int(m.eq_type[number]), source.equality_nodes[number]
        name = m.equality(number).name or f"equality_{number}"
        if not m.eq_active0[number]:
            reading.note(node, f"the equality '{name}' is off at the start: left out, nothing here turns it on")
            continue
        if kind == _EQ_JOINT:
            continue
        if kind not in (_EQ_CONNECT, _EQ_WELD):
            reading.note(node, f"the equality '{name}' is not understood: left out")
            continue
        one, T_one_joint, other, T_other_joint = _ends(source, number)
        if one == 0:  # a joint's child is no world
            one, T_one_joint, other, T_other_joint = other, T_other_joint, one, T_one_joint
        if one == other:
            continue
        shape: JointType = "ball" if kind == _EQ_CONNECT else "fixed"
        gap = _gap(source, one, T_one_joint, other, T_other_joint)
        if shape == "ball" and gap > _APART:
            reading.note(node, f"the ends that '{name}' connects stand {gap:.3g} m apart: held as they stand")
        T_other_one = T_other_joint @ T_one_joint.inverse()
        found.append(Joint(name, shape, source.bodies[other], source.bodies[one], T_other_one, T_one_joint))
    return found


_APART = 1e-6
"""From here on two points that are to meet stand apart [m]."""


def _ends(source: Compiled, number: int) -> tuple[int, SE3, int, SE3]:
    """Both bodies of a ``<connect>`` or ``<weld>``, and the frame in each that it makes one."""
    m, data = source.model, source.model.eq_data[number]
    first, second = int(m.eq_obj1id[number]), int(m.eq_obj2id[number])
    if int(m.eq_objtype[number]) != _BODY:
        one, other = int(m.site_bodyid[first]), int(m.site_bodyid[second])
        return one, SE3(m.site_quat[first], m.site_pos[first]), other, SE3(m.site_quat[second], m.site_pos[second])
    if int(m.eq_type[number]) == _EQ_CONNECT:
        return first, SE3(translation=data[0:3]), second, SE3(translation=data[3:6])
    return first, SE3(data[6:10], data[3:6]), second, SE3(translation=data[0:3])


def _gap(source: Compiled, one: int, T_one_joint: SE3, other: int, T_other_joint: SE3) -> float:
    """How far the ends of a loop are apart where the file draws its bodies [m]."""

    def place(body: int, T: SE3) -> NDArray[np.float64]:
        while body:
            T, body = source.pose(body) @ T, int(source.model.body_parentid[body])
        return T.xyz

    return float(np.linalg.norm(place(one, T_one_joint) - place(other, T_other_joint)))


_BODY = 1  # mjtObj
