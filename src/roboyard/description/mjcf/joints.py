"""Joints of a body: a body that several joints move hangs on a chain of massless links, one for each but the last."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from roboyard.description.mjcf.compiled import CompiledMjcf
from roboyard.description.model import Axis, AxisLimits, Joint, JointDynamics, JointType, Link, Mimic
from roboyard.description.reading import ReaderContext
from roboyard.geometry import SE3

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint


def make_joint_chain(
    context: ReaderContext, compiled: CompiledMjcf, body: int, parent: str, T_parent_body: SE3
) -> tuple[list[Link], list[Joint]]:
    """The joints between ``parent`` and a body, and the massless links between them.

    Positions count from where the file draws the body: a joint's ``ref`` shifts its limits and its spring.

    Args:
        context: Takes findings.
        compiled: The compiled document.
        body: Number of the body.
        parent: Name of the parent link.
        T_parent_body: The body's pose in it.
    """
    numbers = compiled.joints_of(body)
    name = compiled.bodies[body]
    if not numbers:
        fixed = Joint(f"{name}_fixed", "fixed", parent, name, T_parent_body, SE3.identity())
        return [], [fixed]
    links: list[Link] = []
    joints: list[Joint] = []
    for number in numbers:
        is_last = number == numbers[-1]
        child = name if is_last else f"{name}_{compiled.joints[number]}"
        joints.append(_make_joint(context, compiled, number, parent, child, T_parent_body))
        if not is_last:
            links.append(Link(child, SE3.identity()))
        parent, T_parent_body = child, SE3.identity()
    return links, joints


def _make_joint(
    context: ReaderContext, compiled: CompiledMjcf, number: int, parent: str, child: str, T_parent_child: SE3
) -> Joint:
    m, name = compiled.model, compiled.joints[number]
    kind, node = int(m.jnt_type[number]), compiled.joint_nodes[number]
    T_child_joint = SE3(translation=m.jnt_pos[number])
    if kind == BALL:
        limits = AxisLimits(0.0, float(m.jnt_range[number][1])) if m.jnt_limited[number] else AxisLimits()
        ball_axis = Axis(limits=limits, dynamics=_read_dynamics(context, compiled, number))
        is_default = ball_axis == Axis()
        return Joint(
            name, "ball", parent, child, T_parent_child, T_child_joint, ball_axis=None if is_default else ball_axis
        )
    limits = _read_limits(compiled, number)
    is_unlimited = math.isinf(limits.lower) and math.isinf(limits.upper)
    joint_type: JointType = "prismatic" if kind == SLIDE else "continuous" if is_unlimited else "revolute"
    zero = float(m.qpos0[m.jnt_qposadr[number]])
    if zero:
        context.warn(node, f"joint '{name}' stands at {zero:g} where it is drawn: here that is its zero")
    x, y, z = (float(value) for value in m.jnt_axis[number])
    axis = Axis((x, y, z), limits, _read_dynamics(context, compiled, number))
    return Joint(name, joint_type, parent, child, T_parent_child, T_child_joint, (axis,))


def _read_limits(compiled: CompiledMjcf, number: int) -> AxisLimits:
    m = compiled.model
    zero = float(m.qpos0[m.jnt_qposadr[number]])
    lower, upper, effort = -math.inf, math.inf, math.inf
    if m.jnt_limited[number]:
        lower, upper = (float(value) - zero for value in m.jnt_range[number])
    if number in (locked := locked_positions(compiled)):
        lower = upper = locked[number]
    if m.jnt_actfrclimited[number]:
        effort = float(abs(m.jnt_actfrcrange[number]).max())
    return AxisLimits(lower, upper, math.inf, effort)


def _read_dynamics(context: ReaderContext, compiled: CompiledMjcf, number: int) -> JointDynamics:
    m = compiled.model
    dof, address = int(m.jnt_dofadr[number]), int(m.jnt_qposadr[number])
    if m.dof_dampingpoly[dof].any() or m.jnt_stiffnesspoly[number].any():
        context.warn(
            compiled.joint_nodes[number],
            f"joint '{compiled.joints[number]}': only linear damping and stiffness are taken",
        )
    return JointDynamics(
        damping=float(m.dof_damping[dof]),
        friction=float(m.dof_frictionloss[dof]),
        stiffness=float(m.jnt_stiffness[number]),
        reference=float(m.qpos_spring[address] - m.qpos0[address]),
        armature=float(m.dof_armature[dof]),
    )


def read_mimics(context: ReaderContext, compiled: CompiledMjcf) -> dict[str, Mimic]:
    """Joints that an active ``<equality><joint>`` couples to another by a straight line, by name."""
    m = compiled.model
    for number in range(m.neq):
        node = compiled.equality_nodes[number]
        if int(m.eq_type[number]) == _EQ_JOINT and m.eq_active0[number] and any(m.eq_data[number][2:5]):
            follower = compiled.joints[int(m.eq_obj1id[number])]
            if int(m.eq_obj2id[number]) >= 0:
                context.warn(node, f"joint '{follower}' follows another by more than a straight line: left out")
    followers: set[int] = set()
    for number in _linear_couplings(compiled):
        joint = int(m.eq_obj1id[number])
        if joint in followers:
            node, name = compiled.equality_nodes[number], compiled.joints[joint]
            context.warn(node, f"joint '{name}' follows one already: it follows the last that is told")
        followers.add(joint)
    return {
        compiled.joints[follower]: Mimic(compiled.joints[leader], multiplier, offset)
        for follower, (leader, multiplier, offset) in coupled_joints(compiled).items()
    }


def coupled_joints(compiled: CompiledMjcf) -> dict[int, tuple[int, float, float]]:
    """By the number of each joint that follows another by a straight line: whom, multiplier and offset."""
    m = compiled.model
    return {
        int(m.eq_obj1id[number]): (int(m.eq_obj2id[number]), float(m.eq_data[number][1]), float(m.eq_data[number][0]))
        for number in _linear_couplings(compiled)
    }


def _linear_couplings(compiled: CompiledMjcf) -> Iterator[int]:
    """Active couplings of one joint to another by a straight line."""
    m = compiled.model
    for number in range(m.neq):
        joints = int(m.eq_type[number]) == _EQ_JOINT and int(m.eq_obj2id[number]) >= 0
        if joints and m.eq_active0[number] and not any(m.eq_data[number][2:5]):
            yield number


def locked_positions(compiled: CompiledMjcf) -> dict[int, float]:
    """Joints that an active ``<equality><joint>`` without a second joint holds still, and where, from as drawn."""
    m = compiled.model
    return {
        int(m.eq_obj1id[number]): float(m.eq_data[number][0])
        for number in range(m.neq)
        if int(m.eq_type[number]) == _EQ_JOINT and m.eq_active0[number] and int(m.eq_obj2id[number]) < 0
    }


_EQ_CONNECT, _EQ_WELD, _EQ_JOINT = range(3)  # mjtEq


def read_loop_joints(context: ReaderContext, compiled: CompiledMjcf) -> list[Joint]:
    """Loops closed by an active ``<connect>`` (a ball) or ``<weld>`` (fixed), between bodies or sites."""
    m = compiled.model
    loop_joints = []
    for number in range(m.neq):
        kind, node = int(m.eq_type[number]), compiled.equality_nodes[number]
        name = m.equality(number).name or f"equality_{number}"
        if not m.eq_active0[number]:
            context.warn(node, f"the equality '{name}' is off at the start: left out, nothing here turns it on")
            continue
        if kind == _EQ_JOINT:
            continue
        if kind not in (_EQ_CONNECT, _EQ_WELD):
            context.warn(node, f"the equality '{name}' is not understood: left out")
            continue
        one, T_one_joint, other, T_other_joint = _loop_frames(compiled, number)
        if one == 0:  # a joint's child is no world
            one, T_one_joint, other, T_other_joint = other, T_other_joint, one, T_one_joint
        if one == other:
            continue
        joint_type: JointType = "ball" if kind == _EQ_CONNECT else "fixed"
        gap = _gap(compiled, one, T_one_joint, other, T_other_joint)
        if joint_type == "ball" and gap > _MAX_GAP:
            context.warn(node, f"the ends that '{name}' connects stand {gap:.3g} m apart: held as they stand")
        T_other_one = T_other_joint @ T_one_joint.inverse()
        loop_joints.append(
            Joint(name, joint_type, compiled.bodies[other], compiled.bodies[one], T_other_one, T_one_joint)
        )
    return loop_joints


_MAX_GAP = 1e-6
"""From here on two points that are to meet stand apart [m]."""


def _loop_frames(compiled: CompiledMjcf, number: int) -> tuple[int, SE3, int, SE3]:
    """Both bodies of a ``<connect>`` or ``<weld>``, and the frame in each that it makes one."""
    m, data = compiled.model, compiled.model.eq_data[number]
    first, second = int(m.eq_obj1id[number]), int(m.eq_obj2id[number])
    if int(m.eq_objtype[number]) != _BODY:
        one, other = int(m.site_bodyid[first]), int(m.site_bodyid[second])
        return one, SE3(m.site_quat[first], m.site_pos[first]), other, SE3(m.site_quat[second], m.site_pos[second])
    if int(m.eq_type[number]) == _EQ_CONNECT:
        return first, SE3(translation=data[0:3]), second, SE3(translation=data[3:6])
    return first, SE3(data[6:10], data[3:6]), second, SE3(translation=data[0:3])


def _gap(compiled: CompiledMjcf, one: int, T_one_joint: SE3, other: int, T_other_joint: SE3) -> float:
    """How far the ends of a loop are apart where the file draws its bodies [m]."""

    def world_position(body: int, T: SE3) -> NDArray[np.float64]:
        while body:
            T, body = compiled.pose(body) @ T, int(compiled.model.body_parentid[body])
        return T.xyz

    return float(np.linalg.norm(world_position(one, T_one_joint) - world_position(other, T_other_joint)))


_BODY = 1  # mjtObj
