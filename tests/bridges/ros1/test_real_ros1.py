"""The bridge with ROS 1 itself, as Debian has it: `make test-ros` installs it and runs this."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from tests.harness.live_bus import RunningBus
from tests.harness.live_run import poll

import roboyard as ry
from roboyard.bridges import Attached, Ros1Bridge, describe
from roboyard.bridges.external import stand_in
from roboyard.localization.nodes import OdometryNode
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
feedbacks = []
client.send_goal(TestGoal(goal=3), feedback_cb=lambda feedback: feedbacks.append(feedback.feedback))
reached = client.wait_for_result(rospy.Duration(20))
deadline = time.time() + 20  # feedback comes through a connection of its own: the result may overtake it
while len(feedbacks) < 3 and time.time() < deadline:
    time.sleep(0.01)
print("first", reached, client.get_state(), client.get_result().result, feedbacks)
client.send_goal(TestGoal(goal=100000))
rospy.sleep(1)
client.cancel_goal()
print("second", client.wait_for_result(rospy.Duration(20)), client.get_state(), client.get_goal_status_text())
direct = actionlib.ActionClient("/count", TestAction)  # SimpleActionClient misses an early rejection
direct.wait_for_server(rospy.Duration(20))
goal = direct.send_goal(TestGoal(goal=-1))
deadline = time.time() + 20
while goal.get_comm_state() != actionlib.CommState.DONE and time.time() < deadline:
    time.sleep(0.01)
done = goal.get_comm_state() == actionlib.CommState.DONE
print("third", done, goal.get_goal_status(), goal.get_goal_status_text())
"""


SERVER = """
import rospy, actionlib
from actionlib.msg import TestAction, TestFeedback, TestResult
from std_srvs.srv import SetBool, SetBoolResponse
rospy.init_node("robot")

def pursue(goal):
    if goal.goal < 0:
        server.set_aborted(TestResult(0), "only upwards")
        return
    for number in range(1, goal.goal + 1):
        if server.is_preempt_requested():
            server.set_preempted(TestResult(number), "as you wish")
            return
        server.publish_feedback(TestFeedback(number))
        rospy.sleep(0.1)
    server.set_succeeded(TestResult(goal.goal), "there")

server = actionlib.SimpleActionServer("/tally", TestAction, pursue, auto_start=False)
server.start()
rospy.Service("/gong", SetBool, lambda request: SetBoolResponse(request.data, "foreign gong"))
rospy.spin()
"""

RVIZ = """
Visualization Manager:
  Displays:
    - {Class: rviz/RobotModel, Enabled: true, Name: RobotModel, Robot Description: robot_description, Value: true}
    - {Class: rviz/LaserScan, Enabled: true, Name: LaserScan, Topic: /scan, Style: Points, Size (Pixels): 4,
       Color Transformer: FlatColor, Color: 255; 0; 255, Value: true}
    - {Class: rviz/TF, Enabled: true, Name: TF, Value: true, Show Names: false}
  Global Options: {Background Color: 230; 230; 230, Fixed Frame: odom, Frame Rate: 10}
  Tools: [{Class: rviz/MoveCamera}]
  Views:
    Current: {Class: rviz/Orbit, Distance: 5, Name: Current View, Pitch: 0.7, Yaw: 0.8, Target Frame: base_link,
              Value: Orbit (rviz)}
Window Geometry: {Height: 700, Width: 1000, Hide Left Dock: true, Hide Right Dock: true}
"""
"""Robot, scan in magenta, and frames, in one window that fills the screen."""


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

        def listens() -> bool:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
                return True
            return False

        poll(listens, expected="the start of rosmaster")

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        output = (self.folder / f"{Path(words[0]).name}-{len(self.processes)}.txt").open("wb")
        process = subprocess.Popen(
            words, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            start_new_session=True,
        )  # fmt: skip
        output.close()
        self.processes.append(process)
        return process

    def output_of(self, process: subprocess.Popen[bytes]) -> str:
        number = self.processes.index(process)
        return next(self.folder.glob(f"*-{number}.txt")).read_text(errors="replace")

    def run(self, *words: str, seconds: float = 40.0) -> str:
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
    graph_of_module = Graph(tmp_path_factory.mktemp("ros1"))
    yield graph_of_module
    graph_of_module.close()


class Ros1Run(RunningBus):
    """A run in real time, shown to ROS 1."""

    def __init__(self, bus: ry.Bus, uri: str, robot: Any) -> None:
        super().__init__(bus)
        self.bridge = Ros1Bridge(uri, descriptions=describe([(robot.namespace, robot.model)]))
        self._attached = Attached(self.bridge, bus)
        self.start()

    def close(self) -> None:
        """End the run; the bus is closed by its owner."""
        self.end()
        self._attached.__exit__(None, None, None)


@pytest.fixture(scope="module")
def rover(graph: Graph) -> Iterator[tuple[Ros1Run, Any]]:
    with Run("arena", seed=7, record=False) as run:
        robot = run.add_robot("rover")
        live = Ros1Run(run.bus, graph.uri, robot)
        yield live, robot
        live.close()


def test_ros_tools_list_nodes_topics_and_services(graph: Graph, rover: Any) -> None:
    nodes = graph.run("rosnode", "list").split()
    assert {"/arbiter", "/drive", "/odometry", "/simulation", "/roboyard"} <= set(nodes)
    topics = graph.run("rostopic", "list").split()
    assert {"/scan", "/odom", "/tf", "/clock", "/cmd_vel", "/truth/rover/odom"} <= set(topics)
    assert "/arbiter/stop" in graph.run("rosservice", "list").split()
    info = graph.run("rosnode", "info", "/arbiter")
    assert "/cmd_vel_out [geometry_msgs/Twist]" in info
    assert "Pid:" in info
    assert "sensor_msgs/LaserScan" in graph.run("rostopic", "type", "/scan")


def test_rostopic_echo_and_hz_agree_with_the_run(graph: Graph, rover: Any) -> None:
    scan = graph.run("rostopic", "echo", "-n", "1", "/scan")
    assert "frame_id: " in scan
    assert len(scan.split("ranges: [")[1].split("]")[0].split(",")) == 720
    hz = graph.start("rostopic", "hz", "/scan")
    poll(lambda: "average rate" in graph.output_of(hz))
    graph.stop(hz)
    rate = float(graph.output_of(hz).split("average rate:")[1].split()[0])
    assert rate == pytest.approx(10.0, abs=1.0)
    clock = graph.run("rostopic", "echo", "-n", "2", "/clock")
    assert clock.count("nsecs:") == 2


def test_rostopic_bw_and_tf_echo_agree_with_the_run(graph: Graph, rover: Any) -> None:
    _, robot = rover
    bandwidth = graph.start("rostopic", "bw", "/scan")
    frames = graph.start("/usr/lib/tf/tf_echo", "odom", "base_link")
    poll(lambda: graph.output_of(bandwidth).count("average:") > 1 and "Translation" in graph.output_of(frames))
    graph.stop(bandwidth)
    graph.stop(frames)
    mean = float(graph.output_of(bandwidth).split("mean:")[1].split("KB")[0])
    assert mean == pytest.approx(720 * 4 / 1000, rel=0.1)
    x = float(graph.output_of(frames).split("Translation: [")[1].split(",")[0])
    assert x == pytest.approx(robot.truth.pose.translation[0], abs=0.2)


@pytest.mark.skipif(not all(map(shutil.which, ("rviz", "Xvfb", "import"))), reason="RViz, Xvfb or import is missing")
def test_rviz_draws_robot_scan_and_frames(graph: Graph, rover: Any, tmp_path: Path) -> None:
    picture = Path(os.environ.get("ROBOYARD_PICTURES", tmp_path)) / "rviz.png"
    config = tmp_path / "view.rviz"
    config.write_text(RVIZ)
    number = os.getpid() % 10_000 + 100
    screen = graph.start("Xvfb", f":{number}", "-screen", "0", "1000x700x24", "-nolisten", "tcp")
    more = {"DISPLAY": f":{number}", "LIBGL_ALWAYS_SOFTWARE": "1", "HOME": str(tmp_path)}
    poll(lambda: Path(f"/tmp/.X11-unix/X{number}").exists())
    before, graph.environment = graph.environment, graph.environment | more
    seen: dict[str, int] = {}

    def drawn() -> bool:
        graph.run("import", "-window", "root", str(picture))
        pixels = cv2.imread(str(picture))
        if pixels is None:
            return False
        blue, green, red = (pixels[..., channel].astype(int) for channel in range(3))
        seen["scan"] = int(np.sum((red > 240) & (green < 30) & (blue > 240)))
        seen["robot"] = int(np.sum(np.maximum(np.maximum(red, green), blue)[200:500, 350:650] < 40))
        return seen["scan"] > 200 and seen["robot"] > 300

    viewer = graph.start("rviz", "-d", str(config))
    try:
        poll(drawn, expected=f"the picture {seen}")
    finally:
        graph.environment = before
        graph.stop(viewer, signal.SIGKILL)
        graph.stop(screen)


def test_joint_states_of_a_foreign_robot_become_odometry(tmp_path: Path) -> None:
    """Our nodes on the wall's clock, without any simulation."""
    with closing(Graph(tmp_path)) as graph, ry.Bus(start_ns=time.time_ns()) as bus:
        started = int(time.time())
        bus.add(OdometryNode(wheel_radius=0.1, track=0.4), "odometry")
        with Attached(Ros1Bridge(graph.uri, simulated=False), bus):
            live = RunningBus(bus).start()
            joints = "{header: auto, name: [left_wheel_joint, right_wheel_joint], position: [0.0, 0.0]}"
            try:
                base = graph.start(
                    "rostopic", "pub", "-s", "-r", "10", "/joint_states", "sensor_msgs/JointState", joints
                )
                text = graph.run("rostopic", "echo", "-n", "1", "/odom/pose/pose/position")
                assert "x: 0.0" in text
                sent = float(graph.run("rostopic", "echo", "-n", "1", "/odom/header/stamp/secs").split()[0])
                assert started <= sent <= time.time()
                graph.stop(base)
            finally:
                live.end()


def test_foreign_publisher_drives_through_arbitration(graph: Graph, rover: Any) -> None:
    live, robot = rover
    start = robot.truth.pose.translation[0]
    driver = graph.start("rostopic", "pub", "-r", "10", "/cmd_vel", "geometry_msgs/Twist", "{linear: {x: 0.4}}")
    poll(lambda: robot.truth.pose.translation[0] > start + 0.3)
    owner = graph.run("rostopic", "echo", "-n", "1", "/arbiter/owner")
    assert "rostopic" in owner
    assert "True" in graph.run("rosservice", "call", "/arbiter/stop", "true")
    now = live.bus.now_ns * 1e-9
    live.wait_for_time(now + 1.5)
    stopped = robot.truth.pose.translation[0]
    live.wait_for_time(now + 2.5)
    assert robot.truth.pose.translation[0] == pytest.approx(stopped, abs=0.05)
    graph.run("rosservice", "call", "/arbiter/stop", "false")
    graph.stop(driver)


def test_topic_of_another_type_is_refused_and_logged_once(graph: Graph, rover: Any) -> None:
    live, _ = rover
    wrong = graph.start("rostopic", "pub", "-r", "5", "/cmd_vel", "std_msgs/String", "no twist")
    poll(lambda: live.bridge.counts["malformed"] >= 2)
    graph.stop(wrong)
    assert len([line for line in live.log_lines if "topic types do not match" in line]) == 1


def test_parameters_are_set_from_both_sides(graph: Graph, rover: Any) -> None:
    live, _ = rover
    node = live.bus.nodes["/drive"]
    graph.run("rosparam", "set", "/drive/speed", "1")
    poll(lambda: node.parameters()["speed"] == 1.0)
    graph.run("rosparam", "set", "/drive/speed", "-3.0")  # out of range
    poll(lambda: graph.run("rosparam", "get", "/drive/speed").strip() == "1.0")
    rate = graph.run("rosparam", "get", "/odometry/rate")
    graph.run("rosparam", "set", "/odometry/rate", "12.5")  # can only be given at start
    poll(lambda: graph.run("rosparam", "get", "/odometry/rate") == rate)
    assert graph.run("rosparam", "get", "/use_sim_time").strip() == "true"


def test_rosbag_recording_is_read(graph: Graph, rover: Any) -> None:
    _live, _ = rover
    bag = graph.folder / "kept.bag"
    recorder = graph.start("rosbag", "record", "-O", str(bag), "/scan", "/odom", "/tf", "/rosout", "--duration", "4")
    recorder.wait(60.0)
    with open_recording(bag) as recording:
        counts = {connection.topic: connection.count for connection in recording.channels}
        assert counts["/scan"] > 20
        assert counts["/odom"] > 100
        scans = [item.message for item in recording.messages(topics=["/scan"])]
        assert {len(scan.ranges) for scan in scans} == {720}
        assert scans[0].header.frame_id


def test_recording_played_by_rosbag_reaches_nodes(graph: Graph, rover: Any) -> None:
    live, _ = rover
    heard: list[str] = []

    class Ear(ry.Node):
        def setup(self) -> None:
            self.subscribe("/said", ry.msg.String, lambda message: heard.append(message.data))

    live.in_run(lambda: live.bus.add(Ear(), "ear"))
    speaker = graph.start("rostopic", "pub", "-r", "20", "/said", "std_msgs/String", "from a bag")
    bag = graph.folder / "said.bag"
    graph.start("rosbag", "record", "-O", str(bag), "/said", "--duration", "3").wait(60.0)
    graph.stop(speaker)
    heard.clear()
    player = graph.start("rosbag", "play", str(bag))
    poll(lambda: "from a bag" in heard)
    graph.stop(player)


def test_actionlib_client_gets_feedback_results_and_cancel(graph: Graph, rover: Any, tmp_path: Path) -> None:
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
            for goal in self.server.active_goals:
                if goal.is_cancel_requested:
                    goal.set_canceled(error_message="as you wish")
                elif self.reached == goal.goal.goal:
                    # feedback travels by another connection: actionlib drops what arrives after the result
                    goal.succeed(kind.Result(result=self.reached))
                else:
                    self.reached += 1
                    goal.publish_feedback(kind.Feedback(feedback=self.reached))

    live, _ = rover
    live.in_run(lambda: live.bus.add(Bell(), "bell"))
    script = tmp_path / "asker.py"
    script.write_text(ASKER)
    text = graph.run("/usr/bin/python3", str(script), seconds=90.0)
    assert "server True" in text, (live.log_lines, live.bridge.counts, graph.run("rosnode", "info", "/bell"))
    assert "first True 3 3 [1, 2, 3]" in text
    assert "second True 2 as you wish" in text
    assert "third True 5 only upwards" in text


def test_nodes_call_services_and_actions_of_rospy(tmp_path: Path) -> None:
    register("int32 goal\n---\nint32 result\n---\nint32 feedback\n", "actionlib/action/Test")
    kind = action_type("actionlib/action/Test")

    class AcceptingServer(ry.Node):
        def setup(self) -> None:
            self.service("gong", ry.srv.SetBool, lambda request: ry.srv.SetBool.Response())
            self.action_server("tally", kind, lambda goal: goal.accept())

    class Caller(ry.Node):
        def setup(self) -> None:
            self.gong = self.service_client("gong", ry.srv.SetBool)
            self.tally = self.action_client("tally", kind)

    script = tmp_path / "server.py"
    script.write_text(SERVER)
    feedbacks: list[int] = []
    with closing(Graph(tmp_path)) as graph, ry.Bus(seed=1) as bus:  # of its own, since there is but one /clock
        bus.executor.pacer.real_time_factor = 1.0
        stand_in_server, caller = bus.add(AcceptingServer(), "stand_in_server"), bus.add(Caller(), "caller")
        stand_in(bus, stand_in_server, 40.0)
        with Attached(Ros1Bridge(graph.uri), bus):
            gong = caller.gong.call(ry.srv.SetBool.Request(data=True))
            server = graph.start("/usr/bin/python3", str(script))

            def run(until: Callable[[], bool]) -> bool:
                return bus.executor.run_until(bus.now_ns + 40 * 10**9, until)

            assert run(gong.done), graph.output_of(server)
            assert (gong.result.success, gong.result.message) == (True, "foreign gong")
            goal = caller.tally.send(kind.Goal(goal=3), lambda feedback: feedbacks.append(int(feedback.feedback)))
            assert run(goal.done), graph.output_of(server)
            assert (goal.succeeded, goal.result.result, feedbacks) == (True, 3, [1, 2, 3])
            endless = caller.tally.send(kind.Goal(goal=100_000))
            assert run(lambda: endless.accepted is not None)
            endless.cancel()
            assert run(endless.done)
            assert (int(endless.status), endless.error_message) == (5, "as you wish")
            aborted = caller.tally.send(kind.Goal(goal=-1))
            assert run(aborted.done)
            assert (int(aborted.status), aborted.error_message) == (6, "only upwards")
            graph.stop(server)


def test_restarted_master_gets_all_registrations(graph: Graph, rover: Any) -> None:
    live, _ = rover
    graph.stop(graph.master)
    poll(lambda: live.bridge.counts["master lost"] > 0)
    graph.start_master()
    poll(lambda: "/scan" in graph.run("rostopic", "list").split())
    poll(lambda: graph.run("rosparam", "get", "/use_sim_time").strip() == "true")
    assert "ranges" in graph.run("rostopic", "echo", "-n", "1", "/scan")
