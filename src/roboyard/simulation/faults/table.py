"""All faults of a simulation that are under way: begun, ended, looked at, saved and restored."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from roboyard.errors import InputError, UnknownNameError
from roboyard.simulation.faults.joints import JointFaults
from roboyard.simulation.faults.kinds import KINDS, Fault, GroundFault, JointFault, PowerFault, SensorFault
from roboyard.simulation.faults.sensing import COLOUR_CAMERAS, DEPTH_CAMERAS, NUMBERLESS, Impairment
from roboyard.simulation.randomness import generator
from roboyard.simulation.servos import effort_limit
from roboyard.simulation.surface_tables import Patch

if TYPE_CHECKING:
    from roboyard.simulation.engine import Simulation
    from roboyard.simulation.sensors import SimulatedSensor


_SAMPLES = 5000
"""Readings that a late encoder remembers: up to 10 s late it is exact, beyond that to a 5000th of its delay."""


@dataclass(slots=True)
class _Active:
    """A fault under way, with what it remembers: where joints were, what sensors had measured (both by name)."""

    fault: Fault
    held: dict[str, float] = field(default_factory=dict)
    impairments: dict[str, Impairment] = field(default_factory=dict)


class Passage(NamedTuple):
    """How far a reading has come on its way out.

    Attributes:
        reading: As it is by now.
        held_by: Name of the fault that holds it back; "": it is out.
        delay_ns: For how long [ns].
    """

    reading: Any
    held_by: str = ""
    delay_ns: int = 0


class FaultTable:
    """Faults by name.  Several may fall on the same thing; they act in the order in which they began."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._active: dict[str, _Active] = {}
        self._joints: JointFaults | None = None
        self._sensed: dict[tuple[str, str], tuple[int, Any]] = {}
        self._late_encoders: tuple[tuple[SimulatedSensor[Any], int], ...] = ()

    @property
    def active(self) -> dict[str, Fault]:
        """The faults under way, in the order in which they began."""
        return {name: active.fault for name, active in self._active.items()}

    def powered(self, model: str) -> bool:
        """Whether a model has power."""
        active = (item.fault for item in self._active.values())
        return not any(isinstance(fault, PowerFault) and fault.model == model for fault in active)

    def check(self, fault: Fault) -> None:
        """Whether there is what the fault falls on.

        Raises:
            UnknownNameError: no such model, sensor or joint.
            InputError: that joint or sensor cannot fail in this way, or a number is out of range.
        """
        if isinstance(fault, GroundFault):
            if not (fault.patch.length > 0.0 and fault.patch.width > 0.0 and fault.patch.friction >= 0.0):
                raise InputError(f"patch {fault.patch}", valid="positive sizes, friction of at least 0")
            return
        placement = self._simulation.placement(fault.model)  # which says what models there are
        if isinstance(fault, SensorFault):
            sensors = {item.sensor.name: item.sensor.kind for item in self._simulation.sensors(fault.model)}
            if fault.sensor not in sensors:
                names = ", ".join(sensors) or "none"
                raise UnknownNameError(f"{fault.model} has no sensor {fault.sensor!r}", valid=f"sensors: {names}")
            if fault.trouble == "noisy" and sensors[fault.sensor] in NUMBERLESS:
                raise InputError(
                    f"sensor {fault.sensor!r} measures no numbers that could be noisy", valid="silent, stuck or delayed"
                )
            if fault.trouble == "blind" and sensors[fault.sensor] not in DEPTH_CAMERAS:
                raise InputError(f"sensor {fault.sensor!r} measures no depth", valid="silent, stuck, delayed or noisy")
            if fault.trouble == "dark" and sensors[fault.sensor] not in COLOUR_CAMERAS:
                raise InputError(f"sensor {fault.sensor!r} sees no colours", valid="a camera")
        elif isinstance(fault, JointFault):
            places = {place.name: place for place in placement.joints}
            if fault.joint not in places:
                names = ", ".join(places) or "none"
                raise UnknownNameError(f"{fault.model} has no joint {fault.joint!r}", valid=f"joints: {names}")
            place = places[fault.joint]
            if fault.trouble == "weak" and (place.actuator < 0 or effort_limit(place.axis) == float("inf")):
                limited = [p.name for p in places.values() if p.actuator >= 0 and effort_limit(p.axis) < float("inf")]
                raise InputError(
                    f"joint {fault.joint!r} has no limit of effort that could shrink",
                    valid=f"joints with a limit: {', '.join(limited) or 'none'}",
                )

    def begin(self, name: str, fault: Fault) -> None:
        """Let ``fault`` begin now, under a name of its own.

        Raises:
            InputError: the name is taken; or as `check`.
        """
        if name in self._active:
            raise InputError(f"a fault {name!r} is under way", valid="another name")
        self.check(fault)
        active = _Active(fault)
        if isinstance(fault, JointFault | PowerFault):
            active.held = self._joint_faults().held(fault)
        for sensor in self._sensors_of(fault):
            active.impairments[sensor.sensor.name] = self._impair(name, fault, sensor, sensor.read())
        self._active[name] = active
        self._sensed.clear()
        self.rebind(look=True)

    def end(self, name: str) -> None:
        """Let the fault end now; whatever it fell on is as it was made. Harmless when it is not under way."""
        if self._active.pop(name, None) is not None:
            self._sensed.clear()
            self.rebind(look=True)

    def sensed(self, sensor: SimulatedSensor[Any], *, hold: bool = False) -> Any:
        """What comes out of a sensor at this instant; None if it is silent.

        Args:
            sensor: Of one of the simulation's models.
            hold: Instead of silence give what it measured last, as whoever polls a dead encoder gets.
        """
        mine = [item for active in self._active.values() if (item := _impairment(active, sensor)) is not None]
        if not mine:
            return sensor.read()
        now, key = self._simulation.time_ns, (sensor.robot, sensor.sensor.name)
        if self._sensed.get(key, (-1, None))[0] != now:
            reading = sensor.read()
            for impairment in mine:
                reading = impairment.apply(reading, now)
            self._sensed[key] = now, reading
        reading = self._sensed[key][1]
        return mine[0].held if reading is None and hold else reading

    def pass_on(self, sensor: SimulatedSensor[Any], reading: Any, after: str = "") -> Passage | None:
        """Send a reading through the faults of its sensor, in the order in which they began, once.

        Whoever publishes readings keeps one that a fault holds back, and sends it on when its delay is over.

        Args:
            sensor: That measured it.
            reading: As it left the sensor, or the fault ``after``.
            after: Name of the fault that held it back.

        Returns:
            How far it came; None if nothing comes of it, also because the fault that held it back is over.
        """
        if after and after not in self._active:
            return None
        beyond = not after
        for name, active in self._active.items():
            if beyond and (mine := _impairment(active, sensor)) is not None:
                if mine.late_ns:
                    return Passage(reading, name, mine.late_ns)
                reading = mine.apply(reading, self._simulation.time_ns)
                if reading is None:
                    return None
            beyond = beyond or name == after
        return Passage(reading)

    def look(self) -> None:
        """Let encoders that are late measure now: whoever reads the joints asks for what they showed a while ago."""
        for sensor, _ in self._late_encoders:
            self.sensed(sensor)

    @property
    def stride(self) -> int:
        """After how many physics steps `look` is due; 0: never."""
        step_ns = self._simulation.timestep_ns
        return min((-(-late_ns // (_SAMPLES * step_ns)) for _, late_ns in self._late_encoders), default=0)

    def rebind(self, *, look: bool = False) -> None:
        """Put the faults into the compiled world anew; ``look``: evaluate it again, since constraints changed."""
        running = self._simulation.running
        if self._joints is None or self._joints.running is not running:
            self._joints = None
        touching = {n: a.fault for n, a in self._active.items() if isinstance(a.fault, JointFault | PowerFault)}
        if touching or self._joints is not None:
            self._joint_faults().apply(touching, {name: active.held for name, active in self._active.items()})
        self._late_encoders = tuple(
            (sensor, item.late_ns)
            for active in self._active.values()
            for sensor in self._sensors_of(active.fault)
            if sensor.sensor.kind == "encoder" and (item := _impairment(active, sensor)) is not None and item.late_ns
        )
        patches = [active.fault.patch for active in self._active.values() if isinstance(active.fault, GroundFault)]
        running.surfaces.set(running.assembled, patches, self._simulation.belts)
        if look or patches or touching or running.surfaces.belts.size:
            running.evaluate(self._simulation.holds.table)

    def save_state(self) -> dict[str, Any]:
        """Faults under way as plain data, except for the readings that sensors' faults hold back."""
        return {
            name: {
                "kind": type(active.fault).__name__,
                "fields": asdict(active.fault),
                "held": dict(active.held),
                "sensors": {sensor: item.save_state() for sensor, item in active.impairments.items()},
            }
            for name, active in self._active.items()
        }

    def load_state(self, saved: dict[str, Any]) -> None:
        """Go on with what ``save`` gave; the physical state is back already."""
        self._active, self._sensed = {}, {}
        for name, item in saved.items():
            fault = _fault(item["kind"], item["fields"])
            active = _Active(fault, {joint: float(position) for joint, position in item["held"].items()})
            for sensor in self._sensors_of(fault):
                if sensor.sensor.name in item["sensors"]:
                    memory = item["sensors"][sensor.sensor.name]
                    made = active.impairments[sensor.sensor.name] = self._impair(name, fault, sensor, None)
                    made.load_state(memory)
            self._active[name] = active
        self.rebind()

    def _joint_faults(self) -> JointFaults:
        if self._joints is None:
            self._joints = JointFaults(self._simulation.running)
        return self._joints

    def _sensors_of(self, fault: Fault) -> list[SimulatedSensor[Any]]:
        model = _model_of(fault)
        if isinstance(fault, JointFault) or model not in self._simulation.models:
            return []
        sensors = self._simulation.sensors(model)
        return [s for s in sensors if isinstance(fault, PowerFault) or s.sensor.name == fault.sensor]  # type: ignore[union-attr]

    def _impair(self, name: str, fault: Fault, sensor: SimulatedSensor[Any], held: Any) -> Impairment:
        mine = fault if isinstance(fault, SensorFault) else SensorFault(sensor.robot, sensor.sensor.name, "silent")
        rng = generator(self._simulation.seed, sensor.robot, sensor.sensor.name, "fault", name)
        return Impairment(mine, sensor.sensor.kind, held, rng)


def _impairment(active: _Active, sensor: SimulatedSensor[Any]) -> Impairment | None:
    """What a fault does to a sensor, if anything."""
    return active.impairments.get(sensor.sensor.name) if _model_of(active.fault) == sensor.robot else None


def _model_of(fault: Fault) -> str:
    return "" if isinstance(fault, GroundFault) else fault.model


def _fault(kind: str, values: dict[str, Any]) -> Fault:
    return GroundFault(Patch(**values["patch"])) if kind == GroundFault.__name__ else KINDS[kind](**values)
