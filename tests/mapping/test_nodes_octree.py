"""The octree map in a live run: what octomap_server's users know by name, and the same every time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness

from roboyard.errors import ConfigError, InputError, RoboyardError
from roboyard.geometry import SE3
from roboyard.grids import OCCUPIED
from roboyard.mapping.nodes import OctreeNode
from roboyard.mapping.octree import OccupancySensorModel, OctreeMap, OctreeMapConfig, read_octree, write_octree
from roboyard.mapping.octree.cloud_filters import transform_and_crop
from roboyard.mapping.octree.octomap_files import octree_from_msg
from roboyard.messages import msg, srv, to_nanoseconds
from roboyard.messages.convert import cloud_points, cloud_to_msg, pack_rgb
from roboyard.messages.convert.grids import occupancy_grid_from_msg
from roboyard.scenarios.snapshot_file import decode_snapshot, encode_snapshot

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


class OctreeHarness(BusHarness):
    """A bus with an octree node, into which clouds are played."""

    def __init__(self, *, start_ns: int = 0, namespace: str = "", **parameters: Any) -> None:
        super().__init__(start_ns=start_ns)
        node = OctreeNode(**{"cloud_topic": "points", "resolution": 0.1, **parameters})
        self.node = self.add(node, "octree", namespace=namespace)
        self._namespace = namespace

    def play(self, count: int, *, period: float = 0.5, first: int = 0, tf: bool = True, x: float = 2.05) -> None:
        """Publish clouds of a wall at ``x``, with the camera's pose if ``tf``, each at its time."""
        for k in range(first, first + count):
            time_ns = START + round(k * period * 1e9)
            self.bus.executor.run_until(time_ns)
            T_map_camera = SE3.from_rotation_matrix(OPTICAL, np.array([0.02 * k, 0.0, 0.8]))
            if tf:
                T_map_base = SE3.from_rotation_matrix(np.eye(3), np.array([0.02 * k, 0.0, 0.0]))
                T_base_camera = T_map_base.inverse() @ T_map_camera
                self.publish_transforms((T_map_base, "map", "base_link"), (T_base_camera, "base_link", "camera"))
            points, colors = wall(x)
            cloud = cloud_to_msg(points, "camera", time_ns, fields={"rgb": pack_rgb(colors)})
            self.publish(f"{self._namespace}/points", cloud)

    def call(self, service: str, type_: Any, request: Any = None, **options: Any) -> Any:
        """As of a bus; the clock then goes on to one second after the call."""
        end = self.now + 1.0
        response = super().call(service, type_, request, **options)
        self.run_until(end)
        return response


def test_octree_node_publishes_the_octree() -> None:
    alone = OctreeMap(OctreeMapConfig(resolution=0.1))
    with OctreeHarness(publish_period=0.0, occupancy_min_z=0.2, occupancy_max_z=1.5) as harness:
        centers = harness.record("/octomap_point_cloud_centers", msg.PointCloud2)
        harness.play(4)
        harness.run_for(1.0)
        for k in range(4):
            points, colors = wall(2.05)
            # through 32 bits, as messages have them
            points = points[np.isfinite(points[:, 0])].astype(np.float32).astype(float)
            T = SE3.from_rotation_matrix(OPTICAL, np.array([0.02 * k, 0.0, 0.8]))
            base = SE3.from_rotation_matrix(np.eye(3), np.array([0.02 * k, 0.0, 0.0]))
            T = base @ (base.inverse() @ T)
            placed, _ = transform_and_crop((points[:, 0], points[:, 1], points[:, 2]), T, -1e6, 1e6)
            assert np.allclose(placed, T @ points, atol=1e-12)
            alone.insert(placed, T.translation, colors[: len(points)])
        full, binary = harness.published("/octomap_full").messages, harness.published("/octomap_binary").messages
        assert len(full) == len(binary) == len(harness.published("/projected_map").messages) == 4
        assert np.asarray(full[-1].data).tobytes() == alone.encode_full()
        assert np.asarray(binary[-1].data).tobytes() == alone.encode_binary()
        assert (full[-1].id, full[-1].binary, full[-1].resolution) == ("ColorOcTree", False, 0.1)
        assert (binary[-1].id, binary[-1].binary) == ("OcTree", True)
        assert full[-1].header.frame_id == "map"
        assert np.array_equal(octree_from_msg(full[-1]).codes, alone.leaves().codes)
        grid = occupancy_grid_from_msg(harness.last("/projected_map"))
        wall_cells = grid.geometry.cell_centers(np.argwhere(grid.cells == OCCUPIED))
        assert len(wall_cells) > 10
        assert (np.abs(wall_cells[:, 0] - 2.05) < 0.15).all()  # the wall, and not the floor
        voxel_centers = cloud_points(centers.last)
        assert (voxel_centers[:, 2] >= 0.2).all()
        assert alone.occupied(voxel_centers).all()


def test_clouds_are_inserted_at_a_limited_rate_after_latency() -> None:
    with OctreeHarness(publish_period=0.0, latency=0.3) as harness:
        harness.play(31, period=0.1)
        harness.run_for(1.0)
        assert harness.bus.offload.pending == 0
        (job,) = (job for job in harness.bus.offload.statistics.values() if job.node == "/octree")
        assert job.count == 7  # of 31, in 3 s
        maps = harness.published("/octomap_full").messages
        stamps = [to_nanoseconds(message.header.stamp) * 1e-9 for message in maps]
        assert np.allclose(stamps, 1.3 + 0.5 * np.arange(7))


def test_octree_is_published_at_its_period_to_subscribers() -> None:
    with OctreeHarness(publish_period=2.0) as harness:
        harness.play(9)
        assert len(harness.published("/octomap_full").messages) == 2
        assert not harness.published("/octomap_point_cloud_centers")


def test_cloud_without_transform_is_dropped() -> None:
    with OctreeHarness(publish_period=0.0) as harness:
        harness.play(2, tf=False)
        harness.run_for(1.0)
        assert not harness.published("/octomap_full")
        assert harness.node.health is not None
        assert "left out" in harness.node.health.text
        harness.play(1, first=6)
        harness.run_for(1.0)
        assert len(harness.published("/octomap_full").messages) == 1
        assert harness.node.health.level == "ok"


def test_cloud_without_coordinates_is_dropped() -> None:
    with OctreeHarness(publish_period=0.0) as harness:
        harness.play(1)
        broken = cloud_to_msg(np.zeros((2, 3)), "camera", START + 600_000_000)
        broken.fields[0].name = "w"
        harness.run_until(1.6)
        harness.publish_transforms((SE3.identity(), "map", "camera"))
        harness.publish("/points", broken)
        harness.run_for(1.0)
        assert harness.node.health is not None
        assert "no x, y, z" in harness.node.health.text


def test_octree_services_work_while_the_worker_is_busy() -> None:
    with OctreeHarness() as harness:
        assert len(harness.call("/octomap_full", srv.octomap_msgs.GetOctomap).map.data) == 0
        harness.play(3, first=4)
        before = octree_from_msg(harness.call("/octomap_binary", srv.octomap_msgs.GetOctomap).map)
        assert before.occupied.any()
        harness.play(1, first=12)  # and its work goes on
        corner, other = msg.Point(x=1.5, y=-3.0, z=-1.0), msg.Point(x=3.0, y=3.0, z=3.0)
        harness.call("/octree/clear_bbx", srv.octomap_msgs.BoundingBoxQuery, min=corner, max=other)
        cleared = octree_from_msg(harness.call("/octomap_full", srv.octomap_msgs.GetOctomap).map)
        assert cleared.occupied.any()
        assert (cleared.centers[cleared.occupied][:, 0] < 1.5).all()
        with pytest.raises(InputError, match="not finite"):
            harness.call("/octree/clear_bbx", srv.octomap_msgs.BoundingBoxQuery, min=msg.Point(x=np.nan), max=other)
        harness.call("/octree/reset", srv.std_srvs.Empty)
        assert len(harness.call("/octomap_full", srv.octomap_msgs.GetOctomap).map.data) == 0
        assert len(harness.last("/octomap_full").data) == 0


def test_ground_filter_removes_the_floor() -> None:
    for filtered in (False, True):
        with OctreeHarness(publish_period=0.0, filter_ground_plane=filtered) as harness:
            harness.play(2)
            harness.run_for(1.0)
            leaves = octree_from_msg(harness.last("/octomap_full"))
            occupied = leaves.centers[leaves.occupied]
            assert (occupied[:, 0] < 1.8).any() != filtered  # the floor before the wall
            assert (occupied[:, 2] > 0.3).any()


def test_octree_node_loads_and_saves_files(tmp_path: Path) -> None:
    octree = OctreeMap(OctreeMapConfig(resolution=0.1))
    octree.insert(np.array([[1.05, 0.05, 0.05]]), np.zeros(3))
    write_octree(tmp_path / "before.bt", octree)
    with OctreeHarness(octomap_path=str(tmp_path / "before.bt"), save_path="after.ot", run_folder=tmp_path) as harness:
        harness.run_for(0.5)
        assert len(harness.published("/octomap_full").messages) == 1
        harness.play(1, x=3.05)
        harness.run_for(1.0)
        last = harness.call("/octomap_full", srv.octomap_msgs.GetOctomap).map
    saved = read_octree(tmp_path / "after.ot")
    assert saved.tree_type == "ColorOcTree"
    assert np.array_equal(saved.leaves.values, octree_from_msg(last).values)
    with BusHarness() as harness, pytest.raises(RoboyardError, match="map's resolution"):
        harness.add(OctreeNode(octomap_path=str(tmp_path / "before.bt"), resolution=0.2), "octree")
    for name in ("../map.bt", "map.pgm"):
        with BusHarness() as harness, pytest.raises(RoboyardError, match="save_path"):
            harness.add(OctreeNode(resolution=0.1, save_path=name), "octree")
    with pytest.raises(ConfigError, match="hit"):
        OctreeNode(sensor_model={"hit": 0.1})


def test_octree_topics_follow_the_namespace() -> None:
    with OctreeHarness(namespace="/rover", publish_period=0.0, sensor_model={"max_range": 1.0}) as harness:
        harness.play(1)
        harness.run_for(1.0)
        leaves = octree_from_msg(harness.last("/rover/octomap_full"))
        assert not leaves.occupied.any()
        assert harness.node.config.octree.sensor_model == OccupancySensorModel(max_range=1.0)


def test_saved_octree_node_continues_bit_for_bit() -> None:
    with OctreeHarness(publish_period=1.0) as harness:
        harness.play(4)
        harness.run_for(0.4)
        saved = decode_snapshot(*encode_snapshot(harness.node.save_state()))
        transforms, now = harness.bus.transforms.save_state(), harness.now_ns
        harness.play(4, first=4)
        harness.run_for(1.0)
        uninterrupted = harness.published("/octomap_full").messages
    with OctreeHarness(publish_period=1.0, start_ns=now) as harness:
        harness.node.load_state(saved)
        harness.bus.transforms.load_state(transforms)
        harness.play(4, first=4)
        harness.run_for(1.0)
        continued = harness.published("/octomap_full").messages
    assert len(continued) >= 2
    for message, expected in zip(continued[::-1], uninterrupted[::-1], strict=False):
        assert np.array_equal(message.data, expected.data)
        assert message.header == expected.header


def test_octree_node_drops_a_cloud_from_the_future() -> None:
    with OctreeHarness(publish_period=0.0) as harness:
        harness.play(1)
        points, colors = wall(2.05)
        cloud = cloud_to_msg(points, "camera", harness.now_ns + 3600 * 10**9, fields={"rgb": pack_rgb(colors)})
        harness.publish("/points", cloud)
        harness.run_for(0.1)
        assert harness.node.health is not None
        assert "future" in harness.node.health.text
        harness.play(4, first=1)
        harness.run_for(1.0)
        assert len(harness.published("/octomap_full").messages) == 5
