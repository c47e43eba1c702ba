"""The octree map in a live run: what octomap_server's users know by name, and the same every time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roboyard.bus import Bus
from roboyard.errors import ConfigError, InputError, RoboyardError
from roboyard.geometry import SE3
from roboyard.grids import OCCUPIED
from roboyard.mapping.nodes import OctreeNode
from roboyard.mapping.nodes.map_messages import map_from_msg
from roboyard.mapping.nodes.octree_messages import octree_from_msg
from roboyard.mapping.octree import OctreeConfig, OctreeMap, SensorModel, read_octree, write_octree
from roboyard.mapping.octree.placing import place
from roboyard.messages import msg, srv
from roboyard.messages.convert import cloud_points, cloud_to_msg, pack_rgb, tf_message
from roboyard.scenarios.state.codec import decode, encode

START = 10**9
OPTICAL = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])


def wall(x: float, width: int = 40, height: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """What a camera at the height of 0.8 m sees of a wall at x and a floor, in its optical frame; and colours."""
    u, v = np.meshgrid(np.linspace(-0.5, 0.5, width), np.linspace(-0.6, 0.6, height))
    rays = np.column_stack([u.ravel(), v.ravel(), np.ones(u.size)])
    with np.errstate(divide="ignore"):
        depth = np.minimum(np.where(rays[:, 1] > 0, 0.8 / rays[:, 1], np.inf), x)
    points = rays * depth[:, None]
    points[::7] = np.nan
    return points, np.tile(np.array([[90, 120, 30]], np.uint8), (len(points), 1))


class Yard:
    """A bus with an octree node, into which clouds are played."""

    def __init__(self, bus: Bus, name: str = "octree", namespace: str = "", **parameters: Any) -> None:
        self.bus = bus
        self.heard: dict[str, list[Any]] = {}
        bus.tap(lambda topic, message, source, time_ns: self.heard.setdefault(topic.name, []).append(message))
        self.node = bus.add(
            OctreeNode(**{"cloud_topic": "points", "resolution": 0.1, **parameters}), name, namespace=namespace
        )
        self.tf = bus.publisher("/tf", msg.TFMessage, "/test")
        self.clouds = bus.publisher(f"{namespace}/points", msg.PointCloud2, "/test")

    def play(self, count: int, *, every: float = 0.5, first: int = 0, tf: bool = True, x: float = 2.05) -> None:
        for k in range(first, first + count):
            time_ns = START + round(k * every * 1e9)
            self.bus.executor.run_until(time_ns)
            T_map_camera = SE3.from_rotation_matrix(OPTICAL, np.array([0.02 * k, 0.0, 0.8]))
            if tf:
                T_map_base = SE3.from_rotation_matrix(np.eye(3), np.array([0.02 * k, 0.0, 0.0]))
                camera = T_map_base.inverse() @ T_map_camera
                self.tf.publish(
                    tf_message([(T_map_base, "map", "base_link"), (camera, "base_link", "camera")], time_ns)
                )
            points, colors = wall(x)
            self.clouds.publish(cloud_to_msg(points, "camera", time_ns, fields={"rgb": pack_rgb(colors)}))

    def ask(self, service: str, kind: Any, wait: float = 1.0, **request: Any) -> Any:
        future = self.bus.service_client(service, kind, "/test").call(kind.Request(**request))
        self.bus.executor.run_for(wait)
        return future.result


def test_the_node_says_what_the_map_says() -> None:
    alone = OctreeMap(OctreeConfig(resolution=0.1))
    with Bus() as bus:
        yard = Yard(bus, publish_period=0.0, occupancy_min_z=0.2, occupancy_max_z=1.5)
        centers: list[Any] = []
        bus.subscribe("/octomap_point_cloud_centers", msg.PointCloud2, "/test", centers.append)
        yard.play(4)
        bus.executor.run_for(1.0)
        for k in range(4):
            points, colors = wall(2.05)
            # through 32 bits, as messages have them
            points = points[np.isfinite(points[:, 0])].astype(np.float32).astype(float)
            T = SE3.from_rotation_matrix(OPTICAL, np.array([0.02 * k, 0.0, 0.8]))
            base = SE3.from_rotation_matrix(np.eye(3), np.array([0.02 * k, 0.0, 0.0]))
            T = base @ (base.inverse() @ T)
            placed, _ = place((points[:, 0], points[:, 1], points[:, 2]), T, -1e6, 1e6)
            assert np.allclose(placed, T @ points, atol=1e-12)
            alone.insert(placed, T.translation, colors[: len(points)])
        full, binary = yard.heard["/octomap_full"], yard.heard["/octomap_binary"]
        assert len(full) == len(binary) == len(yard.heard["/projected_map"]) == 4
        assert np.asarray(full[-1].data).tobytes() == alone.full()
        assert np.asarray(binary[-1].data).tobytes() == alone.binary()
        assert (full[-1].id, full[-1].binary, full[-1].resolution) == ("ColorOcTree", False, 0.1)
        assert (binary[-1].id, binary[-1].binary) == ("OcTree", True)
        assert full[-1].header.frame_id == "map"
        assert np.array_equal(octree_from_msg(full[-1]).codes, alone.leaves().codes)
        grid = map_from_msg(yard.heard["/projected_map"][-1])
        wall_cells = grid.frame.points(np.argwhere(grid.cells == OCCUPIED))
        assert len(wall_cells) > 10
        assert (np.abs(wall_cells[:, 0] - 2.05) < 0.15).all()  # the wall, and not the floor
        middles = cloud_points(centers[-1])
        assert (middles[:, 2] >= 0.2).all()
        assert alone.occupied(middles).all()


def test_clouds_come_in_at_most_so_often_and_each_after_its_latency() -> None:
    with Bus() as bus:
        yard = Yard(bus, publish_period=0.0, latency=0.3)
        yard.play(31, every=0.1)
        bus.executor.run_for(1.0)
        assert bus.offload.pending == 0
        (job,) = (job for job in bus.offload.jobs.values() if job.node == "/octree")
        assert job.count == 7  # of 31, in 3 s
        stamps = [m.header.stamp.sec + m.header.stamp.nanosec * 1e-9 for m in yard.heard["/octomap_full"]]
        assert np.allclose(stamps, 1.3 + 0.5 * np.arange(7))


def test_maps_are_published_no_oftener_than_asked_and_middles_only_for_listeners() -> None:
    with Bus() as bus:
        yard = Yard(bus, publish_period=2.0)
        yard.play(9)
        assert len(yard.heard["/octomap_full"]) == 2
        assert "/octomap_point_cloud_centers" not in yard.heard


def test_a_cloud_whose_place_nobody_knows_is_left_out() -> None:
    with Bus() as bus:
        yard = Yard(bus, publish_period=0.0)
        yard.play(2, tf=False)
        bus.executor.run_for(1.0)
        assert "/octomap_full" not in yard.heard
        assert yard.node.health is not None
        assert "left out" in yard.node.health.text
        yard.play(1, first=6)
        bus.executor.run_for(1.0)
        assert len(yard.heard["/octomap_full"]) == 1
        assert yard.node.health.level == "ok"


def test_a_cloud_without_points_that_can_be_read_is_left_out() -> None:
    with Bus() as bus:
        yard = Yard(bus, publish_period=0.0)
        yard.play(1)
        broken = cloud_to_msg(np.zeros((2, 3)), "camera", START + 600_000_000)
        broken.fields[0].name = "w"
        bus.executor.run_until(START + 600_000_000)
        yard.tf.publish(tf_message([(SE3.identity(), "map", "camera")], START + 600_000_000))
        yard.clouds.publish(broken)
        bus.executor.run_for(1.0)
        assert yard.node.health is not None
        assert "no x, y, z" in yard.node.health.text


def test_services_give_clear_and_reset_also_while_the_worker_is_busy() -> None:
    with Bus() as bus:
        yard = Yard(bus)
        assert len(yard.ask("/octomap_full", srv.octomap_msgs.GetOctomap).map.data) == 0
        yard.play(3, first=4)
        before = octree_from_msg(yard.ask("/octomap_binary", srv.octomap_msgs.GetOctomap).map)
        assert before.occupied.any()
        yard.play(1, first=12)  # and its work goes on
        corner, other = msg.Point(x=1.5, y=-3.0, z=-1.0), msg.Point(x=3.0, y=3.0, z=3.0)
        yard.ask("/octree/clear_bbx", srv.octomap_msgs.BoundingBoxQuery, min=corner, max=other)
        cleared = octree_from_msg(yard.ask("/octomap_full", srv.octomap_msgs.GetOctomap).map)
        assert cleared.occupied.any()
        assert (cleared.centers[cleared.occupied][:, 0] < 1.5).all()
        with pytest.raises(InputError, match="not finite"):
            yard.ask("/octree/clear_bbx", srv.octomap_msgs.BoundingBoxQuery, min=msg.Point(x=np.nan), max=other)
        yard.ask("/octree/reset", srv.std_srvs.Empty)
        assert len(yard.ask("/octomap_full", srv.octomap_msgs.GetOctomap).map.data) == 0
        assert len(yard.heard["/octomap_full"][-1].data) == 0


def test_ground_is_left_out_if_asked() -> None:
    for filtered in (False, True):
        with Bus() as bus:
            yard = Yard(bus, publish_period=0.0, filter_ground_plane=filtered)
            yard.play(2)
            bus.executor.run_for(1.0)
            leaves = octree_from_msg(yard.heard["/octomap_full"][-1])
            occupied = leaves.centers[leaves.occupied]
            assert (occupied[:, 0] < 1.8).any() != filtered  # the floor before the wall
            assert (occupied[:, 2] > 0.3).any()


def test_it_begins_with_a_file_and_leaves_one(tmp_path: Path) -> None:
    octree = OctreeMap(OctreeConfig(resolution=0.1))
    octree.insert(np.array([[1.05, 0.05, 0.05]]), np.zeros(3))
    write_octree(tmp_path / "before.bt", octree)
    with Bus() as bus:
        yard = Yard(bus, octomap_path=str(tmp_path / "before.bt"), save_as="after.ot", run_folder=tmp_path)
        bus.executor.run_for(0.5)
        assert len(yard.heard["/octomap_full"]) == 1
        yard.play(1, x=3.05)
        bus.executor.run_for(1.0)
        last = yard.ask("/octomap_full", srv.octomap_msgs.GetOctomap).map
    saved = read_octree(tmp_path / "after.ot")
    assert saved.kind == "ColorOcTree"
    assert np.array_equal(saved.leaves.values, octree_from_msg(last).values)
    with Bus() as bus, pytest.raises(RoboyardError, match="map's resolution"):
        Yard(bus, octomap_path=str(tmp_path / "before.bt"), resolution=0.2)
    for name in ("../map.bt", "map.pgm"):
        with Bus() as bus, pytest.raises(RoboyardError, match="save_as"):
            Yard(bus, save_as=name)
    with pytest.raises(ConfigError, match="hit"):
        OctreeNode(sensor_model={"hit": 0.1})


def test_names_and_frames_follow_the_namespace() -> None:
    with Bus() as bus:
        yard = Yard(bus, namespace="/rover", publish_period=0.0, sensor_model={"max_range": 1.0})
        yard.play(1)
        bus.executor.run_for(1.0)
        leaves = octree_from_msg(yard.heard["/rover/octomap_full"][-1])
        assert not leaves.occupied.any()
        assert yard.node.sensor_model == SensorModel(max_range=1.0)


def test_a_saved_state_goes_on_bit_by_bit() -> None:
    with Bus() as bus:
        yard = Yard(bus, publish_period=1.0)
        yard.play(4)
        bus.executor.run_for(0.4)
        saved = decode(*encode(yard.node.save()))
        transforms, now = bus.transforms.save(), bus.now_ns
        yard.play(4, first=4)
        bus.executor.run_for(1.0)
        whole = yard.heard["/octomap_full"]
    with Bus(start_ns=now) as bus:
        yard = Yard(bus, publish_period=1.0)
        yard.node.load(saved)
        bus.transforms.load(transforms)
        yard.play(4, first=4)
        bus.executor.run_for(1.0)
        rest = yard.heard["/octomap_full"]
    assert len(rest) >= 2
    for ours, theirs in zip(rest[::-1], whole[::-1], strict=False):
        assert np.array_equal(ours.data, theirs.data)
        assert ours.header == theirs.header


def test_a_cloud_from_the_future_is_left_out_and_later_ones_are_used() -> None:
    with Bus() as bus:
        yard = Yard(bus, publish_period=0.0)
        yard.play(1)
        points, colors = wall(2.05)
        cloud = cloud_to_msg(points, "camera", bus.now_ns + 3600 * 10**9, fields={"rgb": pack_rgb(colors)})
        yard.clouds.publish(cloud)
        bus.executor.run_for(0.1)
        assert yard.node.health is not None
        assert "future" in yard.node.health.text
        yard.play(4, first=1)
        bus.executor.run_for(1.0)
        assert len(yard.heard["/octomap_full"]) == 5
