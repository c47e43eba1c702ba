"""Runs a robot's nodes in real time on its servos, real or emulated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from roboyard.bringup.joint_groups import RobotJoints
from roboyard.bringup.robot_config import RobotPackage
from roboyard.bringup.robot_loader import load_robot
from roboyard.bringup.robot_nodes import DescribedRobot, RobotBringup
from roboyard.bus import Bus, NodeError
from roboyard.bus.log import LogRecord
from roboyard.bus.socket import SocketServer
from roboyard.compute import limit_blas_threads, wait_for_kernels
from roboyard.description import Model
from roboyard.errors import InputError
from roboyard.hardware.dynamixel.config import ServoMap, ServosConfig, load_servos
from roboyard.hardware.dynamixel.emulation.bus import EmulatedBus, FaultInjection
from roboyard.hardware.dynamixel.emulation.servo import EmulatedServo
from roboyard.hardware.dynamixel.hardware import DynamixelHardware
from roboyard.hardware.dynamixel.port import BusStatistics, ServoPort
from roboyard.hardware.dynamixel.thread import ServoThread
from roboyard.hardware.nodes import ServoBusNode
from roboyard.record import Recorder
from roboyard.scenarios.provenance import collect_provenance
from roboyard.scenarios.run_control import PROGRESS_PERIOD_NS, RunControl, handle_interrupts
from roboyard.scenarios.run_folder import RunFolder

_EMULATION_REPLY_TIMEOUT = 0.5
"""Timeout of an emulated servo's reply [s]."""
_ENDLESS_NS = 10**18


@dataclass(frozen=True, eq=False)
class ServoRobot:
    """A robot whose package assigns servos to its joints.

    Attributes:
        package: Package of the robot.
        model: Description of the robot.
        settings: Settings of its servos.
        servos: Assignment of servos to joints.
    """

    package: RobotPackage
    model: Model
    settings: ServosConfig = field(repr=False)
    servos: ServoMap = field(repr=False)

    @classmethod
    def load(cls, name: str) -> ServoRobot:
        """Load a robot by its name or YAML file.

        Raises:
            UnknownNameError, ConfigError, DescriptionError: As of `load_robot`, `load_model` and `load_servos`.
            InputError: Its package names no servos.
        """
        package = load_robot(name, None, {}, use_calibration=False)
        model = package.load_model()
        path = package.companion_file("servos")
        if path is None:
            raise InputError(
                "names no servos", location=str(package.source), valid="a robot whose YAML names a file of `servos`"
            )
        legs = DescribedRobot(package, model).resource("legged_robot")
        return cls(package, model, *load_servos(path, model, legs.joints if legs else ()))

    @cached_property
    def legs(self) -> Any:
        """Legs of the robot, a `roboyard.walking.LeggedRobot`; None without legs."""
        return DescribedRobot(self.package, self.model).resource("legged_robot")

    def create_emulated_bus(self, faults: Iterable[FaultInjection] = (), start_time: float = 0.0) -> EmulatedBus:
        """Create emulated servos like those of the robot, with its legs at rest.

        Args:
            faults: Injected faults.
            start_time: Time at which the emulation starts [s].

        Raises:
            InputError: A fault is of a servo that the robot does not have.
        """
        rest_pose = dict(zip(self.legs.joints, self.legs.rest_pose.ravel().tolist(), strict=True)) if self.legs else {}
        ticks = self.servos.to_ticks([rest_pose.get(joint, 0.0) for joint in self.servos.joints]).tolist()
        emulated_servos = [
            EmulatedServo(servo, position_ticks) for servo, position_ticks in zip(self.servos.ids, ticks, strict=True)
        ]
        return EmulatedBus(emulated_servos, faults, start_time)

    def with_emulation_timeout(self) -> ServoRobot:
        """Return the robot with a longer reply timeout: emulated servos reply when the machine has time for them."""
        settings = replace(self.settings, reply_timeout=max(self.settings.reply_timeout, _EMULATION_REPLY_TIMEOUT))
        return replace(self, settings=settings)

    def open_port(self, path: str) -> ServoPort:
        """Open the port of its servos. Raises InputError."""
        return ServoPort(path, self.settings.baud, self.settings.reply_timeout)


class ServoRobotBringup(RobotBringup):
    """Starts the nodes of a robot on its servos.

    Args:
        bus: Bus of the nodes.
        robot: The robot.
        hardware: Its servos, started.
        loop: Thread that runs the cycles of the servos; None if the caller runs them.
    """

    def __init__(self, bus: Bus, robot: ServoRobot, hardware: DynamixelHardware, loop: ServoThread | None) -> None:
        joints = RobotJoints.from_package(robot.package, robot.model)
        super().__init__(bus, robot.package.name, "", robot.package, joints)
        self._hardware, self._loop = hardware, loop

    def host_resources(self) -> Mapping[str, Any]:
        """Return the joints; there is nothing here that only a simulation knows."""
        return {"hardware": self._hardware, "loop": self._loop}


@dataclass(frozen=True, slots=True)
class HardwareRunResult:
    """Result of a run on hardware.

    Attributes:
        duration: Time for which the nodes ran [s].
        cycles: Number of cycles of the servos.
        late_cycles: Number of cycles that took longer than their period.
        statistics: Statistics of the servo bus.
        folder: Folder of the recording; None without one.
    """

    duration: float
    cycles: int
    late_cycles: int
    statistics: BusStatistics
    folder: Path | None


def run_on_hardware(
    robot: ServoRobot,
    port_path: str,
    *,
    duration: float | None = None,
    folder: RunFolder | None = None,
    control: RunControl | None = None,
    on_log: Callable[[LogRecord], None] | None = None,
    on_started: Callable[[Bus], None] | None = None,
    on_progress: Callable[[], None] | None = None,
) -> HardwareRunResult:
    """Run a robot's nodes in real time on its servos until they are stopped; then the servos hold their positions.

    Args:
        robot: The robot.
        port_path: Port of its servos.
        duration: Time after which the run ends [s]; None: never.
        folder: Folder of the recording; None: nothing is recorded.
        control: Control of the run.
        on_log: Function that receives every line of the log.
        on_started: Function that receives the bus once the nodes run.
        on_progress: Function that is called every 0.1 s.

    Raises:
        InputError: The port cannot be opened, or a node cannot be created.
        ServoFaultError: A servo or the servo bus failed; motion was stopped.
        NodeError: A node failed; the servos hold their positions.
    """
    limit_blas_threads(1)
    control = control or RunControl()
    with handle_interrupts(control), ExitStack() as stack:
        bus = stack.enter_context(Bus())
        if on_log is not None:
            bus.log_sinks.append(on_log)
        hardware = DynamixelHardware(
            stack.enter_context(robot.open_port(port_path)), robot.settings, robot.servos, lambda: bus.now_ns
        )
        hardware.start()
        loop = stack.enter_context(ServoThread(hardware))
        if folder is not None:
            metadata = collect_provenance().metadata() | {"run": f"{robot.package.name} on its servos"}
            stack.callback(Recorder(bus, folder.recording, metadata=metadata).close)
        stack.callback(bus.close)  # before recorder and servos: nodes say their last words
        end_ns = _ENDLESS_NS if duration is None else round(duration * 1e9)
        try:
            bringup = ServoRobotBringup(bus, robot, hardware, loop)
            bringup.add_node(ServoBusNode(hardware=hardware, loop=loop), "servo_bus")
            bringup.start_nodes(*robot.package.select_nodes())
            wait_for_kernels(load=True)  # before the nodes command anything, for it takes its time
            stack.callback(SocketServer(bus, robot.package.name).close)
            control.bind(bus)
            bus.executor.pacer.real_time_factor = 1.0
            if on_started is not None:
                on_started(bus)
            _run_until_stopped(bus, end_ns, control, on_progress)
        except NodeError:
            hardware.check()  # what stopped the servos says more than the node that noticed
            raise
        seconds = bus.now_ns * 1e-9
    return HardwareRunResult(
        seconds, loop.cycles, loop.late, hardware.port.statistics, None if folder is None else folder.path
    )


def _run_until_stopped(bus: Bus, end_ns: int, control: RunControl, on_progress: Callable[[], None] | None) -> None:
    """Run without slices: each call of the executor restarts its pacing and would lose a little wall time."""
    due_ns = 0

    def is_over() -> bool:
        nonlocal due_ns
        if on_progress is not None and bus.now_ns >= due_ns:
            on_progress()
            due_ns = bus.now_ns + PROGRESS_PERIOD_NS
        return control.is_stopping

    bus.executor.run_until(end_ns, is_over)
