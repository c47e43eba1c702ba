"""`roboyard teleop`: keys in a terminal and a gamepad's events become an operator of a live run."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import PROGRAM, Command, environment
from tests.cli.test_cli_keys import at_terminal

import roboyard as ry
from roboyard.bus.socket import SocketServer
from roboyard.cli.steering import find_reins
from roboyard.control.nodes import JointMovesNode, JointTrajectoryNode
from roboyard.control.owners import JointOwners
from roboyard.description.model import Axis, Joint, Limits, Link, Model
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.hardware.interface import JointCommand, JointReadings
from roboyard.messages.time import nanoseconds

EVENT = struct.Struct("<IhBB")


class Driven(ry.Node):
    """A robot that remembers what it was told.  in: cmd_vel, joy, teleop/heartbeat"""

    stamped: bool = ry.param(False)

    def setup(self) -> None:
        self.twists: list[tuple[float, float, str]] = []
        self.pads: list[Any] = []
        self.beats: list[int] = []
        kind = ry.msg.TwistStamped if self.stamped else ry.msg.Twist
        self.subscribe("cmd_vel", kind, self.on_twist, with_source=True)
        self.subscribe("joy", ry.msg.Joy, self.pads.append)
        self.subscribe("teleop/heartbeat", ry.msg.Header, lambda beat: self.beats.append(nanoseconds(beat.stamp)))
        self.publisher("/truth/rover/odom", ry.msg.Odometry)

    def on_twist(self, message: Any, source: str) -> None:
        twist = message.twist if self.stamped else message
        self.twists.append((twist.linear.x, twist.angular.z, source))


class Run:
    """A live run, as fast as it can."""

    def __init__(self, *namespaces: str, stamped: bool = False) -> None:
        self.bus = ry.Bus()
        self.robots = [self.bus.add(Driven(stamped=stamped), "driven", namespace=n) for n in namespaces or ("",)]
        self.server = SocketServer(self.bus, "yard")
        self.bus.executor.pacer.factor = 20.0
        self.thread = Thread(target=lambda: self.bus.executor.run_until(10**16))
        self.thread.start()

    @property
    def robot(self) -> Driven:
        return self.robots[0]

    def stop(self) -> None:
        self.bus.executor.stop()
        self.thread.join()
        self.server.close()
        self.bus.close()


@pytest.fixture
def live(own_place: None) -> Iterator[Run]:
    made = Run()
    yield made
    made.stop()


def until(condition: Callable[[], Any]) -> Any:
    for _ in range(1200):
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come to that")


def test_keys_drive_while_they_are_held_and_the_terminal_is_left_sane(live: Run) -> None:
    with at_terminal("teleop", "--speed", "0.7") as screen:
        screen.wait_for("driving /cmd_vel of run 'yard'")
        assert live.bus.executor.pacer.factor == 1.0
        screen.press("w")
        until(lambda: (0.7, 0.0, "/teleop") in live.robot.twists)
        until(lambda: live.robot.twists[-1][:2] == (0.0, 0.0))
        screen.press("\x1b[D")
        until(lambda: (0.0, 1.0, "/teleop") in live.robot.twists)
        screen.wait_for(r"turn \+1\.00 rad/s")
        screen.press("q")
        until(lambda: (0.7, 1.0, "/teleop") in live.robot.twists)
        screen.press("\x03")
        assert screen.end() == 0
        assert "stopped" in screen.text
        assert "Traceback" not in screen.text
    until(lambda: live.robot.twists[-1][:2] == (0.0, 0.0))
    assert len(live.robot.beats) > 3
    assert live.robot.beats == sorted(set(live.robot.beats)), "every beat is newer than the one before"
    assert live.bus.executor.pacer.factor == 20.0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminal_that_is_closed_stops_the_robot(live: Run, number: int) -> None:
    with at_terminal("teleop", "--rate", "0") as screen:
        screen.wait_for("driving")
        screen.press("w")
        until(lambda: live.robot.twists)
        screen.process.send_signal(number)
        assert screen.end() == 0
    until(lambda: live.robot.twists[-1][:2] == (0.0, 0.0))


class Arm:
    """One joint that is where it is told."""

    joint_names = ("turn",)

    def __init__(self) -> None:
        self.history: list[float] = [0.0]

    def command_modes(self, joint: str) -> tuple[str, ...]:
        return ("position",)

    def read(self) -> JointReadings:
        return JointReadings(0, np.array(self.history[-1:]), np.zeros(1), np.zeros(1))

    def write(self, command: JointCommand) -> None:
        self.history.append(float(command.values[0]))


def test_keys_step_a_joint_from_where_a_trajectory_has_left_it(live: Run) -> None:
    """The bus is a live run's, so that nothing but the joint's own history is looked at."""
    arm, bus = Arm(), live.bus
    limits = Axis((0, 0, 1), Limits(-3.0, 3.0, effort=5.0, velocity=1.0))
    links = tuple(Link(name, SE3.identity()) for name in ("base", "upper"))
    joint = Joint("turn", "revolute", "base", "upper", SE3.identity(), SE3.identity(), (limits,))
    parts = {"hardware": arm, "description": Model("arm", links, (joint,)), "owners": JointOwners()}

    def bring_up() -> None:
        bus.add(JointTrajectoryNode(joints=("turn",), **parts), "jtc")
        bus.add(JointMovesNode(joints=("turn",), **parts), "moves")

    bus.inputs.query(bring_up)
    until(lambda: "/jtc" in bus.nodes and "/moves" in bus.nodes)
    point = ry.msg.JointTrajectoryPoint(
        positions=np.array([1.0]), velocities=np.zeros(1), time_from_start=ry.msg.Duration(sec=3)
    )
    way = ry.msg.JointTrajectory(joint_names=["turn"], points=[point])
    bus.inputs.query(lambda: bus.publisher("/jtc/joint_trajectory", ry.msg.JointTrajectory, "/t").publish(way))
    until(lambda: abs(arm.history[-1] - 1.0) < 1e-9)
    with at_terminal("teleop") as screen:
        screen.wait_for("driving /cmd_vel of run 'yard'")
        until(lambda: live.robot.beats)
        before = len(arm.history)
        screen.press("r")
        until(lambda: arm.history[-1] > 1.05 - 2e-3)
        assert min(arm.history[before:]) > 1.0 - 2e-3
        screen.press("\x03")
        assert screen.end() == 0


def test_a_run_that_ends_ends_it(own_place: None) -> None:
    live = Run()
    with at_terminal("teleop") as screen:
        screen.wait_for("driving")
        live.stop()
        assert screen.end() == 0
        assert "the run has ended" in screen.text


def test_a_gamepad_drives_with_its_deadman_and_unplugged_falls_silent_until_it_is_back(live: Run) -> None:
    path = Path("js0")
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    process = subprocess.Popen(
        [str(PROGRAM), "teleop", "gamepad", "--device", str(path), "--map", "ps3", "--rate", "2"],
        env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        until(lambda: live.robot.beats)
        os.write(writer, EVENT.pack(0, 0, 0x81, 16) + EVENT.pack(0, -32767, 2, 1))
        until(lambda: live.robot.pads and list(live.robot.pads[-1].axes) == [0.0, 1.0])
        assert not live.robot.twists, "without the deadman nothing moves"
        os.write(writer, EVENT.pack(0, 1, 1, 4))
        until(lambda: live.robot.twists)
        assert live.robot.twists[-1] == (0.5, 0.0, "/teleop")
        os.close(writer)  # unplugged
        until(lambda: live.robot.twists[-1][:2] == (0.0, 0.0))
        beats, twists = len(live.robot.beats), len(live.robot.twists)
        time.sleep(0.5)
        assert len(live.robot.beats) <= beats + 1
        writer = os.open(path, os.O_RDWR)
        until(lambda: len(live.robot.beats) > beats + 5)
        assert len(live.robot.twists) == twists, "plugged in again it begins with nothing held"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "PlayStation 3" in out
        assert "Traceback" not in out
    finally:
        process.kill()
        process.wait()
        os.close(writer)


def test_what_is_wrong_is_said_in_one_line(live: Run, command: Command, shell: Command) -> None:
    cases = {
        ("teleop", "--robot", "nobody"): "nobody",
        ("teleop", "gamepad", "--map", "nope"): "ps3",
        ("teleop", "gamepad", "--map", "./nope.yaml"): "there is no file",
        ("teleop", "gamepad", "--device", "js9"): "no gamepad",
        ("teleop", "--map", "ps3"): "gamepad",
        ("teleop", "--topic", "elsewhere"): "/cmd_vel",
        ("teleop", "--run", "nope"): "yard",
        ("teleop", "--speed", "nan"): "speed",
    }
    for words, said in cases.items():
        done = command(*words)
        assert done.code == 2, words
        assert said in done.error, words
    done = shell("teleop")
    assert done.code == 2
    assert "no terminal" in done.error


def test_without_a_live_run(command: Command) -> None:
    done = command("teleop")
    assert done.code == 2
    assert "no run is live" in done.error


def test_which_robot_is_meant() -> None:
    def graph(*names: str, kind: str = "geometry_msgs/msg/Twist", truth: tuple[str, ...] = ()) -> dict[str, Any]:
        found = [{"name": name, "type": kind, "subscribers": ["/arbiter"]} for name in names]
        return {
            "topics": found
            + [{"name": f"/truth/{r}/odom", "type": "nav_msgs/msg/Odometry", "subscribers": []} for r in truth]
        }

    two = graph("/cmd_vel", "/scout/cmd_vel", truth=("rover", "scout"))
    assert find_reins(two, None, None).command == "/cmd_vel"
    assert find_reins(two, "scout", None).beside("teleop/heartbeat") == "/scout/teleop/heartbeat"
    assert find_reins(two, "rover", None).command == "/cmd_vel"
    assert find_reins(two, None, "scout/cmd_vel").beside("teleop") == "/scout/teleop"
    assert find_reins(graph("/a/cmd_vel", kind="geometry_msgs/msg/TwistStamped"), None, None).type.endswith("Stamped")
    with pytest.raises(InputError, match="several"):
        find_reins(graph("/a/cmd_vel", "/b/cmd_vel"), None, None)
    with pytest.raises(InputError, match="nothing"):
        find_reins(graph("/cmd_vel_out"), None, None)
