"""Point-to-point and velocity motion of single joints, each within its limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from roboyard.control.joint_limits import JointGroupLimits
from roboyard.control.velocity_ramps import max_approach_rate, require_positive
from roboyard.errors import ConfigError


class JointMotionState(NamedTuple):
    """Set-point of a joint and its velocity [rad, rad/s or m, m/s]."""

    position: float
    velocity: float = 0.0


@dataclass(frozen=True, slots=True)
class PointToPointLimits:
    """Limits of one joint.

    Attributes:
        lower: Smallest position [rad or m]; may be -inf.
        upper: Largest position [rad or m].
        speed: Largest speed [rad/s or m/s].
        acceleration: Largest acceleration and deceleration [rad/s² or m/s²].

    Raises:
        ConfigError: speed or acceleration is not positive, or the range is empty.
    """

    lower: float
    upper: float
    speed: float
    acceleration: float

    def __post_init__(self) -> None:
        if not self.lower <= self.upper:
            raise ConfigError(
                f"range from {self.lower} to {self.upper}", location="PointToPointLimits", valid="lower below upper"
            )
        require_positive(self, "speed", "acceleration")

    def step_to_position(self, state: JointMotionState, target: float, dt: float) -> JointMotionState:
        """Return the state ``dt`` seconds later on the fastest motion to rest at ``target``.

        Sampled exactly: positions change by the new velocity times ``dt``, velocities by at most the acceleration times
        ``dt``, and a joint at rest reaches any target without passing it.
        """
        gap = min(max(target, self.lower), self.upper) - state.position
        desired_velocity = math.copysign(min(self.speed, max_approach_rate(abs(gap), self.acceleration, dt)), gap)
        velocity = self._limit_change(state.velocity, desired_velocity, dt)
        if abs(gap - velocity * dt) <= 1e-12 * max(1.0, abs(target)):
            return JointMotionState(state.position + gap, velocity)
        return JointMotionState(state.position + velocity * dt, velocity)

    def step_at_velocity(self, state: JointMotionState, velocity: float, dt: float) -> JointMotionState:
        """Return the state ``dt`` seconds later for a commanded velocity, reduced before the joint's limits."""
        distance_to_limit = (self.upper if velocity > 0.0 else self.lower) - state.position
        max_speed = min(
            self.speed,
            max_approach_rate(
                max(math.copysign(distance_to_limit, velocity * distance_to_limit), 0.0), self.acceleration, dt
            ),
        )
        desired_velocity = math.copysign(min(abs(velocity), max_speed), velocity)
        velocity = self._limit_change(state.velocity, desired_velocity, dt)
        return JointMotionState(min(max(state.position + velocity * dt, self.lower), self.upper), velocity)

    def _limit_change(self, velocity: float, desired: float, dt: float) -> float:
        max_change = self.acceleration * dt
        return min(max(desired, velocity - max_change), velocity + max_change)


class JointMotionGenerator:
    """Generates set-points of joints that move one by one.

    A position is reached with limited speed and acceleration, however far it is. A velocity moves the set-point, ends
    when it has expired, and is reduced before the joint's limits.

    Args:
        limits: Limits of the joints.
        joints: Names of the joints.
        position: (n,) measured positions.

    Raises:
        ConfigError: a joint has no velocity limit.
    """

    def __init__(self, limits: JointGroupLimits, joints: Sequence[str], position: NDArray[np.float64]) -> None:
        for joint, speed in zip(joints, limits.speed, strict=True):
            if not np.isfinite(speed):
                raise ConfigError(f"{joint} has no velocity limit", valid="`<limit velocity=…>` in its description")
        rows = (limits.lower, limits.upper, limits.speed, limits.acceleration)
        self._limits = [PointToPointLimits(*row) for row in zip(*(row.tolist() for row in rows), strict=True)]
        self.reset(position)

    @property
    def targets(self) -> NDArray[np.float64]:
        """Target positions (n,) [rad or m]."""
        return np.array(self._targets)

    @property
    def position(self) -> NDArray[np.float64]:
        """Present set-points (n,) [rad or m]."""
        return np.array([one.position for one in self._states])

    @property
    def is_finished(self) -> bool:
        """Whether all joints are at rest at their targets."""
        at_target = (one == JointMotionState(target) for one, target in zip(self._states, self._targets, strict=True))
        return all(speed is None for speed in self._velocity_commands) and all(at_target)

    def reset(self, position: NDArray[np.float64]) -> None:
        """Start at rest from positions (n,) that another source set."""
        self._states = [JointMotionState(float(one)) for one in position]
        self._targets: list[float] = [one.position for one in self._states]
        self._velocity_commands: list[tuple[float, int] | None] = [None] * len(self._states)

    def is_at_rest(self, index: int) -> bool:
        """Return whether a joint's set-point is at rest at its target."""
        return self._velocity_commands[index] is None and self._states[index] == JointMotionState(self._targets[index])

    def reset_joint(self, index: int, position: float) -> None:
        """Start one joint at rest from ``position``, to which another source moved it."""
        self._states[index], self._targets[index], self._velocity_commands[index] = (
            JointMotionState(position),
            position,
            None,
        )

    def move_to(self, index: int, position: float) -> float:
        """Move a joint to ``position``, clamped to its range; return the target."""
        limits = self._limits[index]
        self._targets[index], self._velocity_commands[index] = min(max(position, limits.lower), limits.upper), None
        return self._targets[index]

    def move_at(self, index: int, speed: float, until_ns: int) -> None:
        """Move a joint at a velocity until a time [ns] or a newer command."""
        self._velocity_commands[index] = speed, until_ns

    def stop(self) -> None:
        """Slow down all joints at once, and discard their targets."""
        self._velocity_commands = [(0.0, -1)] * len(self._states)

    def step(self, now_ns: int, dt: float, is_paused: bool) -> bool:
        """Advance the set-points by ``dt`` seconds, or brake them while ``is_paused``; return whether a velocity
        ended."""
        has_velocity_ended = False
        for index, limits in enumerate(self._limits):
            state, command = self._states[index], self._velocity_commands[index]
            if command is None and not is_paused:
                self._states[index] = limits.step_to_position(state, self._targets[index], dt)
            elif command is None:
                self._states[index] = limits.step_at_velocity(state, 0.0, dt)
            else:
                is_expired = now_ns > command[1]
                next_state = self._states[index] = limits.step_at_velocity(
                    state, 0.0 if is_expired or is_paused else command[0], dt
                )
                if is_expired and next_state.velocity == 0.0:
                    self._velocity_commands[index], self._targets[index], has_velocity_ended = (
                        None,
                        next_state.position,
                        True,
                    )
        return has_velocity_ended

    def save_state(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "reach": [tuple(one) for one in self._states],
            "targets": list(self._targets),
            "speeds": list(self._velocity_commands),
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self._states = [JointMotionState(*one) for one in state["reach"]]
        self._targets = list(state["targets"])
        self._velocity_commands = [None if one is None else (one[0], one[1]) for one in state["speeds"]]
