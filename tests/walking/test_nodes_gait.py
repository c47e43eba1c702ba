"""The gait node stands up, walks as commanded, takes poses, plays movements, lies down, and refuses the impossible."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roboyard.errors import RoboyardError
from roboyard.messages import msg, srv
from roboyard.scenarios.run import Run
from roboyard.simulation.faults import JointFault
from roboyard.walking.foot_movement import FootMovement, format_movement


def call(run: Run, name: str) -> Any:
    future = run.bus.service_client(f"/gait/{name}", srv.Trigger, "/test").call(srv.Trigger.Request())
    assert run.run_until(lambda: future.done, timeout=1.0)
    return future.result


@pytest.fixture
def run() -> Any:
    with Run("empty", record=False) as started_run:
        started_run.add_robot("akrobat", xacro_args={"profile": "fast"})
        started_run.run_for(1.5)
        yield started_run


def test_gait_node_rises_leans_plays_and_lies_down(run: Run, tmp_path: Path) -> None:
    robot = run.robots["akrobat"]
    gait = robot.nodes["gait"]
    assert robot.truth.pose.z == pytest.approx(0.137 + 0.012, abs=0.005)
    robot.publish("body_pose", msg.Pose(position=msg.Point(x=0.02, z=0.02), orientation=msg.Quaternion(w=1.0)))
    run.run_for(1.0)
    assert robot.truth.pose.z == pytest.approx(0.169, abs=0.005)
    assert robot.truth.pose.x == pytest.approx(0.02, abs=0.01)
    robot.publish("body_pose", msg.Pose(position=msg.Point(z=0.3), orientation=msg.Quaternion(w=1.0)))  # refused
    robot.publish("body_pose", msg.Pose(orientation=msg.Quaternion(w=1.0)))
    run.run_for(1.0)
    assert not call(run, "stand").success
    assert "movement" in call(run, "play").message
    steps = np.zeros((6, 3, 3))
    steps[0, 1] = (0.0, 0.0, 0.04)
    (tmp_path / "wave.xml").write_text(format_movement(FootMovement(steps, "wave")))
    gait.set_parameter("movement", str(tmp_path / "wave.xml"))
    assert call(run, "play").success
    run.run_for(2.0)
    assert call(run, "lie_down").success
    run.run_for(2.0)
    assert robot.truth.pose.z < 0.04
    assert call(run, "stand").success


def test_gait_node_walks_as_commanded_with_true_odometry(run: Run) -> None:
    robot = run.robots["akrobat"]
    start = robot.truth.pose
    for _ in range(15):
        robot.publish("cmd_vel", msg.Twist(linear=msg.Vector3(x=0.08, y=0.05), angular=msg.Vector3(z=0.2)))
        run.run_for(0.2)
    run.run_for(2.0)  # nobody says anything: it stands
    end = robot.truth.pose
    assert end.yaw - start.yaw == pytest.approx(0.2 * 3.4, rel=0.15)
    assert math.hypot(end.x - start.x, end.y - start.y) == pytest.approx(0.094 * 3.4, rel=0.2)
    node: Any = robot.nodes["gait"]
    assert node._gait_generator.is_standing
    odometry = node._odometry
    assert math.hypot(odometry.x - end.x, odometry.y - end.y) < 0.06
    assert odometry.yaw == pytest.approx(end.yaw, abs=0.03)
    assert odometry.z == pytest.approx(end.z - 0.012, abs=0.01)


def test_gait_parameters_change_while_walking_or_are_refused(run: Run) -> None:
    robot = run.robots["akrobat"]
    node: Any = robot.nodes["gait"]
    robot.drive(0.08)
    run.run_for(1.0)
    before = robot.truth.pose.x
    for name, value in (("gait", "ripple"), ("lift", 0.02), ("stride", 0.06), ("gait", "tripod"), ("duty_factor", 0.6)):
        node.set_parameter(name, value)
        run.run_for(0.4)
        assert node._phase == "walking"
        assert node.parameters()[name] == value
    assert node._gait_generator.gait.duty_factor == 0.6
    assert node._gait_generator.config.lift == 0.02
    assert robot.truth.pose.x - before > 0.04
    for name, value in (("gait", "gallop"), ("stride", 5.0), ("duty_factor", 0.99), ("lift", -0.1), ("rate", 20.0)):
        previous_value = node.parameters()[name]
        with pytest.raises(RoboyardError):
            node.set_parameter(name, value)
        assert node.parameters()[name] == previous_value
    run.run_for(0.4)
    assert node._phase == "walking"


def test_stalled_joint_is_named_and_stops_the_walk(run: Run) -> None:
    robot = run.robots["akrobat"]
    node: Any = robot.nodes["gait"]
    log_texts: list[str] = []
    run.bus.log_sinks.append(lambda record: log_texts.append(record.text))
    robot.drive(0.2)
    run.run_for(2.0)
    assert node.health is None  # joints lag, but none stalls
    assert not log_texts
    node.set_parameter("on_stall", "stop")
    run.simulation.faults.start("jam", JointFault("akrobat", "m12", "blocked"))
    run.run_for(2.0)
    assert node.health.level == "warn"
    assert "leg lf stalls: m12 is commanded to" in node.health.text
    assert any("m12" in text for text in log_texts)
    x = robot.truth.pose.x
    run.run_for(1.0)
    assert abs(robot.truth.pose.x - x) < 0.02
    run.simulation.faults.end("jam")
    run.run_for(1.0)
    assert abs(robot.truth.pose.x - x) < 0.02  # until somebody says that it shall stand
    robot.drive(0.0)
    run.run_for(0.5)
    assert node.health.level == "ok"
    robot.drive(0.2)
    run.run_for(2.0)
    assert robot.truth.pose.x - x > 0.1


def test_load_compensation_changes_at_runtime(run: Run) -> None:
    node: Any = run.robots["akrobat"].nodes["gait"]
    assert np.abs(node._compensated_setpoints() - node._joint_setpoints).max() > 1e-3
    node.set_parameter("compensate_load", False)
    assert np.abs(node._compensated_setpoints() - node._joint_setpoints).max() < 1e-9
    node.set_parameter("compensate_load", True)
    assert np.abs(node._compensated_setpoints() - node._joint_setpoints).max() > 1e-3
