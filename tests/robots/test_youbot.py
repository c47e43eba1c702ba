"""The youBot's base: odometry in any direction, and arms and trays on its mounts."""

from __future__ import annotations

import math

import pytest
from tests.harness.bus import BusHarness, twist

import roboyard as ry
from roboyard.bringup.robot_loader import load_robot
from roboyard.description import load_model
from roboyard.errors import DescriptionError


@pytest.mark.parametrize(
    "velocity",
    [(0.5, 0.0, 0.0), (0.0, 0.5, 0.0), (0.0, 0.0, 1.0), (0.3, -0.3, 0.5)],
    ids=["forward", "sideways", "turning", "all"],
)
def test_odometry_of_mecanum_wheels_is_the_truth(velocity: tuple[float, float, float]) -> None:
    with ry.Run("empty", record=False) as run:
        robot = run.add_robot("youbot")
        harness = BusHarness(bus=run.bus)
        odometry = harness.record("/odom", ry.msg.Odometry)
        x, y, turn = velocity
        for _ in range(60):
            harness.publish("/cmd_vel", twist(x, turn, y), source="/operator")
            run.run_for(0.05)
        pose, truth = odometry.last.pose.pose, robot.truth.pose
        yaw = 2.0 * math.atan2(pose.orientation.z, pose.orientation.w)
        assert math.hypot(pose.position.x - truth.x, pose.position.y - truth.y) < 0.01
        assert abs(math.remainder(yaw - truth.yaw, math.tau)) < 0.01
        # a second is lost in setting out
        assert math.hypot(truth.x, truth.y) > 1.2 * math.hypot(x, y) or turn
        assert not turn or truth.yaw > 0.9


@pytest.mark.parametrize(
    ("front", "back", "arms", "bays"),
    [("arm", "tray", ["arm_link_0"], True), ("tray", "arm", ["arm_link_0"], True),
     ("arm", "arm", ["arm_link_0", "back_arm_link_0"], False), ("tray", "none", [], False)],
)  # fmt: skip
def test_youbot_mounts_arms_and_trays(front: str, back: str, arms: list[str], bays: bool) -> None:
    model = load_model(load_robot("youbot").description, arguments={"front": front, "back": back})
    links = [link.name for link in model.links]
    assert [name for name in links if name.endswith("arm_link_0")] == arms
    assert ("bay_2" in links) is bays


def test_unknown_mount_is_refused() -> None:
    with pytest.raises(DescriptionError, match="bike"):
        load_model(load_robot("youbot").description, arguments={"front": "bike"})
