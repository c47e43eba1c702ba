"""Laws of local controllers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from tests.harness.profiles import sample_count
from tests.navigation.controller_simulation import (
    BODY,
    LIMITS,
    OMNI,
    PERIOD,
    drive,
    inflated_costmap,
    overlaps_obstacle,
    pillar_walls,
)

from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2, polygons
from roboyard.navigation import NavigationError, Path
from roboyard.navigation.controllers import (
    CostmapWindow,
    DwaConfig,
    DwaController,
    GoalTolerance,
    MotionLimits,
    MppiConfig,
    MppiController,
    MppiCriticWeights,
    RegulatedPurePursuitConfig,
    RegulatedPurePursuitController,
)
from roboyard.navigation.costmap import INSCRIBED, LETHAL
from roboyard.navigation.planners import FastMarchingPlanner, TraversalCosts

SMALL = MppiConfig(batch_size=200, time_steps=40)
KINDS = {
    "mppi": lambda limits=LIMITS: MppiController(BODY, limits, SMALL),
    "regulated_pure_pursuit": lambda limits=LIMITS: RegulatedPurePursuitController(BODY, limits),
    "trajectory_rollout": lambda limits=LIMITS: DwaController(BODY, limits, DwaConfig(rollout=True)),
    "dwa": lambda limits=LIMITS: DwaController(BODY, limits),
}
FREE = inflated_costmap(np.zeros((120, 120), dtype=bool))
STRAIGHT = Path(np.column_stack([np.linspace(1.0, 4.0, 61), np.full(61, 3.0), np.zeros(61)]))


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def plan_path(costmap, start, goal):
    return FastMarchingPlanner(TraversalCosts(cost_weight=4.0)).plan(costmap, start, goal)


def test_controller_arrives_on_free_ground_at_the_goal_pose(kind):
    goal = SE2(4.5, 4.0, 2.0)
    result = drive(kind(), FREE, plan_path(FREE, SE2(1.0, 1.0, -2.0), goal), SE2(1.0, 1.0, -2.0))
    assert result.arrived
    assert result.poses[-1].distance(goal) <= 0.15
    assert abs(math.remainder(result.poses[-1].theta - goal.theta, math.tau)) <= 0.15


def test_controller_repeats_and_continues_when_loaded(kind):
    costmap, start = inflated_costmap(pillar_walls(3, 25)), SE2(0.8, 0.8, 1.0)
    path = plan_path(costmap, start, SE2(5.2, 5.2, 0.0))
    first, second = kind(), kind()
    one, other = (drive(controller, costmap, path, start, 60) for controller in (first, second))
    assert one.commands == other.commands
    third = kind()
    third.set_path(path)
    third.load_state(first.save_state())
    pose, twist = one.poses[-1], one.commands[-1]
    assert third.compute_velocity(pose, twist, costmap) == first.compute_velocity(pose, twist, costmap)


@given(
    x=st.floats(0.5, 5.5), y=st.floats(0.5, 5.5), theta=st.floats(-3.1, 3.1), vx=st.floats(-0.2, 0.5),
    wz=st.floats(-1.5, 1.5), seed=st.integers(0, 5), name=st.sampled_from(sorted(KINDS)),
)  # fmt: skip
@example(
    x=3.1875, y=1.9765625, theta=2.0, vx=0.0, wz=0.0, seed=1, name="trajectory_rollout"
)  # a pillar within the outline
@settings(max_examples=60, deadline=None)
def test_commands_keep_limits_and_stopping_distance(x, y, theta, vx, wz, seed, name):
    costmap = _world(seed)
    pose, twist = SE2(x, y, theta), PlanarTwist(vx, 0.0, wz)
    # a robot that overlaps obstacles may get out of them, and so may one whose outline encloses a pillar; one at the
    # very edge of a cell may count as overlapping
    assume(CostmapWindow.around(pose, costmap, BODY, 0.5).center_cost() < INSCRIBED)
    assume(not any(overlaps_obstacle(costmap, pose @ SE2(dx, dy, 0.0)) for dx in (-1e-9, 1e-9) for dy in (-1e-9, 1e-9)))
    controller = KINDS[name]()
    controller.set_path(STRAIGHT)
    try:
        command = controller.compute_velocity(pose, twist, costmap)
    except NavigationError as error:
        assert error.cause == "no_safe_command"
        return
    assert -LIMITS.max_backward_speed - 1e-6 <= command.vx <= LIMITS.max_forward_speed + 1e-6
    assert command.vy == 0.0
    assert abs(command.wz) <= LIMITS.max_angular_speed + 1e-6
    assert abs(command.vx - vx) <= LIMITS.max_acceleration * PERIOD + 1e-6
    assert abs(command.wz - wz) <= LIMITS.max_angular_acceleration * PERIOD + 1e-6
    v, w = command.vx, command.wz
    while v or w:  # it brakes to a stand and touches nothing on the way
        pose = pose @ SE2.exp([PERIOD * v, 0.0, PERIOD * w])
        assert not overlaps_obstacle(costmap, pose)
        v = math.copysign(max(abs(v) - LIMITS.max_acceleration * PERIOD, 0.0), v)
        w = math.copysign(max(abs(w) - LIMITS.max_angular_acceleration * PERIOD, 0.0), w)


@pytest.mark.parametrize(("period", "steps"), [(0.05, 56), (0.1, 28), (0.02, 140), (1.0, 4)])
def test_mppi_simulates_the_same_duration_at_any_control_rate(period, steps):
    assert MppiController(BODY, LIMITS, period=period).save_state()["control_sequence"].shape == (3, steps)
    assert MppiController(BODY, LIMITS, SMALL, period=period).save_state()["control_sequence"].shape == (3, 40)


_WORLDS = {}


def _world(seed):
    if seed not in _WORLDS:
        _WORLDS[seed] = inflated_costmap(pillar_walls(seed, 30))
    return _WORLDS[seed]


@pytest.mark.parametrize("name", ["mppi", "regulated_pure_pursuit"])
@given(seed=st.integers(0, 10_000), heading=st.floats(-3.1, 3.1))
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_controller_arrives_among_pillars_without_collision(name, seed, heading):
    costmap, start = inflated_costmap(pillar_walls(seed, 30)), SE2(0.8, 0.8, heading)
    try:
        path = plan_path(costmap, start, SE2(5.2, 5.2, 1.0))
    except NavigationError:
        return
    if path.clearance < BODY.inscribed_radius + 0.08:
        return  # cells round the gap up or down: the planner's centre fits, the robot does not for certain
    result = drive(KINDS[name](), costmap, path, start)
    assert not result.collided
    assert result.arrived
    assert path.length / result.time > 0.3  # of 0.5 m/s, turning at both ends included


def test_overlapping_robot_backs_out_and_goes_no_deeper():
    walls = np.zeros((120, 120), dtype=bool)
    walls[:, 70:] = True  # from x = 3.5 m on
    costmap = inflated_costmap(walls)
    for depth in (0.02, 0.06, 0.12):
        pose = SE2(3.25 + depth, 3.0, 0.0)
        window = CostmapWindow.around(pose, costmap, BODY, 1.0)
        braking = PlanarTwist(2.5, 2.5, 3.2)
        assert window.can_stop_safely(PlanarTwist(-0.2), braking, PERIOD)
        assert not window.can_stop_safely(PlanarTwist(0.2), braking, PERIOD)
        assert not window.can_stop_safely(PlanarTwist(-0.2, 0.0, 1.5), braking, PERIOD) or depth < 0.05
    behind = Path(np.column_stack([np.linspace(3.27, 2.0, 26), np.full(26, 3.0), np.zeros(26)]))
    for kind in KINDS.values():
        result = drive(kind(), costmap, behind, SE2(3.27, 3.0, 0.0), periods=400, overlapping=True)
        assert result.arrived
        assert max(pose.x for pose in result.poses) < 3.28


@given(x=st.floats(2.0, 4.0), y=st.floats(2.0, 4.0), theta=st.floats(-3.1, 3.1), seed=st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_no_obstacle_gets_deeper_into_an_overlapping_robot(x, y, theta, seed):
    costmap, pose = _world(seed), SE2(x, y, theta)
    assume(overlaps_obstacle(costmap, pose))
    window = CostmapWindow.around(pose, costmap, BODY, 1.0)
    before = _depths(costmap, pose)
    for command in (PlanarTwist(0.3), PlanarTwist(-0.2), PlanarTwist(0.0, 0.0, 1.0), PlanarTwist(0.2, 0.0, -1.0)):
        if window.can_stop_safely(command, PlanarTwist(2.5, 2.5, 3.2), PERIOD):
            after = _depths(costmap, pose @ SE2.exp([PERIOD * value for value in command]))
            assert (after <= np.maximum(before, min(max(before.max(), -0.5 * 0.05), 0.0)) + 1e-6).all()


def _depths(costmap, pose):
    """How deep the middle of each obstacle's cell lies in the outline [m]."""
    cells = costmap.geometry.cell_centers(np.argwhere(costmap.cells == LETHAL))
    local = pose.inverse() @ cells
    distances = polygons.boundary_distance(BODY.corners, local)
    return np.where(polygons.contains(BODY.corners, local), distances, -distances)


@pytest.mark.slow
def test_controller_never_collides_in_dense_pillars(kind):
    driven = 0
    for seed in range(sample_count(3, 0.4)):
        costmap, start = inflated_costmap(pillar_walls(seed, 50)), SE2(0.8, 0.8, 0.7)
        try:
            path = plan_path(costmap, start, SE2(5.2, 5.2, 1.0))
        except NavigationError:
            continue
        driven += 1
        assert not drive(kind(), costmap, path, start, 300).collided
    assert driven > 0


def test_enclosed_robot_gets_no_safe_command(kind):
    walls = np.zeros((120, 120), dtype=bool)
    walls[54:67, 53:68] = True
    walls[56:65, 54:67] = False  # 0.45 x 0.65 m about a robot of 0.36 x 0.5
    start = SE2(3.025, 3.025, 0.0)
    result = drive(kind(), inflated_costmap(walls), STRAIGHT, start, 200)
    assert result.causes == ["no_safe_command"]
    assert not result.collided


def test_controller_keeps_a_speed_limit_until_released(kind):
    controller = kind()
    controller.set_speed_limit(0.15)
    slow = drive(controller, FREE, STRAIGHT, SE2(1.0, 3.0, 0.0), 60)
    assert max(twist.vx for twist in slow.commands) <= 0.15 + 1e-6
    controller.set_speed_limit(None)
    fast = drive(controller, FREE, STRAIGHT, SE2(1.0, 3.0, 0.0), 60)
    assert max(twist.vx for twist in fast.commands) > 0.4
    controller.set_speed_limit(0.0)
    stopped = drive(controller, FREE, STRAIGHT, SE2(1.0, 3.0, 0.0), 60)
    assert set(stopped.commands) == {PlanarTwist()}
    assert not stopped.causes
    for speed in (-1.0, math.nan, math.inf):
        with pytest.raises(ConfigError):
            controller.set_speed_limit(speed)


def test_lowered_speed_limit_is_reached_by_braking(kind):
    controller, twist, pose = kind(), PlanarTwist(0.5, 0.0, 0.0), SE2(1.5, 3.0, 0.0)
    controller.set_path(STRAIGHT)
    controller.set_speed_limit(0.1)
    for _ in range(10):
        before, twist = twist, controller.compute_velocity(pose, twist, FREE)
        assert before.vx - twist.vx <= LIMITS.max_acceleration * PERIOD + 1e-9
        pose = pose @ SE2.exp([PERIOD * value for value in twist])
    assert twist.vx <= 0.1 + 1e-6


def test_mppi_drives_an_omnidirectional_base_sideways():
    poses = np.column_stack([np.full(41, 3.0), np.linspace(2.0, 4.0, 41), np.zeros(41)])
    result = drive(KINDS["mppi"](OMNI), FREE, Path(poses), SE2(3.0, 2.0, 0.0))
    assert result.arrived
    commands = np.array(result.commands)
    assert np.abs(commands[:, 1]).sum() > 3.0 * np.abs(commands[:, 0]).sum()
    assert np.abs([pose.theta for pose in result.poses]).max() < 0.7


@pytest.mark.parametrize("name", ["mppi", "regulated_pure_pursuit"])
def test_path_with_reversed_headings_is_driven_backward(name):
    out = np.column_stack([np.linspace(1.0, 2.5, 31), np.full(31, 3.0), np.zeros(31)])
    back = np.column_stack([np.linspace(2.45, 2.0, 10), np.linspace(3.0, 3.2, 10), np.full(10, -0.4)])
    result = drive(KINDS[name](), FREE, Path(np.concatenate([out, back])), SE2(1.0, 3.0, 0.0))
    assert result.arrived
    assert max(pose.x for pose in result.poses) > 2.3  # not cut short, though the path's end is nearer
    assert min(twist.vx for twist in result.commands) < -0.1
    assert max(abs(pose.theta) for pose in result.poses) < 1.2  # it did not turn round


def test_path_that_crosses_itself_is_driven_to_its_end():
    angle = np.linspace(0.0, math.tau, 200)
    eight = np.column_stack([3.0 + 1.5 * np.sin(angle), 3.0 + 1.0 * np.sin(2.0 * angle)])
    heading = np.arctan2(*np.gradient(eight, axis=0).T[::-1])
    path = Path(np.column_stack([eight, heading]))
    result = drive(KINDS["regulated_pure_pursuit"](), FREE, path, path.pose(0))
    assert result.arrived
    driven = sum(twist.vx for twist in result.commands) * PERIOD
    assert driven == pytest.approx(path.length, rel=0.06)


def test_window_follows_a_path_with_parallel_lanes():
    """The end is near from the start: who looks for the nearest way to it cuts the path short."""
    out = np.column_stack([np.linspace(1.0, 4.5, 71), np.full(71, 2.6)])
    across = np.column_stack([np.full(16, 4.5), np.linspace(2.65, 3.4, 16)])
    back = np.column_stack([np.linspace(4.5, 1.2, 67), np.full(67, 3.4)])
    line = np.concatenate([out, across, back])
    heading = np.arctan2(*np.gradient(line, axis=0).T[::-1])
    path = Path(np.column_stack([line, heading]))
    for name in ("dwa", "trajectory_rollout"):
        result = drive(KINDS[name](), FREE, path, SE2(1.0, 2.6, 0.0), 3000)
        assert result.arrived
        assert max(pose.x for pose in result.poses) > 3.5  # it may cut the corner
        driven = sum(abs(twist.vx) for twist in result.commands) * PERIOD
        assert driven > 0.7 * path.length


def test_window_slows_down_at_sharp_corners():
    costmap, start = inflated_costmap(pillar_walls(8, 30)), SE2(0.8, 0.8, 0.7)
    path = plan_path(costmap, start, SE2(5.2, 5.2, 1.0))
    result = drive(KINDS["dwa"](), costmap, path, start)
    assert result.arrived
    assert path.length / result.time > 0.3


def test_mppi_commands_avoid_dead_bands():
    """Where the base does not answer to slow commands, it is given none on the way, though it would like to dawdle."""
    config = replace(SMALL, critics=MppiCriticWeights(deadband_velocities=(0.12, 0.0, 0.0), path_follow=1.0))
    without = replace(SMALL, critics=MppiCriticWeights(path_follow=1.0))

    def slow(config):
        result = drive(MppiController(BODY, LIMITS, config), FREE, STRAIGHT, SE2(1.0, 3.0, 0.0), 400)
        return sum(0.01 < abs(twist.vx) < 0.12 for twist in result.commands[10:])

    assert slow(config) < slow(without) or slow(config) == 0
    with pytest.raises(ConfigError, match="deadband_velocities"):
        MppiCriticWeights(deadband_velocities=(0.1, -0.1, 0.0))


def test_controller_compensates_latency():
    limits = MotionLimits(max_forward_speed=1.0, max_acceleration=2.0, command_latency=0.1)
    walls = np.zeros((120, 120), dtype=bool)
    walls[:, 80] = True  # at x = 4 m, on the path
    costmap = inflated_costmap(walls)
    controller = RegulatedPurePursuitController(BODY, limits)
    controller.set_path(STRAIGHT)
    pose, twist, waiting = SE2(1.0, 3.0, 0.0), PlanarTwist(), [PlanarTwist()] * 2
    for _ in range(100):
        try:
            twist = controller.compute_velocity(pose, waiting[-1], costmap)
        except NavigationError:
            break
        waiting.append(twist)
        pose = pose @ SE2.exp([PERIOD * value for value in waiting.pop(0)])
        assert not overlaps_obstacle(costmap, pose)
    assert pose.x > 3.3


@pytest.mark.parametrize(
    "make",
    [
        lambda: MppiConfig(batch_size=0),
        lambda: MppiConfig(time_steps=3),
        lambda: MppiCriticWeights(deadband_velocities=(0.0, 0.1)),
        lambda: MppiConfig(noise_correlation=1.0),
        lambda: DwaConfig(n_samples=(0, 1, 1)),
        lambda: DwaConfig(horizon=-1.0),
        lambda: RegulatedPurePursuitConfig(min_lookahead_distance=2.0),
        lambda: RegulatedPurePursuitConfig(min_cost_speed_ratio=1.5),
        lambda: GoalTolerance(xy=0.0),
        lambda: MotionLimits(max_forward_speed=0.0),
        lambda: MotionLimits(command_latency=-0.1),
    ],
)
def test_controller_parameters_out_of_range_are_refused(make):
    with pytest.raises(ConfigError):
        make()


def test_bad_controller_input_is_refused_with_its_reason(kind):
    controller = kind()
    with pytest.raises(NavigationError, match="no path"):
        controller.compute_velocity(SE2(), PlanarTwist(), FREE)
    with pytest.raises(InputError):
        controller.set_path(Path(np.zeros((0, 3))))
    controller.set_path(STRAIGHT)
    with pytest.raises(InputError, match="velocity"):
        controller.compute_velocity(SE2(1.0, 3.0, 0.0), PlanarTwist(math.nan, 0.0, 0.0), FREE)
    with pytest.raises(NavigationError):
        controller.compute_velocity(SE2(-50.0, 3.0, 0.0), PlanarTwist(), FREE)  # beyond the map


@given(st.floats(-0.2, 0.2), st.floats(-0.7, 0.7), st.floats(0.0, 0.2), st.floats(0.0, 0.7))
def test_commands_are_feasible_for_the_base(vx: float, wz: float, min_speed: float, min_angular_speed: float) -> None:
    limits = MotionLimits(
        max_forward_speed=0.2, max_angular_speed=0.7, min_speed=min_speed, min_angular_speed=min_angular_speed
    )
    command = limits.nearest_executable(PlanarTwist(vx, 0.0, wz))
    speed, angular_speed = abs(command.vx), abs(command.wz)
    assert speed == 0.0 or speed >= min_speed * (1.0 - 1e-12)
    assert angular_speed <= 0.7 + 1e-12
    assert command.vx * vx >= 0.0
    assert command.wz * wz >= 0.0
    if speed == 0.0:
        assert angular_speed == 0.0 or angular_speed >= min_angular_speed
    else:
        assert command.wz * vx == pytest.approx(wz * command.vx, abs=1e-9)  # the arc stays
    assert limits.nearest_executable(command) == pytest.approx(command)
    if abs(vx) >= min_speed and vx:
        assert command == (vx, 0.0, wz)


@pytest.mark.parametrize(
    "bad", [{"min_speed": 1.0}, {"min_angular_speed": 3.0}, {"min_speed": -0.1}, {"min_angular_speed": math.nan}]
)
def test_impossible_minimum_speeds_are_refused(bad: dict) -> None:
    with pytest.raises(ConfigError, match="min_"):
        MotionLimits(**bad)
