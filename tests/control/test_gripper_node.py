"""The gripper node on a bus, with fingers that move at a bounded speed and may meet something."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness, Goal

from roboyard.control.gripper import GraspConfig, GraspMonitor, GripperModel
from roboyard.control.nodes import GripperNode
from roboyard.description.model import Axis, AxisLimits, CommandMode, Joint, Link, Model
from roboyard.geometry import SE3
from roboyard.hardware.interface import JointCommand, JointStates
from roboyard.messages import action, msg

SPEED = 0.1
GRIPPER_DESCRIPTION = Model(
    "hand",
    (Link("palm", SE3.identity()), Link("finger", SE3.identity())),
    (
        Joint(
            "slide",
            "prismatic",
            "palm",
            "finger",
            SE3.identity(),
            SE3.identity(),
            (Axis((0, 1, 0), AxisLimits(0.0, 0.08, effort=12.0)),),
        ),
    ),
)


class FakeFingers:
    """They move to their set-point at ``SPEED``, but not below ``object_size``, where something is between them."""

    joint_names = ("slide",)

    def __init__(self, bus: BusHarness, object_size: float) -> None:
        self.bus, self.object_size, self.target = bus, object_size, 0.08
        self.start, self.start_ns = 0.08, 0
        self.effort, self.pressed = 2.5, (0.0,)

    def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
        return ("position",)

    def _position(self) -> float:
        distance = SPEED * (self.bus.now_ns - self.start_ns) * 1e-9
        return self.start + math.copysign(min(distance, abs(self.target - self.start)), self.target - self.start)

    def read(self) -> JointStates:
        position = max(self._position(), self.object_size)
        moving = position not in (self.target, self.object_size)
        return JointStates(self.bus.now_ns, np.array([position]), np.array([SPEED * moving]), np.array([self.effort]))

    def write(self, command: JointCommand) -> None:
        self.start, self.start_ns = float(self.read().position[0]), self.bus.now_ns
        self.target = float(command.setpoints[0])
        self.pressed = () if command.max_effort is None else tuple(command.max_effort.tolist())


def make_gripper(harness: BusHarness, object_size: float = 0.0, **parameters: object) -> FakeFingers:
    fingers = FakeFingers(harness, object_size)
    harness.add(
        GripperNode(hardware=fingers, description=GRIPPER_DESCRIPTION, joints=("slide",), **parameters), "gripper"
    )
    return fingers


def send(harness: BusHarness, position: float, **command: float) -> Goal:
    message = msg.GripperCommand(position=position, **command)
    return harness.start_goal("/gripper/gripper_cmd", action.GripperCommand, command=message)


def test_gripper_goal_succeeds_when_fingers_arrive(harness: BusHarness) -> None:
    fingers = make_gripper(harness, goal_tolerance=0.001)
    goal = send(harness, 0.03)
    harness.run_for(0.45)
    assert not goal.done()
    harness.run_for(0.1)
    assert goal.succeeded
    assert goal.result.reached_goal
    assert not goal.result.stalled
    assert goal.result.position == pytest.approx(fingers.read().position[0], abs=0.003)


@pytest.mark.parametrize("allowed", [False, True])
def test_gripper_goal_ends_stalled_on_an_object(harness: BusHarness, allowed: bool) -> None:
    fingers = make_gripper(harness, object_size=0.05, stall_timeout=0.5, allow_stalling=allowed)
    goal = send(harness, 0.0)
    harness.run_for(0.7)
    assert not goal.done(), "0.3 s on the way, then half a second of standing still"
    harness.wait_for(goal, timeout=0.3)
    assert goal.succeeded is allowed
    assert goal.result.stalled
    assert not goal.result.reached_goal
    assert (goal.result.position, goal.result.effort) == (0.05, 2.5)
    assert fingers.target == 0.0, "they go on pressing"


def test_gripper_goals_outside_the_joint_range_are_refused(harness: BusHarness) -> None:
    fingers = make_gripper(harness)
    goal = send(harness, 0.09)
    invalid_goal = send(harness, math.nan)
    harness.wait_for(goal, timeout=0.2)
    assert invalid_goal.done()
    assert not goal.accepted
    assert not invalid_goal.accepted
    assert fingers.target == 0.08


def test_gripper_cancel_stops_and_newer_goal_takes_over(harness: BusHarness) -> None:
    fingers = make_gripper(harness)
    goal = send(harness, 0.0)
    harness.run_for(0.3)
    goal.cancel()
    harness.wait_for(goal, timeout=0.1)
    assert fingers.target == pytest.approx(0.05, abs=0.003)
    first, second = send(harness, 0.0), send(harness, 0.06)
    harness.run_for(0.5)
    assert not first.succeeded
    assert second.succeeded


def test_gripper_efforts_are_checked_and_bounded(harness: BusHarness) -> None:
    fingers = make_gripper(harness)
    send(harness, 0.08)
    for effort in (-1.0, math.nan, math.inf):
        goal = send(harness, 0.0, max_effort=effort)
        harness.run_for(0.1)
        assert not goal.accepted
        assert fingers.target == 0.08
    for effort, pressed in ((4.0, 4.0), (0.0, 12.0), (50.0, 12.0)):
        send(harness, 0.0, max_effort=effort)
        harness.run_for(0.1)
        assert fingers.pressed == (pressed,)


def test_two_finger_gripper_converts_opening_and_force() -> None:
    gripper = GripperModel(0.0, 0.0115, (25.0, 25.0), (5.0, 5.0), opening_scale=2.0, opening_offset=0.001)
    assert gripper.opening_range == pytest.approx((0.001, 0.024))
    assert gripper.max_force == 20.0
    assert gripper.joint_efforts(10.0) == (15.0, 15.0)
    assert gripper.finger_force((-15.0, -15.0)) == 10.0
    assert gripper.opening(gripper.position(0.017)) == pytest.approx(0.017)


@given(
    st.floats(0.1, 5.0), st.floats(-0.1, 0.1), st.integers(1, 3), st.floats(0.0, 50.0), st.floats(0.0, 20.0)
)  # fmt: skip
def test_finger_force_is_the_requested_force(
    scale: float, zero: float, joints: int, force: float, friction: float
) -> None:
    gripper = GripperModel(0.0, 1.0, (100.0,) * joints, (friction,) * joints, scale, zero)
    assert gripper.finger_force([-effort for effort in gripper.joint_efforts(force)]) == pytest.approx(force, abs=1e-9)


def test_grasp_goes_from_moving_to_holding_to_lost() -> None:
    grasp = GraspMonitor(GripperModel(0.0, 0.08, (20.0,), (0.0,)), GraspConfig(goal_tolerance=0.001, stall_timeout=0.1))
    grasp.set_goal(0, 0.0, 10.0)
    samples = [
        (0.02, 0.05, 0.1, 1.0, "moving"), (0.05, 0.04, 0.0, 6.0, "moving"), (0.12, 0.04, 0.0, 10.0, "holding"),
        (0.2, 0.039, 0.01, 4.0, "holding"), (0.3, 0.0379, 0.1, 4.0, "lost"), (0.9, 0.0, 0.0, 0.0, "lost"),
    ]  # fmt: skip
    for time, opening, speed, force, state in samples:
        assert grasp.update(round(time * 1e9), opening, speed, force).state == state
    grasp.set_goal(round(1e9), 0.08, 10.0)
    assert grasp.update(round(1.1e9), 0.05, 0.1, 0.0).state == "moving"
    other = GraspMonitor(grasp.gripper, grasp.config)
    other.load_state(grasp.save_state())
    assert other.update(round(1.5e9), 0.08, 0.0, 0.0) == grasp.update(round(1.5e9), 0.08, 0.0, 0.0)
    assert other.update(round(1.5e9), 0.08, 0.0, 0.0).state == "stationary"


def test_grasp_holds_an_object_that_turns() -> None:
    grasp = GraspMonitor(GripperModel(0.0, 0.08, (20.0,), (0.0,)), GraspConfig(goal_tolerance=0.001, stall_timeout=0.1))
    grasp.set_goal(0, 0.0, 10.0)
    samples = [
        (0.12, 0.046, 0.0, 10.0, "holding"), (0.2, 0.0435, 0.02, 8.0, "holding"), (0.35, 0.040, 0.0, 10.0, "holding"),
        (0.4, 0.0385, 0.05, 3.0, "holding"), (0.5, 0.0379, 0.1, 3.0, "lost"),
    ]  # fmt: skip
    for time, opening, speed, force, state in samples:
        assert grasp.update(round(time * 1e9), opening, speed, force).state == state


@pytest.mark.parametrize(("opening", "force"), [(0.0, 10.0), (0.08, 10.0), (0.04, 4.0)])
def test_grasp_needs_an_opening_and_enough_force(opening: float, force: float) -> None:
    grasp = GraspMonitor(GripperModel(0.0, 0.08, (20.0,), (0.0,)), GraspConfig(goal_tolerance=0.001, stall_timeout=0.1))
    grasp.set_goal(0, 0.0, 10.0)
    assert grasp.update(round(1e9), opening, 0.0, force).state == "stationary"


def test_canceled_gripper_goal_keeps_the_object(harness: BusHarness) -> None:
    fingers = make_gripper(harness, object_size=0.05, stall_timeout=0.3, goal_tolerance=0.001)
    send(harness, 0.0)
    fingers.effort = -12.0
    harness.run_for(0.7)
    assert harness.last("/gripper/state").data == "holding"
    second_goal = send(harness, 0.001)
    harness.run_for(0.1)
    assert not second_goal.done()
    second_goal.cancel()
    harness.run_for(0.5)
    assert second_goal.done()
    assert not second_goal.succeeded
    assert fingers.target == 0.001, "it goes on pressing"
    assert harness.last("/gripper/state").data == "holding"
