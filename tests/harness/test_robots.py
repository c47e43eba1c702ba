"""Drawn worlds are what is drawn; the kinematic robot drives exactly as commanded and stops at walls."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness, check_snapshot_continues, twist
from tests.harness.robots import GridWorld, KinematicRobot

from roboyard.geometry import SE2
from roboyard.messages import msg
from roboyard.messages.convert import grid_to_array, pose_to_se2, scan_points

DRAWING = """
    ########
    #..#..B#
    #......#
    #A.....#
    ########
"""


def test_from_text_draws_the_last_line_at_the_bottom() -> None:
    world = GridWorld.from_text(DRAWING, 0.5)
    assert world.walls.shape == (5, 8)
    assert world.walls.sum() == 2 * 8 + 2 * 3 + 1
    assert world.walls[3, 3], "second line from above, fourth character"
    assert world.places == {"A": (0.75, 0.75), "B": (3.25, 1.75)}
    assert world.is_free(list(world.places.values()))
    assert not world.is_free([(1.75, 1.75)])
    assert not world.is_free([(-1.0, 1.0)]), "outside"


@pytest.mark.parametrize("drawing", ["", "##\n#", "#?\n##"], ids=["empty", "ragged", "strange character"])
def test_from_text_refuses_what_is_no_drawing(drawing: str) -> None:
    with pytest.raises(ValueError, match="lines of|characters"):
        GridWorld.from_text(drawing)


@given(st.floats(1.0, 5.0), st.floats(1.0, 3.0), st.floats(-math.pi, math.pi))
def test_ranges_in_a_room_are_distances_to_its_walls(x: float, y: float, theta: float) -> None:
    world = GridWorld.room(6.0, 4.0)
    angles = np.linspace(-3.0, 3.0, 41)
    c, s = np.cos(angles + theta), np.sin(angles + theta)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        to_x = np.where(c == 0.0, np.inf, (np.where(c > 0.0, 5.95, 0.05) - x) / c)
        to_y = np.where(s == 0.0, np.inf, (np.where(s > 0.0, 3.95, 0.05) - y) / s)
    np.testing.assert_allclose(world.ranges(SE2(x, y, theta), angles, 20.0), np.minimum(to_x, to_y), atol=1e-6)


def test_scan_points_lie_in_walls_in_any_frame() -> None:
    origin = SE2(-1.0, 2.0, 0.3)
    world = GridWorld.from_text(DRAWING, 0.5, origin=origin)
    pose = SE2(*world.places["A"], 1.0)
    points = pose @ scan_points(world.scan(pose, beams=90))[:, :2]
    assert len(points) == 90
    cells = world.frame.cells_of_points(points)
    assert world.walls[cells[:, 0], cells[:, 1]].all()


def test_occupancy_knows_every_wall() -> None:
    world = GridWorld.room(1.0, 1.0).fill((0.4, 0.6), (0.4, 0.6))
    np.testing.assert_array_equal(world.occupancy().cells == 100, world.walls)
    np.testing.assert_array_equal(grid_to_array(world.occupancy_msg()) == 100, world.walls)
    other = world.copy().fill((0.4, 0.6), (0.4, 0.6), solid=False)
    assert world.walls.sum() == other.walls.sum() + 16


@given(st.floats(-0.5, 0.5), st.floats(-1.0, 1.0))
def test_robot_follows_the_exact_arc(vx: float, wz: float) -> None:
    with BusHarness((KinematicRobot(), "robot")) as harness:
        robot = harness.bus.nodes["/robot"]
        harness.send("/cmd_vel", twist(vx, wz))
        harness.run_until(2.0)
        steps = len(robot.track)
        assert steps == 41
        assert robot.pose.almost_equal(SE2.exp([0.05 * steps * vx, 0.0, 0.05 * steps * wz]), 1e-6)


def test_robot_stops_at_a_wall_and_backs_out() -> None:
    world = GridWorld.room(3.0, 2.0)
    robot = KinematicRobot(world, SE2(2.0, 1.0, 0.0))
    with BusHarness((robot, "robot")) as harness:
        harness.send("/cmd_vel", twist(0.5))
        harness.spin_until(lambda: robot.collisions > 3)
        assert 2.95 - 0.2 - 0.05 <= robot.pose.x <= 2.95 - 0.2
        assert not world.collides(robot.outline, robot.pose)
        harness.send("/cmd_vel", twist(-0.5))
        harness.run_for(1.0)
        assert robot.pose.x < 2.4


def test_robot_publishes_truth_odometry_scan_and_transforms() -> None:
    robot = KinematicRobot(GridWorld.room(3.0, 2.0), SE2(1.0, 1.0, 0.5), T_map_odom=SE2(0.2, -0.1, 0.3))
    with BusHarness((robot, "robot")) as harness:
        truths = harness.record("/truth/odom", msg.Odometry)  # the truth is published to subscribers only
        harness.send("/cmd_vel", twist(0.1, 0.2))
        harness.run_until(0.5)
        assert len(truths) == len(harness.published("/odom")) == len(robot.track)
        truth = pose_to_se2(truths.last.pose.pose)
        odometry = pose_to_se2(harness.last("/odom").pose.pose)
        assert truth.almost_equal(robot.pose, 1e-9)
        assert (robot.T_map_odom @ odometry).almost_equal(robot.pose, 1e-9)
        assert SE2.from_se3(harness.bus.transforms.lookup("map", "base_link")).almost_equal(robot.pose, 1e-9)
        assert len(harness.published("/scan")) == 6
        assert len(harness.record("/map", msg.OccupancyGrid)) == 0
        robot.publish_scans = robot.publish_transforms = False
        harness.run_for(0.5)
        assert len(harness.published("/scan")) == 6
        assert harness.published("/tf").times[-1] == pytest.approx(0.5)


def test_snapshot_law_holds_for_the_robot() -> None:
    def make() -> BusHarness:
        harness = BusHarness((KinematicRobot(GridWorld.room(3.0, 2.0), SE2(1.0, 1.0, 0.0)), "robot"))
        return harness

    with make() as harness:
        harness.send("/cmd_vel", twist(0.4, 0.3))
        harness.run_until(0.77)
        with harness.snapshot_roundtrip(make) as again:
            again.run_until(4.0)
            harness.run_until(4.0)
            assert again.bus.nodes["/robot"].track == harness.bus.nodes["/robot"].track
            assert harness.bus.nodes["/robot"].collisions > 0
    check_snapshot_continues(make, [0.33], 1.0)
