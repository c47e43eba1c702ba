"""SLAM in a live run: the bus gets what the algorithm makes of the same scans; a saved state goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.mapping.worlds import drive

from roboyard.bus import Bus
from roboyard.errors import InputError
from roboyard.geometry import SE2, SE3
from roboyard.mapping import Scan, load_map, read_g2o
from roboyard.mapping.nodes import SlamNode
from roboyard.mapping.nodes.map_messages import map_from_msg
from roboyard.mapping.rbpf import RbpfSlam
from roboyard.messages import msg, nanoseconds, srv
from roboyard.messages.convert import path_to_array, scan_to_msg, tf_message
from roboyard.scenarios.state.codec import decode, encode

START = 10**9


class Yard:
    """A bus with a SLAM node, into which a drive is played."""

    def __init__(self, bus: Bus, **parameters: Any) -> None:
        self.bus = bus
        self.node = bus.add(SlamNode(algorithm="rbpf", latency=0.02, map_latency=0.1, **parameters), "slam")
        self.heard: dict[str, list[Any]] = {}
        bus.tap(lambda topic, message, source, time_ns: self.heard.setdefault(topic.name, []).append(message))
        self.tf = bus.publisher("/tf", msg.TFMessage, "/test")
        self.static = bus.publisher("/tf_static", msg.TFMessage, "/test", latched=True)
        self.scans = bus.publisher("/scan", msg.LaserScan, "/test")

    def play(self, scans: list[Scan], *, places: bool = True) -> None:
        for scan in scans:
            time_ns = START + scan.time_ns
            self.bus.executor.run_until(time_ns)
            if places:
                self.static.publish(tf_message([(scan.T_base_laser.to_se3(), "base_link", "laser")], 0))
            if scan.odometry is not None:
                self.tf.publish(tf_message([(scan.odometry.to_se3(), "odom", "base_link")], time_ns))
            self.scans.publish(message_of(scan, time_ns))

    def ask(self, service: str, kind: Any, **request: Any) -> Any:
        future = self.bus.service_client(service, kind, "/test").call(kind.Request(**request))
        self.bus.executor.run_for(0.01)
        return future.result


def message_of(scan: Scan, time_ns: int, frame: str = "laser") -> Any:
    return scan_to_msg(
        scan.ranges, angle_min=scan.angle_min, angle_increment=scan.angle_increment, range_min=scan.range_min,
        range_max=scan.range_max, frame=frame, time_ns=time_ns,
    )  # fmt: skip


def through_32_bits(scan: Scan) -> Scan:
    """As it is after its way through a message."""
    low, step, near, far = (
        float(np.float32(v)) for v in (scan.angle_min, scan.angle_increment, scan.range_min, scan.range_max)
    )
    return Scan(START + scan.time_ns, scan.ranges, low, step, near, far, 0.0,
                SE2.from_se3(scan.T_base_laser.to_se3()),
                None if scan.odometry is None else SE2.from_se3(scan.odometry.to_se3()), "scan")  # fmt: skip


@pytest.mark.slow
def test_the_node_says_what_the_algorithm_says() -> None:
    scans, _ = drive(30)
    alone = RbpfSlam()
    for scan in scans:
        alone.process(through_32_bits(scan))
    with Bus() as bus:
        yard = Yard(bus, map_period=2.0)
        yard.play(scans)
        bus.executor.run_for(3.0)
        last = yard.heard["/path"][-1]
        assert np.allclose(path_to_array(last), alone.trajectory().poses, atol=1e-9)
        assert [nanoseconds(item.header.stamp) for item in last.poses] == [START + s.time_ns for s in scans]
        grid = map_from_msg(yard.heard["/map"][-1])
        assert np.array_equal(grid.cells, alone.occupancy(0.05).cells)
        assert scans[-1].odometry is not None
        found = SE2.from_se3(bus.transforms.lookup("map", "odom")) @ scans[-1].odometry
        assert found.almost_equal(alone.trajectory().pose(-1), 1e-9)
        markers = yard.heard["/graph"][-1].markers
        assert len(markers[0].points) == 30
        assert len(markers[1].points) == 2 * 29
        assert markers[2].action == msg.Marker.DELETE
        assert len(yard.heard["/map"]) == len(yard.heard["/map_metadata"]) == len(yard.heard["/path"]) >= 3


def test_services_give_and_save(tmp_path: Path) -> None:
    scans, _ = drive(12)
    save, serialize = srv.slam_toolbox.SaveMap, srv.slam_toolbox.SerializePoseGraph
    with Bus() as bus:
        yard = Yard(bus, map_period=0.5)
        with pytest.raises(InputError, match="there is no map yet"):
            yard.ask("/dynamic_map", srv.GetMap)
        nothing = yard.ask("/slam/save_map", save, name=msg.String(data=str(tmp_path / "m")))
        assert nothing.result == save.Response.RESULT_NO_MAP_RECEIEVD
        yard.play(scans)
        bus.executor.run_for(1.0)
        grid = map_from_msg(yard.ask("/dynamic_map", srv.GetMap).map)
        assert yard.ask("/slam/save_map", save, name=msg.String(data=str(tmp_path / "m"))).result == 0
        assert load_map(tmp_path / "m.yaml").frame.shape == grid.frame.shape
        assert yard.ask("/slam/serialize_map", serialize, filename=str(tmp_path / "g")).result == 0
        assert len(read_g2o(tmp_path / "g.g2o").poses) == 12
        assert not (tmp_path / "g.npz").exists()  # a particle filter has no place to go on with
        assert yard.ask("/slam/serialize_map", serialize, filename="").result == 255
        assert yard.ask("/slam/save_map", save, name=msg.String(data=str(tmp_path / "no" / "m"))).result == 255


def test_a_saved_state_goes_on_bit_by_bit() -> None:
    scans, _ = drive(30)
    with Bus() as bus:
        yard = Yard(bus, map_period=2.0)
        yard.play(scans[:14])
        bus.executor.run_for(0.15)
        state = decode(*encode(yard.node.save()))
        transforms = bus.transforms.save()
        now = bus.now_ns
        yard.play(scans[14:])
        bus.executor.run_for(3.0)
        whole = yard.heard["/path"][-1]
    with Bus(start_ns=now) as bus:
        yard = Yard(bus, map_period=2.0)
        yard.node.load(state)
        bus.transforms.load(transforms)
        yard.play(scans[14:])
        bus.executor.run_for(3.0)
        assert yard.heard["/path"][-1] == whole


def test_scans_wait_for_odometry_and_go_on_without() -> None:
    scans, _ = drive(10, odometry=False)
    with Bus() as bus:
        yard = Yard(bus, map_period=1.0)
        yard.play(scans)
        bus.executor.run_for(2.0)
        assert len(yard.heard["/path"][-1].poses) == 10  # after the patience, without odometry
        assert bus.transforms.can_lookup("map", "odom")


def test_a_laser_nobody_places_is_said(tmp_path: Path) -> None:
    scans, _ = drive(3)
    with Bus() as bus:
        yard = Yard(bus, map_period=1.0)
        yard.play(scans, places=False)
        bus.executor.run_for(2.0)
        assert yard.node.health is not None
        assert "nobody says where laser sits" in yard.node.health.text
        assert "/map" not in yard.heard


def test_two_lasers_of_one_moment() -> None:
    scans, _ = drive(6)
    with Bus() as bus:
        yard = Yard(bus, map_period=1.0, scan_topics=("scan", "rear"))
        rear = bus.publisher("/rear", msg.LaserScan, "/test")
        yard.static.publish(tf_message([(SE3.from_xyz_rpy((-0.2, 0, 0), (0, 0, 3.0)), "base_link", "rear_laser")], 0))
        for scan in scans:
            yard.play([scan])
            rear.publish(message_of(scan, START + scan.time_ns, "rear_laser"))
        bus.executor.run_for(2.0)
        times = [nanoseconds(item.header.stamp) for item in yard.heard["/path"][-1].poses]
        assert len(times) == 12
        assert (np.diff(times) > 0).all()
