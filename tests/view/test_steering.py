"""What viewers do comes into the run as inputs: where and as long as it is meant, and from who steers only."""

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.view.conftest import Client, Stage

from roboyard.compute.wall_clock import wall_seconds
from roboyard.geometry import SE2
from roboyard.messages import msg
from roboyard.messages.convert import pose_to_se2
from roboyard.record import open_recording
from roboyard.scenarios import Control, Run, load_spec, run_scenario
from roboyard.view import View
from roboyard.view.plots import fields, number_at


def told(stage: Stage, topic: str) -> list[tuple[int, Any, str]]:
    """What is published on a topic from now on."""
    found: list[tuple[int, Any, str]] = []
    stage.run.bus.tap(lambda t, message, node, time: found.append((time, message, node)) if t.name == topic else None)
    return found


def wait(condition: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = wall_seconds() + seconds
    while not condition():
        assert wall_seconds() < deadline, "it does not come true"
        threading.Event().wait(0.01)


# -- driving -----------------------------------------------------------------------------------------------------------
def test_a_robot_drives_while_it_is_told_to_and_stops_when_it_is_let_go(stage: Stage) -> None:
    commands = told(stage, "/cmd_vel")
    client = stage.start(rate=1.0).client().control()
    for _ in range(8):
        client.say("drive", space="", v=[0.4, 0.0, 0.2])
        threading.Event().wait(0.05)
    client.say("drive", space="", v=[0.0, 0.0, 0.0])
    wait(lambda: commands and commands[-1][1].linear.x == 0.0)
    assert {node for _, _, node in commands} == {"/teleop"}
    assert {(m.linear.x, m.angular.z) for _, m, _ in commands[:-1]} == {(0.4, 0.2)}
    assert len(commands) >= 4
    count = len(commands)
    threading.Event().wait(0.3)
    assert len(commands) == count, "after one zero nothing more is said"


@pytest.mark.parametrize("how", ["silence", "closed", "handed over"])
def test_who_is_not_heard_any_more_does_not_drive(stage: Stage, how: str) -> None:
    commands = told(stage, "/cmd_vel")
    client = stage.start(rate=1.0).client().control()
    other = stage.client()
    client.say("drive", space="", v=[0.4, 0.0, 0.0])
    wait(lambda: commands)
    if how == "closed":
        client.close()
    elif how == "handed over":
        other.say("take")
        client.until("control", asking=[other.number])
        client.say("give")
    wait(lambda: commands[-1][1].linear.x == 0.0)
    moving = [time for time, m, _ in commands if m.linear.x]
    assert (moving[-1] - moving[0]) * 1e-9 < 1.5


def test_heartbeats_last_as_long_as_the_page(stage: Stage) -> None:
    beats = told(stage, "/teleop/heartbeat")
    client = stage.start(rate=1.0).client().control()
    client.say("operator", space="", on=1)
    for _ in range(20):
        client.say("beat")
        threading.Event().wait(0.04)
    wait(lambda: len(beats) >= 5)
    assert all(0 <= time - (m.stamp.sec * 10**9 + m.stamp.nanosec) < 10**8 for time, m, _ in beats)
    client.close()
    threading.Event().wait(0.3)
    count = len(beats)
    threading.Event().wait(0.4)
    assert len(beats) == count


@pytest.mark.parametrize(
    "said",
    [
        {"op": "drive", "space": "/nobody", "v": [1, 0, 0]}, {"op": "drive", "space": "", "v": [1, 0]},
        {"op": "drive", "space": "", "v": [1, 0, "x"]}, {"op": "drive", "v": [1, 0, 0]}, {"op": "goal", "space": ""},
        {"op": "goal", "space": "", "poses": [[1, 2]]}, {"op": "follow", "space": "", "poses": [[1, 2, 3]]},
        {"op": "put", "shape": "cow", "size": [1, 1, 1], "at": [0, 0, 0]}, {"op": "remove", "name": "nobody"},
        {"op": "put", "shape": "box", "size": [0, 1, 1], "at": [0, 0, 0]}, {"op": "move", "name": "rover"},
        {"op": "put", "shape": "box", "size": [1, 1, 1], "at": [0, 0, 1e300]}, {"op": "fault", "fault": "{what: x}"},
        {"op": "parameters", "node": "/nobody"}, {"op": "set_parameter", "node": "/drive", "name": "no", "value": 1},
        {"op": "set_parameter", "node": "/drive", "name": "wheel_radius", "value": {"a": 1}},
        {"op": "plot", "topic": "/odom"}, {"op": "seek", "time": 1},
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_with_a_reason(stage: Stage, said: dict[str, Any]) -> None:
    client = stage.start(rate=1.0).client().control()
    client.until("abilities")
    values = {key: value for key, value in said.items() if key != "op"}
    answer = client.ask(said["op"], **values)
    assert answer["op"] == "refused"
    assert answer["what"]
    assert client.until("poses")


@pytest.mark.parametrize(
    "op", ["drive", "operator", "beat", "goal", "initial", "follow", "cancel", "put", "move", "remove", "fault",
           "end_fault", "set_parameter", "pause", "resume", "step", "rate", "reset", "end"],
)  # fmt: skip
def test_who_does_not_steer_can_do_nothing(stage: Stage, op: str) -> None:
    stage.start(rate=1.0).client().control()
    second = stage.client()
    second.until("poses")
    assert "control" in second.ask(op)["what"]


# -- goals -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("op", "topic"), [("goal", "/goal_pose"), ("initial", "/initialpose")])
def test_a_click_in_the_world_means_that_place_in_the_robots_own_frame(stage: Stage, op: str, topic: str) -> None:
    stage.run.remove("rover")
    stage.run.add("rover", "other", at=(1.0, 0.5, 0.7))
    kind = msg.PoseStamped if op == "goal" else msg.PoseWithCovarianceStamped
    stage.run.bus.subscribe(topic, kind, "/test", lambda message: None)  # type: ignore[arg-type]
    goals = told(stage, topic)
    client = stage.start(rate=1.0).client().control()
    client.until("scene")
    while stage.run.time < 0.2:
        client.next()
    wanted = SE2(2.0, -0.5, -1.0)
    assert client.ask(op, space="/other", poses=[[wanted.x, wanted.y, wanted.theta]])["op"] == "refused"
    space = stage.run.robots["other"].namespace
    assert client.ask(op, space=space, poses=[[wanted.x, wanted.y, wanted.theta]])["op"] == "done"
    wait(lambda: goals)
    message = goals[0][1]
    pose = pose_to_se2(message.pose if op == "goal" else message.pose.pose)
    assert message.header.frame_id == "odom"
    there = SE2(1.0, 0.5, 0.7) @ pose
    assert there.distance(wanted) < 0.02
    assert there.theta == pytest.approx(wanted.theta, abs=0.02)


# -- the world ---------------------------------------------------------------------------------------------------------
def test_things_are_put_in_moved_and_taken_out(stage: Stage) -> None:
    client = stage.start(rate=1.0).client().control()
    for shape in ("box", "cylinder", "sphere"):
        answer = client.ask("put", shape=shape, size=[0.4, 0.3, 0.5], at=[2.0, 1.0, 0.3], yaw=0.3)
        assert answer["op"] == "done", answer
        name = next(name for name in stage.run.simulation.models if name.startswith(shape))
        while name not in client.until("abilities")["things"]:
            pass
        assert client.ask("move", name=name, at=[-2.0, -1.0, 0.6], yaw=0.0)["op"] == "done"
        x, y, _ = stage.run.simulation.truth(name).pose.translation
        assert (x, y) == pytest.approx((-2.0, -1.0), abs=0.2)
        assert client.ask("remove", name=name)["op"] == "done"
        assert name not in stage.run.simulation.models


# -- parameters and plots ----------------------------------------------------------------------------------------------
def test_parameters_are_told_and_set(stage: Stage) -> None:
    client = stage.start(rate=1.0).client().control()
    found = {
        one["name"]: (name, one)
        for name in stage.run.bus.nodes
        for one in client.ask("parameters", node=name)["parameters"]
        if not one["fixed"] and type(one["value"]) is float and one["value"] > 0.0
    }
    key, (node, one) = next(iter(found.items()))
    assert client.ask("set_parameter", node=node, name=key, value=one["value"] * 1.01)["op"] == "done"
    assert stage.run.bus.nodes[node].parameters()[key] == pytest.approx(one["value"] * 1.01)


def test_curves_are_what_was_said(stage: Stage) -> None:
    poses = told(stage, "/truth/rover/pose")
    client = stage.start(rate=1.0).client().control()
    answer = client.ask("fields", topic="/truth/rover/pose")
    assert "pose.position.x" in answer["fields"]
    client.say("plot", topic="/truth/rover/pose", field="pose.position.x", on=True)
    rows = np.frombuffer(client.until("curves")["parts"][0], np.float32).reshape(-1, 2)
    wait(lambda: poses[-1][0] * 1e-9 > rows[-1, 0] + 0.1)
    said = {round(time * 1e-9, 3): message.pose.position.x for time, message, _ in poses}
    assert all(value == pytest.approx(said[round(float(time), 3)], abs=1e-5) for time, value in rows)


@given(st.integers(0, 3), st.floats(allow_nan=False, allow_infinity=False))
def test_every_field_that_is_named_has_its_number(index: int, value: float) -> None:
    message = msg.JointState(name=list("abcd"), position=np.full(4, value), velocity=np.zeros(4), effort=np.zeros(0))
    message.header.stamp.sec = index
    found = fields(message)
    assert f"position[{index}]" in found
    assert not any(path.startswith(("name", "effort")) for path in found)
    assert number_at(message, f"position[{index}]") == value
    assert number_at(message, "header.stamp.sec") == index
    assert np.isnan(number_at(message, "no.such[3]"))


# -- repeating ---------------------------------------------------------------------------------------------------------
SCENARIO = """\
world: arena
robots: {rover: {model: rover}}
duration: 3.0
"""


@pytest.mark.slow
def test_what_was_steered_happens_again(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO)
    spec, control = load_spec(tmp_path / "s.yaml"), Control(pace=1.0)
    with View(0) as view:
        client = Client(view).control()

        def started(run: Run) -> None:
            view.begin(run, "test", 3.0, control)

        def steer() -> None:
            client.until("abilities")
            client.say("put", shape="box", size=[0.3, 0.3, 0.3], at=[2, 1, 0.2])
            for _ in range(12):
                client.say("drive", space="", v=[0.4, 0, 0.3])
                threading.Event().wait(0.05)
            client.say("drive", space="", v=[0, 0, 0])

        hand = threading.Thread(target=steer)
        hand.start()
        run_scenario(spec, out=tmp_path / "first", report=False, serve=False, control=control, started=started)
        hand.join()
        client.close()
    again = run_scenario(spec, out=tmp_path / "again", report=False, serve=False, inputs=tmp_path / "first")
    with open_recording(tmp_path / "first") as recording:
        *_, last = recording.messages(["/truth/rover/pose"])
    assert last.message.pose.position.x > 0.05
    digests = [hashlib.sha256((tmp_path / d / "recording.mcap").read_bytes()).hexdigest() for d in ("first", "again")]
    assert digests[0] == digests[1]
    assert again.state == "done"
