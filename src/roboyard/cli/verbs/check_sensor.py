"""``roboyard check sensor``: whether a sensor keeps the contract that the simulation relies on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from roboyard.cli.grammar import JsonOption

if TYPE_CHECKING:
    from roboyard.description.sensors import Sensor, SensorSpec


def sensor(
    file: Annotated[
        str,
        typer.Argument(
            metavar="SENSOR",
            help="file.py:Class, module:Class, a name of `roboyard list sensors`, or a robot: all of its own.",
        ),
    ],
    json: JsonOption = False,
) -> None:
    """A sensor: whether it keeps the contract.

    Frozen readings, chance from the seed, nothing disturbed, state saved.

    Exit code 1 if it breaks the contract.
    """
    from roboyard.cli.terminal import complain, emit, say
    from roboyard.simulation.sensors.check import SensorFaultError, check_sensor

    results: dict[str, Any] = {}
    broken = False
    for name, one, kind in _sensors(file):
        try:
            results[name] = {"ok": True, "holds": list(check_sensor(one, kind))}
        except SensorFaultError as error:
            broken, results[name] = True, {"ok": False, "error": str(error)}
    if json:
        emit({"ok": not broken, "sensors": results})
    for name, found in () if json else results.items():
        if found["ok"]:
            say(f"{name}: keeps the contract")
            for line in found["holds"]:
                say(f"  \u2713 {line}")
        else:
            complain(f"{name}: {found['error']}")
    if broken:
        raise typer.Exit(1)


def _sensors(file: str) -> list[tuple[str, Sensor, Any]]:
    """(name, description, class or None for the registered one) of what ``file`` names."""
    from roboyard.description.sensor_presets import PRESETS
    from roboyard.description.sensors import Sensor
    from roboyard.errors import ConfigError, InputError
    from roboyard.geometry import SE3
    from roboyard.scenarios import catalog
    from roboyard.simulation.sensors.registry import SENSORS

    if file in PRESETS:
        preset = PRESETS[file]
        return [(file, Sensor(file, preset.kind, "body", SE3(), preset.update_rate, file, "body", preset.spec), None)]
    if file in SENSORS.entry_points():
        brought = SENSORS[file]
        return [(file, Sensor(file, file, "body", SE3(), 50.0, file, "body", _example(brought)), brought)]
    if ":" in file:
        found = SENSORS.resolve(file)
        kind = getattr(found, "kind", "")
        if not isinstance(kind, str) or not kind:
            raise ConfigError(f"{file} has no kind", valid='kind = "sonar", as files call it')
        return [(found.__name__, Sensor(kind, kind, "body", SE3(), 50.0, kind, "body", _example(found)), found)]
    from roboyard.description import load_model

    known = SENSORS.names()
    model = load_model(catalog.find_robot(file).description)
    found_here = [(one.name, one, None) for one in model.sensors if one.kind in known]
    if not found_here:
        raise InputError(f"{file} has no sensor that is simulated", valid=f"kinds: {', '.join(known)}")
    return found_here


def _example(kind: Any) -> SensorSpec:
    """The description by which a class wants to be tried: its ``example``, else an empty one."""
    from roboyard.description.sensors import CustomSensorSpec

    found: SensorSpec = getattr(kind, "example", CustomSensorSpec())
    return found
