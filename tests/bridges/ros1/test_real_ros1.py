"""The bridge with ROS 1 itself, as Debian has it: `make test-ros` installs it and runs this."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import roboyard as ry
from roboyard.bridges import Attached, Ros1Bridge
from roboyard.messages import action_type, register
from roboyard.record import open_recording
from roboyard.scenarios import Run

pytestmark = [
    pytest.mark.ros,
    pytest.mark.skipif(shutil.which("rosmaster") is None, reason="ROS 1 is not installed: `make test-ros` says why"),
]

ASKER = """
import time
import rospy, actionlib
from actionlib.msg import TestAction, TestGoal
rospy.init_node("asker")
while rospy.get_rostime().is_zero():  # rospy's time is zero until /clock has come, and any timeout would then be over
    time.sleep(0.01)
client = actionlib.SimpleActionClient("/count", TestAction)
print("server", client.wait_for_server(rospy.Duration(20)))
told = []
client.send_goal(TestGoal(goal=3), feedback_cb=lambda feedback: told.append(feedback.feedback))
print("first", client.wait_for_result(rospy.Duration(20)), client.get_state(), client.get_result().result, told)
client.send_goal(TestGoal(goal=100000))
rospy.sleep(1)
client.cancel_goal()
print("second", client.wait_for_result(rospy.Duration(20)), client.get_state(), client.get_goal_status_text())
client.send_goal(TestGoal(goal=-1))
print("third", client.wait_for_result(rospy.Duration(20)), client.get_state(), client.get_goal_status_text())
"""


class Graph:
    """A master of ROS 1, and its programs."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.uri = f"http://127.0.0.1:{self.port}"
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL"))}
        path = ":".join(part for part in kept["PATH"].split(":") if ".venv" not in part and "pyenv" not in part)
        self.environment = kept | {
            "ROS_MASTER_URI": self.uri, "ROS_HOSTNAME": "127.0.0.1", "ROS_HOME": str(folder), "PATH": path,
            "PYTHONUNBUFFERED": "1",
        }  # fmt: skip
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        self.start_master()

    def start_master(self) -> None:
        self.master = self.start("rosmaster", "--core", "-p", str(self.port))
        for _ in range(200):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
                return
            time.sleep(0.1)
        pytest.fail("rosmaster does not start")

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        output = (self.folder / f"{words[0]}-{len(self.processes)}.txt").open("wb")
        process = subprocess.Popen(
            words, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
        output.close()
        self.processes.append(process)
        return process

    def said(self, process: subprocess.Popen[bytes]) -> str:
        number = self.processes.index(process)
        return next(self.folder.glob(f"*-{number}.txt")).read_text(errors="replace")

    def tell(self, *words: str, seconds: float = 40.0) -> str:
        """Output of a program of ROS."""
        done = subprocess.run(
            words, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=seconds, check=False,
        )  # fmt: skip
        return done.stdout + done.stderr

    def stop(self, process: subprocess.Popen[bytes], number: int = signal.SIGINT) -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            process.wait(10.0)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def close(self) -> None:
        for process in reversed(self.processes):
            self.stop(process)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    made = Graph(tmp_path_factory.mktemp("ros1"))
    yield made
    made.close()


class Live:
    """A run that goes on in real time on a thread of its own, shown to ROS 1."""

    def __init__(self, bus: ry.Bus, uri: str) -> None:
        self.bus = bus
        self.lines: list[str] = []
        bus.log_sinks.append(lambda record: self.lines.append(record.text))
        bus.executor.pacer.factor = 1.0
        self.bridge = Ros1Bridge(uri)
        self._attached = Attached(self.bridge, bus)
        self._thread = Thread(target=lambda: bus.executor.run_until(10**12))
        self._thread.start()

    def wait(self, until: Callable[[], bool], seconds: float = 20.0) -> bool:
        end = time.monotonic() + seconds
        while not until() and time.monotonic() < end:
            time.sleep(0.05)
        return until()

    def close(self) -> None:
        self.bus.executor.stop()
        self._thread.join()
        self._attached.__exit__(None, None, None)


@pytest.fixture(scope="module")
def rover(graph: Graph) -> Iterator[tuple[Live, Any]]:
    with Run("arena", seed=7, record=False) as run:
        robot = run.add("rover")
        live = Live(run.bus, graph.uri)
        yield live, robot
        live.close()


def test_everything_is_listed(graph: Graph, rover: Any) -> None:
    nodes = graph.tell("rosnode", "list").split()
    assert {"/arbiter", "/drive", "/odometry", "/simulation", "/roboyard"} <= set(nodes)
    topics = graph.tell("rostopic", "list").split()
    assert {"/scan", "/odom", "/tf", "/clock", "/cmd_vel", "/truth/rover/odom"} <= set(topics)
    assert "/arbiter/stop" in graph.tell("rosservice", "list").split()
    info = graph.tell("rosnode", "info", "/arbiter")
    assert "/cmd_vel_out [geometry_msgs/Twist]" in info
    assert "Pid:" in info
    assert "sensor_msgs/LaserScan" in graph.tell("rostopic", "type", "/scan")


def test_rates_and_values(graph: Graph, rover: Any) -> None:
    scan = graph.tell("rostopic", "echo", "-n", "1", "/scan")
    assert "frame_id: " in scan
    assert len(scan.split("ranges: [")[1].split("]")[0].split(",")) == 720
    hz = graph.start("rostopic", "hz", "/scan")
    live = rover[0]
    assert live.wait(lambda: "average rate" in graph.said(hz))
    graph.stop(hz)
    rate = float(graph.said(hz).split("average rate:")[1].split()[0])
    assert rate == pytest.approx(10.0, abs=1.0)
    clock = graph.tell("rostopic", "echo", "-n", "2", "/clock")
    assert clock.count("nsecs:") == 2


def test_a_foreign_publisher_drives_through_arbitration(graph: Graph, rover: Any) -> None:
    live, robot = rover
    start = robot.truth.pose.translation[0]
    driver = graph.start("rostopic", "pub", "-r", "10", "/cmd_vel", "geometry_msgs/Twist", "{linear: {x: 0.4}}")
    assert live.wait(lambda: robot.truth.pose.translation[0] > start + 0.3)
    owner = graph.tell("rostopic", "echo", "-n", "1", "/arbiter/owner")
    assert "rostopic" in owner
    assert "True" in graph.tell("rosservice", "call", "/arbiter/stop", "true")
    time.sleep(1.5)
    stopped = robot.truth.pose.translation[0]
    time.sleep(1.0)
    assert robot.truth.pose.translation[0] == pytest.approx(stopped, abs=0.05)
    graph.tell("rosservice", "call", "/arbiter/stop", "false")
    graph.stop(driver)


def test_another_type_is_refused_and_told_once(graph: Graph, rover: Any) -> None:
    live, _ = rover
    wrong = graph.start("rostopic", "pub", "-r", "5", "/cmd_vel", "std_msgs/String", "no twist")
    assert live.wait(lambda: live.bridge.counts["malformed"] >= 2)
    graph.stop(wrong)
    assert len([line for line in live.lines if "topic types do not match" in line]) == 1


def test_parameters_both_ways(graph: Graph, rover: Any) -> None:
    live, _ = rover
    node = live.bus.nodes["/drive"]
    graph.tell("rosparam", "set", "/drive/speed", "1")
    assert live.wait(lambda: node.parameters()["speed"] == 1.0)
    graph.tell("rosparam", "set", "/drive/speed", "-3.0")  # out of range
    assert live.wait(lambda: graph.tell("rosparam", "get", "/drive/speed").strip() == "1.0")
    rate = graph.tell("rosparam", "get", "/odometry/rate")
    graph.tell("rosparam", "set", "/odometry/rate", "12.5")  # can only be given at start
    assert live.wait(lambda: graph.tell("rosparam", "get", "/odometry/rate") == rate)
    assert graph.tell("rosparam", "get", "/use_sim_time").strip() == "true"


def test_rosbag_records_what_we_read_again(graph: Graph, rover: Any) -> None:
    _live, _ = rover
    bag = graph.folder / "kept.bag"
    recorder = graph.start("rosbag", "record", "-O", str(bag), "/scan", "/odom", "/tf", "/rosout", "--duration", "4")
    recorder.wait(60.0)
    with open_recording(bag) as recording:
        counts = {connection.topic: connection.count for connection in recording.connections}
        assert counts["/scan"] > 20
        assert counts["/odom"] > 100
        scans = [item.message for item in recording.messages(topics=["/scan"])]
        assert {len(scan.ranges) for scan in scans} == {720}
        assert scans[0].header.frame_id


def test_a_recording_played_by_rosbag_reaches_our_nodes(graph: Graph, rover: Any) -> None:
    live, _ = rover
    heard: list[str] = []

    class Ear(ry.Node):
        def setup(self) -> None:
            self.subscribe("/said", ry.msg.String, lambda message: heard.append(message.data))

    live.bus.inputs.query(lambda: live.bus.add(Ear(), "ear") and None)
    speaker = graph.start("rostopic", "pub", "-r", "20", "/said", "std_msgs/String", "from a bag")
    bag = graph.folder / "said.bag"
    graph.start("rosbag", "record", "-O", str(bag), "/said", "--duration", "3").wait(60.0)
    graph.stop(speaker)
    heard.clear()
    player = graph.start("rosbag", "play", str(bag))
    assert live.wait(lambda: "from a bag" in heard)
    graph.stop(player)


def test_actionlib(graph: Graph, rover: Any, tmp_path: Path) -> None:
    register("int32 goal\n---\nint32 result\n---\nint32 feedback\n", "actionlib/action/Test")
    kind = action_type("actionlib/action/Test")

    class Bell(ry.Node):
        def setup(self) -> None:
            self.reached = 0
            self.server = self.action_server("count", kind, self.on_goal)
            self.timer(0.1, self.tick)

        def on_goal(self, goal: Any) -> None:
            self.reached = 0
            if goal.goal.goal < 0:
                goal.reject("only upwards")
            else:
                goal.accept()

        def tick(self) -> None:
            for goal in self.server.active:
                self.reached += 1
                goal.feedback(kind.Feedback(feedback=self.reached))
                if goal.canceling:
                    goal.cancel(reason="as you wish")
                elif self.reached == goal.goal.goal:
                    goal.succeed(kind.Result(result=self.reached))

    live, _ = rover
    live.bus.inputs.query(lambda: live.bus.add(Bell(), "bell") and None)
    script = tmp_path / "asker.py"
    script.write_text(ASKER)
    said = graph.tell("/usr/bin/python3", str(script), seconds=90.0)
    assert "server True" in said, (live.lines, live.bridge.counts, graph.tell("rosnode", "info", "/bell"))
    assert "first True 3 3 [1, 2, 3]" in said
    assert "second True 2 as you wish" in said
    assert "third True 5 only upwards" in said


def test_a_master_that_starts_again_knows_everything_again(graph: Graph, rover: Any) -> None:
    live, _ = rover
    graph.stop(graph.master)
    assert live.wait(lambda: live.bridge.counts["master lost"] > 0)
    graph.start_master()
    assert live.wait(lambda: "/scan" in graph.tell("rostopic", "list").split())
    assert live.wait(lambda: graph.tell("rosparam", "get", "/use_sim_time").strip() == "true")
    assert "ranges" in graph.tell("rostopic", "echo", "-n", "1", "/scan")
