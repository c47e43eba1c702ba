"""The scout stands, drives with fitting odometry, and its two lasers together cover all directions."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from tests.harness.bus import BusHarness, twist

import roboyard as ry
from roboyard.description import load_model
from roboyard.mapping.nodes.recorded_frames import LaserMount
from roboyard.messages.convert import scan_angles

SCOUT = Path(str(resources.files("roboyard") / "robots" / "scout" / "scout.urdf.xacro"))


def test_scout_mass_and_sensors() -> None:
    scout = load_model(SCOUT)
    assert scout.warnings == ()
    assert scout.mass == pytest.approx(25.0 + 2 * 1.0 + 2 * 0.3 + 2 * 0.1)
    assert {sensor.topic for sensor in scout.sensors if sensor.topic.endswith("scan")} == {"front_scan", "rear_scan"}


def test_scout_stands_and_turns_with_odometry() -> None:
    with ry.Run("empty", record=False) as run:
        scout = run.add_robot("scout")
        run.run_for(1.0)
        assert abs(scout.truth.pose.z) < 2e-3
        assert np.abs(scout.truth.pose.rpy[:2]).max() < 2e-3
        harness = BusHarness(bus=run.bus)
        odometry = harness.record("/odom", ry.msg.Odometry)
        for k in range(60):
            w = 0.8 if k < 40 else 0.0
            harness.publish("/cmd_vel", twist(0.5, w), source="/operator")
            run.run_for(0.1)
        true, believed = scout.truth.pose, odometry.last.pose.pose
        turn = true.yaw - 2 * np.arctan2(believed.orientation.z, believed.orientation.w)
        assert abs(np.angle(np.exp(1j * turn))) < 0.06
        assert np.hypot(true.x - believed.position.x, true.y - believed.position.y) < 0.06


def test_lasers_cover_all_directions_without_the_robot() -> None:
    with ry.Run("arena", record=False) as run:
        run.add_robot("scout")
        harness = BusHarness(bus=run.bus)
        scans = {name: harness.record(f"/{name}_scan", ry.msg.LaserScan) for name in ("front", "rear")}
        run.run_for(0.5)
        directions = []
        for name, traffic in scans.items():
            scan = traffic.last
            mount = LaserMount.from_transform(run.bus.transforms.lookup("base_link", f"{name}_laser")).T_base_laser
            assert np.nanmin(scan.ranges) > 0.5  # nothing of its own
            directions.append(scan_angles(scan) + mount.theta)
    all_around = np.sort(np.mod(np.concatenate(directions), 2 * np.pi))
    assert np.diff(all_around, append=all_around[0] + 2 * np.pi).max() < np.radians(1.0)
