"""All validation experiments by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from roboyard.errors import UnknownNameError
from roboyard.physics.settings import PhysicsSettings
from roboyard.simulation.validation import driving, friction, mechanics, sensors
from roboyard.simulation.validation.law_check import Experiment, LawCheck

EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        "free fall": mechanics.check_free_fall,
        "pendulum": mechanics.check_pendulums,
        "spring": mechanics.check_spring,
        "energy": mechanics.check_pendulum_energy,
        "slope": friction.check_slopes,
        "stopping": friction.check_stopping_distances,
        "rolling": friction.check_rolling,
        "bowling": friction.check_bowled_ball,
        "grain": friction.check_anisotropic_friction,
        "slip": friction.check_contact_slip,
        "mecanum": friction.check_mecanum,
        "impact": mechanics.check_impacts,
        "bouncing": mechanics.check_restitution,
        "rebound": mechanics.check_rebound,
        "gyroscope": mechanics.check_gyroscopes,
        "free rotation": mechanics.check_free_rotation,
        "motor": driving.check_motors,
        "skid steering": driving.check_skid_steering,
        "climbing": driving.check_wall_climbing,
        "lidar": sensors.check_lidar,
        "inertial unit": sensors.check_imu,
    }
)
"""Experiments by name, in the order of the page about them."""


def run_experiments(
    settings: PhysicsSettings | None = None, names: Iterable[str] | None = None
) -> dict[str, tuple[LawCheck, ...]]:
    """Do experiments and compare.

    Args:
        settings: Of the engine, the step among them; the defaults if None.
        names: Of `PROOFS`; all if None.

    Raises:
        UnknownNameError: there is no such experiment.
    """
    selected_names = tuple(EXPERIMENTS) if names is None else tuple(names)
    for name in selected_names:
        if name not in EXPERIMENTS:
            raise UnknownNameError(f"no experiment {name!r}", valid=", ".join(EXPERIMENTS))
    return {name: EXPERIMENTS[name](settings or PhysicsSettings()) for name in selected_names}
