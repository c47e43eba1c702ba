"""The navigator's costmaps by configuration: clouds, sonars, speed zones; each changes what the robot does."""

import math

import numpy as np
import pytest
from tests.navigation.test_navigator_node import Client, Rover, _pose, _run
from tests.navigation.yards import CELL, OUTLINE

from roboyard.bus import Bus
from roboyard.config import load
from roboyard.errors import ConfigError
from roboyard.geometry import SE2
from roboyard.grids import GridFrame, OccupancyGrid, cast_rays
from roboyard.messages import action, msg
from roboyard.messages.convert import cloud_to_msg, grid_to_array, grid_to_msg
from roboyard.messages.convert.poses import header
from roboyard.navigation import Footprint, Observation
from roboyard.navigation.driving import CostmapSettings, Surroundings
from roboyard.navigation.nodes import NavigatorNode

LASER = {"use": "obstacles", "sources": [{"topic": "scan"}]}
DEPTH = {"use": "voxels", "sources": [{"topic": "depth/points", "kind": "cloud"}], "points": {"min_height": 0.05}}
SONAR = {"use": "ranges", "sources": [{"topic": "sonar"}], "clear_footprint": False}
LOW = (slice(30, 50), slice(50, 60))
"""Cells of a bar that the laser looks over: x from 2.5 to 3 m, y from 1.5 to 2.5 m."""


class Equipped(Rover):
    """The rover with a depth camera and a sonar that see a low bar as well; and masks.   out: depth/points, sonar"""

    fields = (*Rover.fields, "camera_too")

    def setup(self) -> None:
        super().setup()
        self.camera_too = True
        self.bar = np.zeros_like(self.world)
        self.bar[LOW] = True
        self.cloud_out = self.publisher("depth/points", msg.PointCloud2)
        self.sonar_out = self.publisher("sonar", msg.Range)
        self.masks = {
            name: self.publisher(name, msg.OccupancyGrid, latched=True) for name in ("speed_mask", "keepout_mask")
        }
        self.timer(rate=5.0, callback=self.feel, start=True)

    def feel(self) -> None:
        x, y, theta = self.pose
        turns = np.linspace(-0.9, 0.9, 61)
        rays = np.column_stack([np.full(61, x / CELL), np.full(61, y / CELL), turns + theta])
        ranges = cast_rays(self.world | self.bar, rays, 4.0 / CELL) * CELL + 1e-3
        if self.camera_too:
            seen = ranges < 3.9
            points = np.column_stack([ranges * np.cos(turns), ranges * np.sin(turns), np.full(61, 0.1)])
            points[~seen] = np.nan  # as depth cameras say that they saw nothing
            self.cloud_out.publish(cloud_to_msg(points, "base_link", self.now_ns))
        nearest = float(ranges[np.abs(turns) < 0.3].min())
        self.sonar_out.publish(
            msg.Range(header=header("base_link", self.now_ns), field_of_view=0.6, min_range=0.05, max_range=3.0,
                      range=nearest if nearest < 3.0 else math.inf)
        )  # fmt: skip

    def show(self, name: str, cells: np.ndarray) -> None:
        self.masks[name].publish(grid_to_msg(cells.astype(np.int8), CELL, SE2.identity(), "map", self.now_ns))


def _yard(costmap: dict, more: dict | None = None, **parameters):
    bus = Bus(seed=1)
    rover, client = Equipped(), Client()
    settings = {"controller": {"use": "pursuit"}, "pace": {"forward": 0.6}, "costmap": costmap} | (more or {})
    node = NavigatorNode(outline=tuple(map(tuple, OUTLINE)), rate=10.0, settings=settings, **parameters)
    for part, name in ((rover, "rover"), (node, "navigator"), (client, "client")):
        bus.add(part, name)
    return bus, rover, node, client


def _costmap(*names: str, **layers) -> dict:
    return {"layers": layers, "global_layers": ["static", *names, "keepout"], "local_layers": [*names, "keepout"]}


def _over_the_bar(rover: Equipped) -> bool:
    border = Footprint(OUTLINE).border(CELL / 2)
    track = np.concatenate([SE2(x, y, theta) @ border for _, x, y, theta, _ in rover.track])
    cells = np.floor(track[:, ::-1] / CELL).astype(int)
    return bool(rover.bar[cells[:, 0], cells[:, 1]].any())


@pytest.mark.parametrize(
    ("names", "layers", "avoids"),
    [
        (["obstacles"], {"obstacles": LASER}, False),
        (["obstacles", "depth"], {"obstacles": LASER, "depth": DEPTH}, True),
        (["obstacles", "depth"], {"obstacles": LASER, "depth": DEPTH | {"use": "obstacles"}}, True),
        (["obstacles", "sonar"], {"obstacles": LASER, "sonar": SONAR}, True),
        (["obstacles", "depth"], {"obstacles": LASER, "depth": DEPTH | {"points": {"min_height": 0.2}}}, False),
    ],
)
def test_what_only_another_sensor_sees_is_in_the_costmaps_and_driven_round(names, layers, avoids: bool) -> None:
    bus, rover, _, client = _yard(_costmap(*names, **layers))
    local, world = [], []
    client.subscribe("local_costmap/costmap", msg.OccupancyGrid, local.append)
    client.subscribe("global_costmap/costmap", msg.OccupancyGrid, world.append)
    bus.executor.run_until(3_000_000_000)
    for seen in (local[-1], world[-1]):  # before it drives: the bar's near side, and nothing elsewhere in the room
        corner = np.array([seen.info.origin.position.x, seen.info.origin.position.y])
        points = corner + (np.argwhere(grid_to_array(seen) == 100)[:, ::-1] + 0.5) * CELL
        inner = points[(np.abs(points - (3.0, 2.0)) < (2.7, 1.7)).all(axis=1)]
        assert (len(inner) > 0) == avoids
        if avoids:
            assert (np.abs(inner[:, 0] - 2.525) < 0.15).all()
    goal = client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(4.5, 2.0))
    _run(bus, goal, 60.0)
    assert goal.succeeded
    assert _over_the_bar(rover) != avoids
    bus.close()


def test_it_is_told_who_saw_what_closes_the_way() -> None:
    bus, rover, _, client = _yard(
        _costmap("obstacles", "depth", obstacles=LASER, depth=DEPTH) | {"denoise": 1}, sensor_timeout=1.0
    )
    rover.bar[:, 60:66] = True
    goal = client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(5.0, 3.0))
    _run(bus, goal, 200.0)
    bus.executor.run_until(bus.now_ns + 1_000_000_000)
    goal = client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(5.0, 3.0))
    _run(bus, goal, 300.0)
    assert goal.done()
    assert not goal.succeeded
    assert "sensor '/depth/points'" in client.statuses[-1].text
    assert not _over_the_bar(rover)
    bus.close()


def test_a_silent_camera_stops_the_robot_unless_it_may_be_silent() -> None:
    for timeout, stands in ((None, True), (100.0, False)):
        source = {"topic": "depth/points", "kind": "cloud"} | ({} if timeout is None else {"timeout": timeout})
        layers = {"obstacles": LASER, "depth": DEPTH | {"sources": [source]}}
        bus, rover, node, client = _yard(_costmap("obstacles", "depth", **layers), hold_time=100.0)
        bus.executor.run_until(1_000_000_000)
        client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(4.5, 2.0))
        bus.executor.run_until(3_000_000_000)
        assert rover.v > 0.1
        rover.camera_too = False
        bus.executor.run_until(3_900_000_000)
        assert (rover.v == 0.0) == stands
        assert ("depth/points" in node.health.text) == stands
        bus.close()


def test_zones_slow_it_down_where_they_lie_and_nowhere_else() -> None:
    bus, rover, _, client = _yard({"speed_zones": {"base": 10.0, "multiplier": 0.5}})
    rover.bar[:] = False
    zone = np.zeros_like(rover.world, dtype=int)
    zone[:, 50:70] = 30  # 10 + 0.5 · 30 = 25 % of 0.6 m/s, from x = 2.5 to 3.5
    rover.show("speed_mask", zone)
    bus.executor.run_until(1_000_000_000)
    goal = client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(5.0, 3.0))
    _run(bus, goal, 60.0)
    assert goal.succeeded
    track = np.array(rover.track)
    inside = (track[:, 1] > 2.5 + 0.6 * 0.15) & (track[:, 1] < 3.5)  # a period and a step after it came in
    assert track[inside, 4].max() == pytest.approx(0.15)
    assert track[track[:, 1] < 2.4, 4].max() > 0.5
    assert track[track[:, 1] > 3.6, 4].max() > 0.5
    bus.close()


def test_a_speed_mask_that_would_stop_it_is_left_out_with_the_reason() -> None:
    bus, rover, _, client = _yard({"speed_zones": {"base": -30.0}})
    logs = []
    client.subscribe("/rosout", msg.Log, logs.append)
    zone = np.zeros_like(rover.world, dtype=int)
    zone[:, 50:70] = 20
    rover.show("speed_mask", zone)
    bus.executor.run_until(1_000_000_000)
    assert any("speed mask" in log.msg and "20" in log.msg for log in logs)
    bus.close()


def test_controllers_keep_out_too() -> None:
    """The local costmap knows where people forbid to go, wherever odometry's frame lies."""
    surroundings = Surroundings(CostmapSettings(), Footprint(OUTLINE))
    forbidden = np.zeros((80, 120), dtype=np.int8)
    forbidden[:, 60:64] = 100
    surroundings.take_keepout(OccupancyGrid(forbidden, GridFrame(CELL, forbidden.shape)))
    for T_map_odom in (SE2(), SE2(0.4, -0.3, 0.2)):
        T_odom_base = T_map_odom.inverse() @ SE2(2.5, 2.0, 0.0)
        surroundings.move(T_odom_base, T_map_odom)
        costs = surroundings.near_costs(T_map_odom)
        points = costs.frame.points(np.argwhere(costs.cells == 254))
        inside = (points[:, 1] > 0.1) & (points[:, 1] < 3.9)
        assert inside.sum() > 100
        assert (np.abs(points[inside, 0] - 3.1) < 0.1 + CELL).all()


@pytest.mark.parametrize("frees", [True, False])
def test_nothing_stands_under_the_robot_itself(frees: bool) -> None:
    layer = {"use": "obstacles", "sources": [{"topic": "scan"}], "clear_footprint": frees}
    settings = load(CostmapSettings, {"layers": {"obstacles": layer}}, where="test")
    surroundings = Surroundings(settings, Footprint(OUTLINE * 1.3), OUTLINE)
    under, beside = [0.0, 0.0, 0.2], [0.0, 0.22, 0.2]  # the second within the outline that is planned with
    seen = Observation(np.array([-1.0, 0.0, 0.2]), np.array([under, beside]), np.ones(2, bool), "laser")
    surroundings.see({"obstacles": [seen]}, SE2())
    surroundings.move(SE2(), SE2())
    cells = surroundings.near.costmap()
    values = [int(cells.cells[tuple(cells.frame.cells(point[:2]))]) for point in (under, beside)]
    assert (values[0] == 254) != frees
    assert values[1] == 254


def test_no_sensor_has_the_last_word_on_what_another_one_sees() -> None:
    """A camera sees a post that the laser's beams pass over; it comes five times as seldom."""
    layer = {"use": "obstacles", "sources": [{"topic": "scan"}, {"topic": "depth/points", "kind": "cloud"}],
             "points": {"min_height": 0.05}}  # fmt: skip
    bus, _, node, _ = _yard(_costmap("obstacles", obstacles=layer))
    found = []
    for tenth in range(10, 40):
        bus.executor.run_until(tenth * 100_000_000 + 60_000_000)
        cells = node._surroundings.near.costmap()
        points = cells.frame.points(np.argwhere(cells.cells == 254))
        found.append(int((np.abs(points - (2.525, 2.0)) < (0.06, 0.4)).all(axis=1).sum()))
    assert min(found) > 10
    bus.close()


def test_a_saved_bus_goes_on_with_the_same_bits_whatever_it_senses() -> None:
    def begin():
        bus, rover, _, client = _yard(
            _costmap("obstacles", "depth", "sonar", obstacles=LASER, sonar=SONAR,
                     depth=DEPTH | {"sources": [{"topic": "depth/points", "kind": "cloud", "persistence": 0.7}]})
        )  # fmt: skip
        zone = np.zeros_like(rover.world, dtype=int)
        zone[:, 30:45] = 40
        return bus, rover, client, zone

    bus, rover, client, zone = begin()
    rover.show("speed_mask", zone)
    bus.executor.run_until(1_000_000_000)
    client.send("navigate_to_pose", action.NavigateToPose, pose=_pose(4.5, 2.0))
    bus.executor.run_until(3_000_000_000)
    saved = bus.save()
    bus.executor.run_until(7_000_000_000)
    other, again, _, _ = begin()
    other.executor.run_until(3_000_000_000)
    other.load(saved)
    other.executor.run_until(7_000_000_000)
    assert again.track == rover.track
    assert rover.pose[0] > 1.5
    bus.close()
    other.close()


@pytest.mark.parametrize(
    ("costmap", "words"),
    [
        ({"local_layers": ["obstacels"]}, "did you mean 'obstacles'"),
        ({"layers": {"static": LASER}}, "another name"),
        ({"layers": {"obstacles": LASER, "depth": DEPTH}}, "in no costmap"),
        ({"layers": {"obstacles": {"use": "obstacles", "sources": []}}}, "nothing tells"),
        ({"layers": {"obstacles": {"use": "lasers", "sources": [{"topic": "scan"}]}}}, "obstacles, voxels, ranges"),
        ({"layers": {"obstacles": LASER | {"sources": [{"topic": "a", "kind": "image"}]}}}, "scan, cloud"),
        ({"layers": {"obstacles": LASER | {"points": {"min_height": 3.0}}}}, "ascending"),
        ({"layers": {"obstacles": DEPTH | {"voxels": {"levels": 40}}}}, "levels"),
        ({"layers": {"obstacles": SONAR | {"echoes": {"mark_threshold": 0.4}}}}, "mark_threshold"),
        ({"layers": {"obstacles": SONAR | {"sources": [{"topic": "s", "persistence": 1.0}]}}}, "persistence"),
        ({"local_layers": ["obstacles", "obstacles"]}, "each once"),
    ],
)
def test_layers_that_cannot_be_are_refused_with_place_and_remedy(costmap: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as error:
        NavigatorNode(settings={"costmap": costmap})
    assert "costmap" in str(error.value)


def test_layers_that_are_switched_off_are_as_if_they_were_not_there() -> None:
    off = DEPTH | {"enabled": False}
    node = NavigatorNode(settings={"costmap": {
        "layers": {"obstacles": LASER, "depth": off}, "local_layers": ["obstacles", "depth", "keepout"],
        "global_layers": ["static", "depth", "obstacles"],
    }})  # fmt: skip
    bus = Bus()
    bus.add(node, "navigator")
    topic = off["sources"][0]["topic"]
    assert f"/{topic}" not in {name for name, found in bus.topics.items() if found.subscriptions}
    bus.close()
