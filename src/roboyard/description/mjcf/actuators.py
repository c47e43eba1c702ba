"""Actuators on joints as interfaces: what commands a joint takes, within what bounds, with what gains."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from roboyard.description.mjcf.compiled import Compiled
from roboyard.description.mjcf.joints import FREE, HINGE, SLIDE, leaders
from roboyard.description.model import Joint, JointInterface
from roboyard.description.reading import Reading

_JOINT, _JOINT_IN_PARENT, _TENDON = 0, 1, 3  # mjtTrn
_WRAP_JOINT = 1  # mjtWrap
_FIXED = 0  # mjtGain
_NONE, _AFFINE = 0, 1  # mjtBias
_AT_ONCE, _INTEGRATED = 0, 1  # mjtDyn


_WHAT = {"position": "servo of position", "velocity": "servo of speed", "effort": "motor"}


@dataclass(slots=True)
class Drive:
    """What the actuators of a joint amount to.

    ``effort`` bounds their force, ``reach`` is what they can be told, ``brake`` the gain of a servo of speed; their
    rotors add ``armature`` and ``damping`` to the joint.  ``told`` is what they are, so that there is one of a kind.
    """

    commands: dict[str, tuple[float, float]] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    effort: float = 0.0
    reach: float = 0.0
    brake: float = 0.0
    armature: float = 0.0
    damping: float = 0.0
    told: set[str] = field(default_factory=set)


def read_actuators(reading: Reading, source: Compiled) -> dict[str, Drive]:
    """Drives by joint."""
    m = source.model
    drives: dict[str, Drive] = {}
    for number in range(m.nactuator):
        name = m.actuator(number).name or f"actuator {number}"
        node = source.actuator_nodes[number]
        lever = _lever(source, number)
        if lever is None:
            reading.note(node, f"'{name}' drives no single joint that turns or slides: left out")
        elif int(m.actuator_gaintype[number]) != _FIXED or int(m.actuator_biastype[number]) not in (_NONE, _AFFINE):
            reading.note(node, f"'{name}' is neither a motor nor a servo of position or speed: left out")
        else:
            drive = drives.setdefault(source.joints[lever.joint], Drive())
            _add(reading, source, number, lever, name, drive)
    for drive in drives.values():
        if drive.brake and "pos_kd" in drive.parameters:  # told no speed, its servo of speed damps that of position
            drive.parameters["pos_kd"] = repr(float(drive.parameters["pos_kd"]) + drive.brake)
    return drives


@dataclass(frozen=True, slots=True)
class _Lever:
    """How an actuator acts on one joint: ``ratio`` of its length to the joint's position, which is ``zero`` at none."""

    joint: int
    ratio: float
    zero: float


def _lever(source: Compiled, number: int) -> _Lever | None:
    """The one joint that an actuator drives; with a fixed tendon, the one that all its others follow."""
    m = source.model
    kind, target = int(m.actuator_trntype[number]), int(m.actuator_trnid[number][0])
    gear = float(m.actuator_gear[number][0])
    if kind in (_JOINT, _JOINT_IN_PARENT):
        turns = int(m.jnt_type[target]) in (SLIDE, HINGE)
        return _Lever(target, gear, float(m.qpos0[m.jnt_qposadr[target]])) if turns else None
    if kind != _TENDON:
        return None
    first, count = int(m.tendon_adr[target]), int(m.tendon_num[target])
    wraps = range(first, first + count)
    if any(int(m.wrap_type[wrap]) != _WRAP_JOINT for wrap in wraps):
        return None
    leads = leaders(source)
    slope: dict[int, float] = {}
    length = 0.0
    for wrap in wraps:
        joint, share = int(m.wrap_objid[wrap]), float(m.wrap_prm[wrap])
        leader, multiplier, offset = leads.get(joint, (joint, 1.0, 0.0))
        slope[leader] = slope.get(leader, 0.0) + share * multiplier
        length += share * (float(m.qpos0[m.jnt_qposadr[joint]]) + offset)
    if len(slope) != 1:
        return None
    ((leader, ratio),) = slope.items()
    return _Lever(leader, gear * ratio, length / ratio) if ratio else None


def _add(reading: Reading, source: Compiled, number: int, lever: _Lever, name: str, drive: Drive) -> None:
    m = source.model
    joint, gear, zero = lever.joint, lever.ratio, lever.zero
    gain = float(m.actuator_gainprm[number][0])
    low, high = (float(value) for value in m.actuator_ctrlrange[number])
    if not m.actuator_ctrllimited[number]:
        low, high = -math.inf, math.inf
    effort = math.inf
    if m.actuator_forcelimited[number]:
        effort = abs(gear) * float(abs(m.actuator_forcerange[number]).max())
    push, kp, kv = (float(value) for value in m.actuator_biasprm[number][:3])
    if int(m.actuator_biastype[number]) == _NONE:
        push = kp = kv = 0.0
    mode = "position" if kp else "velocity" if kv else "effort"
    drive.armature += float(m.actuator_armature[number]) * gear**2
    drive.damping += float(m.actuator_damping[number]) * gear**2
    node = source.actuator_nodes[number]
    if gear == 0.0 or gain == 0.0 or kp > 0.0 or kv > 0.0:
        reading.note(node, f"'{name}' has no gain, or one that drives away from its aim: left out")
        return
    if mode in drive.told:
        reading.note(node, f"'{name}' is the second {_WHAT[mode]} of joint '{source.joints[joint]}': left out")
        return
    drive.told.add(mode)
    dynamics = int(m.actuator_dyntype[number])
    if dynamics == _INTEGRATED:
        reading.note(node, f"'{name}' adds up what it is told: here it is told the {mode} itself")
    elif dynamics != _AT_ONCE:
        reading.note(node, f"'{name}' follows with a lag of its own: here it follows at once")
    if mode == "effort":
        bounds = sorted((gear * (gain * low + push), gear * (gain * high + push)))
        drive.commands["effort"] = bounds[0], bounds[1]
        drive.reach = max(drive.reach, min(effort, max(map(abs, bounds))))
        if int(m.jnt_type[joint]) == HINGE and not m.jnt_limited[joint]:
            drive.commands.setdefault("velocity", (-math.inf, math.inf))  # a wheel: its torque may hold a speed
    elif mode == "position":
        # torque = gear (gain u + push - |kp| gear (q + zero) - |kv| gear v)
        bounds = sorted((gain * u + push) / (-kp * gear) - zero for u in (low, high))
        drive.commands["position"] = bounds[0], bounds[1]
        drive.parameters |= {"pos_kp": repr(-kp * gear**2), "pos_ki": "0", "pos_kd": repr(abs(kv) * gear**2)}
    else:
        bounds = sorted((gain * u + push) / (-kv * gear) for u in (low, high))
        drive.commands["velocity"] = bounds[0], bounds[1]
        drive.parameters |= {"vel_kp": repr(-kv * gear**2), "vel_ki": "0"}
        drive.brake = -kv * gear**2
    drive.effort = max(drive.effort, effort)


def driven(joint: Joint, drives: dict[str, Drive]) -> Joint:
    """The joint with its effort bounded by what its actuators can give, and with their rotors' inertia and damping."""
    drive = drives.get(joint.name)
    if drive is None or not joint.axes:
        return joint
    axis = joint.axes[0]
    effort = min(axis.limits.effort, drive.effort or math.inf)
    if math.isinf(effort):  # the file states no limit, but a motor cannot be told to give more
        effort = drive.reach or math.inf
    limits = replace(axis.limits, effort=effort)
    dynamics = replace(
        axis.dynamics,
        armature=axis.dynamics.armature + drive.armature,
        damping=axis.dynamics.damping + drive.damping,
    )
    return replace(joint, axes=(replace(axis, limits=limits, dynamics=dynamics), *joint.axes[1:]))


def interfaces(source: Compiled, drives: dict[str, Drive]) -> dict[str, JointInterface]:
    """Interfaces by joint, with the positions of the keyframe ``home`` as initial ones."""
    m = source.model
    found: dict[str, JointInterface] = {}
    for number, name in enumerate(source.joints):
        if int(m.jnt_type[number]) not in (SLIDE, HINGE):
            continue
        initial: tuple[tuple[str, float], ...] = ()
        if m.nkey:
            address = int(m.jnt_qposadr[number])
            start = float(m.key_qpos[0][address] - m.qpos0[address])
            initial = (("position", start),) if start else ()
        drive = drives.get(name)
        if drive is None and not initial:
            continue
        commands = tuple((mode, low, high) for mode, (low, high) in drive.commands.items()) if drive else ()
        parameters = tuple(drive.parameters.items()) if drive else ()
        found[name] = JointInterface(name, commands, ("position", "velocity"), initial, 1.0, parameters)
    return found


def free_joint(source: Compiled, body: int) -> int:
    """Number of the joint that leaves a body free; -1 if it is not."""
    return next((one for one in source.joints_of(body) if int(source.model.jnt_type[one]) == FREE), -1)
