"""The assistant robot: its modules alone and joined, its drive, its sensors, its arm with brakes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.harness.bus import BusHarness, Goal, twist

import roboyard as ry
from roboyard.description import load_model
from roboyard.simulation.faults import PowerFault

FOLDER = Path(str(resources.files("roboyard") / "robots"))
ARM = [f"arm_joint_{k}" for k in range(1, 6)]
POSE = np.array([0.0, 1.0, 2.3, -0.67, 0.0])


def load_description(name: str, **arguments: str) -> Any:
    return load_model(FOLDER / name / f"{name}.urdf.xacro", arguments=arguments)


@pytest.fixture
def harness(run: ry.Run) -> BusHarness:
    """The bus of the run."""
    return BusHarness(bus=run.bus)


@pytest.fixture
def run() -> Iterator[ry.Run]:
    """A run in the empty world."""
    with ry.Run("empty", record=False) as run:
        yield run


def test_modules_load_alone_and_joined() -> None:
    base, arm, complete = load_description("scitos_base"), load_description("scitos_arm"), load_description("scitos")
    for one in (base, arm, complete):
        assert one.warnings == ()
    assert complete.mass == pytest.approx(base.mass + arm.mass)
    assert {link.name for link in complete.links} == {link.name for link in (*base.links, *arm.links)} - {"world"}
    assert {s.name for s in complete.sensors} == {s.name for s in (*base.sensors, *arm.sensors)}


def test_joint_limits_are_those_of_the_tables() -> None:
    limits = {j.name: j.axes[0].limits for j in load_description("scitos_arm").joints if j.name in ARM}
    reach = [
        (-3.141593, 3.141593),
        (-2.02458, 2.02458),
        (-2.740166, 2.740166),
        (-2.373644, 2.28638),
        (-3.143321, 3.143321),
    ]
    assert [(limits[name].lower, limits[name].upper) for name in ARM] == reach
    assert {limits[name].velocity for name in ARM} == {0.33}
    variant = {
        j.name: j.axes[0].limits.velocity for j in load_description("scitos_arm", arm_speeds="urdf").joints if j.axes
    }
    assert [variant[name] for name in ARM] == [0.437, 0.438, 0.436, 0.486, 0.872]


def test_scitos_turns_about_its_drive_axle(run: ry.Run, harness: BusHarness) -> None:
    robot = run.add_robot("scitos")
    run.run_for(1.0)
    assert abs(robot.truth.pose.z) < 1e-3
    tail = []
    for _ in range(60):
        harness.publish("/cmd_vel", twist(0.0, 0.6), source="/operator")
        run.run_for(0.1)
        tail.append(robot.truth.pose @ (-0.54, 0.0, 0.1))
    pose = robot.truth.pose
    assert math.hypot(pose.x, pose.y) < 0.02
    assert pose.yaw == pytest.approx(0.6 * 6.0, abs=0.2) or pose.yaw == pytest.approx(3.6 - 2 * math.pi, abs=0.2)
    assert np.ptp(np.array(tail)[:, 1]) > 0.6


def test_lasers_see_nothing_of_the_robot() -> None:
    with ry.Run("arena", record=False) as run:
        run.add_robot("scitos")
        harness = BusHarness(bus=run.bus)
        scans = {topic: harness.record(topic, ry.msg.LaserScan) for topic in ("/scan", "/scan_rear")}
        run.run_for(0.5)
    assert [len(scan.last.ranges) for scan in scans.values()] == [180, 683]
    for scan in scans.values():
        assert np.nanmin(scan.last.ranges) > 0.4


def test_sonars_measure_nothing_of_the_robot(run: ry.Run, harness: BusHarness) -> None:
    run.add_robot("scitos_base")
    sonars = [harness.record(f"/sonar_{k}", ry.msg.Range) for k in range(24)]
    run.run_for(1.0)
    ranges = [sonar.last.range for sonar in sonars]
    assert sum(math.isfinite(value) for value in ranges) <= 2, "but for phantoms there is nothing"


def test_arm_holds_its_pose_and_moves_smoothly(run: ry.Run, harness: BusHarness) -> None:
    run.add_robot("scitos_arm")
    states = harness.record("/joint_states", ry.msg.JointState)
    run.run_for(1.0)
    index = [list(states.last.name).index(joint) for joint in ARM]
    assert np.abs(np.array(states.last.position)[index] - POSE).max() < 0.01
    states.clear()
    harness.publish("/schunk/move_position", ry.msg.IDAndFloat(id=3, value=0.7))
    run.run_for(1.6 / 0.33 + 0.33 / 0.42 + 0.5)
    speeds = np.array([m.velocity for m in states.messages])[:, index[2]]
    assert states.last.position[index[2]] == pytest.approx(0.7, abs=0.01)
    assert np.abs(speeds).max() < 0.33 * 1.1
    smooth = np.convolve(speeds, np.full(5, 0.2), "valid")
    assert np.abs(np.diff(smooth)).max() / 0.02 < 0.42 * 2.0


def test_joint_velocity_ends_without_repetition(run: ry.Run, harness: BusHarness) -> None:
    run.add_robot("scitos_arm")
    states = harness.record("/joint_states", ry.msg.JointState)
    run.run_for(0.2)
    for _ in range(20):
        harness.publish("/schunk/move_velocity", ry.msg.IDAndFloat(id=1, value=-0.2))
        run.run_for(0.1)
    index = list(states.last.name).index("arm_joint_1")
    assert states.last.velocity[index] == pytest.approx(-0.2, abs=0.02)
    run.run_for(1.5)
    resting = states.last.position[index]
    run.run_for(0.5)
    assert states.last.position[index] == pytest.approx(resting, abs=0.015)
    for bad in (
        ry.msg.IDAndFloat(id=0, value=1.0),
        ry.msg.IDAndFloat(id=6, value=1.0),
        ry.msg.IDAndFloat(id=1, value=math.nan),
    ):
        harness.publish("/schunk/move_velocity", bad)
    run.run_for(0.5)
    assert states.last.position[index] == pytest.approx(resting, abs=0.015)


def test_brakes_hold_the_arm_without_power(run: ry.Run, harness: BusHarness) -> None:
    robot = run.add_robot("scitos_arm")
    run.run_for(0.5)
    harness.publish("/schunk/move_position", ry.msg.IDAndFloat(id=3, value=0.0))
    run.run_for(2.0)

    def angles() -> np.ndarray:
        data = run.simulation.world.data
        placement = run.simulation.world.addresses(robot.name)
        return np.array([data.qpos[place.qpos] for place in placement.joints if place.name in ARM])

    resting = angles()
    run.simulation.faults.start("dark", PowerFault(robot.name))
    run.run_for(5.0)
    assert np.abs(angles() - resting).max() < 0.01
    run.simulation.faults.end("dark")
    run.run_for(10.0)
    assert angles()[2] == pytest.approx(0.0, abs=0.02)


def test_trajectory_without_power_aborts_without_later_motion(run: ry.Run, harness: BusHarness) -> None:
    robot = run.add_robot("scitos_arm")
    follow = ry.action.FollowJointTrajectory
    data, places = run.simulation.world.data, run.simulation.world.addresses(robot.name).joints
    qpos = [place.qpos for place in places if place.name in ARM]
    dofs = [place.dof for place in places if place.name in ARM]

    def send_change(change: float) -> Goal:
        point = ry.msg.JointTrajectoryPoint(
            positions=data.qpos[qpos] + change, velocities=np.zeros(len(ARM)), time_from_start=ry.msg.Duration(sec=3)
        )
        trajectory = ry.msg.JointTrajectory(joint_names=list(ARM), points=[point])
        return harness.start_goal("/schunk/follow_joint_trajectory", follow, trajectory=trajectory)

    run.run_for(0.3)
    sent = send_change(0.4)
    run.run_for(1.2)
    run.simulation.faults.start("dark", PowerFault(robot.name))
    braked = data.qpos[qpos].copy()
    harness.wait_for(sent, timeout=3.0)
    assert sent.result.error_code == follow.Result.PATH_TOLERANCE_VIOLATED
    assert "off its path" in sent.result.error_string
    repeated = send_change(0.4)
    harness.wait_for(repeated, timeout=5.0)
    assert not repeated.succeeded
    run.run_for(2.0)
    assert np.abs(data.qpos[qpos] - braked).max() < 0.01, "the brakes hold"
    run.simulation.faults.end("dark")
    max_speed = 0.0
    for _ in range(50):
        run.run_for(0.02)
        max_speed = max(max_speed, float(np.abs(data.qvel[dofs]).max()))
    assert max_speed < 0.1
    assert np.abs(data.qpos[qpos] - braked).max() < 0.01
    last = send_change(0.2)
    harness.wait_for(last, timeout=5.0)
    assert last.succeeded


def test_arm_without_brakes_falls(tmp_path: Path, run: ry.Run) -> None:
    text = (FOLDER / "scitos_arm" / "arm.xacro").read_text().replace('<param name="brake">true</param>', "")
    (tmp_path / "arm.xacro").write_text(text)
    path = tmp_path / "arm.urdf.xacro"
    path.write_text((FOLDER / "scitos_arm" / "scitos_arm.urdf.xacro").read_text())
    robot = run.add_robot(str(path), nodes="none")
    run.simulation.faults.start("dark", PowerFault(robot.name))
    data, before = run.simulation.world.data, run.simulation.world.data.qpos.copy()
    run.run_for(2.0)
    assert np.abs(data.qpos - before).max() > 0.5


def test_one_source_at_a_time_moves_the_arm(run: ry.Run, harness: BusHarness) -> None:
    run.add_robot("scitos_arm")
    states = harness.record("/joint_states", ry.msg.JointState)
    follow = ry.action.FollowJointTrajectory
    run.run_for(0.2)

    def send_first_joint(value: float) -> Goal:
        now = dict(zip(states.last.name, states.last.position, strict=True))
        point = ry.msg.JointTrajectoryPoint(
            positions=np.array([value, *(now[joint] for joint in ARM[1:])]),
            velocities=np.zeros(len(ARM)),
            time_from_start=ry.msg.Duration(sec=3),
        )
        trajectory = ry.msg.JointTrajectory(joint_names=list(ARM), points=[point])
        return harness.start_goal("/schunk/follow_joint_trajectory", follow, trajectory=trajectory)

    def first() -> float:
        return float(states.last.position[list(states.last.name).index(ARM[0])])

    sent = send_first_joint(0.5)
    run.run_for(1.0)
    harness.publish("/schunk/move_position", ry.msg.IDAndFloat(id=1, value=-0.5))  # refused: the trajectory goes on
    harness.wait_for(sent, timeout=4.0)
    assert sent.succeeded
    run.run_for(0.5)
    assert first() == pytest.approx(0.5, abs=2e-3)
    harness.publish("/schunk/move_position", ry.msg.IDAndFloat(id=1, value=0.2))
    run.run_for(0.5)
    refused = send_first_joint(0.6)
    run.run_for(2.5)
    assert refused.done()
    assert not refused.succeeded
    assert first() == pytest.approx(0.2, abs=2e-3)
    repeated = send_first_joint(0.4)
    harness.wait_for(repeated, timeout=4.0)
    assert repeated.succeeded


def test_gripper_takes_its_opening(run: ry.Run, harness: BusHarness) -> None:
    run.add_robot("scitos_arm")
    grip = ry.action.GripperCommand
    run.run_for(0.2)
    done = harness.send_goal("/schunk/gripper", grip, command=ry.msg.GripperCommand(position=0.03), timeout=5.0)
    assert done.result.reached_goal
    assert done.result.position == pytest.approx(0.03, abs=0.002)
    wide = harness.start_goal("/schunk/gripper", grip, command=ry.msg.GripperCommand(position=0.07))
    run.run_for(0.1)
    assert wide.done()
    assert not wide.succeeded
