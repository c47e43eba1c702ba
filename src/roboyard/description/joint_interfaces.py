"""Command modes, command ranges and initial positions of joints, from the description."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from roboyard.description.model import Axis, AxisLimits, CommandMode, Joint, JointInterface, Model

POSITION_BANDWIDTH = 40.0
"""Natural frequency of the default position servo with the inertia that it is designed for [rad/s], critically damped.
"""
VELOCITY_TIME = 0.002
"""Time constant of the default velocity servo on its joint's own inertia [s], at least one physics step: half the
stiffness at which a saturated servo begins to chatter."""
LOCKED_RANGE = 1e-6
"""Range of a joint whose limits are equal [rad or m]: MuJoCo requires a range."""
OPEN_LIMIT = 1e9
"""Value for the open side of a one-sided range [rad or m]: MuJoCo requires a number."""


def command_modes(model: Model, joint: str) -> tuple[CommandMode, ...]:
    """Return the command modes of `joint`.

    The model's interfaces determine the modes.  If a model declares no interface at all, every joint has all modes, so
    that a description whose motors are named in plugins only can be driven.  Mimic joints have none.
    """
    if any(item.mimic is not None and item.name == joint for item in model.joints):
        return ()
    if not any(interface.commands for interface in model.interfaces):
        return ("position", "velocity", "effort")
    declared = [mode for item in model.interfaces if item.joint == joint for mode, _, _ in item.commands]
    all_modes: tuple[CommandMode, ...] = ("position", "velocity", "effort")
    return tuple(mode for mode in all_modes if mode in declared)


def command_range(mode: CommandMode, axis: Axis, interface: JointInterface | None) -> tuple[float, float]:
    """Return the minimum and maximum set-point: the joint's limits within the range of its interface.

    If the two do not overlap, the joint's own limits are used.
    """
    limits = axis.limits
    bounds: dict[CommandMode, tuple[float, float]] = {
        "position": (limits.lower, limits.upper),
        "velocity": (-limits.velocity, limits.velocity) if limits.velocity > 0.0 else (-math.inf, math.inf),
        "effort": (-math.inf, math.inf),  # the servo itself is limited to the joint's effort
    }
    lower, upper = bounds[mode]
    for command_mode, min_command, max_command in interface.commands if interface is not None else ():
        if command_mode == mode and max(lower, min_command) <= min(upper, max_command):
            lower, upper = max(lower, min_command), min(upper, max_command)
    return lower, upper


def safety_controller_parameters(joint: Joint, timestep: float) -> tuple[float, float, float, float, float]:
    """Return soft limits, gains towards them, and maximum speed of the joint's safety controller; infinite without one.

    Joints with an empty soft range, or without a range, have only the gain that enforces the speed limit.  The gain is
    at most one per step: with more, a set-point would jump over its soft limit.
    """
    speed = joint.axes[0].limits.velocity if joint.axes and joint.axes[0].limits.velocity > 0.0 else math.inf
    safety = joint.safety
    if safety is None:
        return -math.inf, math.inf, 0.0, 0.0, math.inf
    has_soft_range = safety.soft_lower < safety.soft_upper and joint.type != "continuous"
    gain = min(safety.k_position, 1.0 / timestep) if has_soft_range else 0.0
    return safety.soft_lower, safety.soft_upper, gain, safety.k_velocity, speed


def initial_positions(model: Model, scalar_joints: Iterable[tuple[str, AxisLimits]]) -> dict[str, float]:
    """Return the initial position of each scalar joint [rad or m].

    A joint whose limits exclude zero starts at the nearer limit: otherwise a leg that cannot be stretched would be
    thrown into its limits in the first step.  A mimic joint starts at the position that its driving joint determines,
    also along chains of mimic joints.

    Args:
        model: The description.
        scalar_joints: Its scalar joints with their limits.
    """
    initial_values = {interface.joint: dict(interface.initial) for interface in model.interfaces}
    mimics = {joint.name: joint.mimic for joint in model.joints if joint.mimic is not None}
    positions = {
        name: initial_values.get(name, {}).get("position", min(max(0.0, limits.lower), limits.upper))
        if limits.lower <= limits.upper
        else initial_values.get(name, {}).get("position", 0.0)
        for name, limits in scalar_joints
    }

    def resolve_mimic(name: str, above: tuple[str, ...] = ()) -> float:
        mimic = mimics.get(name)
        if mimic is None or mimic.joint not in positions or name in above:
            return positions[name]
        return mimic.offset + mimic.multiplier * resolve_mimic(mimic.joint, (*above, name))

    return {name: resolve_mimic(name) for name in positions}


def joint_limit_range(model: Model, joint: str, mode: Literal["position", "velocity", "effort"]) -> tuple[float, float]:
    """Return the minimum and maximum set-point of a joint [rad, rad/s, N m; m, m/s, N]; infinite without a limit."""
    limited_joint = next((item for item in model.joints if item.name == joint), None)
    limits = limited_joint.axes[0].limits if limited_joint is not None and limited_joint.axes else AxisLimits()
    if mode == "position":
        return limits.lower, limits.upper
    upper = limits.velocity if mode == "velocity" else limits.effort
    upper = upper if upper > 0.0 else math.inf  # zero and negative limits in files mean no limit
    return -upper, upper


def effort_limit(axis: Axis) -> float:
    """Largest effort [N m or N]; zero and negative limits in files mean none."""
    effort = axis.limits.effort
    return effort if effort > 0.0 else math.inf
