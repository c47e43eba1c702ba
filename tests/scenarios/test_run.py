"""Runs that a Python program assembles."""

import math
from pathlib import Path

import numpy as np
import pytest

import roboyard as ry
from roboyard.bus import NodeError
from roboyard.errors import ConfigError, InputError, RunError, UnknownNameError
from roboyard.geometry import SE2
from roboyard.record import open_recording
from roboyard.scenarios import Run


class FollowConfig(ry.Config):
    """Configuration of `Follow`."""

    speed: float = ry.parameter(0.3, unit="m/s", low=0.0, high=2.0, runtime=True)


class Follow(ry.Node[FollowConfig]):
    """Goes round in a circle.   out: cmd_vel"""

    def setup(self) -> None:
        self.commands = self.publisher("cmd_vel", ry.msg.Twist)
        self.timer(0.05, self.tick)

    def tick(self) -> None:
        message = ry.msg.Twist()
        message.linear.x = self.config.speed
        self.commands.publish(message)


class Broken(ry.Node):
    def setup(self) -> None:
        self.timer(0.1, self.tick)

    def tick(self) -> None:
        if self.now > 0.35:
            raise ValueError("no more")


@pytest.fixture
def arena():  # type: ignore[no-untyped-def]
    with Run("empty", record=False) as run:
        yield run


def test_robot_drives_and_is_measured(arena: Run) -> None:
    rover = arena.add_robot("rover", pose=(1.0, 2.0, math.pi / 2))
    assert rover.namespace == ""
    arena.run_for(0.2)
    rover.drive(0.5)
    assert arena.run_until(lambda: rover.truth.pose.y > 3.0, timeout=10)
    assert rover.truth.pose.x == pytest.approx(1.0, abs=0.05)
    assert arena.evaluation.metrics_by_robot()["rover"]["path_length"] == pytest.approx(1.0, abs=0.1)
    assert not arena.run_until(lambda: False, timeout=0.1)


def test_robots_have_their_own_names_and_frames(arena: Run) -> None:
    first = arena.add_robot("rover")
    second = arena.add_robot("rover", "second", pose=SE2(2.0, 0.0, 0.0))
    second.add_node(Follow(speed=0.5), "follow")
    arena.run_for(2.0)
    assert (first.namespace, second.namespace, second.frame_prefix) == ("", "/second", "second/")
    assert {"/scan", "/second/scan", "/truth/second/odom", "/second/odom"} <= set(arena.bus.topics)
    assert second.truth.pose.x > 2.3
    assert abs(first.truth.pose.x) < 0.05
    pose = arena.bus.transforms.lookup("second/odom", "second/base_link")
    assert pose.x == pytest.approx(second.truth.pose.x - 2.0, abs=0.05)
    with pytest.raises(InputError, match="already a robot"):
        arena.add_robot("rover", "second")
    second.remove()
    arena.run_for(0.2)
    assert "second" not in arena.robots
    assert "/second/drive" not in arena.bus.nodes
    with pytest.raises(InputError):
        second.remove()


def test_nodes_are_brought_up_by_name(arena: Run) -> None:
    rover = arena.add_robot("rover", nodes=())
    assert not rover.nodes
    rover.start_nodes("joint_states", "odometry").start_nodes("odometry")
    assert list(rover.nodes) == ["joint_states", "odometry"]
    with pytest.raises(UnknownNameError, match=r"robot rover: no node 'odometrie'; did you mean 'odometry'"):
        rover.start_nodes("odometrie")
    with pytest.raises(UnknownNameError, match="no node"):
        arena.add_robot("rover", "other", nodes=["wings"])
    assert "other" not in arena.simulation.models


def test_messages_of_the_script_are_delivered(arena: Run) -> None:
    rover = arena.add_robot("rover")
    rover.publish("cmd_vel", ry.msg.Twist(linear=ry.msg.Vector3(x=0.5)))
    arena.run_for(0.3)
    assert rover.truth.linear_velocity[0] > 0.1


def test_failed_node_is_named_and_the_recording_complete(tmp_path: Path) -> None:
    run = Run("empty", out=tmp_path / "run")
    run.add_robot("rover")
    run.bus.add(Broken(), "broken")
    with pytest.raises(NodeError, match=r"node /broken, timer 10 Hz.*at 0\.4.*no more"):
        run.run_for(2.0)
    run.close()
    with open_recording(tmp_path / "run") as recording:
        assert recording.is_complete
        assert recording.end_ns == pytest.approx(0.4e9, abs=1e8)
    with pytest.raises(RunError, match="has ended"):
        run.run_for(1.0)


def test_report_is_written_once_into_an_empty_folder(tmp_path: Path) -> None:
    with Run("arena", seed=7) as run:
        rover = run.add_robot("rover")
        rover.drive(0.4, 0.3)
        run.run_for(1.5)
        path = run.report(tmp_path / "first")
        assert np.isfinite(rover.truth.pose.x)  # still to be read after the end
    names = sorted(file.name for file in path.parent.iterdir())
    assert names == ["metrics.json", "recording.mcap", "report.html", "top_down_map.npz"]
    with Run("empty", record=False) as run, pytest.raises(InputError, match="no folder"):
        run.report()
    with pytest.raises(InputError, match="not empty"):
        Run("empty", out=tmp_path / "first")


def test_parameters_take_units_and_are_checked(arena: Run) -> None:
    rover = arena.add_robot("rover")
    use = f"{__file__}:Follow"
    node = rover.add_node(use, "follow", parameters={"speed": "40 cm/s"})
    assert node.parameters()["speed"] == 0.4
    with pytest.raises(ConfigError, match="no parameter 'sped'.*there are: speed"):
        rover.add_node(use, "follow2", parameters={"sped": 1})
    with pytest.raises(ConfigError, match="expected a speed"):
        rover.add_node(use, "follow2", parameters={"speed": "40 cm"})
    with pytest.raises(ConfigError, match="7 m/s is above 2 m/s"):
        rover.add_node(use, "follow2", parameters={"speed": 7.0})
    with pytest.raises(ConfigError, match="is no node"):
        rover.add_node("roboyard.geometry:SE2", "pose")
    with pytest.raises(UnknownNameError, match="no node 'arbitre'; did you mean 'arbiter'"):
        rover.add_node("arbitre", "x")
