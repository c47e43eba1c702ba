"""SLAM in a live run: the bus gets what the algorithm makes of the same scans; a saved state goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness
from tests.mapping.room_drive import drive

from roboyard.errors import InputError
from roboyard.geometry import SE2, SE3
from roboyard.mapping import LaserScan, load_map, read_g2o
from roboyard.mapping.nodes import SlamNode
from roboyard.mapping.rbpf.rbpf import RbpfSlam
from roboyard.messages import msg, srv, to_nanoseconds
from roboyard.messages.convert import ScanGeometry, path_to_array, scan_to_msg
from roboyard.messages.convert.grids import occupancy_grid_from_msg
from roboyard.scenarios.snapshot_file import decode_snapshot, encode_snapshot

START = 10**9


class SlamHarness(BusHarness):
    """A bus with a SLAM node, into which the scans of a drive are played."""

    def __init__(self, *, start_ns: int = 0, **parameters: Any) -> None:
        super().__init__(start_ns=start_ns)
        self.node = self.add(SlamNode(algorithm="rbpf", latency=0.02, map_latency=0.1, **parameters), "slam")

    def play(self, scans: list[LaserScan], *, laser_pose: bool = True) -> None:
        """Publish scans with odometry and, if wanted, the laser's pose, each at its time."""
        for scan in scans:
            time_ns = START + scan.time_ns
            self.bus.executor.run_until(time_ns)
            if laser_pose:
                self.publish_transforms((scan.T_base_laser, "base_link", "laser"), static=True, time_ns=0)
            if scan.odometry is not None:
                self.publish_transforms((scan.odometry, "odom", "base_link"), time_ns=time_ns)
            self.publish("/scan", scan_message(scan, time_ns))


def scan_message(scan: LaserScan, time_ns: int, frame: str = "laser") -> Any:
    geometry = ScanGeometry(scan.angle_min, scan.angle_increment, scan.range_min, scan.range_max)
    return scan_to_msg(scan.ranges, geometry, frame=frame, time_ns=time_ns)


def as_float32(scan: LaserScan) -> LaserScan:
    """The scan as a message carries it: in 32-bit floats."""
    angle_min, angle_increment, range_min, range_max = (
        float(np.float32(v)) for v in (scan.angle_min, scan.angle_increment, scan.range_min, scan.range_max)
    )
    return LaserScan(START + scan.time_ns, scan.ranges, angle_min, angle_increment, range_min, range_max, 0.0,
                SE2.from_se3(scan.T_base_laser.to_se3()),
                None if scan.odometry is None else SE2.from_se3(scan.odometry.to_se3()), "scan")  # fmt: skip


@pytest.mark.slow
def test_slam_node_publishes_the_algorithms_results() -> None:
    scans = drive(30)[0][:15]
    alone = RbpfSlam()
    for scan in scans:
        alone.process(as_float32(scan))
    with SlamHarness(map_period=1.0) as harness:
        harness.play(scans)
        harness.run_for(3.0)
        last = harness.last("/path")
        assert np.allclose(path_to_array(last), alone.trajectory().poses, atol=1e-9)
        assert [to_nanoseconds(item.header.stamp) for item in last.poses] == [START + s.time_ns for s in scans]
        grid = occupancy_grid_from_msg(harness.last("/map"))
        assert np.array_equal(grid.cells, alone.occupancy(0.05).cells)
        assert scans[-1].odometry is not None
        found = SE2.from_se3(harness.bus.transforms.lookup("map", "odom")) @ scans[-1].odometry
        assert found.almost_equal(alone.trajectory().pose(-1), 1e-9)
        markers = harness.last("/graph").markers
        assert len(markers[0].points) == 15
        assert len(markers[1].points) == 2 * 14
        assert markers[2].action == msg.Marker.DELETE
        counts = {topic: len(harness.published(topic)) for topic in ("/map", "/map_metadata", "/path")}
        assert len(set(counts.values())) == 1
        assert counts["/path"] >= 3


def test_slam_services_return_and_save_maps(tmp_path: Path) -> None:
    scans, _ = drive(12)
    save, serialize = srv.slam_toolbox.SaveMap, srv.slam_toolbox.SerializePoseGraph
    with SlamHarness(map_period=0.5) as harness:
        with pytest.raises(InputError, match="there is no map yet"):
            harness.call("/dynamic_map", srv.GetMap)
        no_map_response = harness.call("/slam/save_map", save, name=msg.String(data=str(tmp_path / "m")))
        assert no_map_response.result == save.Response.RESULT_NO_MAP_RECEIEVD
        harness.play(scans)
        harness.run_for(1.0)
        grid = occupancy_grid_from_msg(harness.call("/dynamic_map", srv.GetMap).map)
        assert harness.call("/slam/save_map", save, name=msg.String(data=str(tmp_path / "m"))).result == 0
        assert load_map(tmp_path / "m.yaml").geometry.shape == grid.geometry.shape
        assert harness.call("/slam/serialize_map", serialize, filename=str(tmp_path / "g")).result == 0
        assert len(read_g2o(tmp_path / "g.g2o").poses) == 12
        assert not (tmp_path / "g.npz").exists()  # a particle filter has no place to go on with
        assert harness.call("/slam/serialize_map", serialize, filename="").result == 255
        assert harness.call("/slam/save_map", save, name=msg.String(data=str(tmp_path / "no" / "m"))).result == 255


def test_saved_slam_node_continues_bit_for_bit() -> None:
    scans = drive(30)[0][:20]
    with SlamHarness(map_period=2.0) as harness:
        harness.play(scans[:9])
        harness.run_for(0.15)
        state = decode_snapshot(*encode_snapshot(harness.node.save_state()))
        transforms, now = harness.bus.transforms.save_state(), harness.now_ns
        harness.play(scans[9:])
        harness.run_for(3.0)
        uninterrupted = harness.last("/path")
    with SlamHarness(map_period=2.0, start_ns=now) as harness:
        harness.node.load_state(state)
        harness.bus.transforms.load_state(transforms)
        harness.play(scans[9:])
        harness.run_for(3.0)
        assert harness.last("/path") == uninterrupted


def test_scans_wait_for_odometry_up_to_a_timeout() -> None:
    scans, _ = drive(10, odometry=False)
    with SlamHarness(map_period=1.0) as harness:
        harness.play(scans)
        harness.run_for(2.0)
        assert len(harness.last("/path").poses) == 10  # after the patience, without odometry
        assert harness.bus.transforms.can_lookup("map", "odom")


def test_slam_node_continues_after_a_scan_from_the_future() -> None:
    scans, _ = drive(10)
    with SlamHarness(map_period=1.0) as harness:
        harness.play(scans[:1])
        harness.send("/scan", scan_message(scans[0], 10**13))
        assert "stamped in the future" in harness.node.health.text
        assert any("stamped in the future" in line for line in harness.log_lines)
        harness.play(scans[1:])
        harness.run_for(2.0)
        assert len(harness.last("/path").poses) == 10


def test_slam_node_saves_scans_that_wait_for_odometry() -> None:
    scans, _ = drive(10)
    last = START + scans[-1].time_ns
    with SlamHarness(map_period=1.0) as harness:
        harness.play(scans[:-1])
        harness.run_until((last - 1) * 1e-9)
        harness.send("/scan", scan_message(scans[-1], last))  # before its odometry
        harness.run_for(0.05)
        state = decode_snapshot(*encode_snapshot(harness.node.save_state()))
        transforms, now = harness.bus.transforms.save_state(), harness.now_ns
    with SlamHarness(map_period=1.0, start_ns=now) as harness:
        harness.node.load_state(state)
        harness.bus.transforms.load_state(transforms)
        harness.publish_transforms((scans[-1].odometry, "odom", "base_link"), time_ns=last)
        harness.run_for(2.0)
        assert to_nanoseconds(harness.last("/path").poses[-1].header.stamp) == last


def test_laser_without_transform_is_reported(tmp_path: Path) -> None:
    scans, _ = drive(3)
    with SlamHarness(map_period=1.0) as harness:
        harness.play(scans, laser_pose=False)
        harness.run_for(2.0)
        assert harness.node.health is not None
        assert "no transform from base_link to laser" in harness.node.health.text
        assert not harness.published("/map")


def test_simultaneous_scans_of_two_lasers_are_both_used() -> None:
    scans, _ = drive(6)
    with SlamHarness(map_period=1.0, scan_topics=("scan", "rear")) as harness:
        T_base_rear = SE3.from_xyz_rpy((-0.2, 0, 0), (0, 0, 3.0))
        harness.publish_transforms((T_base_rear, "base_link", "rear_laser"), static=True, time_ns=0)
        for scan in scans:
            harness.play([scan])
            harness.publish("/rear", scan_message(scan, START + scan.time_ns, "rear_laser"))
        harness.run_for(2.0)
        times = [to_nanoseconds(item.header.stamp) for item in harness.last("/path").poses]
        assert len(times) == 12
        assert (np.diff(times) > 0).all()
