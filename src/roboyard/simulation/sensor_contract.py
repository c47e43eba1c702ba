"""Checks that a sensor class satisfies the contract that the simulation relies on."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import replace
from typing import Any

import numpy as np

from roboyard.description.model import (
    Axis,
    AxisLimits,
    Box,
    Collision,
    Inertial,
    Joint,
    Link,
    Model,
    PlacedModel,
    Plane,
    World,
)
from roboyard.description.sensors import Sensor
from roboyard.errors import RoboyardError, describe_exception
from roboyard.geometry import SE3
from roboyard.sensors.sensor import SimulatedSensor
from roboyard.simulation.simulation import Simulation


class SensorContractError(RoboyardError):
    """A sensor violates the contract; the message names the part and the observation."""


def check_sensor(sensor: Sensor, kind: type[SimulatedSensor[Any]] | None = None) -> tuple[str, ...]:
    """Test a sensor on a small robot that rolls and collides.

    Args:
        sensor: Description of the sensor; link and joint are replaced by those of the test robot.
        kind: Class of the sensor; None: the registered one.

    Returns:
        The parts of the contract that hold, as sentences.

    Raises:
        SensorContractError: The first part that does not hold.
    """
    passed = []
    for name, check in _CHECKS.items():
        try:
            check(sensor, kind)
        except RoboyardError:
            raise
        except Exception as error:  # the code of the sensor may raise anything
            raise SensorContractError(f"not shown: {name}: the sensor raised {describe_exception(error)}") from error
        passed.append(name)
    return tuple(passed)


def _make_robot(sensor: Sensor) -> Model:
    body, tip = Box((0.3, 0.2, 0.1)), Box((0.05, 0.05, 0.2))
    inertia = (0.01, 0.01, 0.01, 0.0, 0.0, 0.0)
    identity, above = SE3.identity(), SE3.from_xyz_rpy((0.1, 0.0, 0.15))
    links = (
        Link("base", identity, Inertial(2.0, identity, inertia), (Collision("c", body, identity),)),
        Link("tip", above, Inertial(0.5, identity, inertia), (Collision("c", tip, identity),)),
    )
    axis = Axis((0.0, 1.0, 0.0), AxisLimits(-1.0, 1.0, 5.0, 5.0))
    joint = Joint("swing", "revolute", "base", "tip", above, identity, (axis,))
    spec = sensor.spec
    changes: dict[str, Any] = {}
    if hasattr(spec, "joint"):
        changes["joint"] = "swing"
    if hasattr(spec, "joints"):
        changes["joints"] = ()
    if hasattr(spec, "collisions"):
        changes["collisions"] = ()
    if changes and dataclasses.is_dataclass(spec):
        spec = replace(spec, **changes)
    mounted = replace(sensor, link="tip", T_link_sensor=SE3.from_xyz_rpy((0.0, 0.0, 0.12)), spec=spec, frame="tip")
    return Model("probe", links, (joint,), (mounted,))


def _make_simulation(sensor: Sensor, kind: type[SimulatedSensor[Any]] | None, seed: int = 1) -> Simulation:
    ground = Link("ground", SE3.identity(), collisions=(Collision("c", Plane(), SE3.identity()),))
    wall = Link("wall", SE3.identity(), collisions=(Collision("c", Box((0.1, 4.0, 2.0)), SE3.identity()),))
    world = World(
        "check",
        (
            PlacedModel("ground", Model("ground", (ground,), static=True), SE3.identity()),
            PlacedModel("wall", Model("wall", (wall,), static=True), SE3.from_xyz_rpy((1.5, 0.0, 1.0))),
        ),
    )
    simulation = Simulation(world, seed=seed, sensor_kinds=None if kind is None else {sensor.kind: kind})
    simulation.add(_make_robot(sensor), "probe", SE3.from_xyz_rpy((0.0, 0.0, 0.4), (0.3, 0.2, 0.1)))
    if not simulation.sensors("probe"):
        raise SensorContractError(
            f"no package simulates sensors of kind {sensor.kind!r}", valid="an entry point in roboyard.sensors"
        )
    return simulation


def _collect_readings(simulation: Simulation, count: int = 40, steps: int = 7) -> list[bytes]:
    readings = []
    for _ in range(count):
        simulation.step(steps)
        readings.append(reading_to_bytes(simulation.sensors("probe")[0].read()))
    return readings


def reading_to_bytes(reading: Any) -> bytes:
    """Return a reading as bytes, which are equal only if all numbers are equal."""
    if not dataclasses.is_dataclass(reading) or isinstance(reading, type):
        raise SensorContractError(f"a reading is a {type(reading).__name__}", valid="a frozen dataclass")
    return pickle.dumps([(f.name, _plain_value(getattr(reading, f.name))) for f in dataclasses.fields(reading)])


def _plain_value(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, tuple):
        return tuple(_plain_value(item) for item in value)
    return repr(value)


def _check_stamp(sensor: Sensor, kind: type[SimulatedSensor[Any]] | None) -> None:
    simulation = _make_simulation(sensor, kind)
    simulation.step(11)
    simulated_sensor = simulation.sensors("probe")[0]
    reading = simulated_sensor.read()
    if getattr(reading, "time_ns", None) != simulation.time_ns:
        raise SensorContractError(
            f"time_ns is {getattr(reading, 'time_ns', None)} at {simulation.time_ns} ns", valid="the present"
        )
    if simulated_sensor.read() is not reading:
        raise SensorContractError("read twice at one instant, it measured twice", valid="measure() is only called once")


def _check_read_only(sensor: Sensor, kind: type[SimulatedSensor[Any]] | None) -> None:
    reading = _make_simulation(sensor, kind).sensors("probe")[0].read()
    reading_to_bytes(reading)
    if not getattr(reading, "__dataclass_params__").frozen:  # noqa: B009  every dataclass has it
        raise SensorContractError("its readings can be changed", valid="@dataclass(frozen=True)")
    for entry in dataclasses.fields(reading):
        value = getattr(reading, entry.name)
        if isinstance(value, np.ndarray) and value.flags.writeable:
            raise SensorContractError(
                f"the array {entry.name} can be written", valid="a read-only array: see `make_read_only`"
            )


def _check_no_side_effects(sensor: Sensor, kind: type[SimulatedSensor[Any]] | None) -> None:
    with_reads, without_reads = _make_simulation(sensor, kind), _make_simulation(sensor, kind)
    _collect_readings(with_reads)
    without_reads.step(40 * 7)
    if not np.array_equal(with_reads.world.data.qpos, without_reads.world.data.qpos) or not np.array_equal(
        with_reads.world.data.qvel, without_reads.world.data.qvel
    ):
        raise SensorContractError(
            "reading it changes what comes after", valid="measure() changes nothing in the simulation"
        )


def _check_seed(sensor: Sensor, kind: type[SimulatedSensor[Any]] | None) -> None:
    first, repeated, other = (_collect_readings(_make_simulation(sensor, kind, seed)) for seed in (1, 1, 2))
    if first != repeated:
        raise SensorContractError("the same seed gives other readings", valid="all chance from self.rng")
    if _make_simulation(sensor, kind).sensors("probe")[0].is_random and first == other:
        raise SensorContractError(
            "it says it is random, but another seed gives the same readings", valid="draw from self.rng"
        )


def _check_state(sensor: Sensor, kind: type[SimulatedSensor[Any]] | None) -> None:
    simulation = _make_simulation(sensor, kind)
    _collect_readings(simulation, 10)
    saved = simulation.save_state()
    expected = _collect_readings(simulation, 20)
    simulation.load_state(saved)
    if _collect_readings(simulation, 20) != expected:
        raise SensorContractError(
            "after save and load it goes on otherwise", valid="state in save_noise() and load_noise()"
        )


_CHECKS = {
    "a reading is stamped with its instant and measured once": _check_stamp,
    "readings are frozen": _check_read_only,
    "reading it changes nothing": _check_no_side_effects,
    "equal seeds give equal readings": _check_seed,
    "it continues alike after save and load": _check_state,
}
