"""Sensors by name, class or robot, for the check of the contract of sensors."""

from __future__ import annotations

from typing import Any

from roboyard.bringup.robot_loader import load_robot
from roboyard.description import load_model
from roboyard.description.sensor_presets import PRESETS
from roboyard.description.sensors import CustomSensorSpec, Sensor, SensorSpec
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE3
from roboyard.sensors.registry import SENSORS


def find_sensors(name: str) -> list[tuple[str, Sensor, Any]]:
    """Find sensors by name.

    Args:
        name: ``file.py:Class``, ``module:Class``, a name of a preset or of a registered kind, or a robot, which gives
            all its simulated sensors.

    Returns:
        Name, description, and class of each sensor; None for the class that is registered for its kind.

    Raises:
        UnknownNameError: There is no such sensor or robot.
        ConfigError: The class has no kind.
        InputError: The robot has no sensor that is simulated.
    """
    if name in PRESETS:
        preset = PRESETS[name]
        return [(name, Sensor(name, preset.kind, "body", SE3(), preset.update_rate, name, "body", preset.spec), None)]
    if name in SENSORS.entry_points():
        registered_class = SENSORS[name]
        return [
            (
                name,
                Sensor(name, name, "body", SE3(), 50.0, name, "body", _example_spec(registered_class)),
                registered_class,
            )
        ]
    if ":" in name:
        sensor_class = SENSORS.resolve(name)
        kind = getattr(sensor_class, "kind", "")
        if not isinstance(kind, str) or not kind:
            raise ConfigError(f"{name} has no kind", valid='kind = "sonar", as files call it')
        return [
            (
                sensor_class.__name__,
                Sensor(kind, kind, "body", SE3(), 50.0, kind, "body", _example_spec(sensor_class)),
                sensor_class,
            )
        ]
    simulated_kinds = SENSORS.names()
    model = load_model(load_robot(name).description)
    simulated_sensors = [(one.name, one, None) for one in model.sensors if one.kind in simulated_kinds]
    if not simulated_sensors:
        raise InputError(f"{name} has no sensor that is simulated", valid=f"kinds: {', '.join(simulated_kinds)}")
    return simulated_sensors


def _example_spec(kind: Any) -> SensorSpec:
    """Return the description with which a class is checked: its ``example``, else an empty one."""
    found: SensorSpec = getattr(kind, "example", CustomSensorSpec())
    return found
