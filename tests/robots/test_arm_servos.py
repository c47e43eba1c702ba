"""The arms' drives: sag at rest, and tracking errors at rated speed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.control.nodes.trajectory_messages import trajectory_point_to_msg
from roboyard.hardware import JointCommand
from roboyard.manipulation.time_parameterization import JointLimits, make_jerk_limited
from roboyard.messages import action, msg
from roboyard.simulation import Simulation

CYCLE = 0.01
YOUBOT = Path(ry.__file__).parent / "robots" / "youbot_arm"
POSES = {
    "scitos_arm": ("ahead", "folded"),
    "iisy": ("upright", "home"),
    "youbot_arm": ("view", "pick"),
}
TURNS = {
    "iisy": ([0, -1.57, 2.5, 0, 1.57, -3.5], [0, -1.57, -2.0, 0, 1.57, 3.5]),
    "iisy11": ([-3.0, -1.57, 1.57, 0, 1.57, 0], [3.0, -1.57, 1.57, 0, 1.57, 0]),
    "iisy15": ([-3.0, -1.57, 1.57, 0, 1.57, 0], [3.0, -1.57, 1.57, 0, 1.57, 0]),
}
"""Far enough that a joint gets to its speed."""
LOADED = """<?xml version="1.0"?>
<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="loaded">
  <xacro:include filename="youbot_arm/arm.xacro"/>
  <link name="world"/>
  <xacro:youbot_arm parent="world" x="0" z="0.032"/>
  <link name="load">
    <inertial><mass value="0.5"/><inertia ixx="2e-4" iyy="2e-4" izz="2e-4" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="load_joint" type="fixed"><parent link="gripper_tip"/><child link="load"/></joint>
</robot>"""


class Rig:
    """An arm alone, its joints where they are put, and its true joint positions."""

    def __init__(self, run: ry.Run, name: str, start: np.ndarray | None, described: str = "") -> None:
        self.run, self.group = run, load_joint_groups(described or name)
        self.chain = self.group.chain("arm")
        self.sim: Simulation = run.simulation
        self.hardware = self.sim.hardware(name)
        places = {place.name: place for place in self.sim.world.addresses(name).joints}
        self.where = [places[joint].qpos for joint in self.chain.joints]
        if start is not None:
            self.sim.world.data.qpos[self.where] = start
            self.sim.world.evaluate()

    @property
    def position(self) -> np.ndarray:
        return np.array(self.sim.world.data.qpos[self.where])

    def send(self, position: np.ndarray) -> None:
        self.hardware.write(JointCommand("position", self.chain.joints, position))
        self.sim.step(round(CYCLE / 0.002))


@pytest.fixture
def make_rig() -> Iterator[Callable[..., Rig]]:
    with ry.Run("empty", record=False) as run:

        def make(name: str, start: np.ndarray | None, nodes: tuple[str, ...] = ()) -> Rig:
            run.add_robot(name, nodes=nodes)
            return Rig(run, name, start)

        yield make


@pytest.mark.parametrize("name", POSES)
@pytest.mark.parametrize("which", [0, 1])
def test_resting_arm_does_not_sag(make_rig: Callable[..., Rig], name: str, which: int) -> None:
    pose = np.array(load_joint_groups(name).group("arm").pose(POSES[name][which]))
    rig = make_rig(name, pose)
    for _ in range(100):
        rig.send(pose)
        assert np.abs(rig.position - pose).max() < 1e-3


def check_tracking(rig: Rig, start: np.ndarray, goal: np.ndarray) -> None:
    """Goes from ``start``, where the arm is, to ``goal`` at rated speed."""
    limits = JointLimits.from_chain(rig.chain)
    trajectory = make_jerk_limited(rig.chain.joints, start, goal, replace(limits, jerk=20.0 * limits.acceleration))
    worst = max_speed = 0.0
    for k in range(int(trajectory.duration / CYCLE)):
        rig.send(trajectory.sample((k + 1) * CYCLE).position)
        sample = trajectory.sample((k + 1) * CYCLE)
        worst = max(worst, np.abs(rig.position - sample.position).max())
        max_speed = max(max_speed, (np.abs(sample.velocity) / limits.velocity).max())
    assert max_speed > 0.99
    assert worst < 0.01
    for _ in range(100):
        rig.send(goal)
    assert np.abs(rig.position - goal).max() < 1e-3


@pytest.mark.parametrize("name", [*POSES, "youbot", "scitos"])
@pytest.mark.parametrize("back", [False, True])
def test_arm_tracks_a_trajectory_at_rated_speed(make_rig: Callable[..., Rig], name: str, back: bool) -> None:
    poses = POSES.get(name) or POSES[f"{name}_arm"]
    start, goal = (
        np.array(load_joint_groups(name).group("arm").pose(pose)) for pose in (poses[::-1] if back else poses)
    )
    rig = make_rig(name, start)
    if name in ("youbot", "scitos"):  # its wheels come to rest
        for _ in range(50):
            rig.send(start)
    check_tracking(rig, start, goal)


@pytest.mark.parametrize("name", TURNS)
def test_fastest_joints_track_a_trajectory_at_rated_speed(make_rig: Callable[..., Rig], name: str) -> None:
    start, goal = (np.array(pose) for pose in TURNS[name])
    check_tracking(make_rig(name, start), start, goal)


@pytest.mark.parametrize("poses", [("view", "pick"), ("rest", "upright")])
def test_loaded_youbot_arm_tracks_a_trajectory(poses: tuple[str, str], tmp_path: Path) -> None:
    shutil.copytree(YOUBOT, tmp_path / "youbot_arm")
    (tmp_path / "loaded.urdf.xacro").write_text(LOADED)
    (tmp_path / "loaded.groups.yaml").write_text("extends: youbot_arm/groups.yaml")
    start, goal = (np.array(load_joint_groups("youbot_arm").group("arm").pose(pose)) for pose in poses)
    with ry.Run("empty", record=False) as run:
        run.add_robot(str(tmp_path / "loaded.urdf.xacro"), name="loaded", nodes="none")
        check_tracking(Rig(run, "loaded", start, str(tmp_path / "loaded.urdf.xacro")), start, goal)


@pytest.mark.parametrize(("name", "pose"), [("iisy", "stretched"), ("youbot_arm", "pick")])
def test_trajectory_node_tracks_a_trajectory(make_rig: Callable[..., Rig], name: str, pose: str) -> None:
    rig = make_rig(name, None, ("arm",))
    limits = JointLimits.from_chain(rig.chain)
    goal = np.array(rig.group.group("arm").pose(pose))
    trajectory = make_jerk_limited(
        rig.chain.joints, rig.position, goal, replace(limits, jerk=20.0 * limits.acceleration)
    )
    points = [
        trajectory_point_to_msg(round(p.time * 1e9), p.position, p.velocity, p.acceleration)
        for p in trajectory.to_points()
    ]
    harness = BusHarness(bus=rig.run.bus)
    sent = harness.send_goal(
        "/arm/follow_joint_trajectory",
        action.FollowJointTrajectory,
        timeout=trajectory.duration + 2.0,
        trajectory=msg.JointTrajectory(joint_names=list(rig.chain.joints), points=points),
    )
    assert sent.succeeded
    errors = [float(np.abs(item.error.positions).max()) for item in sent.feedback]
    assert len(errors) > 5
    assert max(errors) < 0.01
    rig.run.run_for(0.5)
    assert np.abs(rig.position - goal).max() < 1e-3
