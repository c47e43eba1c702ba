"""Gains of joint servos as ros2_control names them, and a model with such gains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from roboyard.description import JointInterface, Model

JointServoGains = dict[str, float]
"""Of one joint, by ros2_control's names: ``pos_kp``, ``pos_ki``, ``pos_kd``, ``pos_max_integral_error``, ``vel_…``."""
_MODE_OF_PREFIX = {"pos_": "position", "vel_": "velocity"}


def pid_gains(
    mode: str, p: float | None, i: float | None, d: float | None, clamp: float | None = None
) -> JointServoGains:
    """Return the gains of a controller that moves a joint by efforts; gains that it does not state are zero.

    Args:
        mode: Controlled quantity: "position" or "velocity".
        p: Effort per unit of error.
        i: Effort per unit of error and second.
        d: Effort per unit of the error's rate.
        clamp: Largest effort of the integral; None: the joint's own limit.
    """
    key_prefix = next(prefix for prefix, prefix_mode in _MODE_OF_PREFIX.items() if prefix_mode == mode)
    gains = {f"{key_prefix}kp": p or 0.0, f"{key_prefix}ki": i or 0.0}
    if mode == "position":
        gains["pos_kd"] = d or 0.0
    if clamp is not None and i:
        gains[f"{key_prefix}max_integral_error"] = abs(clamp) / i
    return gains


def with_servo_gains(model: Model, gains: Mapping[str, JointServoGains]) -> Model:
    """Return the model with servo gains; its joints accept set-points of the controlled quantities.

    Args:
        model: Description of the robot.
        gains: Gains by joint; those of unknown joints are ignored.
    """
    if not gains:
        return model
    has_command_interfaces = any(interface.commands for interface in model.interfaces)
    interfaces = {interface.joint: interface for interface in model.interfaces}
    for joint in model.joints:
        joint_gains = gains.get(joint.name)
        if joint_gains is None:
            continue
        interface_before = interfaces.get(joint.name, JointInterface(joint.name))
        modes = {mode for mode, _, _ in interface_before.commands}
        gain_modes = {_MODE_OF_PREFIX[name[:4]] for name in joint_gains if name[:4] in _MODE_OF_PREFIX}
        # where a description declares no interface at all, every joint takes every mode already
        added_commands = (
            tuple((mode, *_UNLIMITED) for mode in sorted(gain_modes - modes)) if has_command_interfaces else ()
        )
        parameters = {**dict(interface_before.parameters), **{name: repr(value) for name, value in joint_gains.items()}}
        interfaces[joint.name] = replace(
            interface_before,
            commands=(*interface_before.commands, *added_commands),
            parameters=tuple(parameters.items()),
        )
    return replace(model, interfaces=tuple(interfaces.values()))


_UNLIMITED = (-float("inf"), float("inf"))
