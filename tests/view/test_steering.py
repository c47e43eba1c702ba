"""What viewers do comes into the run as inputs: where and as long as it is meant, and from who steers only."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness, Traffic
from tests.harness.live_run import poll
from tests.harness.scenarios import ScenarioBuilder, recording_digest
from tests.view.conftest import Client, Stage

from roboyard.geometry import SE2
from roboyard.messages import msg
from roboyard.messages.convert import pose_to_se2
from roboyard.messages.time import to_nanoseconds
from roboyard.record import open_recording
from roboyard.scenarios import Run, RunControl, run_scenario
from roboyard.scenarios.run_options import RunObserver, RunOptions
from roboyard.view import View
from roboyard.view.plots import fields, number_at


def published(stage: Stage, topic: str) -> Traffic:
    """What is published on a topic from now on."""
    return BusHarness(bus=stage.run.bus).published(topic)


def wait_for_run(stage: Stage, seconds: float) -> None:
    """Wait while some time of the run passes [s]."""
    end = stage.run.time + seconds
    poll(lambda: stage.run.time >= end)


# -- driving -----------------------------------------------------------------------------------------------------------
def test_drive_commands_repeat_until_released(stage: Stage) -> None:
    commands = published(stage, "/cmd_vel")
    client = stage.start(rate=1.0).client().control()
    client.send("drive", space="", v=[0.4, 0.0, 0.2])
    while len(commands) < 4:
        client.send("drive", space="", v=[0.4, 0.0, 0.2])
        wait_for_run(stage, 0.05)
    client.send("drive", space="", v=[0.0, 0.0, 0.0])
    poll(lambda: commands.last.linear.x == 0.0)
    assert {command.source for command in commands} == {"/teleop"}
    assert {(m.linear.x, m.angular.z) for m in commands.messages[:-1]} == {(0.4, 0.2)}
    count = len(commands)
    wait_for_run(stage, 0.3)
    assert len(commands) == count, "after one zero nothing more is said"


@pytest.mark.parametrize("how", ["silence", "closed", "handed over"])
def test_drive_commands_stop_without_heartbeat(stage: Stage, how: str) -> None:
    commands = published(stage, "/cmd_vel")
    client = stage.start(rate=1.0).client().control()
    other = stage.client()
    client.send("drive", space="", v=[0.4, 0.0, 0.0])
    poll(lambda: commands)
    if how == "closed":
        client.close()
    elif how == "handed over":
        other.send("take")
        client.wait_for("control", asking=[other.number])
        client.send("give")
    poll(lambda: commands.last.linear.x == 0.0)
    moving = [command.time_ns for command in commands if command.message.linear.x]
    assert (moving[-1] - moving[0]) * 1e-9 < 1.5


def test_heartbeats_end_with_the_page(stage: Stage) -> None:
    beats = published(stage, "/teleop/heartbeat")
    client = stage.start(rate=1.0).client().control()
    client.send("operator", space="", on=1)
    while len(beats) < 5:
        client.send("beat")
        wait_for_run(stage, 0.04)
    assert all(0 <= beat.time_ns - to_nanoseconds(beat.message.stamp) < 10**8 for beat in beats)
    client.close()
    wait_for_run(stage, 0.3)
    count = len(beats)
    wait_for_run(stage, 0.4)
    assert len(beats) == count


@pytest.mark.parametrize(
    "wrong",
    [
        {"op": "drive", "space": "/nobody", "v": [1, 0, 0]}, {"op": "drive", "space": "", "v": [1, 0]},
        {"op": "drive", "space": "", "v": [1, 0, "x"]}, {"op": "drive", "v": [1, 0, 0]}, {"op": "goal", "space": ""},
        {"op": "goal", "space": "", "poses": [[1, 2]]}, {"op": "follow", "space": "", "poses": [[1, 2, 3]]},
        {"op": "put", "shape": "cow", "size": [1, 1, 1], "at": [0, 0, 0]}, {"op": "remove", "name": "nobody"},
        {"op": "put", "shape": "box", "size": [0, 1, 1], "at": [0, 0, 0]}, {"op": "move", "name": "rover"},
        {"op": "put", "shape": "box", "size": [1, 1, 1], "at": [0, 0, 1e300]}, {"op": "fault", "fault": "{type: x}"},
        {"op": "parameters", "node": "/nobody"}, {"op": "set_parameter", "node": "/drive", "name": "no", "value": 1},
        {"op": "set_parameter", "node": "/drive", "name": "wheel_radius", "value": {"a": 1}},
        {"op": "plot", "topic": "/odom"}, {"op": "seek", "time": 1},
    ],
    ids=lambda wrong: wrong["op"],
)  # fmt: skip
def test_impossible_requests_are_refused_with_a_reason(stage: Stage, wrong: dict[str, Any]) -> None:
    client = stage.start(rate=1.0).client().control()
    client.wait_for("abilities")
    values = {key: value for key, value in wrong.items() if key != "op"}
    answer = client.ask(wrong["op"], **values)
    assert answer["op"] == "refused"
    assert answer["what"]
    assert client.wait_for("poses")


@pytest.mark.parametrize(
    "op", ["drive", "operator", "beat", "goal", "initial", "follow", "cancel", "put", "move", "remove", "fault",
           "end_fault", "set_parameter", "pause", "resume", "step", "rate", "reset", "end"],
)  # fmt: skip
def test_viewer_without_control_is_refused(stage: Stage, op: str) -> None:
    stage.start(rate=1.0).client().control()
    second = stage.client()
    second.wait_for("poses")
    assert "control" in second.ask(op)["what"]


# -- goals -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("op", "topic"), [("goal", "/goal_pose"), ("initial", "/initialpose")])
def test_clicked_pose_is_sent_in_the_frame_of_the_robot(stage: Stage, op: str, topic: str) -> None:
    stage.run.remove("rover")
    stage.run.add_robot("rover", "other", pose=(1.0, 0.5, 0.7))
    kind = msg.PoseStamped if op == "goal" else msg.PoseWithCovarianceStamped
    stage.run.bus.subscribe(topic, kind, "/test", lambda message: None)  # type: ignore[arg-type]
    goals = published(stage, topic)
    client = stage.start(rate=1.0).client().control()
    client.wait_for("scene")
    while stage.run.time < 0.2:
        client.next()
    wanted = SE2(2.0, -0.5, -1.0)
    assert client.ask(op, space="/other", poses=[[wanted.x, wanted.y, wanted.theta]])["op"] == "refused"
    space = stage.run.robots["other"].namespace
    assert client.ask(op, space=space, poses=[[wanted.x, wanted.y, wanted.theta]])["op"] == "done"
    poll(lambda: goals)
    message = goals[0].message
    pose = pose_to_se2(message.pose if op == "goal" else message.pose.pose)
    assert message.header.frame_id == "odom"
    there = SE2(1.0, 0.5, 0.7) @ pose
    assert there.distance(wanted) < 0.02
    assert there.theta == pytest.approx(wanted.theta, abs=0.02)


# -- the world ---------------------------------------------------------------------------------------------------------
def test_objects_are_added_moved_and_removed(stage: Stage) -> None:
    client = stage.start(rate=1.0).client().control()
    for shape in ("box", "cylinder", "sphere"):
        answer = client.ask("put", shape=shape, size=[0.4, 0.3, 0.5], at=[2.0, 1.0, 0.3], yaw=0.3)
        assert answer["op"] == "done", answer
        name = next(name for name in stage.run.simulation.models if name.startswith(shape))
        while name not in client.wait_for("abilities")["things"]:
            pass
        assert client.ask("move", name=name, at=[-2.0, -1.0, 0.6], yaw=0.0)["op"] == "done"
        x, y, _ = stage.run.simulation.ground_truth(name).pose.translation
        assert (x, y) == pytest.approx((-2.0, -1.0), abs=0.2)
        assert client.ask("remove", name=name)["op"] == "done"
        assert name not in stage.run.simulation.models


# -- parameters and plots ----------------------------------------------------------------------------------------------
def test_parameters_are_read_and_set(stage: Stage) -> None:
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


def test_curves_hold_the_published_values(stage: Stage) -> None:
    poses = published(stage, "/truth/rover/pose")
    client = stage.start(rate=1.0).client().control()
    answer = client.ask("fields", topic="/truth/rover/pose")
    assert "pose.position.x" in answer["fields"]
    client.send("plot", topic="/truth/rover/pose", field="pose.position.x", on=True)
    rows = np.frombuffer(client.wait_for("curves")["parts"][0], np.float32).reshape(-1, 2)
    poll(lambda: poses[-1].time_ns * 1e-9 > rows[-1, 0] + 0.1)
    values = {round(pose.time_ns * 1e-9, 3): pose.message.pose.position.x for pose in list(poses)}
    assert all(value == pytest.approx(values[round(float(time), 3)], abs=1e-5) for time, value in rows)


@given(st.integers(0, 3), st.floats(allow_nan=False, allow_infinity=False))
def test_every_listed_field_has_its_number(index: int, value: float) -> None:
    message = msg.JointState(name=list("abcd"), position=np.full(4, value), velocity=np.zeros(4), effort=np.zeros(0))
    message.header.stamp.sec = index
    found = fields(message)
    assert f"position[{index}]" in found
    assert not any(path.startswith(("name", "effort")) for path in found)
    assert number_at(message, f"position[{index}]") == value
    assert number_at(message, "header.stamp.sec") == index
    assert np.isnan(number_at(message, "no.such[3]"))


# -- repeating ---------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_inputs_of_a_viewer_are_repeated(tmp_path: Path) -> None:
    spec, control = ScenarioBuilder(world="arena", duration=3.0).load(tmp_path), RunControl(real_time_factor=1.0)
    with View(0) as view:
        client = Client(view).control()

        runs: list[Run] = []

        def started(run: Run) -> None:
            runs.append(run)
            view.begin(run, "test", 3.0, control)

        def steer() -> None:
            client.wait_for("abilities")
            client.send("put", shape="box", size=[0.3, 0.3, 0.3], at=[2, 1, 0.2])
            begin = runs[0].time
            for number in range(12):
                client.send("drive", space="", v=[0.4, 0, 0.3])
                poll(lambda: runs[0].time >= begin + 0.05 * (number + 1))  # noqa: B023 - asked before the next round
            client.send("drive", space="", v=[0, 0, 0])

        operator = threading.Thread(target=steer)
        operator.start()
        run_scenario(
            spec,
            RunOptions(out=tmp_path / "first", write_report=False, serve=False),
            control=control,
            observer=RunObserver(on_started=started),
        )
        operator.join()
        client.close()
    again = run_scenario(
        spec, RunOptions(out=tmp_path / "again", write_report=False, serve=False, replay_inputs=tmp_path / "first")
    )
    with open_recording(tmp_path / "first") as recording:
        *_, last = recording.messages(["/truth/rover/pose"])
    assert last.message.pose.position.x > 0.05
    assert recording_digest(tmp_path / "first") == recording_digest(tmp_path / "again")
    assert again.state == "done"
