"""Ramps for all three velocities of a base that moves in the plane."""

from __future__ import annotations

from dataclasses import dataclass

from roboyard.control.kinematics import PlanarTwist
from roboyard.control.ramps import RampLimits, RampState, next_velocity

State = tuple[RampState, RampState, RampState]
AT_REST: State = (RampState(), RampState(), RampState())


@dataclass(frozen=True, slots=True)
class PlanarLimits:
    """What a base may do forward, sideways and turning."""

    forward: RampLimits
    sideways: RampLimits
    turning: RampLimits

    def step(self, state: State, wanted: PlanarTwist, dt: float) -> State:
        """The velocities ``dt`` seconds later on their way to ``wanted``; see ``next_velocity``."""
        return (
            next_velocity(state[0], wanted.vx, dt, self.forward),
            next_velocity(state[1], wanted.vy, dt, self.sideways),
            next_velocity(state[2], wanted.wz, dt, self.turning),
        )


def twist_of(state: State) -> PlanarTwist:
    """The velocities alone."""
    return PlanarTwist(state[0].velocity, state[1].velocity, state[2].velocity)
