"""Resources of a robot's nodes: created once, the same for a simulated and a real robot, and extended by packages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness
from tests.harness.hardware import FakeHardware

import roboyard as ry
from roboyard.bringup.joint_groups import RobotJoints
from roboyard.bringup.robot_loader import load_robot
from roboyard.bringup.robot_nodes import ROBOT_RESOURCES, RobotBringup, RobotResources
from roboyard.errors import ConfigError
from roboyard.scenarios.hardware_run import ServoRobot, ServoRobotBringup


@pytest.fixture
def harness() -> Iterator[BusHarness]:
    """A bus without a simulation."""
    with BusHarness() as bus_harness:
        yield bus_harness


class BenchBringup(RobotBringup):
    """A robot whose joints are plain numbers."""

    def __init__(self, harness: BusHarness, name: str) -> None:
        package = load_robot(name, use_calibration=False)
        super().__init__(harness.bus, name, "", package, RobotJoints.from_package(package, package.load_model()))
        self.hardware = FakeHardware(tuple(joint.name for joint in self.model.joints), lambda: harness.now_ns)

    def host_resources(self) -> Mapping[str, Any]:
        """The joints."""
        return {"hardware": self.hardware}


def test_nodes_get_what_the_robot_file_states(harness: BusHarness) -> None:
    robot = BenchBringup(harness, "rover")
    resources = robot.resources()
    assert resources["drive_geometry"] is robot.package.config.drive
    assert resources["drive_limits"] is robot.package.config.limits
    np.testing.assert_array_equal(resources["footprint"], robot.package.config.footprint)
    robot.start_nodes("drive", "odometry")
    drive, odometry = (robot.nodes[name].parameters() for name in ("drive", "odometry"))
    assert drive["slip_factor"] == odometry["slip_factor"] == robot.package.config.drive.slip_factor
    assert drive["angular_speed"] == robot.package.config.limits.angular_speed


def test_resources_are_created_once(harness: BusHarness) -> None:
    robot = BenchBringup(harness, "akrobat")
    first, second = robot.resources(), robot.resources()
    assert first["legged_robot"] is second["legged_robot"]
    assert first["joint_claims"] is second["joint_claims"]


def test_missing_resource_is_refused_with_those_that_exist(harness: BusHarness) -> None:
    robot = BenchBringup(harness, "rover")
    with pytest.raises(ConfigError, match="resource 'legged_robot'") as caught:
        robot.add_node("gait", "gait")
    assert "drive_geometry" in str(caught.value)
    assert "legged_robot" not in str(caught.value.valid)


def test_simulated_and_real_robot_offer_the_same_but_for_their_host() -> None:
    robot = ServoRobot.load("akrobat")
    with ry.Bus() as bus, ry.Run("empty", record=False) as run:
        real = ServoRobotBringup(bus, robot, None, None)  # type: ignore[arg-type]
        simulated = run.add_robot("akrobat", nodes="none")
        hosts = [{*one.host_resources()} for one in (real, simulated)]
        names = [{*one.resources()} - host for one, host in zip((real, simulated), hosts, strict=True)]
        assert (
            names[0]
            == names[1]
            >= {
                "description",
                "joint_claims",
                "acceleration_limits",
                "footprint",
                "drive_limits",
                "groups",
                "legged_robot",
            }
        )
        assert real.resources()["acceleration_limits"] == simulated.resources()["acceleration_limits"]


def test_packages_add_resources(harness: BusHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROBOT_RESOURCES._built_in, "payload", lambda robot: {"of": robot.name})
    robot = BenchBringup(harness, "rover")

    class Lifter(ry.Node):
        payload: dict[str, str] = ry.resource(dict)

    lifter = robot.add_node(Lifter(payload=robot.resources()["payload"]), "lifter")
    assert lifter.payload == {"of": "rover"}
    assert robot.resources()["payload"] is robot.resources()["payload"]


def test_factories_run_on_first_use_and_may_have_nothing() -> None:
    calls: list[str] = []

    def create() -> str:
        calls.append("made")
        return "made"

    resources = RobotResources({"there": 1}, {"late": create, "none": lambda: None})
    assert set(resources) == {"there", "late", "none"}
    assert not calls
    assert (resources["late"], resources["late"]) == ("made", "made")
    assert len(calls) == 1
    assert "none" not in resources
    assert set(resources) == {"there", "late"}
