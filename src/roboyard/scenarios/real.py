"""A real robot: its package's nodes on the wall's clock, its joints moved by servos on a port."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from roboyard.bus import Bus, NodeError
from roboyard.bus.log import LogRecord
from roboyard.bus.socket import SocketServer
from roboyard.compute import limit_blas_threads, wait_for_kernels
from roboyard.control.owners import JointOwners
from roboyard.description import Model
from roboyard.description.extent import footprint_polygon
from roboyard.errors import InputError
from roboyard.hardware.dynamixel.config import ServoMap, ServosConfig, load_servos
from roboyard.hardware.dynamixel.emulation.bus import EmulatedBus, FaultInjection
from roboyard.hardware.dynamixel.emulation.servo import EmulatedServo
from roboyard.hardware.dynamixel.hardware import DynamixelHardware
from roboyard.hardware.dynamixel.port import BusStatistics, ServoPort
from roboyard.hardware.dynamixel.thread import ServoThread
from roboyard.hardware.nodes import ServoBusNode
from roboyard.record import Recorder
from roboyard.scenarios.catalog import find_robot
from roboyard.scenarios.control import Control, interruptible
from roboyard.scenarios.crew import Crew
from roboyard.scenarios.offers import Offers
from roboyard.scenarios.provenance import provenance
from roboyard.scenarios.robot_groups import KnownJoints
from roboyard.scenarios.robot_legs import legs_of
from roboyard.scenarios.robot_package import RobotPackage
from roboyard.scenarios.run_folder import RunFolder
from roboyard.walking.walker import Walker

_EMULATED_PATIENCE = 0.5
"""How long an emulated servo's answer is waited for [s]."""
_SLICE_NS = 100_000_000
_ENDLESS_NS = 10**18


@dataclass(frozen=True, eq=False)
class RealRobot:
    """A robot whose package says which servos move its joints.

    Attributes:
        package: Its package.
        model: Its description.
        settings: The file of its servos.
        servos: Which servo moves which joint.
    """

    package: RobotPackage
    model: Model
    settings: ServosConfig = field(repr=False)
    servos: ServoMap = field(repr=False)

    @classmethod
    def find(cls, name: str) -> RealRobot:
        """A robot by name, or of its YAML.

        Raises:
            UnknownNameError, ConfigError, DescriptionError: as `find_robot`, `load_model` and `load_servos`.
            InputError: its package names no servos.
        """
        package = find_robot(name, None, {}, calibrated=False)
        model = package.load_model()
        path = package.beside("servos")
        if path is None:
            raise InputError(
                "names no servos", location=str(package.source), valid="a robot whose YAML names a file of `servos`"
            )
        legs = legs_of(package, model)
        return cls(package, model, *load_servos(path, model, legs.joints if legs else ()))

    @cached_property
    def legs(self) -> Walker | None:
        """Its legs; None without."""
        return legs_of(self.package, self.model)

    def emulated(self, troubles: Iterable[FaultInjection] = (), start: float = 0.0) -> EmulatedBus:
        """Servos like its own that are not there, its legs at rest.

        Args:
            troubles: What goes wrong.
            start: Time at which they are so [s].

        Raises:
            InputError: a trouble is of a servo that it has not.
        """
        rest = dict(zip(self.legs.joints, self.legs.rest.ravel().tolist(), strict=True)) if self.legs else {}
        ticks = self.servos.to_ticks([rest.get(joint, 0.0) for joint in self.servos.joints]).tolist()
        made = [EmulatedServo(servo, at) for servo, at in zip(self.servos.ids, ticks, strict=True)]
        return EmulatedBus(made, troubles, start)

    def patient(self) -> RealRobot:
        """The robot, waiting longer for answers: emulated servos answer when this machine has time for them."""
        settings = replace(self.settings, reply_timeout=max(self.settings.reply_timeout, _EMULATED_PATIENCE))
        return replace(self, settings=settings)

    def port(self, path: str) -> ServoPort:
        """Its bus on a port, opened. Raises InputError."""
        return ServoPort(path, self.settings.baud, self.settings.reply_timeout)


class RealCrew(Crew):
    """The nodes of a real robot.

    Args:
        bus: Where they talk.
        robot: Which.
        hardware: Its servos, started.
        loop: What keeps them going; None: somebody calls their cycles himself.
    """

    def __init__(self, bus: Bus, robot: RealRobot, hardware: DynamixelHardware, loop: ServoThread | None) -> None:
        super().__init__(bus, robot.package.name, "", robot.package)
        self._robot, self._hardware, self._loop, self._owners = robot, hardware, loop, JointOwners()

    def resources(self) -> Mapping[str, Any]:
        """What its nodes may be handed: joints, description and limits; nothing that only a simulation knows."""
        return self._offers

    @cached_property
    def _offers(self) -> Offers:
        package, joints = self.package, KnownJoints.of(self.package, self._robot.model)
        model = joints.model
        found: dict[str, Any] = {
            "hardware": self._hardware, "loop": self._loop, "description": model, "owners": self._owners,
            "rates": joints.rates, "outline": footprint_polygon(package.file.footprint, model),
            "drive_limits": package.file.limits,
        }  # fmt: skip
        if self._robot.legs is not None:
            found["legs"] = self._robot.legs
        return Offers(found, {"groups": lambda: joints.groups})


@dataclass(frozen=True, slots=True)
class Driven:
    """What came of driving a robot.

    Attributes:
        seconds: How long its nodes ran.
        cycles: Of the servos.
        late: Those that took longer than their period.
        statistics: Of the bus.
        folder: With the recording; None if nothing was recorded.
    """

    seconds: float
    cycles: int
    late: int
    statistics: BusStatistics
    folder: Path | None


def drive_robot(
    robot: RealRobot,
    path: str,
    *,
    duration: float | None = None,
    folder: RunFolder | None = None,
    control: Control | None = None,
    log: Callable[[LogRecord], None] | None = None,
    started: Callable[[Bus], None] | None = None,
    progress: Callable[[], None] | None = None,
) -> Driven:
    """Run a robot's nodes in real time on its servos until somebody ends it; then the servos hold their positions.

    Args:
        robot: Which.
        path: Port of its servos.
        duration: End after this time [s]; None: never.
        folder: Where to record; None: nothing is recorded.
        control: The hand on it.
        log: Called with every line of the log.
        started: Called with the bus once the nodes are up.
        progress: Called every 0.1 s.

    Raises:
        InputError: the port cannot be opened, or a node cannot be made.
        ServoFaultError: a servo or its bus failed; motion was stopped.
        NodeError: a node failed; the servos hold their positions.
    """
    limit_blas_threads(1)
    control = control or Control()
    with interruptible(control), ExitStack() as stack:
        bus = stack.enter_context(Bus())
        if log is not None:
            bus.log_sinks.append(log)
        hardware = DynamixelHardware(
            stack.enter_context(robot.port(path)), robot.settings, robot.servos, lambda: bus.now_ns
        )
        hardware.start()
        loop = stack.enter_context(ServoThread(hardware))
        if folder is not None:
            metadata = provenance().metadata() | {"run": f"{robot.package.name} on its servos"}
            stack.callback(Recorder(bus, folder.recording, metadata=metadata).close)
        stack.callback(bus.close)  # before recorder and servos: nodes say their last words
        end_ns = _ENDLESS_NS if duration is None else round(duration * 1e9)
        try:
            crew = RealCrew(bus, robot, hardware, loop)
            crew.add_node(ServoBusNode(hardware=hardware, loop=loop), "servo_bus")
            crew.bring_up(*robot.package.select())
            wait_for_kernels(load=True)  # before the nodes command anything, for it takes its time
            stack.callback(SocketServer(bus, robot.package.name).close)
            control.bind(bus)
            bus.executor.pacer.real_time_factor = 1.0
            if started is not None:
                started(bus)
            _let_run(bus, end_ns, control, progress)
        except NodeError:
            hardware.check()  # what stopped the servos says more than the node that noticed
            raise
        seconds = bus.now_ns * 1e-9
    return Driven(seconds, loop.cycles, loop.late, hardware.port.statistics, None if folder is None else folder.path)


def _let_run(bus: Bus, end_ns: int, control: Control, progress: Callable[[], None] | None) -> None:
    """Run in one go, for every new beginning would lose some time against the wall's."""
    due_ns = 0

    def is_over() -> bool:
        nonlocal due_ns
        if progress is not None and bus.now_ns >= due_ns:
            progress()
            due_ns = bus.now_ns + _SLICE_NS
        return control.stopping

    bus.executor.run_until(end_ns, is_over)
