"""The joint trajectory node on a bus, with ideal joints."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.harness.bus import BusHarness, Goal
from tests.harness.hardware import FakeHardware

from roboyard.bus import NodeError
from roboyard.control.joint_limits import JointAccelerationLimits
from roboyard.control.nodes import JointTrajectoryNode
from roboyard.description.model import Axis, AxisLimits, Joint, Link, Model
from roboyard.geometry import SE3
from roboyard.messages import action, msg, srv

NAMES = ("shoulder", "elbow")
ARM = Model(
    "arm",
    tuple(Link(name, SE3.identity()) for name in ("base", "upper", "lower")),
    tuple(
        Joint(
            name,
            "revolute",
            parent,
            child,
            SE3.identity(),
            SE3.identity(),
            (Axis((0, 0, 1), AxisLimits(-2.0, 2.0, 3.0)),),
        )
        for name, parent, child in zip(NAMES, ("base", "upper"), ("upper", "lower"), strict=True)
    ),
)


def make_arm(harness: BusHarness) -> FakeHardware:
    """Three joints that are where they are commanded to; the first does not belong to the group."""
    return FakeHardware(("other", *NAMES), lambda: harness.now_ns, modes=["position"], position=[9.0, 0.1, -0.1])


def make_node(harness: BusHarness, **parameters: object) -> tuple[FakeHardware, JointTrajectoryNode]:
    arm = make_arm(harness)
    return arm, harness.add(JointTrajectoryNode(hardware=arm, description=ARM, joints=NAMES, **parameters), "jtc")


def group_history(arm: FakeHardware) -> np.ndarray:
    """Positions (n, 2) of the group after each command."""
    return np.array(arm.history)[1:, 1:]


def trajectory(
    *rows: tuple[float, list[float]], names: tuple[str, ...] = NAMES, speeds: bool = True, end_time: int = 0
) -> object:
    return msg.JointTrajectory(
        header=msg.Header(stamp=msg.Time(sec=end_time)),
        joint_names=list(names),
        points=[
            msg.JointTrajectoryPoint(
                positions=np.array(row), velocities=np.zeros(len(row) if speeds else 0),
                time_from_start=msg.builtin_interfaces.Duration(sec=math.floor(t), nanosec=round((t % 1) * 1e9)),
            )
            for t, row in rows
        ],
    )  # fmt: skip


def send(harness: BusHarness, path: object, **more: object) -> Goal:
    return harness.start_goal("/jtc/follow_joint_trajectory", action.FollowJointTrajectory, trajectory=path, **more)


def test_trajectory_goal_is_followed_smoothly_to_its_end(harness: BusHarness) -> None:
    arm, _ = make_node(harness)
    goal = send(harness, trajectory((1.0, [1.0, -1.0]), (2.0, [0.5, 0.0])))
    harness.run_for(1.0)
    assert arm.position[1:] == pytest.approx([1.0, -1.0], abs=0.05)
    harness.wait_for(goal, timeout=1.5)
    assert goal.succeeded
    assert arm.position[1:] == pytest.approx([0.5, 0.0])
    steps = np.diff(group_history(arm), axis=0) * 100.0
    assert np.abs(np.diff(steps, axis=0)).max() < 0.15, "no jump of speed: bounded acceleration"
    assert 30 <= len(goal.feedback) <= 45
    assert arm.position[0] == 9.0


def test_trajectory_cancel_stops_and_newer_goal_takes_over(harness: BusHarness) -> None:
    arm, _ = make_node(harness)
    first = send(harness, trajectory((2.0, [1.0, -1.0])))
    harness.run_for(1.0)
    first.cancel()
    harness.run_for(0.5)
    stop_position = arm.position.copy()
    harness.run_for(1.0)
    assert (arm.position == stop_position).all()
    assert first.done()
    assert not first.succeeded
    second = send(harness, trajectory((1.0, [1.0, 1.0])))
    harness.run_for(0.5)
    third = send(harness, trajectory((1.0, [-1.0, 0.0])))
    harness.wait_for(third, timeout=2.0)
    assert second.done()
    assert not second.succeeded
    assert "newer goal" in second.result.error_string
    assert third.succeeded
    assert arm.position[1:] == pytest.approx([-1.0, 0.0])
    assert np.abs(np.diff(group_history(arm), axis=0)).max() < 0.05, "taken over without a jump"


def test_trajectory_off_path_or_goal_gives_error_code(harness: BusHarness) -> None:
    codes = action.FollowJointTrajectory.Result
    arm, _ = make_node(harness, goal_time=0.2)
    arm.stuck = {"elbow"}
    tolerance = [msg.control_msgs.JointTolerance(name="elbow", position=0.05)]
    off_path = send(harness, trajectory((1.0, [1.0, 1.0])), path_tolerance=tolerance)
    harness.run_for(2.0)
    assert off_path.result.error_code == codes.PATH_TOLERANCE_VIOLATED
    assert "elbow" in off_path.result.error_string
    off_goal = send(harness, trajectory((1.0, [0.0, 1.0])))
    harness.run_for(3.0)
    assert off_goal.result.error_code == codes.GOAL_TOLERANCE_VIOLATED


INVALID_TRAJECTORIES = [
    (trajectory((1.0, [0.0]), names=("wrist",)), "joint 'wrist' is not in the group"),
    (trajectory((1.0, [0.0, 0.0]), names=("elbow", "elbow")), "some twice"),
    (trajectory((1.0, [0.5]), names=("elbow",)), "joint 'shoulder' is missing"),
    (trajectory((1.0, [0.5, 0.0, 0.0]), names=(*NAMES, "wrist")), "joint 'wrist' is not in the group"),
    (trajectory(), "without points"),
    (trajectory((3.0, [2.5, 0.0])), "from -2 to 2"),
    (trajectory((0.1, [1.5, 0.0])), "more time"),
    (trajectory((0.0, [1.5, 0.0]), (1.0, [1.5, 0.0])), "shoulder is at 0.1, the trajectory begins at 1.5"),
    (trajectory((1.0, [math.nan, 0.0])), "finite"),
    (trajectory((1.0, [math.inf, 0.0])), "finite"),
    (trajectory((1.0, [0.5, 0.0]), (1.0, [0.6, 0.0])), "later"),
    (trajectory((1.0, [0.5, 0.0]), (0.5, [0.6, 0.0])), "later"),
    (trajectory((-1.0, [0.5, 0.0]), (0.5, [0.6, 0.0])), "later"),
    (trajectory((1.0, [0.5])), "one for each joint"),
    (trajectory((1.0, [0.5, 0.5]), end_time=1), "the trajectory ends in the past"),
]


@pytest.mark.parametrize("by", ["action", "topic"])
@pytest.mark.parametrize(("path", "reason"), INVALID_TRAJECTORIES)
def test_bad_trajectories_are_refused_and_nothing_moves(
    harness: BusHarness, path: object, reason: str, by: str
) -> None:
    arm, _ = make_node(harness)
    harness.run_for(5.0)
    if by == "action":
        assert not send(harness, path).succeeded
    else:
        harness.publish("/jtc/joint_trajectory", path)
    harness.run_for(0.5)
    assert any(reason in line for line in harness.log_lines), harness.log_lines
    assert (group_history(arm) == [0.1, -0.1]).all(), "no set-point ever changed"


def test_trajectory_must_begin_at_the_true_positions(harness: BusHarness) -> None:
    arm, node = make_node(harness)
    harness.run_for(0.1)
    arm.stuck = {"shoulder"}
    arm.place("shoulder", 0.6)  # something has pushed it, and holds it
    assert not send(harness, trajectory((1.0, [0.5, 0.0]))).succeeded
    harness.run_for(0.1)
    assert any("shoulder is at 0.6, commanded to 0.1" in line for line in harness.log_lines), harness.log_lines
    node.set_parameter("start_tolerance", 0.0)
    goal = send(harness, trajectory((1.0, [0.5, 0.0])))
    harness.run_for(0.1)
    assert not goal.done()


def make_limited_node(harness: BusHarness) -> tuple[FakeHardware, JointTrajectoryNode]:
    """Set-points each millisecond, and stated accelerations."""
    return make_node(
        harness,
        rate=1000.0,
        acceleration_limits=JointAccelerationLimits(dict.fromkeys(NAMES, 2.0)),
        start_tolerance=0.0,
    )


def rates_of(arm: FakeHardware) -> tuple[float, float]:
    speeds = np.diff(group_history(arm), axis=0) * 1000.0
    return float(np.abs(speeds).max()), float(np.abs(np.diff(speeds, axis=0)).max() * 1000.0)


@pytest.mark.slow
@pytest.mark.parametrize("event", ["cancel", "stop", "pause", "preempt", "off its path", "scaled"])
def test_set_points_keep_limits_through_interruptions(harness: BusHarness, event: str) -> None:
    codes = action.FollowJointTrajectory.Result
    arm, _ = make_limited_node(harness)
    tolerance = [msg.control_msgs.JointTolerance(name="elbow", position=0.05)]
    goal = send(harness, trajectory((2.0, [1.0, -1.0]), (3.0, [0.4, -0.8])), path_tolerance=tolerance)
    harness.run_for(0.8)
    before = arm.position.copy()
    if event == "cancel":
        goal.cancel()
    elif event == "stop":
        response = harness.start_call("/jtc/stop", srv.Trigger)
    elif event == "pause":
        harness.start_call("/jtc/pause", srv.SetBool, data=True)
    elif event == "preempt":
        second = send(harness, trajectory((0.3, [0.5, -0.9]), (2.0, [1.5, 0.5]), speeds=False))
    elif event == "off its path":
        arm.offset = {"elbow": 0.06}
    else:
        harness.publish("/jtc/speed_scaling", msg.Float64(data=0.25))
    harness.run_for(1.5)
    speed, acceleration = rates_of(arm)
    assert speed < 1.5
    assert acceleration <= 2.0 * 1.02
    displacement = np.abs(arm.position - before).max()
    if event in ("cancel", "stop", "off its path"):
        assert goal.done()
        assert not goal.succeeded
        assert displacement < 0.3
    if event == "cancel":
        assert "cancelled" in goal.result.error_string
    elif event == "stop":
        assert "stopped" in goal.result.error_string
        assert response.result.success
        assert "/jtc" in response.result.message
    elif event == "off its path":
        assert goal.result.error_code == codes.PATH_TOLERANCE_VIOLATED
    elif event == "pause":
        stop_position = arm.position.copy()
        harness.run_for(0.5)
        assert (arm.position == stop_position).all()
        assert not goal.done()
        harness.start_call("/jtc/pause", srv.SetBool, data=False)
    harness.run_for(7.0)
    assert rates_of(arm)[1] <= 2.0 * 1.02
    if event in ("pause", "scaled"):
        assert goal.succeeded
        assert arm.position[1:] == pytest.approx([0.4, -0.8], abs=1e-9)
    if event == "preempt":
        assert "newer goal" in goal.result.error_string
        assert second.succeeded
        assert arm.position[1:] == pytest.approx([1.5, 0.5], abs=1e-9)


def test_stop_of_joints_at_rest_succeeds(harness: BusHarness) -> None:
    arm, _ = make_node(harness)
    response = harness.start_call("/jtc/stop", srv.Trigger)
    harness.run_for(0.2)
    assert response.result.success
    assert "no motion" in response.result.message
    assert (group_history(arm) == [0.1, -0.1]).all()


def test_invalid_speed_scalings_are_refused(harness: BusHarness) -> None:
    make_node(harness)
    for value in (math.nan, -0.1, 1.1):
        harness.publish("/jtc/speed_scaling", msg.Float64(data=value))
    goal = send(harness, trajectory((1.0, [0.5, 0.0])))
    harness.run_for(1.1)
    assert goal.succeeded


def test_held_joints_do_not_jump_when_released(harness: BusHarness) -> None:
    arm, _ = make_node(harness, path_tolerance=0.05)
    arm.stuck = {"elbow"}
    goal = send(harness, trajectory((1.0, [1.0, 1.0])))
    harness.run_for(3.0)
    assert not goal.succeeded
    stop_position = arm.position.copy()
    arm.stuck = set()
    harness.run_for(0.5)
    assert arm.position == pytest.approx(stop_position, abs=1e-9)
    second_goal = send(harness, trajectory((1.0, [0.0, 0.5])))
    harness.run_for(1.2)
    assert second_goal.succeeded


def test_loaded_partial_trajectory_continues() -> None:
    def run_half() -> tuple[BusHarness, FakeHardware, JointTrajectoryNode]:
        harness = BusHarness()
        arm, node = make_node(harness, allow_partial_joints_goal=True)
        harness.publish("/jtc/joint_trajectory", trajectory((1.0, [0.8]), names=("elbow",), speeds=False))
        harness.run_for(0.5)
        return harness, arm, node

    harness, arm, node = run_half()
    state = node.save_state()
    with harness:
        harness.run_for(1.0)
        assert arm.position[1:] == pytest.approx([0.1, 0.8])
    harness, restored, node = run_half()
    node.load_state(state)
    with harness:
        harness.run_for(1.0)
        assert (restored.position == arm.position).all()


@pytest.mark.parametrize("event", ["slowed", "stopping", "paused"])
def test_loaded_trajectory_continues_during_a_speed_change(event: str) -> None:
    with BusHarness() as harness:
        arm, node = make_limited_node(harness)
        harness.publish("/jtc/joint_trajectory", trajectory((2.0, [1.0, -1.0]), (3.0, [0.4, -0.8])))
        harness.run_for(1.0)
        if event == "slowed":
            harness.publish("/jtc/speed_scaling", msg.Float64(data=0.5))
        elif event == "stopping":
            harness.start_call("/jtc/stop", srv.Trigger)
        else:
            harness.start_call("/jtc/pause", srv.SetBool, data=True)
        harness.run_for(0.1)
        state, position = node.save_state(), arm.position
        harness.run_for(3.0)
    with BusHarness() as other:
        restored, node = make_limited_node(other)
        other.run_for(1.1)
        for joint, value in zip(restored.joint_names, position, strict=True):
            restored.place(joint, value)
        node.load_state(state)
        other.run_for(3.0)
    assert (restored.position == arm.position).all()


def test_invalid_joint_groups_are_refused(harness: BusHarness) -> None:
    with pytest.raises(NodeError, match="no joints"):
        harness.add(JointTrajectoryNode(hardware=make_arm(harness), description=ARM), "jtc")
    with pytest.raises(NodeError, match="velocity"):
        make_node(harness, mode="velocity")


def test_plan_and_controller_state_agree(harness: BusHarness) -> None:
    make_node(harness, state_publish_rate=50.0)
    plans, states = harness.published("/jtc/plan"), harness.published("/jtc/controller_state")
    goal = send(harness, trajectory((1.0, [1.0, -1.0])))
    harness.run_for(0.5)
    assert len(plans) == 1
    assert plans.messages[0].points[0].positions.tolist() == [0.1, -0.1]
    assert plans.messages[0].points[-1].positions.tolist() == [1.0, -1.0]
    moving = [state for state in states.messages if state.reference.time_from_start.nanosec > 0]
    assert len(moving) > 20
    for state in moving:
        path_time = state.reference.time_from_start.sec + state.reference.time_from_start.nanosec * 1e-9
        fraction = path_time / plans.messages[0].points[-1].time_from_start.sec
        expected = 0.1 + 0.9 * (3.0 * fraction**2 - 2.0 * fraction**3)
        assert state.reference.positions[0] == pytest.approx(expected, abs=1e-6)
    harness.run_for(1.5)
    assert goal.succeeded
    assert len(plans.last.points) == 0
    assert states.last.reference.positions.tolist() == [1.0, -1.0]
