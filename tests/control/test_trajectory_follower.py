"""Laws of following trajectories at a changing speed scaling: commands are within limits and on the path."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from roboyard.control.joint_limits import JointAccelerationLimits, JointGroupLimits
from roboyard.control.trajectory import JointSample, Trajectory, TrajectoryPoint
from roboyard.control.trajectory_follower import ScalableTrajectory, Tolerances, TrajectoryFollower, splice_trajectory
from roboyard.description.model import Axis, AxisLimits, Joint, Link, Model
from roboyard.errors import InputError
from roboyard.geometry import SE3

N, SPEED, ACCELERATION, DT = 3, 1.5, 1.0, 0.001
STOPPING_STEPS = round(1.1 * SPEED / ACCELERATION / DT)
NAMES = ("a", "b", "c")
AT_ORIGIN = JointSample(np.zeros(N), np.zeros(N), np.zeros(N))
FREE = Tolerances(np.full(N, math.inf), np.full(N, math.inf))
EVENTS = ("pause", "slow", "preempt", "stop", "none")


def make_limits(*, has_acceleration_limit: bool = True) -> JointGroupLimits:
    rows = (np.full(N, value) for value in (-50.0, 50.0, SPEED, ACCELERATION))
    return JointGroupLimits(*rows, np.full(N, has_acceleration_limit))


def points(order: int, random: np.random.Generator, start: np.ndarray) -> list[TrajectoryPoint]:
    """Way points with positions only, with speeds, or with speeds and accelerations, at rest at the end."""
    times = np.cumsum(random.uniform(0.8, 2.5, random.integers(1, 4))).tolist()
    trajectory_points, position = [], start
    for time in times:
        position = position + random.uniform(-0.6, 0.6, N)
        rates = random.uniform(-0.2, 0.2, (2, N)) * (time < times[-1])
        trajectory_points.append(
            TrajectoryPoint(time, position, rates[0] if order > 0 else None, rates[1] if order > 1 else None)
        )
    return trajectory_points


def make_follower(current: JointSample, order: int, random: np.random.Generator, due_ns: int) -> TrajectoryFollower:
    path, wait = splice_trajectory(current, points(order, random, current.position), 0.0, make_limits(), NAMES)
    return TrajectoryFollower(
        ScalableTrajectory(Trajectory(path), current.velocity, make_limits(), NAMES), FREE, wait, due_ns
    )


@settings(max_examples=6)
@given(st.integers(0, 2), st.integers(0, 10_000), st.lists(st.sampled_from(EVENTS), min_size=2, max_size=4))
@example(0, 306, ["slow", "none", "pause"])  # slow already where an interval begins
@example(0, 0, ["preempt", "pause"])  # fast after the second goal: stopping takes more than 0.7 s
def test_path_following_keeps_limits_through_interruptions(order: int, seed: int, events: list[str]) -> None:
    random = np.random.default_rng(seed)
    try:
        follower = make_follower(AT_ORIGIN, order, random, 0)
    except InputError:
        assume(False)  # a spline that is faster than the joints is refused
    commands, k = [AT_ORIGIN.position], 0
    for event in [*events, "finish"]:
        if event == "preempt":
            try:
                follower = make_follower(follower.commanded, random.integers(0, 3), random, k)
            except InputError:
                continue
        scaling = {"pause": 0.0, "stop": 0.0, "slow": 0.3}.get(event, 1.0)
        for _ in range({"finish": 60_000, "pause": STOPPING_STEPS, "stop": STOPPING_STEPS}.get(event, 700)):
            k += 1
            commands.append(follower.command(round(k * DT * 1e9), DT, scaling).position)
            if event == "finish" and follower.is_stopped and follower.path_time >= follower.trajectory.duration:
                break
            follower.check_tracking(round(k * DT * 1e9), commands[-1])
        if event in ("pause", "stop"):
            assert follower.is_stopped, "the time to stop from the greatest speed is enough"
    assert follower.path_time == follower.trajectory.duration
    assert commands[-1] == pytest.approx(follower.trajectory.trajectory.goal)
    speeds = np.diff(np.array([*commands, commands[-1], commands[-1]]), axis=0) / DT
    assert np.abs(speeds).max() <= SPEED * 1.001
    assert np.abs(np.diff(speeds, axis=0)).max() / DT <= ACCELERATION * 1.02


@settings(max_examples=10)
@given(st.integers(0, 2), st.integers(0, 10_000), st.floats(0.1, 2.0))
def test_path_following_stops_on_path_and_resumes(order: int, seed: int, when: float) -> None:
    random = np.random.default_rng(seed)
    try:
        follower = make_follower(AT_ORIGIN, order, random, 0)
    except InputError:
        assume(False)
    path = follower.trajectory.trajectory
    for k in range(1, 20_000):
        scaling = 0.0 if when < k * 0.01 < when + 2.0 else 1.0
        position = follower.command(k * 10_000_000, 0.01, scaling).position
        path_time = follower._path_state[0]
        assert position == pytest.approx(path.sample(path_time).position, abs=1e-12)
        if path_time >= follower.trajectory.duration:
            break
    assert position == pytest.approx(path.goal)


def test_feasible_trajectory_keeps_its_timing() -> None:
    goal = TrajectoryPoint(3.0, np.array([1.0, -0.5, 0.2]), np.zeros(N), np.zeros(N))
    path, wait = splice_trajectory(AT_ORIGIN, [goal], 0.0, make_limits(), NAMES)
    follower = TrajectoryFollower(
        ScalableTrajectory(Trajectory(path), AT_ORIGIN.velocity, make_limits(), NAMES), FREE, wait, 0
    )
    for k in range(1, 301):
        expected = Trajectory(path).sample(k * 0.01)
        command = follower.command(k * 10_000_000, 0.01, 1.0)
        for have, expected_value in zip(command, expected, strict=True):
            assert have == pytest.approx(expected_value, abs=1e-9)
    assert follower.check_tracking(3_000_000_000, goal.position) == "done"


def test_following_error_refers_to_the_present_command() -> None:
    path, wait = splice_trajectory(
        AT_ORIGIN,
        [TrajectoryPoint(2.0, np.ones(N), np.zeros(N))],
        0.0,
        make_limits(has_acceleration_limit=False),
        NAMES,
    )
    course = ScalableTrajectory(Trajectory(path), AT_ORIGIN.velocity, make_limits(has_acceleration_limit=False), NAMES)
    follower = TrajectoryFollower(course, FREE, wait, 20_000_000)
    for k in range(100):
        follower.command(k * 10_000_000 + 30_000_000, 0.01, 1.0)
        follower.check_tracking(k * 10_000_000, AT_ORIGIN.position)
        assert follower.path_time == pytest.approx(max(k * 0.01 - 0.02, 0.0), abs=1e-9)


def test_path_corners_stop_only_with_acceleration_limits() -> None:
    corner = [TrajectoryPoint(1.0, np.full(N, 0.5)), TrajectoryPoint(2.0, np.zeros(N))]
    spent = []
    for stated in (True, False):
        path, wait = splice_trajectory(AT_ORIGIN, corner, 0.0, make_limits(has_acceleration_limit=stated), NAMES)
        course = ScalableTrajectory(
            Trajectory(path), AT_ORIGIN.velocity, make_limits(has_acceleration_limit=stated), NAMES
        )
        follower = TrajectoryFollower(course, FREE, wait, 0)
        k = 0
        while not follower.is_stopped or k < 2:
            k += 1
            follower.command(k * 10_000_000, 0.01, 1.0)
        spent.append(k * 0.01)
    assert spent[1] == pytest.approx(2.0, abs=0.02), "as ROS's controller does"
    quickest = 2 * (0.5 / 0.5 + 0.5 / ACCELERATION)  # two lines of 0.5 rad at 0.5 rad/s, each from rest to rest
    assert spent[0] == pytest.approx(quickest, abs=0.05)


def test_past_points_are_dropped_and_future_start_awaited() -> None:
    trajectory_points = [
        TrajectoryPoint(1.0, np.ones(N), np.zeros(N)),
        TrajectoryPoint(3.0, np.full(N, 0.5), np.zeros(N)),
    ]
    path, wait = splice_trajectory(AT_ORIGIN, trajectory_points, -1.5, make_limits(), NAMES)
    assert [point.time for point in path] == pytest.approx([0.0, 1.5])
    assert wait == 0.0
    path, wait = splice_trajectory(AT_ORIGIN, trajectory_points, 2.0, make_limits(), NAMES)
    assert [point.time for point in path] == pytest.approx([0.0, 1.0, 3.0])
    assert wait == 2.0


def test_approach_to_the_first_point_adds_time() -> None:
    trajectory_points = [
        TrajectoryPoint(0.0, np.full(N, 0.03), np.zeros(N)),
        TrajectoryPoint(1.0, np.full(N, 0.1), np.zeros(N)),
    ]
    path, _ = splice_trajectory(AT_ORIGIN, trajectory_points, 0.0, make_limits(), NAMES)
    assert len(path) == 3
    assert 0.0 < path[1].time == pytest.approx(path[2].time - 1.0)
    assert (path[0].position == 0.0).all()


def test_limits_combine_description_and_stated_accelerations() -> None:
    joint = Joint(
        "a",
        "revolute",
        "base",
        "arm",
        SE3.identity(),
        SE3.identity(),
        (Axis((0, 0, 1), AxisLimits(-1.0, 2.0, 5.0, 3.0)),),
    )
    model = Model("m", (Link("base", SE3.identity()), Link("arm", SE3.identity())), (joint,))
    described = JointGroupLimits.from_model(model, ("a",), JointAccelerationLimits())
    speed = described.speed[0]
    assert described.acceleration[0] == speed / 0.5
    assert not described.has_acceleration_limit[0]
    stated = JointGroupLimits.from_model(model, ("a",), JointAccelerationLimits({"a": 0.7}))
    assert stated.acceleration[0] == 0.7
    assert stated.has_acceleration_limit[0]
