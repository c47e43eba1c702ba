"""Sensor kinds by name: the built-in ones and those that other packages bring.

Another package adds a kind with an entry point in the group ``roboyard.sensors`` whose name is the kind and whose
object is a subclass of `SimulatedSensor`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any

from roboyard.description.sensors import Sensor
from roboyard.errors import ConfigError
from roboyard.simulation.sensors.base import Host, SimulatedSensor
from roboyard.simulation.sensors.cameras.camera import Camera, DepthCamera, RgbdCamera, StereoCamera
from roboyard.simulation.sensors.contact import Contact
from roboyard.simulation.sensors.encoder import Encoder
from roboyard.simulation.sensors.force_torque import ForceTorque
from roboyard.simulation.sensors.height import Altimeter, Barometer
from roboyard.simulation.sensors.imu import Imu
from roboyard.simulation.sensors.lidar import Lidar
from roboyard.simulation.sensors.satellite import Satellite
from roboyard.simulation.sensors.sonar import Sonar
from roboyard.simulation.sensors.truth import TruthSensor
from roboyard.simulation.sensors.vectors import Accelerometer, Gyroscope, Magnetometer

GROUP = "roboyard.sensors"
BUILT_IN: dict[str, type[SimulatedSensor[Any]]] = {
    kind.kind: kind
    for kind in (
        Lidar, Sonar, Imu, Accelerometer, Gyroscope, Magnetometer, Altimeter, Barometer, Satellite, Encoder,
        ForceTorque, Contact, TruthSensor, Camera, DepthCamera, RgbdCamera, StereoCamera,
    )
}  # fmt: skip


@lru_cache(maxsize=1)
def _others() -> dict[str, Any]:
    return {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}


def sensor_kinds() -> tuple[str, ...]:
    """All kinds that can be simulated."""
    return tuple(sorted({*BUILT_IN, *_others()}))


def brought_kind(name: str) -> type[SimulatedSensor[Any]] | None:
    """The class that another package brings under a name; None if none does.

    Raises:
        ConfigError: it cannot be imported, or is no sensor.
    """
    entry = _others().get(name)
    if entry is None:
        return None
    where = f"entry point {entry.name} = {entry.value} of {GROUP}"
    try:
        found = entry.load()
    except Exception as error:  # whatever the other package does wrong
        raise ConfigError(f"cannot be loaded: {type(error).__name__}: {error}", location=where) from error
    if not (isinstance(found, type) and issubclass(found, SimulatedSensor)):
        raise ConfigError(
            "is no sensor", location=where, valid="a subclass of roboyard.simulation.sensors.SimulatedSensor"
        )
    return found


def make_sensor(
    host: Host, robot: str, sensor: Sensor, kinds: Mapping[str, type[SimulatedSensor[Any]]] | None = None
) -> SimulatedSensor[Any] | None:
    """The simulated sensor for a description, unbound; None for a kind nobody simulates.

    Args:
        host: The simulation.
        robot: Name of the model it sits on.
        sensor: Its description.
        kinds: Further kinds, or others in place of ours.
    """
    kind = (kinds or {}).get(sensor.kind) or BUILT_IN.get(sensor.kind) or brought_kind(sensor.kind)
    return kind(host, robot, sensor) if kind is not None else None
