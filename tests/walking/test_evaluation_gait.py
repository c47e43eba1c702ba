"""The report of a legged robot: gait, margin, body, torques and power; and the model of the motors."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.bringup.legged_robot import load_legged_robot_and_model
from roboyard.geometry import SE3
from roboyard.messages import msg
from roboyard.messages.convert import pose_to_msg
from roboyard.record import open_recording
from roboyard.scenarios import Run
from roboyard.walking.evaluation.gait import GaitMetrics, LegModel
from roboyard.walking.evaluation.gait_report import (
    gait_window,
    motor_table,
    read_body_trace,
    read_effort_trace,
    read_gait_trace,
)
from roboyard.walking.evaluation.motors import MotorModel

EFFORT, SPEED = st.floats(-5.0, 5.0), st.floats(-6.0, 6.0)
MOTORS = MotorModel(
    3.8, ("a",), ("a1", "a2", "a3"), np.array([4.0, 4.0, math.inf]), np.array([5.0, math.inf, math.inf])
)


@given(effort=EFFORT, speed=SPEED)
def test_power_is_work_and_heat_and_never_negative(effort: float, speed: float) -> None:
    efforts, speeds = np.full(3, effort), np.full(3, speed)
    power, heat = MOTORS.power(efforts, speeds), MOTORS.heat(efforts)
    assert (power >= 0.0).all()
    assert (power >= effort * speed - 1e-12).all()
    np.testing.assert_allclose(heat, [effort**2 * 5.0 / 4.0, 0.0, 0.0], rtol=1e-12)
    if effort * speed >= 0.0:
        np.testing.assert_allclose(power, effort * speed + heat, atol=1e-12)


@given(fraction=st.floats(0.0, 0.99))
def test_motor_at_its_limit_takes_the_power_of_its_voltage(fraction: float) -> None:
    """Voltage times current is in proportion to the effort: stalled all of it is heat, without load there is none."""
    effort, speed = np.full(3, 4.0 * (1.0 - fraction)), np.full(3, 5.0 * fraction)
    assert MOTORS.power(effort, speed)[0] == pytest.approx(4.0 * 5.0 * (1.0 - fraction), abs=1e-9)
    assert MOTORS.is_saturated(effort, speed)[0]
    assert not MOTORS.is_saturated(0.9 * effort, speed)[0]


def test_motors_are_converted_to_plain_data_and_back() -> None:
    data = json.loads(json.dumps(MOTORS.to_dict(), allow_nan=False))
    back = MotorModel.from_dict(data)
    assert back.to_dict() == MOTORS.to_dict()
    np.testing.assert_array_equal(back.no_load_speed, MOTORS.no_load_speed)


def test_each_fall_is_one_event() -> None:
    legged_robot, model = load_legged_robot_and_model("akrobat")
    collector = GaitMetrics("/truth", "", LegModel.from_model(legged_robot, model))
    for second, roll in enumerate((0.0, 0.8, 0.9, 0.1, -1.2, 0.0)):
        odometry = msg.Odometry()
        odometry.pose.pose = pose_to_msg(SE3.from_xyz_rpy((0.0, 0.0, 0.2), (roll, 0.0, 0.0)))
        collector.subscriptions()["/truth"](odometry, second * 1_000_000_000)
    assert [(event.time, event.kind, event.text) for event in collector.events()] == [
        (1.0, "fall", "the robot tilted"),
        (4.0, "fall", "the robot tilted"),
    ]
    assert collector.values()["falls"] == 2


def test_report_of_a_walk_agrees_with_the_metrics(tmp_path: Path) -> None:
    with Run("empty", seed=1) as run:
        robot = run.add_robot("akrobat", xacro_args={"profile": "fast"})
        run.run_for(1.2)
        robot.drive(0.2)
        run.run_for(2.6)
        folder = run.report(tmp_path / "out").parent
    page = (folder / "report.html").read_text()
    for text in ("Gait and motors", "cost of transport", "Stability margin over time", "Power and energy", "m63"):
        assert text in page
    document = json.loads((folder / "metrics.json").read_text())
    robot_document = document["robots"]["akrobat"]
    motors = MotorModel.from_dict(robot_document["motors"])
    with open_recording(folder / "recording.mcap") as recording:
        gait = read_gait_trace(recording, "/gait/state")
        efforts = read_effort_trace(recording, "/joint_states", motors)
        body = read_body_trace(recording, "/truth/akrobat/odom")
        assert read_gait_trace(recording, "/nobody") is None
        assert read_effort_trace(recording, "/nobody", motors) is None
        assert read_body_trace(recording, "/nobody") is None
    assert gait is not None
    assert efforts is not None
    assert body is not None
    assert gait.margin[gait.is_walking].min() == pytest.approx(robot_document["metrics"]["min_stability_margin"])
    assert gait.tilt[gait.is_walking].min() == pytest.approx(robot_document["metrics"]["min_tilt"])
    margins, height = gait.margin[gait.is_walking], robot_document["metrics"]["body_height"]
    assert np.degrees(gait.tilt[gait.is_walking]) == pytest.approx(
        np.degrees(np.arctan2(margins, height)), abs=3.0
    )  # level
    assert gait.in_contact is not None
    agree = (gait.in_stance == gait.in_contact)[gait.is_moving].mean()
    assert agree > 0.8
    start, end = gait_window(gait)
    assert gait.time[0] <= start < end <= gait.time[-1]
    assert body.height[-1] == pytest.approx(robot_document["metrics"]["body_height"], abs=0.01)
    work = robot_document["metrics"]["distance"] * motors.mass * 9.81
    last = efforts.time >= gait.time[gait.is_moving][0]
    spent = np.trapezoid(motors.power(efforts.effort, efforts.speed).sum(axis=1)[last], efforts.time[last])
    assert spent / work == pytest.approx(robot_document["metrics"]["cost_of_transport"], rel=0.05)
    table = motor_table(efforts, motors)
    column = table.header.index("energy [J]")
    assert sum(float(row[column]) for row in table.rows[:-1]) == pytest.approx(float(table.rows[-1][column]), abs=1.0)
    for name in ("distance", "speed", "heading_error", "cost_of_transport", "motor_saturation", "foot_slips", "falls"):
        assert robot_document["metrics"][name] is not None
    assert document["success"] is True
    assert document["real_time_factor"] > 0.0
