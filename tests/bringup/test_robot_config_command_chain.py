"""The chain of velocity commands with smoother and collision monitor, on the rover in its corridor."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roboyard.bringup.robot_loader import load_robot
from roboyard.errors import ConfigError
from roboyard.scenarios import Run

GUARDED = ("joint_states", "robot_state", "arbiter", "velocity_smoother", "collision_monitor", "drive", "odometry")


def test_velocity_commands_pass_the_nodes_that_are_up() -> None:
    package = load_robot("rover")
    assert package.command_chain_remaps(("arbiter", "drive")) == {"arbiter": {"cmd_vel_in": "cmd_vel"}}
    assert package.command_chain_remaps(GUARDED) == {
        "arbiter": {"cmd_vel_in": "cmd_vel", "cmd_vel_out": "arbiter/cmd_vel"},
        "velocity_smoother": {"cmd_vel_in": "arbiter/cmd_vel", "cmd_vel_out": "velocity_smoother/cmd_vel"},
        "collision_monitor": {"cmd_vel_in": "velocity_smoother/cmd_vel"},
    }
    assert package.command_chain_remaps(("collision_monitor",)) == {"collision_monitor": {"cmd_vel_in": "cmd_vel"}}


def test_node_cannot_join_a_running_command_chain() -> None:
    with Run("empty", record=False) as run:
        rover = run.add_robot("rover", nodes="none")
        rover.start_nodes("arbiter", "drive")
        with pytest.raises(ConfigError, match="bring up together: arbiter, collision_monitor"):
            rover.start_nodes("collision_monitor")


def test_guarded_rover_touches_no_wall() -> None:
    touched: list[object] = []
    with Run("corridor", record=False) as run:
        rover = run.add_robot("rover", pose=(3.0, 0.3, 0.4), nodes=GUARDED)
        run.bus.add_message_observer(
            lambda topic, message, *_: touched.append(message) if topic.name.endswith("contacts") else None
        )
        run.run_for(0.5)

        def drive(v: float, w: float, seconds: float) -> float:
            before = rover.truth.pose
            rover.drive(v, w)
            run.run_for(seconds)
            return math.hypot(rover.truth.pose.x - before.x, rover.truth.pose.y - before.y)

        assert drive(2.0, 0.0, 3.0) > 0.5
        assert drive(2.0, 0.0, 0.5) < 0.03, "it stands before the wall, but for the noise of the lidar"
        assert "closer than 0.05 m" in rover.nodes["collision_monitor"].health.text
        assert drive(-0.5, 0.0, 2.0) > 0.3, "and backs out"
        for v, w in np.random.default_rng(5).uniform((-0.5, -2.0), (2.0, 2.0), (6, 2)):
            drive(v, w, 1.5)
    assert not [message for message in touched if message.states]
