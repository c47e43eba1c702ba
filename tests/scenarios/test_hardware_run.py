"""The Akrobat's nodes on emulated servos: they walk as in simulation, and a servo fault ends the run."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness, twist

from roboyard.bus import Bus, NodeError
from roboyard.hardware.dynamixel.control_table import RETURN_DELAY
from roboyard.hardware.dynamixel.emulation.bus import EmulatedBus, FaultInjection, PseudoTerminal
from roboyard.hardware.dynamixel.hardware import DynamixelHardware
from roboyard.hardware.dynamixel.monitor import ServoFaultError
from roboyard.hardware.nodes import ServoBusNode
from roboyard.messages import msg
from roboyard.record import open_recording
from roboyard.scenarios.hardware_run import ServoRobot, ServoRobotBringup, run_on_hardware
from roboyard.scenarios.run_folder import prepare_folder

PERIOD = 0.02
Array = np.ndarray


@pytest.fixture(scope="module")
def akrobat() -> ServoRobot:
    return ServoRobot.load("akrobat")


class EmulatedRobot:
    """The robot on emulated servos: bus, servos and their clock go on together, as fast as they can."""

    def __init__(self, robot: ServoRobot, stack: ExitStack, faults: tuple[FaultInjection, ...] = ()) -> None:
        self.harness = stack.enter_context(BusHarness())
        self.bus = self.harness.bus
        self.emulated: EmulatedBus = robot.create_emulated_bus(faults)
        for servo in self.emulated.servos.values():
            servo.set(RETURN_DELAY, 0)
        terminal = stack.enter_context(PseudoTerminal(self.emulated, lambda: self.bus.now_ns * 1e-9))
        port = stack.enter_context(robot.with_emulation_timeout().open_port(terminal.path))
        self.hardware = DynamixelHardware(port, robot.settings, robot.servos, lambda: self.bus.now_ns)
        self.hardware.start()
        self.bringup = ServoRobotBringup(self.bus, robot, self.hardware, None)
        self.bringup.add_node(ServoBusNode(hardware=self.hardware), "servo_bus")
        self.bringup.start_nodes(*robot.package.select_nodes())
        self.setpoints: list[Array] = []
        self.true: list[Array] = []

    def run(self, seconds: float, speed: float = 0.0) -> None:
        """Let time pass, with commands to walk at a speed [m/s]."""
        for _ in range(round(seconds / PERIOD)):
            if speed:
                self.harness.publish("/cmd_vel", twist(speed))
            self.harness.run_for(PERIOD)
            self.hardware.run_cycle(self.bus.now_ns * 1e-9)
            if self.hardware._setpoints is not None:
                self.setpoints.append(self.hardware._setpoints)
                self.true.append(self.angles())

    def angles(self) -> Array:
        """Where the joints truly are [rad]."""
        return self.hardware.servos.to_angles([servo.position for servo in self.emulated.servos.values()])


def test_tripod_gait_walks_on_emulated_servos(akrobat: ServoRobot) -> None:
    with ExitStack() as stack:
        emulated = EmulatedRobot(akrobat, stack)
        gait: Any = emulated.bringup.nodes["gait"]
        while gait._phase != "walking":
            emulated.run(0.1)
        emulated.run(1.0, speed=0.107)
        start_index, x = len(emulated.true), gait._odometry.x
        emulated.run(1.6, speed=0.107)
        expected, true = np.array(emulated.setpoints[start_index:-1]), np.array(emulated.true[start_index + 1 :])
        assert np.abs(true - expected).max() < 0.06
        assert np.sqrt(((true - expected) ** 2).mean()) < 0.03
        assert gait._odometry.x - x == pytest.approx(0.107 * 1.6, rel=0.12)
        assert emulated.hardware.clamped_commands == 0
        assert emulated.bringup.nodes["servo_bus"].health.level == "ok"
        legs = akrobat.legs
        assert legs is not None
        feet = np.array([legs.foot_positions(q.reshape(-1, 3)) for q in true])
        assert (np.ptp(feet[:, :, 0], axis=0) > 0.06).all()  # every foot strides


def test_servo_fault_ends_the_run_with_its_cause(akrobat: ServoRobot) -> None:
    with ExitStack() as stack:
        emulated = EmulatedRobot(akrobat, stack, (FaultInjection(0.5, "overload", 31),))
        with pytest.raises(NodeError, match=r"servo_bus.*servo 31 \(joint m31\): the servo is overloaded") as caught:
            emulated.run(2.0)
        assert caught.value.time_ns <= 0.7e9
        with pytest.raises(ServoFaultError):
            emulated.hardware.check()


def test_robot_is_driven_in_real_time_and_recorded(akrobat: ServoRobot, tmp_path: Path) -> None:
    folder = prepare_folder(tmp_path / "drive")
    with PseudoTerminal(akrobat.create_emulated_bus()) as terminal:
        driven = run_on_hardware(akrobat.with_emulation_timeout(), terminal.path, duration=1.2, folder=folder)
    assert driven.duration == pytest.approx(1.2)
    assert driven.cycles >= 3  # many more, unless others use the machine
    assert driven.statistics.responses > 200
    with open_recording(folder.recording) as recording:
        assert {"/joint_states", "/gait/state", "/diagnostics", "/tf"} <= set(recording.topics)
        last = [item.message for item in recording.messages(["/diagnostics"])][-1]
    names = {status.name for status in last.status}
    assert "/servo_bus/m11" in names or "/servo_bus" in names


@pytest.mark.slow
def test_robot_walks_in_real_time(akrobat: ServoRobot) -> None:
    """All threads together, for a quarter of a minute, with cable and servos well."""
    odometry: list[Any] = []

    def walk(bus: Bus) -> None:
        commands = bus.publisher("/cmd_vel", msg.Twist, "/test")
        bus.add_message_observer(lambda topic, message, *_: odometry.append(message) if topic.name == "/odom" else None)
        for k in range(100, 700):
            bus.executor.schedule(
                round(k * PERIOD * 1e9), lambda: commands.publish(msg.Twist(linear=msg.Vector3(x=0.08)))
            )

    with PseudoTerminal(akrobat.create_emulated_bus()) as terminal:
        driven = run_on_hardware(akrobat.with_emulation_timeout(), terminal.path, duration=16.0, on_started=walk)
    assert driven.late_cycles < 0.3 * driven.cycles
    assert odometry[-1].pose.pose.position.x == pytest.approx(0.08 * 10.0, rel=0.15)
