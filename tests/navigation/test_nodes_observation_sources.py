"""The navigator's costmaps by configuration: clouds, sonars, speed zones; each changes what the robot does."""

import numpy as np
import pytest
from tests.harness.bus import BusHarness, check_snapshot_continues
from tests.navigation.navigator_harness import CELL, CORNERS, NavigatorHarness, SensorHarness, costmap_config

from roboyard.config import load
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.grids import GridGeometry, OccupancyGrid
from roboyard.messages import msg
from roboyard.messages.convert import cloud_to_msg, grid_to_array
from roboyard.navigation import Footprint
from roboyard.navigation.costmap import UNKNOWN, CostmapConfig, Observation
from roboyard.navigation.navigator import NavigationCostmaps
from roboyard.navigation.nodes import NavigatorNode

LASER = {"type": "obstacles", "sources": [{"topic": "scan"}]}
DEPTH = {
    "type": "voxels",
    "sources": [{"topic": "depth/points", "data_type": "cloud"}],
    "observation_filter": {"min_height": 0.05},
}
SONAR = {"type": "ranges", "sources": [{"topic": "sonar"}], "clear_footprint": False}


@pytest.mark.parametrize(
    ("names", "layers", "avoids"),
    [
        (["obstacles"], {"obstacles": LASER}, False),
        (["obstacles", "depth"], {"obstacles": LASER, "depth": DEPTH}, True),
        (["obstacles", "depth"], {"obstacles": LASER, "depth": DEPTH | {"type": "obstacles"}}, True),
        (["obstacles", "sonar"], {"obstacles": LASER, "sonar": SONAR}, True),
        (
            ["obstacles", "depth"],
            {"obstacles": LASER, "depth": DEPTH | {"observation_filter": {"min_height": 0.2}}},
            False,
        ),
    ],
)
def test_obstacle_of_one_sensor_is_marked_and_avoided(names, layers, avoids: bool) -> None:
    with SensorHarness(costmap_config(*names, **layers)) as harness:
        harness.record("/local_costmap/costmap", msg.OccupancyGrid)  # costmaps are published to subscribers only
        harness.record("/global_costmap/costmap", msg.OccupancyGrid)
        harness.run_until(3.0)
        for marked_points in (
            harness.last("/local_costmap/costmap"),
            harness.last("/global_costmap/costmap"),
        ):  # before it drives: the bar's near side, and nothing elsewhere in the room
            corner = np.array([marked_points.info.origin.position.x, marked_points.info.origin.position.y])
            points = corner + (np.argwhere(grid_to_array(marked_points) == 100)[:, ::-1] + 0.5) * CELL
            inner = points[(np.abs(points - (3.0, 2.0)) < (2.7, 1.7)).all(axis=1)]
            assert (len(inner) > 0) == avoids
            if avoids:
                assert (np.abs(inner[:, 0] - 2.525) < 0.15).all()
        goal = harness.navigate(4.5, 2.0, timeout=60.0)
        assert goal.succeeded
        assert harness.drove_over_the_bar() != avoids


def test_failure_names_the_sensor_of_the_blocking_obstacle() -> None:
    costmap = costmap_config("obstacles", "depth", obstacles=LASER, depth=DEPTH) | {"denoise_min_cells": 1}
    with SensorHarness(costmap, settings={"recovery": {"max_rounds": 1}}, sensor_timeout=1.0) as harness:
        robot = harness.robot
        robot.bar.walls[:, 60:66] = True
        goal = harness.navigate(5.0, 3.0, timeout=200.0)
        harness.run_for(1.0)
        goal = harness.navigate(5.0, 3.0, timeout=300.0)
        assert goal.done()
        assert not goal.succeeded
        assert "sensor '/depth/points'" in harness.statuses[-1].message
        assert not harness.drove_over_the_bar()


def test_silent_camera_stops_the_robot_by_its_timeout() -> None:
    for timeout, is_stopped in ((None, True), (100.0, False)):
        source = {"topic": "depth/points", "data_type": "cloud"} | ({} if timeout is None else {"timeout": timeout})
        layers = {"obstacles": LASER, "depth": DEPTH | {"sources": [source]}}
        with SensorHarness(costmap_config("obstacles", "depth", **layers), missing_data_timeout=100.0) as harness:
            robot = harness.robot
            harness.run_until(1.0)
            harness.start_navigation(4.5, 2.0)
            harness.run_until(3.0)
            assert robot.twist[0] > 0.1
            robot.publish_clouds = False
            harness.run_until(3.9)
            assert (robot.twist[0] == 0.0) == is_stopped
            assert ("depth/points" in harness.navigator.health.text) == is_stopped


def test_sensor_in_an_unknown_frame_is_reported_with_the_missing_transform() -> None:
    """At any rate: its messages are replaced by newer ones before their timeout."""
    layers = {"obstacles": LASER, "depth": DEPTH | {"sources": [{"topic": "other/points", "data_type": "cloud"}]}}
    with SensorHarness(costmap_config("obstacles", "depth", **layers), sensor_timeout=0.5) as harness:
        for k in range(40):
            harness.run_until(0.05 * k)
            harness.publish("/other/points", cloud_to_msg(np.ones((3, 3)), "moon", harness.now_ns))
        health = harness.navigator.health
        assert health.level == "warn"
        assert "messages on /other/points cannot be used" in health.text
        assert "'moon' is unknown" in health.text


def test_speed_zones_slow_the_robot_only_inside() -> None:
    with SensorHarness({"speed_filter": {"base": 10.0, "multiplier": 0.5}}) as harness:
        robot = harness.robot
        robot.bar.walls[:] = False
        harness.publish_speed_mask(30, (2.5, 3.5))  # 10 + 0.5 · 30 = 25 % of 0.6 m/s
        harness.run_until(1.0)
        goal = harness.navigate(5.0, 3.0, timeout=60.0)
        assert goal.succeeded
        odometry = harness.published("/odom").messages
        track = np.array([(item.pose.pose.position.x, item.twist.twist.linear.x) for item in odometry])
        inside = (track[:, 0] > 2.5 + 0.6 * 0.15) & (track[:, 0] < 3.5)  # a period and a step after it came in
        assert track[inside, 1].max() == pytest.approx(0.15)
        assert track[track[:, 0] < 2.4, 1].max() > 0.5
        assert track[track[:, 0] > 3.6, 1].max() > 0.5


def test_speed_mask_of_zero_speed_is_ignored_with_a_warning() -> None:
    with SensorHarness({"speed_filter": {"base": -30.0}}) as harness:
        logs = harness.record("/rosout", msg.Log)
        harness.publish_speed_mask(20, (2.5, 3.5))
        harness.run_until(1.0)
        assert any("speed mask" in log.msg and "20" in log.msg for log in logs.messages)


def test_local_costmap_contains_keepout_zones() -> None:
    """The local costmap knows where people forbid to go, wherever odometry's frame lies."""
    costmaps = NavigationCostmaps(CostmapConfig(), Footprint(CORNERS))
    forbidden = np.zeros((80, 120), dtype=np.int8)
    forbidden[:, 60:64] = 100
    costmaps.set_grid("keepout_mask", OccupancyGrid(forbidden, GridGeometry(CELL, forbidden.shape)))
    for T_map_odom in (SE2(), SE2(0.4, -0.3, 0.2)):
        T_odom_base = T_map_odom.inverse() @ SE2(2.5, 2.0, 0.0)
        costmaps.update(T_odom_base, T_map_odom)
        costs = costmaps.local_costmap_in_map(T_map_odom)
        points = costs.geometry.cell_centers(np.argwhere(costs.cells == 254))
        inside = (points[:, 1] > 0.1) & (points[:, 1] < 3.9)
        assert inside.sum() > 100
        assert (np.abs(points[inside, 0] - 3.1) < 0.1 + CELL).all()


@pytest.mark.parametrize("frees", [True, False])
def test_footprint_is_cleared_under_the_robot(frees: bool) -> None:
    layer = {"type": "obstacles", "sources": [{"topic": "scan"}], "clear_footprint": frees}
    settings = load(CostmapConfig, {"layers": {"obstacles": layer}}, source_name="test")
    costmaps = NavigationCostmaps(settings, Footprint(CORNERS * 1.3), CORNERS)
    under, next_to = [0.0, 0.0, 0.2], [0.0, 0.22, 0.2]  # the second within the outline that is planned with
    observation = Observation(np.array([-1.0, 0.0, 0.2]), np.array([under, next_to]), np.ones(2, bool), "laser")
    costmaps.add_observations({"obstacles": [observation]}, SE2())
    costmaps.update(SE2(), SE2())
    cells = costmaps.local_costmap.snapshot()
    values = [int(cells.cells[tuple(cells.geometry.cells_of_points(point[:2]))]) for point in (under, next_to)]
    assert (values[0] == 254) != frees
    assert values[1] == 254


def test_laser_does_not_clear_obstacles_of_the_camera() -> None:
    """A camera sees a post that the laser's beams pass over; it comes five times as seldom."""
    layer = {"type": "obstacles", "sources": [{"topic": "scan"}, {"topic": "depth/points", "data_type": "cloud"}],
             "observation_filter": {"min_height": 0.05}}  # fmt: skip
    with SensorHarness(costmap_config("obstacles", obstacles=layer)) as harness:
        found = []
        for tenth in range(10, 40):
            harness.run_until(0.1 * tenth + 0.06)
            cells = harness.navigator._costmaps.local_costmap.snapshot()
            points = cells.geometry.cell_centers(np.argwhere(cells.cells == 254))
            found.append(int((np.abs(points - (2.525, 2.0)) < (0.06, 0.4)).all(axis=1).sum()))
        assert min(found) > 10


def test_saved_sensor_layers_continue_bit_for_bit() -> None:
    depth = DEPTH | {"sources": [{"topic": "depth/points", "data_type": "cloud", "observation_persistence": 0.7}]}
    costmap = costmap_config("obstacles", "depth", "sonar", obstacles=LASER, sonar=SONAR, depth=depth)

    def make() -> SensorHarness:
        harness = SensorHarness(costmap)
        harness.publish_speed_mask(40, (1.5, 2.25))
        harness.run_until(1.0)
        harness.start_navigation(4.5, 2.0)
        return harness

    check_snapshot_continues(make, [3.0], 7.0, observe=NavigatorHarness.check_moved)


@pytest.mark.parametrize(
    ("costmap", "words"),
    [
        ({"local_layers": ["obstacels"]}, "did you mean 'obstacles'"),
        ({"layers": {"static": LASER}}, "another name"),
        ({"layers": {"obstacles": LASER, "depth": DEPTH}}, "in no costmap"),
        ({"layers": {"obstacles": {"type": "obstacles", "sources": []}}}, "no sensor source"),
        ({"layers": {"obstacles": {"type": "lasers", "sources": [{"topic": "scan"}]}}}, "obstacles, ranges, static"),
        ({"layers": {"obstacles": LASER | {"sources": [{"topic": "a", "data_type": "image"}]}}}, "scan, cloud"),
        ({"layers": {"obstacles": LASER | {"observation_filter": {"min_height": 3.0}}}}, "ascending"),
        ({"layers": {"obstacles": DEPTH | {"voxels": {"levels": 40}}}}, "levels"),
        ({"layers": {"obstacles": SONAR | {"range_model": {"mark_threshold": 0.4}}}}, "mark_threshold"),
        (
            {"layers": {"obstacles": SONAR | {"sources": [{"topic": "s", "observation_persistence": 1.0}]}}},
            "observation_persistence",
        ),
        ({"local_layers": ["obstacles", "obstacles"]}, "each once"),
    ],
)
def test_invalid_layers_are_refused_with_location_and_valid_values(costmap: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as error:
        NavigatorNode(costmap=costmap)
    assert "costmap" in str(error.value)


def test_disabled_layers_subscribe_to_nothing() -> None:
    off = DEPTH | {"enabled": False}
    node = NavigatorNode(costmap={
        "layers": {"obstacles": LASER, "depth": off}, "local_layers": ["obstacles", "depth", "keepout"],
        "global_layers": ["static", "depth", "obstacles"],
    })  # fmt: skip
    with BusHarness((node, "navigator")) as harness:
        topic = off["sources"][0]["topic"]
        assert f"/{topic}" not in {name for name, found in harness.bus.topics.items() if found.subscriptions}


def test_static_cost_is_unknown_if_no_layer_shows_the_map() -> None:
    costmaps = NavigationCostmaps(CostmapConfig(global_layers=("obstacles",)), Footprint(CORNERS))
    costmaps.set_map(OccupancyGrid(np.zeros((20, 20), dtype=np.int8), GridGeometry(CELL, (20, 20))))
    assert costmaps.static_cost(SE2(0.5, 0.5, 0.0), 0.2) == UNKNOWN
