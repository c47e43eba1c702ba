"""The rover docks in simulation: how near its true pose comes to the dock, and how it leaves again."""

from __future__ import annotations

import math
from typing import Any

import pytest

import roboyard as ry
from roboyard.geometry import SE2, wrap_angle
from roboyard.messages import action


class Asker(ry.Node):
    """Asks for docks."""

    def setup(self) -> None:
        self.dock = self.action_client("dock_robot", action.DockRobot)
        self.undock = self.action_client("undock_robot", action.UndockRobot)


def _docked(dock: SE2, *, localized_by: str, backward: bool, seed: int) -> tuple[SE2, SE2, Any, Any]:
    """The true pose at the dock and after leaving it, in the dock; and both goals."""
    with ry.Run("arena", seed=seed) as run:
        rover = run.add("rover", at=(0.0, 0.0, 0.0))
        rover.bring_up("arbiter", "drive", "odometry", "joint_states", "robot_state", "world_map", "navigator")
        if localized_by == "amcl":
            rover.add_node("roboyard.localization.nodes:AmclNode", "amcl", parameters={"set_initial_pose": True})
        else:
            rover.bring_up(localized_by)
        rover.add_node(
            "docking",
            "docking",
            parameters={
                "docks": [f"charger {dock.x} {dock.y} {dock.theta}"],
                "docking": {"tolerance": 0.02, "backward": backward},
            },
        )  # fmt: skip
        asker = rover.add_node(Asker(), "asker")
        run.run_for(2.0)
        goal = asker.dock.send(action.DockRobot.Goal(use_dock_id=True, dock_id="charger", navigate_to_staging_pose=True,
                                                     max_staging_time=60.0))  # fmt: skip
        run.until(goal.done, timeout=90.0)
        run.run_for(0.5)
        there = dock.inverse() @ SE2.from_se3(rover.truth.pose)
        leave = asker.undock.send(action.UndockRobot.Goal(max_undocking_time=30.0))
        run.until(leave.done, timeout=40.0)
        run.run_for(0.5)
        return there, dock.inverse() @ SE2.from_se3(rover.truth.pose), goal, leave


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dock", "backward", "localized_by", "within", "turned"),
    [
        (SE2(2.0, 1.0, 0.6), False, "truth_localization", 0.025, 0.06),
        (SE2(-1.2, 1.4, 2.2), True, "truth_localization", 0.025, 0.06),
        # what localisation is off, the dock is missed by: nobody sees it
        (SE2(2.0, -1.0, -0.9), False, "amcl", 0.10, 0.12),
    ],
)
def test_the_rover_docks_and_leaves_again(dock, backward, localized_by, within, turned) -> None:
    there, away, goal, leave = _docked(dock, localized_by=localized_by, backward=backward, seed=3)
    assert goal.succeeded, goal.reason
    assert math.hypot(there.x, there.y) < within
    assert abs(wrap_angle(there.theta)) < turned
    assert leave.succeeded, leave.reason
    out = -away.x if not backward else away.x
    assert 0.4 < out < 1.0, "back to the staging pose, the way it came"
    assert abs(away.y) < 0.1
