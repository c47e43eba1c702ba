"""Joints, couplings, loop joints, and actuators of MJCF.

A body with several joints becomes a chain of massless links; actuators become joint interfaces.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from roboyard.description.mjcf.compile import CompiledMjcf
from roboyard.description.model import Axis, AxisLimits, Joint, JointDynamics, JointInterface, JointType, Link, Mimic
from roboyard.description.reader_context import ReaderContext
from roboyard.geometry import SE3

FREE, BALL, SLIDE, HINGE = range(4)  # mjtJoint


def make_joint_chain(
    context: ReaderContext, compiled: CompiledMjcf, body: int, parent: str, T_parent_body: SE3
) -> tuple[list[Link], list[Joint]]:
    """Make the joints between `parent` and a body, and the massless links between them.

    Positions are relative to the drawn position of the body: a joint's ``ref`` shifts its limits and its spring.

    Args:
        context: Receives warnings.
        compiled: The compiled document.
        body: Index of the body.
        parent: Name of the parent link.
        T_parent_body: Pose of the body in the parent.
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
        context.warn(node, f"joint '{name}' is drawn at {zero:g}: this position is its zero here")
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
            f"joint '{compiled.joints[number]}': only linear damping and stiffness are used",
        )
    return JointDynamics(
        damping=float(m.dof_damping[dof]),
        friction=float(m.dof_frictionloss[dof]),
        stiffness=float(m.jnt_stiffness[number]),
        reference=float(m.qpos_spring[address] - m.qpos0[address]),
        armature=float(m.dof_armature[dof]),
    )


def read_mimics(context: ReaderContext, compiled: CompiledMjcf) -> dict[str, Mimic]:
    """Return mimics by name of joints that an active ``<equality><joint>`` couples linearly to another."""
    m = compiled.model
    for number in range(m.neq):
        node = compiled.equality_nodes[number]
        if int(m.eq_type[number]) == _EQ_JOINT and m.eq_active0[number] and any(m.eq_data[number][2:5]):
            follower = compiled.joints[int(m.eq_obj1id[number])]
            if int(m.eq_obj2id[number]) >= 0:
                context.warn(node, f"joint '{follower}' is coupled nonlinearly: ignored")
    followers: set[int] = set()
    for number in _linear_couplings(compiled):
        joint = int(m.eq_obj1id[number])
        if joint in followers:
            node, name = compiled.equality_nodes[number], compiled.joints[joint]
            context.warn(node, f"joint '{name}' is coupled more than once: the last coupling is used")
        followers.add(joint)
    return {
        compiled.joints[follower]: Mimic(compiled.joints[leader], multiplier, offset)
        for follower, (leader, multiplier, offset) in coupled_joints(compiled).items()
    }


def coupled_joints(compiled: CompiledMjcf) -> dict[int, tuple[int, float, float]]:
    """Return driving joint, multiplier and offset by index of each linearly coupled joint."""
    m = compiled.model
    return {
        int(m.eq_obj1id[number]): (int(m.eq_obj2id[number]), float(m.eq_data[number][1]), float(m.eq_data[number][0]))
        for number in _linear_couplings(compiled)
    }


def _linear_couplings(compiled: CompiledMjcf) -> Iterator[int]:
    """Iterate over active linear couplings of one joint to another."""
    m = compiled.model
    for number in range(m.neq):
        joints = int(m.eq_type[number]) == _EQ_JOINT and int(m.eq_obj2id[number]) >= 0
        if joints and m.eq_active0[number] and not any(m.eq_data[number][2:5]):
            yield number


def locked_positions(compiled: CompiledMjcf) -> dict[int, float]:
    """Return the positions, relative to the drawn ones, of joints that an active ``<equality><joint>`` without a second
    joint locks.
    """
    m = compiled.model
    return {
        int(m.eq_obj1id[number]): float(m.eq_data[number][0])
        for number in range(m.neq)
        if int(m.eq_type[number]) == _EQ_JOINT and m.eq_active0[number] and int(m.eq_obj2id[number]) < 0
    }


_EQ_CONNECT, _EQ_WELD, _EQ_JOINT = range(3)  # mjtEq


def read_loop_joints(context: ReaderContext, compiled: CompiledMjcf) -> list[Joint]:
    """Return loop joints of active ``<connect>`` (ball) or ``<weld>`` (fixed) constraints between bodies or sites."""
    m = compiled.model
    loop_joints = []
    for number in range(m.neq):
        kind, node = int(m.eq_type[number]), compiled.equality_nodes[number]
        name = m.equality(number).name or f"equality_{number}"
        if not m.eq_active0[number]:
            context.warn(
                node, f"the equality '{name}' is inactive at the start: ignored, because it is never activated here"
            )
            continue
        if kind == _EQ_JOINT:
            continue
        if kind not in (_EQ_CONNECT, _EQ_WELD):
            context.warn(node, f"the equality '{name}' has an unsupported type: ignored")
            continue
        one, T_one_joint, other, T_other_joint = _loop_frames(compiled, number)
        if one == 0:  # the world cannot be a joint's child
            one, T_one_joint, other, T_other_joint = other, T_other_joint, one, T_one_joint
        if one == other:
            continue
        joint_type: JointType = "ball" if kind == _EQ_CONNECT else "fixed"
        gap = _gap(compiled, one, T_one_joint, other, T_other_joint)
        if joint_type == "ball" and gap > _MAX_GAP:
            context.warn(node, f"the frames that '{name}' connects are {gap:.3g} m apart: this distance is kept")
        T_other_one = T_other_joint @ T_one_joint.inverse()
        loop_joints.append(
            Joint(name, joint_type, compiled.bodies[other], compiled.bodies[one], T_other_one, T_one_joint)
        )
    return loop_joints


_MAX_GAP = 1e-6
"""Distance above which two connected points count as apart [m]."""


def _loop_frames(compiled: CompiledMjcf, number: int) -> tuple[int, SE3, int, SE3]:
    """Return both bodies of a ``<connect>`` or ``<weld>``, and the frame in each that it makes coincide."""
    m, data = compiled.model, compiled.model.eq_data[number]
    first, second = int(m.eq_obj1id[number]), int(m.eq_obj2id[number])
    if int(m.eq_objtype[number]) != _BODY:
        one, other = int(m.site_bodyid[first]), int(m.site_bodyid[second])
        return one, SE3(m.site_quat[first], m.site_pos[first]), other, SE3(m.site_quat[second], m.site_pos[second])
    if int(m.eq_type[number]) == _EQ_CONNECT:
        return first, SE3(translation=data[0:3]), second, SE3(translation=data[3:6])
    return first, SE3(data[6:10], data[3:6]), second, SE3(translation=data[0:3])


def _gap(compiled: CompiledMjcf, one: int, T_one_joint: SE3, other: int, T_other_joint: SE3) -> float:
    """Compute the distance of the ends of a loop with the bodies as drawn [m]."""

    def world_position(body: int, T: SE3) -> NDArray[np.float64]:
        while body:
            T, body = compiled.pose(body) @ T, int(compiled.model.body_parentid[body])
        return T.xyz

    return float(np.linalg.norm(world_position(one, T_one_joint) - world_position(other, T_other_joint)))


_BODY = 1  # mjtObj

_JOINT, _JOINT_IN_PARENT, _TENDON = 0, 1, 3  # mjtTrn
_WRAP_JOINT = 1  # mjtWrap
_FIXED_GAIN = 0  # mjtGain
_NO_BIAS, _AFFINE_BIAS = 0, 1  # mjtBias
_NO_DYNAMICS, _INTEGRATOR = 0, 1  # mjtDyn


_ACTUATOR_LABELS = {"position": "position servo", "velocity": "velocity servo", "effort": "motor"}


@dataclass(slots=True)
class JointActuation:
    """Combined effect of the actuators of a joint.

    `effort` bounds their force, `command_limit` their command, `velocity_gain` is the gain of a velocity servo; their
    rotors add `armature` and `damping` to the joint.  `actuator_kinds` has their kinds: one actuator of each kind is
    read.
    """

    commands: dict[str, tuple[float, float]] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    effort: float = 0.0
    command_limit: float = 0.0
    velocity_gain: float = 0.0
    armature: float = 0.0
    damping: float = 0.0
    actuator_kinds: set[str] = field(default_factory=set)


def read_actuators(context: ReaderContext, compiled: CompiledMjcf) -> dict[str, JointActuation]:
    """Read the actuation by joint."""
    m = compiled.model
    actuations: dict[str, JointActuation] = {}
    for number in range(m.nactuator):
        name = m.actuator(number).name or f"actuator {number}"
        node = compiled.actuator_nodes[number]
        transmission = _find_transmission(compiled, number)
        if transmission is None:
            context.warn(node, f"'{name}' does not drive a single hinge or slide joint: ignored")
        elif int(m.actuator_gaintype[number]) != _FIXED_GAIN or int(m.actuator_biastype[number]) not in (
            _NO_BIAS,
            _AFFINE_BIAS,
        ):
            context.warn(node, f"'{name}' is neither a motor nor a position or velocity servo: ignored")
        else:
            actuation = actuations.setdefault(compiled.joints[transmission.joint], JointActuation())
            _add_actuator(context, compiled, number, transmission, name, actuation)
    for actuation in actuations.values():
        if (
            actuation.velocity_gain and "pos_kd" in actuation.parameters
        ):  # without a velocity command, the velocity servo damps the position servo
            actuation.parameters["pos_kd"] = repr(float(actuation.parameters["pos_kd"]) + actuation.velocity_gain)
    return actuations


@dataclass(frozen=True, slots=True)
class _JointTransmission:
    """Transmission of an actuator to one joint: `ratio` of its length to the joint's position, which is `zero` at
    length zero.
    """

    joint: int
    ratio: float
    zero: float


def _find_transmission(compiled: CompiledMjcf, number: int) -> _JointTransmission | None:
    """Return the joint that an actuator drives; with a fixed tendon, the joint that drives all its other joints."""
    m = compiled.model
    kind, target = int(m.actuator_trntype[number]), int(m.actuator_trnid[number][0])
    gear = float(m.actuator_gear[number][0])
    if kind in (_JOINT, _JOINT_IN_PARENT):
        is_single_axis = int(m.jnt_type[target]) in (SLIDE, HINGE)
        return _JointTransmission(target, gear, float(m.qpos0[m.jnt_qposadr[target]])) if is_single_axis else None
    if kind != _TENDON:
        return None
    first, count = int(m.tendon_adr[target]), int(m.tendon_num[target])
    wraps = range(first, first + count)
    if any(int(m.wrap_type[wrap]) != _WRAP_JOINT for wrap in wraps):
        return None
    coupled = coupled_joints(compiled)
    coefficients: dict[int, float] = {}
    length = 0.0
    for wrap in wraps:
        joint, coefficient = int(m.wrap_objid[wrap]), float(m.wrap_prm[wrap])
        leader, multiplier, offset = coupled.get(joint, (joint, 1.0, 0.0))
        coefficients[leader] = coefficients.get(leader, 0.0) + coefficient * multiplier
        length += coefficient * (float(m.qpos0[m.jnt_qposadr[joint]]) + offset)
    if len(coefficients) != 1:
        return None
    ((leader, ratio),) = coefficients.items()
    return _JointTransmission(leader, gear * ratio, length / ratio) if ratio else None


def _add_actuator(
    context: ReaderContext,
    compiled: CompiledMjcf,
    number: int,
    transmission: _JointTransmission,
    name: str,
    actuation: JointActuation,
) -> None:
    m = compiled.model
    joint, gear, zero = transmission.joint, transmission.ratio, transmission.zero
    gain = float(m.actuator_gainprm[number][0])
    lower, upper = (float(value) for value in m.actuator_ctrlrange[number])
    if not m.actuator_ctrllimited[number]:
        lower, upper = -math.inf, math.inf
    effort = math.inf
    if m.actuator_forcelimited[number]:
        effort = abs(gear) * float(abs(m.actuator_forcerange[number]).max())
    bias, kp, kv = (float(value) for value in m.actuator_biasprm[number][:3])
    if int(m.actuator_biastype[number]) == _NO_BIAS:
        bias = kp = kv = 0.0
    mode = "position" if kp else "velocity" if kv else "effort"
    actuation.armature += float(m.actuator_armature[number]) * gear**2
    actuation.damping += float(m.actuator_damping[number]) * gear**2
    node = compiled.actuator_nodes[number]
    if gear == 0.0 or gain == 0.0 or kp > 0.0 or kv > 0.0:
        context.warn(node, f"'{name}' has no gain, or one with the wrong sign: ignored")
        return
    if mode in actuation.actuator_kinds:
        context.warn(
            node, f"'{name}' is the second {_ACTUATOR_LABELS[mode]} of joint '{compiled.joints[joint]}': ignored"
        )
        return
    actuation.actuator_kinds.add(mode)
    dynamics = int(m.actuator_dyntype[number])
    if dynamics == _INTEGRATOR:
        context.warn(node, f"'{name}' integrates its command: here the command is the {mode} itself")
    elif dynamics != _NO_DYNAMICS:
        context.warn(node, f"'{name}' has activation dynamics: here it follows its command immediately")
    if mode == "effort":
        bounds = sorted((gear * (gain * lower + bias), gear * (gain * upper + bias)))
        actuation.commands["effort"] = bounds[0], bounds[1]
        actuation.command_limit = max(actuation.command_limit, min(effort, max(map(abs, bounds))))
        if int(m.jnt_type[joint]) == HINGE and not m.jnt_limited[joint]:
            actuation.commands.setdefault(
                "velocity", (-math.inf, math.inf)
            )  # a wheel: its torque can control a velocity
    elif mode == "position":
        # torque = gear (gain u + push - |kp| gear (q + zero) - |kv| gear v)
        bounds = sorted((gain * u + bias) / (-kp * gear) - zero for u in (lower, upper))
        actuation.commands["position"] = bounds[0], bounds[1]
        actuation.parameters |= {"pos_kp": repr(-kp * gear**2), "pos_ki": "0", "pos_kd": repr(abs(kv) * gear**2)}
    else:
        bounds = sorted((gain * u + bias) / (-kv * gear) for u in (lower, upper))
        actuation.commands["velocity"] = bounds[0], bounds[1]
        actuation.parameters |= {"vel_kp": repr(-kv * gear**2), "vel_ki": "0"}
        actuation.velocity_gain = -kv * gear**2
    actuation.effort = max(actuation.effort, effort)


def apply_actuation(joint: Joint, actuations: dict[str, JointActuation]) -> Joint:
    """Return the joint with the effort limit, rotor inertia and damping of its actuators."""
    actuation = actuations.get(joint.name)
    if actuation is None or not joint.axes:
        return joint
    axis = joint.axes[0]
    effort = min(axis.limits.effort, actuation.effort or math.inf)
    if math.isinf(effort):  # the file states no limit; the command range limits the motor
        effort = actuation.command_limit or math.inf
    limits = replace(axis.limits, effort=effort)
    dynamics = replace(
        axis.dynamics,
        armature=axis.dynamics.armature + actuation.armature,
        damping=axis.dynamics.damping + actuation.damping,
    )
    return replace(joint, axes=(replace(axis, limits=limits, dynamics=dynamics), *joint.axes[1:]))


def make_joint_interfaces(compiled: CompiledMjcf, actuations: dict[str, JointActuation]) -> dict[str, JointInterface]:
    """Return interfaces by joint, with the positions of the keyframe ``home`` as initial ones."""
    m = compiled.model
    joint_interfaces: dict[str, JointInterface] = {}
    for number, name in enumerate(compiled.joints):
        if int(m.jnt_type[number]) not in (SLIDE, HINGE):
            continue
        initial: tuple[tuple[str, float], ...] = ()
        if m.nkey:
            address = int(m.jnt_qposadr[number])
            position = float(m.key_qpos[0][address] - m.qpos0[address])
            initial = (("position", position),) if position else ()
        actuation = actuations.get(name)
        if actuation is None and not initial:
            continue
        commands = (
            tuple((mode, lower, upper) for mode, (lower, upper) in actuation.commands.items()) if actuation else ()
        )
        parameters = tuple(actuation.parameters.items()) if actuation else ()
        joint_interfaces[name] = JointInterface(name, commands, ("position", "velocity"), initial, 1.0, parameters)
    return joint_interfaces


def find_free_joint(compiled: CompiledMjcf, body: int) -> int:
    """Return the index of the free joint of a body; -1 if it has none."""
    return next((one for one in compiled.joints_of(body) if int(compiled.model.jnt_type[one]) == FREE), -1)
