"""Gains of joints' servos that controllers and plugins state, laid over what the description says of the joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from roboyard.description import JointInterface, Model

Gains = dict[str, float]
"""Of one joint, by ros2_control's names: ``pos_kp``, ``pos_ki``, ``pos_kd``, ``pos_max_integral_error``, ``vel_…``."""
_MODES = {"pos_": "position", "vel_": "velocity"}


def pid(mode: str, p: float | None, i: float | None, d: float | None, clamp: float | None = None) -> Gains:
    """A controller's gains on a joint's effort; what it does not state is zero.

    Args:
        mode: "position" or "velocity": what they control.
        p: Effort per unit of error.
        i: Effort per unit of error and second.
        d: Effort per unit of the error's rate.
        clamp: Largest effort of the integral; None: as the joint allows.
    """
    start = next(prefix for prefix, known in _MODES.items() if known == mode)
    found = {f"{start}kp": p or 0.0, f"{start}ki": i or 0.0}
    if mode == "position":
        found["pos_kd"] = d or 0.0
    if clamp is not None and i:
        found[f"{start}max_integral_error"] = abs(clamp) / i
    return found


def with_gains(model: Model, gains: Mapping[str, Gains]) -> Model:
    """The model whose joints have these gains, and take set-points of what they control.

    Args:
        model: As described.
        gains: By joint; unknown joints count for nothing.
    """
    if not gains:
        return model
    declared = any(interface.commands for interface in model.interfaces)
    there = {interface.joint: interface for interface in model.interfaces}
    for joint in model.joints:
        own = gains.get(joint.name)
        if own is None:
            continue
        before = there.get(joint.name, JointInterface(joint.name))
        known = {mode for mode, _, _ in before.commands}
        asked = {_MODES[name[:4]] for name in own if name[:4] in _MODES}
        # where a description declares no interface at all, every joint takes every mode already
        more = tuple((mode, *_OPEN) for mode in sorted(asked - known)) if declared else ()
        parameters = {**dict(before.parameters), **{name: repr(value) for name, value in own.items()}}
        there[joint.name] = replace(before, commands=(*before.commands, *more), parameters=tuple(parameters.items()))
    return replace(model, interfaces=tuple(there.values()))


_OPEN = (-float("inf"), float("inf"))
