"""Ramps for all three velocities of a base that moves in the plane."""

from __future__ import annotations

from dataclasses import dataclass

from roboyard.config import parameter
from roboyard.control.kinematics import PlanarTwist
from roboyard.control.ramps import RampConfig, RampLimits, RampState, next_velocity

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


class PlanarRampConfig(RampConfig):
    """Limits of a base's velocities forward, sideways and in turning, and of their changes."""

    side_speed: float = parameter(
        1.0, unit="m/s", low=0.0, high=50.0, runtime=True, doc="Largest speed sideways, of bases that can."
    )

    def sideways(self) -> RampLimits:
        """Return the limits of the speed across the base's heading."""
        return RampLimits(speed=self.side_speed, acceleration=self.acceleration, deceleration=self.deceleration or None)


def twist_of(state: State) -> PlanarTwist:
    """The velocities alone."""
    return PlanarTwist(state[0].velocity, state[1].velocity, state[2].velocity)
