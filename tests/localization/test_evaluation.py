"""Maps of the truth, carried robots, and localization errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.harness.collectors import CollectorFeed
from tests.harness.scenarios import ScenarioBuilder

import roboyard as ry
from roboyard.bringup.catalog import WORLDS
from roboyard.description import load_world
from roboyard.errors import ConfigError, InputError
from roboyard.geometry import SE2
from roboyard.localization.evaluation import LocalizationMetrics
from roboyard.messages import msg
from roboyard.messages.convert import make_header, odometry_to_msg, pose_to_msg
from roboyard.scenarios import load_scenario, run_scenario
from roboyard.scenarios.assembly import build_run
from roboyard.scenarios.ground_truth import ground_truth_map
from roboyard.scenarios.resolve import resolve_scenario
from roboyard.scenarios.run_options import RunOptions
from roboyard.simulation import Simulation


def test_true_map_holds_what_can_be_reached() -> None:
    world = Simulation(load_world(WORLDS.resolve("corridor")))
    grid = ground_truth_map(world, interior_points=[(0.0, 0.0)])

    def value(x: float, y: float) -> int:
        return int(grid.cells[tuple(grid.geometry.cells_of_points([x, y]))])

    assert value(10.0, 0.3) == 0
    assert value(21.0, 4.0) == 0  # the laboratory, through its door
    assert value(0.0, 5.0) == -1  # outside
    assert value(0.0, 1.12) == 100  # the wall
    everywhere = ground_truth_map(world)
    assert (everywhere.cells >= 0).all()
    assert ((everywhere.cells == 100) == (grid.cells == 100)).all()
    with pytest.raises(InputError, match="has no obstacle"):
        ground_truth_map(Simulation(load_world(WORLDS.resolve("empty"))))


def test_true_map_of_several_cuts_holds_obstacles_of_each() -> None:
    world = Simulation(load_world(WORLDS.resolve("corridor")))
    low = ground_truth_map(world, height=0.06)
    joined = ground_truth_map(world, height=0.06, extra_heights=[0.3, 0.72]).cells == 100
    cells = [ground_truth_map(world, height=height) for height in (0.3, 0.72)]
    points = [grid.geometry.cell_centers(np.argwhere(grid.cells == 100)) for grid in (low, *cells)]
    for found in points:
        assert joined[tuple(low.geometry.cells_of_points(found).T)].all()
    assert joined.sum() <= sum(map(len, points))
    assert joined.sum() > len(points[0])


def test_carried_robot_keeps_its_wheels_still() -> None:
    with ry.Run("empty", record=False) as run:
        rover = run.add_robot("rover", pose=(0, 0, 0.3))
        run.run_for(0.5)
        before = rover.hardware.read().position.copy()
        height = rover.truth.pose.z
        run.simulation.world.set_planar_pose("rover", SE2(3.0, -2.0, 1.0))
        now = SE2.from_se3(rover.truth.pose)
        assert now.almost_equal(SE2(3.0, -2.0, 1.0))
        assert rover.truth.pose.z == pytest.approx(height)
        assert (rover.hardware.read().position == before).all()
        run.run_for(0.5)
        assert SE2.from_se3(rover.truth.pose).almost_equal(now, 1e-3)  # it stands where it was put
        assert rover.truth.pose.z == pytest.approx(height, abs=1e-3)
        with pytest.raises(InputError, match="cannot be moved"):
            run.simulation.world.set_planar_pose("ground", SE2.identity())


def test_teleport_fault_needs_a_robot(tmp_path) -> None:
    def builder(robot: str) -> ScenarioBuilder:
        return ScenarioBuilder(duration=0.4).with_fault("teleport", pose=[1, 2, 0.5], robot=robot)

    with pytest.raises(ConfigError, match="did you mean 'rover'"):
        run_scenario(builder("rovre").load(tmp_path), RunOptions(write_files=False, write_report=False, serve=False))
    outcome = run_scenario(
        builder("rover").load(tmp_path), RunOptions(write_files=False, write_report=False, serve=False)
    )
    assert outcome.metrics["final_x"] == pytest.approx(1.0, abs=1e-3)


def test_ground_truth_localization_works_with_fused_odometry(tmp_path) -> None:
    """Both by the rover's own names: map → odom is the truth's, odom → base the filter's."""
    path = tmp_path / "s.yaml"
    path.write_text(
        "world: arena\nrobots:\n  rover:\n    model: rover\n"
        "    nodes: [joint_states, robot_state, arbiter, drive, odometry, ekf, ground_truth_map,\n"
        "            ground_truth_localization]\n"
        "    parameters: {odometry: {publish_tf: false}, ekf: {publish_tf: true}}\n"
        "operator: [{wait: 1 s}, {drive: {linear: 0.5 m/s, angular: 0.4 rad/s, duration: 2 s}}]\nduration: 4\n"
        "criteria: {told: localization_max_error < 1e-6, fused: filtered_rmse < 0.05}\n"
    )
    spec = load_scenario(path)
    assert run_scenario(spec, RunOptions(write_files=False, write_report=False, serve=False)).success
    with build_run(resolve_scenario(spec), record=False) as run:
        run.run_for(3.0)
        truth = SE2.from_se3(run.robots["rover"].truth.pose)
        assert SE2.from_se3(run.bus.transforms.lookup("map", "base_link")).almost_equal(truth, 0.03)


def test_localization_errors_are_measured_at_the_stamps() -> None:
    feed, rng = CollectorFeed(LocalizationMetrics("/truth", "/pose")), np.random.default_rng(0)
    errors = []
    for k in range(1000):
        true_pose = SE2(0.01 * k, 0.0, 0.1)
        truth = odometry_to_msg(true_pose, [0] * 3, [0] * 3, frame="w", child_frame="b", time_ns=k * 20_000_000)
        feed.send("/truth", truth, 0.02 * k)
        if k % 5 == 0:
            estimated_pose = SE2(
                true_pose.x + rng.normal(0, 0.02) + (3.0 if k == 500 else 0.0), rng.normal(0, 0.02), 0.1
            )
            errors.append(true_pose.distance(estimated_pose))
            pose = msg.PoseWithCovariance(pose=pose_to_msg(estimated_pose))
            feed.send("/pose", msg.PoseWithCovarianceStamped(header=make_header("map", k * 20_000_000), pose=pose))
    found = feed.result()
    assert found["localization_median_error"] == pytest.approx(np.median(errors), rel=0.02)
    assert found["localization_max_error"] == pytest.approx(max(errors))
    assert found["localization_rmse"] == pytest.approx(math.sqrt(np.mean(np.square(errors))))
    assert found["localized_since"] == pytest.approx(505 * 0.02)  # since it was lost at 500
    new_collector = LocalizationMetrics("/truth", "/pose")
    assert new_collector.values() == {}
    new_collector.load_state(feed.collector.save_state())
    assert new_collector.values() == found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["corridor-localization", "corridor-kidnapped"])
def test_localization_scenarios_hold_for_other_seeds(name: str) -> None:
    for seed in (1, 2):
        outcome = run_scenario(
            load_scenario(name).with_seed(seed), RunOptions(write_files=False, write_report=False, serve=False)
        )
        assert outcome.success, (seed, outcome.metrics)
