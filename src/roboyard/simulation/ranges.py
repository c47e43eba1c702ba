"""What bounds a joint's commands: its limits, its interfaces' ranges, its safety controller."""

from __future__ import annotations

import math

from roboyard.description.model import Axis, Joint, JointInterface
from roboyard.hardware.interface import CommandMode


def command_range(mode: CommandMode, axis: Axis, interface: JointInterface | None) -> tuple[float, float]:
    """Least and largest set-point: those of the joint's limits that lie within what its interface takes.

    Where the two do not overlap, the joint's own limits count.
    """
    limits = axis.limits
    bounds: dict[CommandMode, tuple[float, float]] = {
        "position": (limits.lower, limits.upper),
        "velocity": (-limits.velocity, limits.velocity) if limits.velocity > 0.0 else (-math.inf, math.inf),
        "effort": (-math.inf, math.inf),  # the servo itself is held to the joint's effort
    }
    low, high = bounds[mode]
    for name, least, most in interface.commands if interface is not None else ():
        if name == mode and max(low, least) <= min(high, most):
            low, high = max(low, least), min(high, most)
    return low, high


def guarded(joint: Joint, timestep: float) -> tuple[float, float, float, float, float]:
    """Soft limits, gains towards them, and largest speed, of the joint's safety controller; all open without one.

    A soft range that is empty, or joints without a range, have only the gain that holds the speed's limit.  The gain is
    at most one over the step: faster, a set-point would jump over its soft limit.
    """
    speed = joint.axes[0].limits.velocity if joint.axes and joint.axes[0].limits.velocity > 0.0 else math.inf
    safety = joint.safety
    if safety is None:
        return -math.inf, math.inf, 0.0, 0.0, math.inf
    ranged = safety.soft_lower < safety.soft_upper and joint.type != "continuous"
    gain = min(safety.k_position, 1.0 / timestep) if ranged else 0.0
    return safety.soft_lower, safety.soft_upper, gain, safety.k_velocity, speed
