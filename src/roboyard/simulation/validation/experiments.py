"""All validation experiments by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from roboyard.errors import UnknownNameError
from roboyard.physics.settings import PhysicsSettings
from roboyard.simulation.validation import drives, friction, mechanics, sensors
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
        "sliding to rolling": friction.check_sliding_to_rolling,
        "anisotropic friction": friction.check_anisotropic_friction,
        "slip": friction.check_contact_slip,
        "mecanum": friction.check_mecanum,
        "impact": mechanics.check_impacts,
        "restitution": mechanics.check_restitution,
        "rebound": mechanics.check_rebound,
        "gyroscope": mechanics.check_gyroscopes,
        "free rotation": mechanics.check_free_rotation,
        "motor": drives.check_motors,
        "skid steering": drives.check_skid_steering,
        "climbing": drives.check_wall_climbing,
        "lidar": sensors.check_lidar,
        "imu": sensors.check_imu,
    }
)
"""Experiments by name, in the order of the page about physics validation."""


def run_experiments(
    settings: PhysicsSettings | None = None, names: Iterable[str] | None = None
) -> dict[str, tuple[LawCheck, ...]]:
    """Simulate experiments and compare their results with the laws.

    Args:
        settings: Physics settings, the time step among them; None: the defaults.
        names: Names of `EXPERIMENTS`; None: all.

    Returns:
        The checks of each experiment.

    Raises:
        UnknownNameError: There is no experiment of one of the names.
    """
    selected_names = tuple(EXPERIMENTS) if names is None else tuple(names)
    for name in selected_names:
        if name not in EXPERIMENTS:
            raise UnknownNameError(f"no experiment {name!r}", valid=", ".join(EXPERIMENTS))
    return {name: EXPERIMENTS[name](settings or PhysicsSettings()) for name in selected_names}
