"""Actuators on joints as interfaces: what commands a joint takes, within what bounds, with what gains."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from roboyard.description.mjcf.compiled import CompiledMjcf
from roboyard.description.mjcf.joints import FREE, HINGE, SLIDE, coupled_joints
from roboyard.description.model import Joint, JointInterface
from roboyard.description.reading import ReaderContext

_JOINT, _JOINT_IN_PARENT, _TENDON = 0, 1, 3  # mjtTrn
_WRAP_JOINT = 1  # mjtWrap
_FIXED_GAIN = 0  # mjtGain
_NO_BIAS, _AFFINE_BIAS = 0, 1  # mjtBias
_NO_DYNAMICS, _INTEGRATOR = 0, 1  # mjtDyn


_ACTUATOR_LABELS = {"position": "servo of position", "velocity": "servo of speed", "effort": "motor"}


@dataclass(slots=True)
class JointActuation:
    """The combined effect of the actuators of a joint.

    ``effort`` bounds their force, ``command_limit`` their command, ``velocity_gain`` is that of a velocity servo; their
    rotors add ``armature`` and ``damping`` to the joint.  ``actuator_kinds`` holds their kinds: one actuator of each
    kind is read.
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
    """Drives by joint."""
    m = compiled.model
    actuations: dict[str, JointActuation] = {}
    for number in range(m.nactuator):
        name = m.actuator(number).name or f"actuator {number}"
        node = compiled.actuator_nodes[number]
        transmission = _find_transmission(compiled, number)
        if transmission is None:
            context.warn(node, f"'{name}' drives no single joint that turns or slides: left out")
        elif int(m.actuator_gaintype[number]) != _FIXED_GAIN or int(m.actuator_biastype[number]) not in (
            _NO_BIAS,
            _AFFINE_BIAS,
        ):
            context.warn(node, f"'{name}' is neither a motor nor a servo of position or speed: left out")
        else:
            actuation = actuations.setdefault(compiled.joints[transmission.joint], JointActuation())
            _add_actuator(context, compiled, number, transmission, name, actuation)
    for actuation in actuations.values():
        if (
            actuation.velocity_gain and "pos_kd" in actuation.parameters
        ):  # told no speed, its servo of speed damps that of position
            actuation.parameters["pos_kd"] = repr(float(actuation.parameters["pos_kd"]) + actuation.velocity_gain)
    return actuations


@dataclass(frozen=True, slots=True)
class _JointTransmission:
    """How an actuator acts on one joint: ``ratio`` of its length to the joint's position, which is ``zero`` at none."""

    joint: int
    ratio: float
    zero: float


def _find_transmission(compiled: CompiledMjcf, number: int) -> _JointTransmission | None:
    """The one joint that an actuator drives; with a fixed tendon, the one that all its others follow."""
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
        context.warn(node, f"'{name}' has no gain, or one that drives away from its aim: left out")
        return
    if mode in actuation.actuator_kinds:
        context.warn(
            node, f"'{name}' is the second {_ACTUATOR_LABELS[mode]} of joint '{compiled.joints[joint]}': left out"
        )
        return
    actuation.actuator_kinds.add(mode)
    dynamics = int(m.actuator_dyntype[number])
    if dynamics == _INTEGRATOR:
        context.warn(node, f"'{name}' adds up what it is told: here it is told the {mode} itself")
    elif dynamics != _NO_DYNAMICS:
        context.warn(node, f"'{name}' follows with a lag of its own: here it follows at once")
    if mode == "effort":
        bounds = sorted((gear * (gain * lower + bias), gear * (gain * upper + bias)))
        actuation.commands["effort"] = bounds[0], bounds[1]
        actuation.command_limit = max(actuation.command_limit, min(effort, max(map(abs, bounds))))
        if int(m.jnt_type[joint]) == HINGE and not m.jnt_limited[joint]:
            actuation.commands.setdefault("velocity", (-math.inf, math.inf))  # a wheel: its torque may hold a speed
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
    """The joint with its effort bounded by what its actuators can give, and with their rotors' inertia and damping."""
    actuation = actuations.get(joint.name)
    if actuation is None or not joint.axes:
        return joint
    axis = joint.axes[0]
    effort = min(axis.limits.effort, actuation.effort or math.inf)
    if math.isinf(effort):  # the file states no limit, but a motor cannot be told to give more
        effort = actuation.command_limit or math.inf
    limits = replace(axis.limits, effort=effort)
    dynamics = replace(
        axis.dynamics,
        armature=axis.dynamics.armature + actuation.armature,
        damping=axis.dynamics.damping + actuation.damping,
    )
    return replace(joint, axes=(replace(axis, limits=limits, dynamics=dynamics), *joint.axes[1:]))


def make_joint_interfaces(compiled: CompiledMjcf, actuations: dict[str, JointActuation]) -> dict[str, JointInterface]:
    """Interfaces by joint, with the positions of the keyframe ``home`` as initial ones."""
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
    """Number of the joint that leaves a body free; -1 if it is not."""
    return next((one for one in compiled.joints_of(body) if int(compiled.model.jnt_type[one]) == FREE), -1)
