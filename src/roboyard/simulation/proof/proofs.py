"""All experiments by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from roboyard.errors import UnknownNameError
from roboyard.simulation.proof import climbing, driving, falling, grain, sensing, sliding, spinning, striking
from roboyard.simulation.proof.check import Check, Proof
from roboyard.simulation.settings import PhysicsSettings

PROOFS: Mapping[str, Proof] = MappingProxyType(
    {
        "free fall": falling.free_fall,
        "pendulum": falling.pendulums,
        "spring": falling.spring,
        "energy": falling.energy,
        "slope": sliding.slopes,
        "stopping": sliding.stopping,
        "rolling": sliding.rollers,
        "bowling": sliding.bowling,
        "grain": grain.grains,
        "slip": grain.slips,
        "mecanum": grain.mecanum,
        "impact": striking.impacts,
        "bouncing": striking.bounces,
        "rebound": striking.drop,
        "gyroscope": spinning.gyroscopes,
        "free rotation": spinning.free_bodies,
        "motor": driving.motors,
        "skid steering": driving.skidding,
        "climbing": climbing.walls,
        "lidar": sensing.lidar,
        "inertial unit": sensing.inertial,
    }
)
"""Experiments by name, in the order of the page about them."""


def prove(settings: PhysicsSettings | None = None, names: Iterable[str] | None = None) -> dict[str, tuple[Check, ...]]:
    """Do experiments and compare.

    Args:
        settings: Of the engine, the step among them; the defaults if None.
        names: Of `PROOFS`; all if None.

    Raises:
        UnknownNameError: there is no such experiment.
    """
    wanted = tuple(PROOFS) if names is None else tuple(names)
    for name in wanted:
        if name not in PROOFS:
            raise UnknownNameError(f"no experiment {name!r}", valid=", ".join(PROOFS))
    return {name: PROOFS[name](settings or PhysicsSettings()) for name in wanted}
