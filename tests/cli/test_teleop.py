"""`roboyard teleop`: keys in a terminal and a gamepad's events become an operator of a live run."""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.conftest import Command
from tests.harness.hardware import FakeHardware
from tests.harness.live_bus import LiveBus, spawn_cli
from tests.harness.live_run import LiveRun, poll, run_in_terminal

import roboyard as ry
from roboyard.cli.teleop_session import find_command_topics
from roboyard.control.joint_claims import JointClaims
from roboyard.control.nodes import IndexedJointMotionNode, JointTrajectoryNode
from roboyard.description.model import Axis, AxisLimits, Joint, Link, Model
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.messages.time import to_nanoseconds

EVENT = struct.Struct("<IhBB")


class DrivenRobot(ry.Node):
    """A robot that keeps the commands it got.  in: cmd_vel, joy, teleop/heartbeat"""

    def setup(self) -> None:
        self.twists: list[tuple[float, float, str]] = []
        self.pads: list[Any] = []
        self.beats: list[int] = []
        self.subscribe("cmd_vel", ry.msg.Twist, self.on_twist, with_source=True)
        self.subscribe("joy", ry.msg.Joy, self.pads.append)
        self.subscribe("teleop/heartbeat", ry.msg.Header, lambda beat: self.beats.append(to_nanoseconds(beat.stamp)))
        self.publisher("/truth/rover/odom", ry.msg.Odometry)

    def on_twist(self, message: Any, source: str) -> None:
        self.twists.append((message.linear.x, message.angular.z, source))


@pytest.fixture
def robot() -> DrivenRobot:
    """The node of the live run that takes commands."""
    return DrivenRobot()


@pytest.fixture
def live(private_runtime_folder: None, robot: DrivenRobot) -> Iterator[LiveBus]:
    """A live run at twenty times real time."""
    with LiveBus((robot, "driven")) as live:
        yield live


def test_held_keys_drive_and_the_terminal_is_restored(live: LiveBus, robot: DrivenRobot) -> None:
    with run_in_terminal("teleop", "--speed", "0.7") as terminal:
        terminal.wait_for("driving /cmd_vel of run 'yard'")
        assert live.bus.executor.pacer.real_time_factor == 1.0
        terminal.press("w")
        poll(lambda: (0.7, 0.0, "/teleop") in robot.twists)
        poll(lambda: robot.twists[-1][:2] == (0.0, 0.0))
        terminal.press("\x1b[D")
        poll(lambda: (0.0, 1.0, "/teleop") in robot.twists)
        terminal.wait_for(r"turn \+1\.00 rad/s")
        terminal.press("q")
        poll(lambda: (0.7, 1.0, "/teleop") in robot.twists)
        terminal.press("\x03")
        assert terminal.wait() == 0
        assert "stopped" in terminal.text
        assert "Traceback" not in terminal.text
    poll(lambda: robot.twists[-1][:2] == (0.0, 0.0))
    assert len(robot.beats) > 3
    assert robot.beats == sorted(set(robot.beats)), "every beat is newer than the one before"
    assert live.bus.executor.pacer.real_time_factor == 20.0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_closed_terminal_stops_the_robot(live: LiveBus, robot: DrivenRobot, number: int) -> None:
    with run_in_terminal("teleop", "--rate", "0") as terminal:
        terminal.wait_for("driving")
        terminal.press("w")
        poll(lambda: robot.twists)
        terminal.process.send_signal(number)
        assert terminal.wait() == 0
    poll(lambda: robot.twists[-1][:2] == (0.0, 0.0))


def test_jog_keys_start_where_a_trajectory_ended(live: LiveBus, robot: DrivenRobot) -> None:
    """The bus is a live run's, so that nothing but the joint's own history is looked at."""
    bus = live.bus
    arm = FakeHardware(["turn"], lambda: bus.now_ns, modes=["position"])
    limits = Axis((0, 0, 1), AxisLimits(-3.0, 3.0, effort=5.0, velocity=1.0))
    links = tuple(Link(name, SE3.identity()) for name in ("base", "upper"))
    joint = Joint("turn", "revolute", "base", "upper", SE3.identity(), SE3.identity(), (limits,))
    parts = {"hardware": arm, "description": Model("arm", links, (joint,)), "joint_claims": JointClaims()}

    def bring_up() -> None:
        bus.add(JointTrajectoryNode(joints=("turn",), **parts), "jtc")
        bus.add(IndexedJointMotionNode(joints=("turn",), **parts), "moves")

    live.in_run(bring_up)
    point = ry.msg.JointTrajectoryPoint(
        positions=np.array([1.0]), velocities=np.zeros(1), time_from_start=ry.msg.Duration(sec=3)
    )
    trajectory = ry.msg.JointTrajectory(joint_names=["turn"], points=[point])
    live.in_run(lambda: bus.publisher("/jtc/joint_trajectory", ry.msg.JointTrajectory, "/t").publish(trajectory))
    live.wait_until(lambda: abs(arm.history[-1][0] - 1.0) < 1e-9)
    with run_in_terminal("teleop") as terminal:
        terminal.wait_for("driving /cmd_vel of run 'yard'")
        poll(lambda: robot.beats)
        before = len(arm.history)
        terminal.press("r")
        live.wait_until(lambda: arm.history[-1][0] > 1.05 - 2e-3)
        assert min(position[0] for position in arm.history[before:]) > 1.0 - 2e-3
        terminal.press("\x03")
        assert terminal.wait() == 0


def test_teleop_ends_with_the_run(live: LiveBus) -> None:
    with run_in_terminal("teleop") as terminal:
        terminal.wait_for("driving")
        live.end()
        assert terminal.wait() == 0
        assert "the run has ended" in terminal.text


def test_gamepad_drives_with_deadman_and_is_silent_while_unplugged(live: LiveBus, robot: DrivenRobot) -> None:
    path = Path("js0")
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    with LiveRun("teleop", "gamepad", "--device", path, "--gamepad-map", "ps3", "--rate", "2") as run:
        poll(lambda: robot.beats)
        os.write(writer, EVENT.pack(0, 0, 0x81, 16) + EVENT.pack(0, -32767, 2, 1))
        poll(lambda: robot.pads and list(robot.pads[-1].axes) == [0.0, 1.0])
        assert not robot.twists, "without the deadman nothing moves"
        os.write(writer, EVENT.pack(0, 1, 1, 4))
        poll(lambda: robot.twists)
        assert robot.twists[-1] == (0.5, 0.0, "/teleop")
        os.close(writer)  # unplugged
        poll(lambda: robot.twists[-1][:2] == (0.0, 0.0))
        beats, twists = len(robot.beats), len(robot.twists)
        live.wait_for_time(live.bus.now_ns * 1e-9 + 1.0)
        assert len(robot.beats) <= beats + 1
        writer = os.open(path, os.O_RDWR)
        poll(lambda: len(robot.beats) > beats + 5)
        assert len(robot.twists) == twists, "plugged in again it begins with nothing held"
        run.send_signal(signal.SIGINT)
        result = run.wait()
        os.close(writer)
    assert result.code == 0
    assert "PlayStation 3" in result.out + result.err
    assert "Traceback" not in result.out + result.err


def test_bad_teleop_options_are_one_error(live: LiveBus, command: Command) -> None:
    cases = {
        ("teleop", "--robot", "nobody"): "nobody",
        ("teleop", "gamepad", "--gamepad-map", "nope"): "ps3",
        ("teleop", "gamepad", "--gamepad-map", "./nope.yaml"): "there is no file",
        ("teleop", "gamepad", "--device", "js9"): "cannot open gamepad",
        ("teleop", "--gamepad-map", "ps3"): "gamepad",
        ("teleop", "--topic", "elsewhere"): "/cmd_vel",
        ("teleop", "--run", "nope"): "yard",
        ("teleop", "--speed", "nan"): "speed",
    }
    for words, expected in cases.items():
        result = command(*words)
        assert result.code == 2, words
        assert expected in result.error, words
    result = spawn_cli("teleop")
    assert result.code == 2
    assert "no terminal" in result.error


def test_teleop_without_live_run_is_refused(command: Command) -> None:
    result = command("teleop")
    assert result.code == 2
    assert "no live run found" in result.error


def test_teleop_finds_the_robot_to_drive() -> None:
    def graph(*names: str, kind: str = "geometry_msgs/msg/Twist", truth: tuple[str, ...] = ()) -> dict[str, Any]:
        found = [{"name": name, "type": kind, "subscribers": ["/arbiter"]} for name in names]
        return {
            "topics": found
            + [{"name": f"/truth/{r}/odom", "type": "nav_msgs/msg/Odometry", "subscribers": []} for r in truth]
        }

    two = graph("/cmd_vel", "/scout/cmd_vel", truth=("rover", "scout"))
    assert find_command_topics(two, None, None).command == "/cmd_vel"
    assert find_command_topics(two, "scout", None).sibling_name("teleop/heartbeat") == "/scout/teleop/heartbeat"
    assert find_command_topics(two, "rover", None).command == "/cmd_vel"
    assert find_command_topics(two, None, "scout/cmd_vel").sibling_name("teleop") == "/scout/teleop"
    assert find_command_topics(graph("/a/cmd_vel", kind="geometry_msgs/msg/TwistStamped"), None, None).type.endswith(
        "Stamped"
    )
    with pytest.raises(InputError, match="several"):
        find_command_topics(graph("/a/cmd_vel", "/b/cmd_vel"), None, None)
    with pytest.raises(InputError, match="no robot"):
        find_command_topics(graph("/cmd_vel_out"), None, None)
