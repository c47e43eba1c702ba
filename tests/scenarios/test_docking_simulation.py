"""The rover docks in simulation: the error of its true pose at the dock, and its way back."""

from __future__ import annotations

import math

import pytest
from tests.harness.bus import BusHarness, Goal

import roboyard as ry
from roboyard.geometry import SE2, wrap_angle
from roboyard.messages import action


def dock_and_leave(dock: SE2, *, localized_by: str, backward: bool, seed: int) -> tuple[SE2, SE2, Goal, Goal]:
    """The true pose at the dock and after leaving it, in the dock; and both goals."""
    with ry.Run("arena", seed=seed) as run:
        rover = run.add_robot("rover", pose=(0.0, 0.0, 0.0))
        rover.start_nodes(
            "arbiter", "drive", "odometry", "joint_states", "robot_state", "ground_truth_map", "navigator"
        )
        if localized_by == "amcl":
            rover.add_node("roboyard.localization.nodes:AmclNode", "amcl", parameters={"set_initial_pose": True})
        else:
            rover.start_nodes(localized_by)
        rover.add_node(
            "docking",
            "docking",
            parameters={
                "docks": {"charger": [dock.x, dock.y, dock.theta]},
                "docking": {"tolerance": 0.02, "backward": backward},
            },
        )  # fmt: skip
        harness = BusHarness(bus=run.bus)
        harness.run_for(2.0)
        fields = {
            "use_dock_id": True,
            "dock_id": "charger",
            "navigate_to_staging_pose": True,
            "max_staging_time": 60.0,
        }
        goal = harness.send_goal("/dock_robot", action.DockRobot, timeout=90.0, **fields)
        harness.run_for(0.5)
        docked_pose = dock.inverse() @ SE2.from_se3(rover.truth.pose)
        leave = harness.send_goal("/undock_robot", action.UndockRobot, timeout=40.0, max_undocking_time=30.0)
        harness.run_for(0.5)
        return docked_pose, dock.inverse() @ SE2.from_se3(rover.truth.pose), goal, leave


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dock", "backward", "localized_by", "within", "max_yaw_error"),
    [
        (SE2(2.0, 1.0, 0.6), False, "ground_truth_localization", 0.025, 0.06),
        (SE2(-1.2, 1.4, 2.2), True, "ground_truth_localization", 0.025, 0.06),
        # what localisation is off, the dock is missed by: nobody sees it
        (SE2(2.0, -1.0, -0.9), False, "amcl", 0.10, 0.12),
    ],
    ids=["forward", "backward", "amcl"],
)
def test_rover_docks_and_returns_to_the_staging_pose(dock, backward, localized_by, within, max_yaw_error) -> None:
    docked_pose, final_pose, goal, leave = dock_and_leave(dock, localized_by=localized_by, backward=backward, seed=3)
    assert goal.succeeded, goal.error_message
    assert math.hypot(docked_pose.x, docked_pose.y) < within
    assert abs(wrap_angle(docked_pose.theta)) < max_yaw_error
    assert leave.succeeded, leave.error_message
    out = -final_pose.x if not backward else final_pose.x
    assert 0.4 < out < 1.0, "back to the staging pose, the way it came"
    assert abs(final_pose.y) < 0.1
