"""Faults of a robot's sensors, joints and power, and calls of its services."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from roboyard.config import did_you_mean, parameter
from roboyard.errors import RoboyardError
from roboyard.messages import srv
from roboyard.scenarios.faults.schema import (
    ActionEffect,
    FaultContext,
    FaultEffect,
    FaultKeyError,
    LastingFault,
    RobotFault,
    TriggeredFault,
)
from roboyard.simulation.faults import Fault, GroundFault, JointFault, PowerFault, SensorFault


class SimulatedFaultEffect(FaultEffect):
    """A fault that the simulation itself applies; its state is part of the simulation's.

    Args:
        description: As of `FaultEffect`.
        context: Of the scenario's fault.
        fault: The fault in the simulation's terms.
        key: Key of the scenario's fault that an error is about.

    Raises:
        FaultKeyError: The model cannot fail in this way.
    """

    def __init__(self, description: str, context: FaultContext, fault: Fault, *, key: str) -> None:
        super().__init__(description)
        self._simulation, self._name, self._fault = context.run.simulation, context.name, fault
        try:
            self._simulation.faults.check(fault)
        except RoboyardError as error:
            raise FaultKeyError(error.message, location=key, valid=error.valid) from error

    def start(self) -> str | None:
        """Start the fault, unless its model was removed."""
        if isinstance(self._fault, GroundFault) or self._fault.model in self._simulation.models:
            self._simulation.faults.start(self._name, self._fault)
        return None

    def end(self) -> None:
        """End the fault."""
        self._simulation.faults.end(self._name)


@dataclass(frozen=True, kw_only=True)
class _SensorFaultConfig(RobotFault, LastingFault):
    """A fault of one sensor."""

    sensor: str = parameter(doc="name of the sensor in the robot's description")

    @abstractmethod
    def sensor_fault(self, robot: str) -> tuple[SensorFault, str]:
        """Return the fault in the simulation's terms, and what it does as the end of a sentence."""

    def create_effect(self, context: FaultContext) -> FaultEffect:
        """Return the effect on the sensor."""
        robot = self.find_model(context.run)
        fault, predicate = self.sensor_fault(robot)
        return SimulatedFaultEffect(f"sensor {self.sensor} of {robot} {predicate}", context, fault, key="sensor")


@dataclass(frozen=True, kw_only=True)
class SensorDropoutFault(_SensorFaultConfig):
    """A sensor gives nothing."""

    def sensor_fault(self, robot: str) -> tuple[SensorFault, str]:
        """Return a silent sensor."""
        return SensorFault(robot, self.sensor, "silent"), "is silent"


@dataclass(frozen=True, kw_only=True)
class SensorFrozenFault(_SensorFaultConfig):
    """A sensor repeats its last measurement, with fresh stamps."""

    def sensor_fault(self, robot: str) -> tuple[SensorFault, str]:
        """Return a sensor that repeats itself."""
        return SensorFault(robot, self.sensor, "stuck"), "is stuck"


@dataclass(frozen=True, kw_only=True)
class DepthDropoutFault(_SensorFaultConfig):
    """A depth camera measures no pixel; its colors are not affected."""

    def sensor_fault(self, robot: str) -> tuple[SensorFault, str]:
        """Return a depth camera without depth."""
        return SensorFault(robot, self.sensor, "no_depth"), "is blind"


@dataclass(frozen=True, kw_only=True)
class LowLightFault(_SensorFaultConfig):
    """A camera's images are darker; depth cameras bring their own light, so their depth is not affected."""

    brightness: float = parameter(0.0, low=0.0, high=1.0, doc="fraction of the light that is left")

    def sensor_fault(self, robot: str) -> tuple[SensorFault, str]:
        """Return a camera with less light."""
        text = f"sees {100.0 * self.brightness:g} % of the light"
        return SensorFault(robot, self.sensor, "dim", self.brightness), text


@dataclass(frozen=True, kw_only=True)
class SensorDelayFault(_SensorFaultConfig):
    """Measurements of a sensor arrive late, with the stamps of their measurement."""

    delay: float = parameter(unit="s", low=1e-9, high=3600.0, doc="delay of each measurement")

    def sensor_fault(self, robot: str) -> tuple[SensorFault, str]:
        """Return a late sensor."""
        return SensorFault(robot, self.sensor, "delayed", self.delay), f"is {self.delay:g} s late"


@dataclass(frozen=True, kw_only=True)
class SensorNoiseFault(_SensorFaultConfig):
    """A sensor has additional white noise."""

    stddev: float = parameter(
        low=0.0, high=1e6, doc="standard deviation of the noise, in the unit of what the sensor measures"
    )

    def sensor_fault(self, robot: str) -> tuple[SensorFault, str]:
        """Return a noisy sensor."""
        return SensorFault(robot, self.sensor, "noisy", self.stddev), f"has noise of {self.stddev:g}"


@dataclass(frozen=True, kw_only=True)
class JointLockedFault(RobotFault, LastingFault):
    """A wheel or joint is held at its position."""

    joint: str = parameter(doc="name of the joint in the robot's description")

    def create_effect(self, context: FaultContext) -> FaultEffect:
        """Return the effect that holds the joint."""
        robot = self.find_model(context.run)
        fault = JointFault(robot, self.joint, "blocked")
        return SimulatedFaultEffect(f"joint {self.joint} of {robot} is blocked", context, fault, key="joint")


@dataclass(frozen=True, kw_only=True)
class JointDegradedFault(RobotFault, LastingFault):
    """The motor of a wheel or joint has only a fraction of its effort left."""

    joint: str = parameter(doc="name of the joint in the robot's description")
    effort_scale: float = parameter(0.3, low=0.0, high=1.0, doc="fraction of its effort limit that is left")

    def create_effect(self, context: FaultContext) -> FaultEffect:
        """Return the effect that lowers the effort limit."""
        robot = self.find_model(context.run)
        text = f"joint {self.joint} of {robot} has {100.0 * self.effort_scale:g} % of its effort"
        fault = JointFault(robot, self.joint, "weak", self.effort_scale)
        return SimulatedFaultEffect(text, context, fault, key="joint")


@dataclass(frozen=True, kw_only=True)
class PowerLossFault(RobotFault, LastingFault):
    """No motor of a robot has any effort, joints with brakes are held, and its sensors are silent."""

    def create_effect(self, context: FaultContext) -> FaultEffect:
        """Return the effect that turns the robot off."""
        robot = self.find_model(context.run)
        return SimulatedFaultEffect(f"{robot} has no power", context, PowerFault(robot), key="")


@dataclass(frozen=True, kw_only=True)
class ServiceCallFault(RobotFault, TriggeredFault):
    """A service without arguments (std_srvs/Trigger) is called, for example an emergency stop."""

    service: str = parameter("arm/stop", doc="name of the service in the robot's namespace")

    def create_effect(self, context: FaultContext) -> FaultEffect:
        """Return the effect that calls the service."""
        bus, robot = context.run.bus, context.run.robots[self.find_robot(context.run, "services")]
        service = self.service if self.service.startswith("/") else f"{robot.namespace}/{self.service}"
        if service not in bus.services:
            services = sorted(name for name in bus.services if bus.services[name].type is srv.Trigger)
            raise FaultKeyError(
                f"no node serves {service}{did_you_mean(service, services)}", location="service",
                valid=", ".join(services) or "none",
            )  # fmt: skip
        client = bus.service_client(service, srv.Trigger, "/faults")
        return ActionEffect(f"{service} was pressed", lambda: client.call(srv.Trigger.Request()))
