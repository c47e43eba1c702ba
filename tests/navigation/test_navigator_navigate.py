"""Navigation tasks: they reach their goal without collisions, or fail with a cause, in bounded time."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage
from tests.navigation.task_simulation import BASE, LIMITS, TaskSimulation, room_walls

from roboyard.config import loads
from roboyard.errors import ConfigError, InputError, UnknownNameError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry
from roboyard.navigation.conformance import check_planner
from roboyard.navigation.costmap import FREE, INSCRIBED, LETHAL, UNKNOWN, Costmap
from roboyard.navigation.costmap.reachability import find_nearest_reachable_pose
from roboyard.navigation.errors import (
    GoalOccupiedError,
    GoalOutsideMapError,
    GoalUnknownError,
    InvalidGoalError,
    MotionBlockedError,
    TimeAllowanceExceededError,
)
from roboyard.navigation.navigator import (
    DriveOnHeadingTask,
    FollowPathTask,
    NavigateTask,
    NavigatorConfig,
    PathSmootherConfig,
    PluginConfig,
    RecoveryConfig,
    SpinTask,
    WaitTask,
    is_path_blocked,
    plan_through_poses,
)
from roboyard.navigation.planners import SmoothedPlanner
from roboyard.navigation.plugins import make_planner

WINDOW = PluginConfig("dwa")


def _pillars(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    cells = room_walls(6.0, 4.0)
    for _ in range(5):
        row, column = rng.integers(8, 68), rng.integers(28, 90)
        cells[row : row + 5, column : column + 5] = True
    return cells


# -- simple motions ----------------------------------------------------------------------------------------------------
@settings(max_examples=15, deadline=None)
@given(st.floats(-7.0, 7.0), st.floats(-1.0, 1.0).filter(lambda d: abs(d) > 0.05))
def test_spin_and_straight_reach_their_targets(angle: float, distance: float) -> None:
    simulation = TaskSimulation(room_walls(4.0, 4.0), SE2(2.0, 2.0, 0.3))
    spin = SpinTask(BASE, angle, 20.0)
    assert simulation.run(spin, 30.0) is None
    assert spin.rotated_angle == pytest.approx(angle, abs=0.12)
    straight = DriveOnHeadingTask(BASE, distance, 0.5, 20.0)
    start, simulation.time = simulation.pose, 0.0
    assert simulation.run(straight, 30.0) is None
    motion = start.inverse() @ simulation.pose
    assert motion.x == pytest.approx(distance, abs=0.05)
    assert abs(motion.y) < 0.05
    assert not simulation.collisions


def test_blocked_motion_ends_at_once_without_collision() -> None:
    simulation = TaskSimulation(room_walls(4.0, 4.0), SE2(3.5, 2.0, 0.0))
    error = simulation.run(DriveOnHeadingTask(BASE, 2.0, 0.5, 20.0), 30.0)
    assert isinstance(error, MotionBlockedError)
    assert error.cause == "blocked"
    assert not simulation.collisions


def test_motion_of_an_immobile_robot_times_out() -> None:
    simulation = TaskSimulation(room_walls(4.0, 4.0), SE2(2.0, 2.0, 0.0))
    simulation.drive = lambda twist: setattr(simulation, "time", simulation.time + 0.1)  # its wheels spin
    for task in (SpinTask(BASE, 3.0, 2.0), DriveOnHeadingTask(BASE, -0.5, 0.2, 2.0)):
        start_time = simulation.time
        assert isinstance(simulation.run(task, 60.0), TimeAllowanceExceededError)
        assert simulation.time - start_time <= 2.3


def test_wait_lasts_its_duration() -> None:
    simulation = TaskSimulation(room_walls(2.0, 2.0), SE2(1.0, 1.0, 0.0))
    assert simulation.run(WaitTask(1.5), 10.0) is None
    assert simulation.time == pytest.approx(1.5, abs=0.11)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SpinTask(BASE, math.nan, 1.0),
        lambda: SpinTask(BASE, 1.0, 0.0),
        lambda: DriveOnHeadingTask(BASE, 1.0, -0.1, 1.0),
        lambda: DriveOnHeadingTask(BASE, math.inf, 0.1, 1.0),
        lambda: WaitTask(-1.0),
    ],
)
def test_invalid_motions_are_refused(make) -> None:
    with pytest.raises(InputError):
        make()


# -- looking ahead -----------------------------------------------------------------------------------------------------
@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_nearest_reachable_pose_is_the_nearest_of_all_cells(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = np.where(rng.random((25, 30)) < 0.4, rng.choice([INSCRIBED, LETHAL, UNKNOWN], (25, 30)), FREE)
    cells = cells.astype(np.uint8)
    frame = GridGeometry(0.1, cells.shape, SE2(0.5, -0.3, 0.7))
    costmap = Costmap(cells, frame)
    start, goal = (SE2(*frame.cell_centers([rng.integers(0, 25), rng.integers(0, 30)]), 0.0) for _ in range(2))
    found = find_nearest_reachable_pose(costmap, start, goal, 0.0)
    row, column = frame.cells_of_points(start.xy)
    if cells[row, column] != FREE:
        assert found is None
        return
    labels, _ = ndimage.label(cells == FREE)
    reachable = frame.cell_centers(np.argwhere(labels == labels[row, column]))
    assert labels[tuple(frame.cells_of_points(found.xy))] == labels[row, column]
    nearest = np.hypot(*(reachable - goal.xy).T).min()
    assert found.distance(goal) <= nearest + 1e-9


# -- to a pose ---------------------------------------------------------------------------------------------------------
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 1000), st.booleans())
def test_navigation_arrives_around_unmapped_obstacles(seed: int, mapped: bool) -> None:
    true = _pillars(seed)
    start, goal = SE2(0.7, 2.0, 0.0), SE2(5.3, 2.0, 1.0)
    simulation = TaskSimulation(true, start, true if mapped else room_walls(6.0, 4.0), controller=WINDOW)
    if not math.isfinite(_path_length(simulation, goal)):
        return
    task = NavigateTask(simulation.context, [goal])
    error = simulation.run(task, 120.0)
    assert error is None, (error, simulation.pose)
    assert not simulation.collisions
    assert simulation.pose.distance(goal) <= 0.15
    speeds = np.array([twist.vx for twist in simulation.commands])
    assert speeds.max() <= LIMITS.max_forward_speed + 1e-9


def _path_length(simulation: TaskSimulation, goal: SE2) -> float:
    """Length of a way with room to spare, or infinity."""
    grown = ndimage.binary_dilation(simulation.world.walls, iterations=7)
    labels, _ = ndimage.label(~grown)
    start_label, goal_label = (
        labels[tuple(simulation.frame.cells_of_points(pose.xy))] for pose in (simulation.pose, goal)
    )
    return 0.0 if start_label and start_label == goal_label else math.inf


def test_unreachable_goal_fails_or_is_approached() -> None:
    true = room_walls(6.0, 4.0)
    true[:, 70] = True
    for approach in (False, True):
        simulation = TaskSimulation(true, SE2(1.0, 2.0, 0.0), room_walls(6.0, 4.0), controller=WINDOW)
        task = NavigateTask(simulation.context, [SE2(5.0, 2.0, 0.0)], allow_nearest_pose=approach)
        error = simulation.run(task, 120.0)
        assert not simulation.collisions
        if approach:
            assert error is None
            assert 3.0 < simulation.pose.x < 3.5
        else:
            assert error.cause == "no_path"
            found = error.explanation
            assert found.gap_width < found.required_width, (
                "closed, or as good as: beams at a slant leave holes in the wall"
            )
            assert found.position[0] == pytest.approx(3.525, abs=0.1)
            assert 1 <= task.recoveries <= 2 * len(simulation.config.recovery.order)


def test_navigation_through_poses_passes_poses_in_order() -> None:
    simulation = TaskSimulation(room_walls(6.0, 4.0), SE2(0.7, 0.7, 0.0), controller=WINDOW)
    goals = [SE2(2.0, 2.5, 0.0), SE2(4.0, 2.5, 0.0), SE2(5.2, 1.0, -1.57)]
    task = NavigateTask(simulation.context, goals)
    track = []
    drive = simulation.drive
    simulation.drive = lambda twist: (drive(twist), track.append(simulation.pose))
    assert simulation.run(task, 60.0) is None
    nearest = [int(np.argmin([pose.distance(goal) for pose in track])) for goal in goals]
    assert nearest == sorted(nearest)
    assert all(min(pose.distance(goal) for pose in track) <= 0.5 for goal in goals)


@pytest.mark.parametrize("controller", ["dwa", "mppi"])
def test_saved_navigation_continues_bit_for_bit(controller: str) -> None:
    small = {"batch_size": 200, "time_steps": 20} if controller == "mppi" else {}
    true = _pillars(3)

    def simulation() -> TaskSimulation:
        return TaskSimulation(
            true, SE2(0.7, 2.0, 0.0), room_walls(6.0, 4.0), controller=PluginConfig(controller, small)
        )

    goal = SE2(5.3, 2.0, 0.0)
    one = simulation()
    task = NavigateTask(one.context, [goal])
    for _ in range(40):
        one.drive(task.compute_command(one.state()))
    two = simulation()
    restored = NavigateTask(two.context, [goal])
    two.pose, two.twist, two.time = one.pose, one.twist, one.time
    two.costmaps.load_state(one.costmaps.save_state())
    restored.load_state(task.save_state())
    two.context.controller.load_state(one.context.controller.save_state())
    for _ in range(25):
        first, second = task.compute_command(one.state()), restored.compute_command(two.state())
        assert first == second
        one.drive(first)
        two.drive(second)


def test_follow_path_reaches_the_end() -> None:
    simulation = TaskSimulation(room_walls(6.0, 4.0), SE2(1.0, 2.0, 0.0), controller=WINDOW)
    path = make_planner(PluginConfig("fast_marching"), BASE.footprint).plan(
        simulation.costmaps.get_global_costmap(), simulation.pose, SE2(4.0, 3.0, 0.0)
    )
    task = FollowPathTask(
        path, simulation.context.controller, simulation.config.goal_tolerance, simulation.config.progress_checker, 1.0
    )
    before = task.remaining_distance
    assert simulation.run(task, 30.0) is None
    assert before == pytest.approx(path.length)
    assert task.remaining_distance < 0.2
    assert simulation.pose.distance(SE2(4.0, 3.0, 0.0)) < 0.12


def test_smoothed_paths_pass_all_goals_with_smaller_angles() -> None:
    goals = [SE2(3.0, 3.2, 0.0), SE2(5.3, 2.0, 0.0)]
    sharpest = {}
    for radius in (0.0, 0.6):
        simulation = TaskSimulation(
            _pillars(3), SE2(0.7, 2.0, 0.0), controller=WINDOW, smoother=PathSmootherConfig(turning_radius=radius)
        )
        path = plan_through_poses(
            simulation.context.planner, simulation.costmaps.get_global_costmap(), simulation.pose, goals, 0.5
        )
        distances = np.hypot(*(path.poses[:, :2] - goals[0].xy).T)
        assert distances.min() < 1e-9
        assert not is_path_blocked(simulation.costmaps.get_global_costmap(), path.poses)
        parts = np.split(path.poses[:, :2], [int(np.argmin(distances))])
        angles = [np.abs(np.diff(np.unwrap(np.arctan2(*np.diff(part, axis=0).T[::-1])))) for part in parts]
        sharpest[radius] = max(angle.max() for angle in angles)
    assert sharpest[0.6] < 0.7 * sharpest[0.0]


def test_navigation_on_a_smoothed_path_arrives() -> None:
    simulation = TaskSimulation(
        _pillars(3), SE2(0.7, 2.0, 0.0), controller=WINDOW, smoother=PathSmootherConfig(turning_radius=0.6)
    )
    assert simulation.run(NavigateTask(simulation.context, [SE2(5.3, 2.0, 0.0)]), 60.0) is None
    assert not simulation.collisions
    assert simulation.pose.distance(SE2(5.3, 2.0, 0.0)) <= 0.15


def test_smoothing_keeps_the_planners_rule_for_unknown_cells() -> None:
    for planner_settings, allowed in (({}, False), ({"traversal": {"allow_unknown": True}}, True)):
        planner = make_planner(
            PluginConfig("fast_marching", planner_settings), BASE.footprint, PathSmootherConfig(min_radius=0.4)
        )
        assert isinstance(planner, SmoothedPlanner)
        assert planner.traversal.allow_unknown == allowed
        assert planner.traversal == planner.planner.traversal
        assert planner.smoother.turning_radius == 0.4
    check_planner(planner)


# -- what is refused ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("goal", "error"),
    [
        (SE2(50.0, 0.0, 0.0), GoalOutsideMapError),
        (SE2(0.01, 0.01, 0.0), GoalOccupiedError),
        (SE2(0.15, 2.0, 0.0), GoalOccupiedError),
        (SE2(5.0, 2.0, 0.0), GoalUnknownError),
    ],
)
def test_unreachable_goals_are_refused_by_cause(goal: SE2, error: type) -> None:
    simulation = TaskSimulation(room_walls(6.0, 4.0), SE2(1.0, 2.0, 0.0), controller=WINDOW)
    cells = np.where(room_walls(6.0, 4.0), 100, 0).astype(np.int8)
    cells[30:60, 90:110] = -1
    simulation.costmaps.set_map(type(simulation.costmaps._map)(cells, simulation.frame))
    with pytest.raises(error):
        simulation.context.validate_goal(goal)
    simulation.context.validate_goal(SE2(3.0, 2.0, 0.0))


def test_goal_with_nan_is_refused() -> None:
    simulation = TaskSimulation(room_walls(6.0, 4.0), SE2(1.0, 2.0, 0.0), controller=WINDOW)
    goal = SE2(1.0, 1.0, 0.0)
    object.__setattr__(goal, "x", math.nan)
    with pytest.raises(InvalidGoalError):
        simulation.context.validate_goal(goal)


@pytest.mark.parametrize("smoothing", [{"turning_radius": -1.0}, {"min_radius": math.nan}, {"turning_radius": 101.0}])
def test_invalid_smoothing_is_refused(smoothing) -> None:
    with pytest.raises(ConfigError, match=next(iter(smoothing))):
        PathSmootherConfig(**smoothing)
    with pytest.raises(ConfigError, match=next(iter(smoothing))):
        loads(NavigatorConfig, f"smoother: {smoothing}".replace("nan", ".nan"))


def test_invalid_navigation_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="conservative_reset"):
        RecoveryConfig(steps=("dance",))
    with pytest.raises(UnknownNameError, match="dijkstra"):
        make_planner(PluginConfig("dijkstr"), BASE.footprint)
    with pytest.raises(ConfigError):
        make_planner(PluginConfig("fast_marching", {"spcing": 2.0}), BASE.footprint)
