"""Faults of a simulated robot and of the ground: of sensors, joints, power and friction.

`FaultManager.start` and `FaultManager.end` change the active faults; scenarios schedule them.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from roboyard.compute.random import generator_state, make_generator, restore_generator
from roboyard.description.joint_interfaces import LOCKED_RANGE, effort_limit
from roboyard.description.sensors import CameraSpec
from roboyard.errors import InputError, UnknownNameError
from roboyard.physics.compiled_world import FrictionPatch, JointAddress, ModelAddresses
from roboyard.physics.kernels import servos as servo_kernels
from roboyard.physics.world import PhysicsWorld
from roboyard.sensors import SimulatedSensor

SensorFaultMode = Literal["silent", "stuck", "delayed", "noisy", "no_depth", "dim"]
JointFaultMode = Literal["blocked", "weak"]


@dataclass(frozen=True, slots=True)
class SensorFault:
    """Fault of one sensor of a model.

    Modes: ``silent``: the sensor returns no readings; ``stuck``: it repeats the reading at its start with new stamps;
    ``delayed``: it returns the reading of ``magnitude`` [s] ago, with the stamp of that time; ``noisy``: white
    noise with the standard deviation ``magnitude``, in the unit of the reading, is added; ``no_depth``: a depth camera
    measures no pixel; ``dim``: a camera's colors have the fraction ``magnitude`` of the light.
    """

    model: str
    sensor: str
    mode: SensorFaultMode
    magnitude: float = 0.0


@dataclass(frozen=True, slots=True)
class JointFault:
    """Fault of one joint: ``blocked``: it is locked; ``weak``: its effort limit is multiplied by ``magnitude``."""

    model: str
    joint: str
    mode: JointFaultMode
    magnitude: float = 0.0


@dataclass(frozen=True, slots=True)
class PowerFault:
    """A model without power: joints have no effort, joints with brakes are locked, and all sensors are silent."""

    model: str


@dataclass(frozen=True, slots=True)
class GroundFault:
    """A patch of the ground has another friction coefficient."""

    patch: FrictionPatch


Fault = SensorFault | JointFault | PowerFault | GroundFault
PLAIN_FAULT_TYPES: dict[str, type[Fault]] = {kind.__name__: kind for kind in (SensorFault, JointFault, PowerFault)}
"""Kinds of faults by name whose fields are plain data; the field of a `GroundFault` is a patch."""

_MODEL_ARRAYS = ("jnt_limited", "jnt_range", "jnt_solref")
_BRAKE_TIME_CONSTANT_STEPS = 2.0
"""Time constant of the limits that lock a joint, in physics steps: the smallest one that is stable."""


class JointFaults:
    """Applies faults of joints to a compiled model, and restores its original values.

    Args:
        world: A compiled world without faults.
    """

    def __init__(self, world: PhysicsWorld) -> None:
        self.world = world
        self._original_arrays = {name: getattr(world.model, name).copy() for name in _MODEL_ARRAYS}

    def apply(
        self, faults: Mapping[str, JointFault | PowerFault], locked_positions: Mapping[str, Mapping[str, float]]
    ) -> None:
        """Change the model for these faults, and restore what no fault changes.

        Args:
            faults: Faults by name.
            locked_positions: Positions of locked joints by name of the fault and of the joint [rad or m].
        """
        model, servos = self.world.model, self.world.servos
        for name, values in self._original_arrays.items():
            getattr(model, name)[:] = values
        for (model_name, joint), servo in servos.servos.items():
            effort_fraction = _remaining_effort_fraction(model_name, joint, faults.values())
            servos.floats[servo.row, servo_kernels.JOINT_MAX_EFFORT] = (
                effort_limit(servo.address.axis) * effort_fraction if effort_fraction > 0.0 else 0.0
            )
            servos.apply_effort_limit(servo, model)
        for name, fault in faults.items():
            for address in self._joint_addresses(fault):
                if address.name in locked_positions[name]:
                    self._lock_joint(address, locked_positions[name][address.name])

    def braked_positions(self, fault: JointFault | PowerFault) -> dict[str, float]:
        """Return the positions of the joints that a fault locks: the joint itself, or those with a brake [rad or m]."""
        if isinstance(fault, PowerFault):
            braked = _joints_with_brakes(self.world.compiled.addresses[fault.model])
        else:
            braked = {fault.joint} if fault.mode == "blocked" else set()
        return {
            address.name: float(self.world.data.qpos[address.qpos])
            for address in self._joint_addresses(fault)
            if address.name in braked
        }

    def _joint_addresses(self, fault: JointFault | PowerFault) -> tuple[JointAddress, ...]:
        addresses = self.world.compiled.addresses.get(fault.model)
        return addresses.joints if addresses is not None else ()

    def _lock_joint(self, address: JointAddress, position: float) -> None:
        """Lock a joint by limits on both sides of its position; friction would slip."""
        model = self.world.model
        model.jnt_limited[address.joint] = 1
        model.jnt_range[address.joint] = position - LOCKED_RANGE, position + LOCKED_RANGE
        model.jnt_solref[address.joint] = _BRAKE_TIME_CONSTANT_STEPS * model.opt.timestep, 1.0


def _joints_with_brakes(addresses: ModelAddresses) -> set[str]:
    """Return the joints with a brake that locks them without power: ``<param name="brake">true</param>``."""
    interfaces = addresses.entry.model.interfaces
    return {one.joint for one in interfaces if dict(one.parameters).get("brake", "").strip().lower() in ("true", "1")}


def _remaining_effort_fraction(model: str, joint: str, faults: Iterable[JointFault | PowerFault]) -> float:
    """Return the fraction of a joint's effort limit that a fault leaves; 0 without power."""
    fraction = 1.0
    for fault in faults:
        if fault.model != model:
            continue
        if isinstance(fault, PowerFault):
            return 0.0
        if fault.joint == joint and fault.mode == "weak":
            fraction *= fault.magnitude
    return fraction if not math.isnan(fraction) else 0.0


NOISY_FIELDS: dict[str, tuple[str, ...]] = {"encoder": ("position", "velocity"), "lidar": ("ranges",)}
"""Fields of readings to which faults add noise, by kind of sensor; for other kinds all fields of real numbers."""
_NOISELESS_FIELDS = ("orientation", "variance", "reference")
"""Fields without noise: a rotation with noise is not a rotation, and a sensor does not measure its parameters."""
_LATITUDE_DEGREES_PER_METER = 1.0 / 111_320.0
"""Degrees of latitude per meter: the noise of a position is given in meters."""
SENSORS_WITHOUT_NOISE = ("contact", "ground_truth")
"""Kinds of sensors whose readings are not plain numbers, and cannot have noise."""


def _without_depth(reading: Any) -> Any:
    """Return a camera's reading whose depth and disparity are unknown; images stay."""
    unknown_values = {"depth": math.nan, "disparity": -1.0}
    unknown = {
        name: np.full_like(getattr(reading, name), value)
        for name, value in unknown_values.items()
        if getattr(reading, name) is not None
    }
    for image in unknown.values():
        image.flags.writeable = False
    return replace(reading, **unknown)


def _dim_images(reading: Any, brightness: float) -> Any:
    """Return a reading whose colors have this fraction of the light; its depth stays."""
    images = {name: getattr(reading, name) for name in ("color", "right")}
    dimmed = {name: np.rint(brightness * image).astype(np.uint8) for name, image in images.items() if image is not None}
    for image in dimmed.values():
        image.flags.writeable = False
    return replace(reading, **dimmed)


class ActiveSensorFault:
    """An active fault of one sensor.

    Args:
        fault: The fault.
        kind: Kind of the sensor.
        initial_reading: Reading of the sensor when the fault started.
        rng: Random generator of the noise.
    """

    def __init__(self, fault: SensorFault, kind: str, initial_reading: Any, rng: np.random.Generator) -> None:
        self.fault, self.initial_reading = fault, initial_reading
        self._kind, self._rng = kind, rng
        self._history: deque[tuple[int, Any]] = deque()

    @property
    def delay_ns(self) -> int:
        """Delay of the readings [ns]; 0: they are not delayed."""
        return round(self.fault.magnitude * 1e9) if self.fault.mode == "delayed" else 0

    def apply(self, reading: Any, now_ns: int) -> Any:
        """Apply the fault to a reading at ``now_ns`` [ns], once per time; None: the sensor is silent."""
        match self.fault.mode:
            case "silent":
                return None
            case "stuck":
                return None if self.initial_reading is None else replace(self.initial_reading, time_ns=now_ns)
            case "delayed":
                return self._delay(reading, now_ns - self.delay_ns, now_ns)
            case "noisy":
                return None if reading is None else self._add_noise(reading)
            case "no_depth":
                return None if reading is None else _without_depth(reading)
            case "dim":
                return None if reading is None else _dim_images(reading, self.fault.magnitude)

    def _delay(self, reading: Any, until_ns: int, now_ns: int) -> Any:
        self._history.append((now_ns, reading))
        newest = None
        while self._history and self._history[0][0] <= until_ns:
            newest = self._history.popleft()
        if newest is None:
            return None
        self._history.appendleft(newest)  # it is the newest one that old until another is
        return newest[1]

    def _add_noise(self, reading: Any) -> Any:
        noisy_fields: dict[str, Any] = {}
        field_names = NOISY_FIELDS.get(self._kind)
        for item in fields(reading):
            if item.name in _NOISELESS_FIELDS or (field_names is not None and item.name not in field_names):
                continue
            value = getattr(reading, item.name)
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                noise = self.fault.magnitude * self._rng.standard_normal(value.shape)
                noisy_value = np.where(np.isfinite(value), value + noise, value).astype(value.dtype, copy=False)
                noisy_fields[item.name] = noisy_value
                noisy_value.flags.writeable = False
            elif isinstance(value, float):
                scale = _LATITUDE_DEGREES_PER_METER if item.name in ("latitude", "longitude") else 1.0
                if item.name == "longitude":
                    scale /= max(math.cos(math.radians(reading.latitude)), 1e-6)
                error = scale * self.fault.magnitude * float(self._rng.standard_normal())
                noisy_fields[item.name] = value + error if math.isfinite(value) else value
            elif isinstance(value, tuple) and value and all(isinstance(number, float) for number in value):
                errors = self.fault.magnitude * self._rng.standard_normal(len(value))
                noisy_fields[item.name] = tuple(float(number) for number in np.asarray(value) + errors)
        return replace(reading, **noisy_fields)

    def save_state(self) -> dict[str, Any]:
        """Return the stored readings, and the random generator as plain data."""
        return {
            "held": self.initial_reading,
            "past": list(self._history),
            "rng": generator_state(dict(self._rng.bit_generator.state)),
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore what `save_state` returned."""
        self.initial_reading = saved["held"]
        self._history = deque((int(time_ns), reading) for time_ns, reading in saved["past"])
        restore_generator(self._rng, saved["rng"])


_MAX_HISTORY_SAMPLES = 5000
"""Readings that a delayed encoder stores: a delay of up to 10 s is exact, a longer one to 1/5000 of it."""


@dataclass(slots=True)
class _ActiveFault:
    """An active fault with its state: locked joint positions and active sensor faults, both by name."""

    fault: Fault
    locked_positions: dict[str, float] = field(default_factory=dict)
    sensor_faults: dict[str, ActiveSensorFault] = field(default_factory=dict)


class FaultedReading(NamedTuple):
    """A sensor reading to which the faults of its sensor are applied.

    Attributes:
        reading: The reading, with the faults that are applied so far.
        delayed_by: Name of the fault that delays it; "": all faults are applied.
        delay_ns: Its delay by that fault [ns].
    """

    reading: Any
    delayed_by: str = ""
    delay_ns: int = 0


class FaultManager:
    """Faults by name.  Several may act on the same sensor or joint; they act in the order in which they were started.

    The manager itself applies faults to sensors and joints.  Friction patches it only names: whoever owns the world
    gives `friction_patches` to its surfaces.

    Args:
        seed: Seed of the simulation, from which each fault of a sensor derives its noise.
        world: The world that the faults act in, until `bind` names its successor.
        on_changed: Called after faults have started or ended and joints are changed: the caller updates the surfaces of
            the world and evaluates it.
    """

    def __init__(self, seed: int, world: PhysicsWorld, on_changed: Callable[[], None]) -> None:
        self._seed, self._world, self._on_changed = seed, world, on_changed
        self._sensors: Mapping[str, Sequence[SimulatedSensor[Any]]] = {}
        self._active: dict[str, _ActiveFault] = {}
        self._joints: JointFaults | None = None
        self._faulted_readings: dict[tuple[str, str], tuple[int, Any]] = {}
        self._delayed_encoders: tuple[tuple[SimulatedSensor[Any], int], ...] = ()

    @property
    def active(self) -> dict[str, Fault]:
        """Active faults by name, in the order in which they started."""
        return {name: active.fault for name, active in self._active.items()}

    def is_powered(self, model: str) -> bool:
        """Return whether a model has power."""
        active = (item.fault for item in self._active.values())
        return not any(isinstance(fault, PowerFault) and fault.model == model for fault in active)

    def check(self, fault: Fault) -> None:
        """Check that the fault is possible in this simulation.

        Raises:
            UnknownNameError: There is no such model, sensor or joint.
            InputError: The joint or sensor cannot have this fault, or a number is out of range.
        """
        if isinstance(fault, GroundFault):
            if not (fault.patch.length > 0.0 and fault.patch.width > 0.0 and fault.patch.friction >= 0.0):
                raise InputError(f"patch {fault.patch}", valid="positive sizes, friction of at least 0")
            return
        addresses = self._world.addresses(fault.model)
        if isinstance(fault, SensorFault):
            sensors = {item.sensor.name: item.sensor for item in self._sensors[fault.model]}
            if fault.sensor not in sensors:
                names = ", ".join(sensors) or "none"
                raise UnknownNameError(f"{fault.model} has no sensor {fault.sensor!r}", valid=f"sensors: {names}")
            kind, spec = sensors[fault.sensor].kind, sensors[fault.sensor].spec
            if fault.mode == "noisy" and kind in SENSORS_WITHOUT_NOISE:
                raise InputError(
                    f"sensor {fault.sensor!r} measures no numbers that could be noisy", valid="silent, stuck or delayed"
                )
            if fault.mode == "no_depth" and not (isinstance(spec, CameraSpec) and spec.has_depth):
                raise InputError(f"sensor {fault.sensor!r} measures no depth", valid="silent, stuck, delayed or noisy")
            if fault.mode == "dim" and not (isinstance(spec, CameraSpec) and spec.has_color):
                raise InputError(f"sensor {fault.sensor!r} sees no colours", valid="a camera")
        elif isinstance(fault, JointFault):
            joints = {address.name: address for address in addresses.joints}
            if fault.joint not in joints:
                names = ", ".join(joints) or "none"
                raise UnknownNameError(f"{fault.model} has no joint {fault.joint!r}", valid=f"joints: {names}")
            address = joints[fault.joint]
            if fault.mode == "weak" and (address.actuator < 0 or effort_limit(address.axis) == float("inf")):
                limited_joints = [
                    joint_address.name
                    for joint_address in joints.values()
                    if joint_address.actuator >= 0 and effort_limit(joint_address.axis) < float("inf")
                ]
                raise InputError(
                    f"joint {fault.joint!r} has no limit of effort that could shrink",
                    valid=f"joints with a limit: {', '.join(limited_joints) or 'none'}",
                )

    def start(self, name: str, fault: Fault) -> None:
        """Start ``fault`` now under a name.

        Raises:
            InputError: The name is in use; and as `check`.
        """
        if name in self._active:
            raise InputError(f"a fault {name!r} is under way", valid="another name")
        self.check(fault)
        active = _ActiveFault(fault)
        if isinstance(fault, JointFault | PowerFault):
            active.locked_positions = self._get_joint_faults().braked_positions(fault)
        for sensor in self._sensors_of(fault):
            active.sensor_faults[sensor.sensor.name] = self._make_sensor_fault(name, fault, sensor, sensor.read())
        self._active[name] = active
        self._faulted_readings.clear()
        self._apply_to_joints()
        self._on_changed()

    def end(self, name: str) -> None:
        """End the fault now, and restore what it changed; does nothing if it is not active."""
        if self._active.pop(name, None) is not None:
            self._faulted_readings.clear()
            self._apply_to_joints()
            self._on_changed()

    def read_through_faults(self, sensor: SimulatedSensor[Any], *, use_last_reading: bool = False) -> Any:
        """Return the present reading of a sensor with its faults; None if the sensor is silent.

        Args:
            sensor: Sensor of one of the models.
            use_last_reading: Return the last reading of a silent sensor, as a driver that polls a dead encoder does.
        """
        sensor_faults = [
            item for active in self._active.values() if (item := _fault_of_sensor(active, sensor)) is not None
        ]
        if not sensor_faults:
            return sensor.read()
        now, key = self._world.time_ns, (sensor.robot, sensor.sensor.name)
        if self._faulted_readings.get(key, (-1, None))[0] != now:
            reading = sensor.read()
            for sensor_fault in sensor_faults:
                reading = sensor_fault.apply(reading, now)
            self._faulted_readings[key] = now, reading
        reading = self._faulted_readings[key][1]
        return sensor_faults[0].initial_reading if reading is None and use_last_reading else reading

    def apply_faults(self, sensor: SimulatedSensor[Any], reading: Any, after_fault: str = "") -> FaultedReading | None:
        """Apply the faults of a sensor to a reading, once, in the order in which the faults started.

        A publisher stores a reading that a fault delays, and calls this method again when the delay is over.

        Args:
            sensor: The sensor.
            reading: The reading of the sensor, or of the fault ``after_fault``.
            after_fault: Name of the fault that delayed the reading; its successors are still to be applied.

        Returns:
            The reading, and the fault that delays it; None if a fault drops it, or the fault that delayed it is over.
        """
        if after_fault and after_fault not in self._active:
            return None
        is_after = not after_fault
        for name, active in self._active.items():
            if is_after and (sensor_fault := _fault_of_sensor(active, sensor)) is not None:
                if sensor_fault.delay_ns:
                    return FaultedReading(reading, name, sensor_fault.delay_ns)
                reading = sensor_fault.apply(reading, self._world.time_ns)
                if reading is None:
                    return None
            is_after = is_after or name == after_fault
        return FaultedReading(reading)

    def sample_delayed_encoders(self) -> None:
        """Sample the delayed encoders now: a later reading of the joints returns these samples."""
        for sensor, _ in self._delayed_encoders:
            self.read_through_faults(sensor)

    @property
    def delayed_sample_stride(self) -> int:
        """Number of physics steps between two calls of `sample_delayed_encoders`; 0: none is needed."""
        step_ns = self._world.timestep_ns
        return min(
            (-(-delay_ns // (_MAX_HISTORY_SAMPLES * step_ns)) for _, delay_ns in self._delayed_encoders), default=0
        )

    @property
    def friction_patches(self) -> list[FrictionPatch]:
        """Patches of the ground whose friction an active fault changes."""
        return [active.fault.patch for active in self._active.values() if isinstance(active.fault, GroundFault)]

    @property
    def has_changed_constraints(self) -> bool:
        """Whether active faults change the constraints of the world: it must be evaluated after `bind`."""
        return any(isinstance(active.fault, JointFault | PowerFault | GroundFault) for active in self._active.values())

    def bind(self, world: PhysicsWorld, sensors: Mapping[str, Sequence[SimulatedSensor[Any]]]) -> None:
        """Apply the faults to ``world`` and its sensors (called when models change).

        Args:
            world: The world from now on.
            sensors: Sensors of each model in it.
        """
        self._world, self._sensors = world, sensors
        self._apply_to_joints()

    def _apply_to_joints(self) -> None:
        """Apply the active faults to the joints and actuators of the world, and list the delayed encoders."""
        world = self._world
        if self._joints is None or self._joints.world is not world:
            self._joints = None
        joint_faults = {
            fault_name: active_fault.fault
            for fault_name, active_fault in self._active.items()
            if isinstance(active_fault.fault, JointFault | PowerFault)
        }
        if joint_faults or self._joints is not None:
            self._get_joint_faults().apply(
                joint_faults, {name: active.locked_positions for name, active in self._active.items()}
            )
        self._delayed_encoders = tuple(
            (sensor, item.delay_ns)
            for active in self._active.values()
            for sensor in self._sensors_of(active.fault)
            if sensor.sensor.kind == "encoder"
            and (item := _fault_of_sensor(active, sensor)) is not None
            and item.delay_ns
        )

    def save_state(self) -> dict[str, Any]:
        """Return the active faults as plain data, except for the readings that sensor faults store."""
        return {
            name: {
                "kind": type(active.fault).__name__,
                "fields": asdict(active.fault),
                "held": dict(active.locked_positions),
                "sensors": {sensor: item.save_state() for sensor, item in active.sensor_faults.items()},
            }
            for name, active in self._active.items()
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Restore the faults of `save_state`; the caller has restored the physical state.

        The caller then updates the surfaces of the world and evaluates it.
        """
        self._active, self._faulted_readings = {}, {}
        for name, item in saved.items():
            fault = _fault_from_plain(item["kind"], item["fields"])
            active = _ActiveFault(fault, {joint: float(position) for joint, position in item["held"].items()})
            for sensor in self._sensors_of(fault):
                if sensor.sensor.name in item["sensors"]:
                    saved_sensor_state = item["sensors"][sensor.sensor.name]
                    sensor_fault = active.sensor_faults[sensor.sensor.name] = self._make_sensor_fault(
                        name, fault, sensor, None
                    )
                    sensor_fault.load_state(saved_sensor_state)
            self._active[name] = active
        self._apply_to_joints()

    def _get_joint_faults(self) -> JointFaults:
        if self._joints is None:
            self._joints = JointFaults(self._world)
        return self._joints

    def _sensors_of(self, fault: Fault) -> list[SimulatedSensor[Any]]:
        model = _model_of(fault)
        if isinstance(fault, JointFault) or model not in self._sensors:
            return []
        sensors = self._sensors[model]
        return [s for s in sensors if isinstance(fault, PowerFault) or s.sensor.name == fault.sensor]  # type: ignore[union-attr]

    def _make_sensor_fault(
        self, name: str, fault: Fault, sensor: SimulatedSensor[Any], initial_reading: Any
    ) -> ActiveSensorFault:
        description = (
            fault if isinstance(fault, SensorFault) else SensorFault(sensor.robot, sensor.sensor.name, "silent")
        )
        rng = make_generator(self._seed, sensor.robot, sensor.sensor.name, "fault", name)
        return ActiveSensorFault(description, sensor.sensor.kind, initial_reading, rng)


def _fault_of_sensor(active: _ActiveFault, sensor: SimulatedSensor[Any]) -> ActiveSensorFault | None:
    """Return the effect of a fault on a sensor, or None."""
    return active.sensor_faults.get(sensor.sensor.name) if _model_of(active.fault) == sensor.robot else None


def _model_of(fault: Fault) -> str:
    return "" if isinstance(fault, GroundFault) else fault.model


def _fault_from_plain(kind: str, values: dict[str, Any]) -> Fault:
    return (
        GroundFault(FrictionPatch(**values["patch"]))
        if kind == GroundFault.__name__
        else PLAIN_FAULT_TYPES[kind](**values)
    )
