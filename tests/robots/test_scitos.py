"""The assistant robot: its modules alone and joined, its drive, its bumper ring, its arm with brakes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import roboyard as ry
from roboyard.description import load_model
from roboyard.simulation.faults import PowerFault

FOLDER = Path(str(resources.files("roboyard") / "robots"))
ARM = [f"arm_joint_{k}" for k in range(1, 6)]
POSE = np.array([0.0, 1.0, 2.3, -0.67, 0.0])


def described(name: str, **arguments: str) -> Any:
    return load_model(FOLDER / name / f"{name}.urdf.xacro", arguments=arguments)


@pytest.fixture
def run() -> Iterator[ry.Run]:
    with ry.Run("empty", record=False) as made:
        yield made


def test_each_module_loads_alone_and_joined_they_are_the_robot() -> None:
    base, arm, whole = described("scitos_base"), described("scitos_arm"), described("scitos")
    for one in (base, arm, whole):
        assert one.findings == ()
    assert whole.mass == pytest.approx(base.mass + arm.mass)
    assert {link.name for link in whole.links} == {link.name for link in (*base.links, *arm.links)} - {"world"}
    assert {s.name for s in whole.sensors} == {s.name for s in (*base.sensors, *arm.sensors)}


def test_limits_are_those_of_the_tables_and_speeds_of_the_real_arms_description_are_a_variant() -> None:
    limits = {j.name: j.axes[0].limits for j in described("scitos_arm").joints if j.name in ARM}
    reach = [
        (-3.141593, 3.141593),
        (-2.02458, 2.02458),
        (-2.740166, 2.740166),
        (-2.373644, 2.28638),
        (-3.143321, 3.143321),
    ]
    assert [(limits[name].lower, limits[name].upper) for name in ARM] == reach
    assert {limits[name].velocity for name in ARM} == {0.33}
    variant = {j.name: j.axes[0].limits.velocity for j in described("scitos_arm", arm_speeds="urdf").joints if j.axes}
    assert [variant[name] for name in ARM] == [0.437, 0.438, 0.436, 0.486, 0.872]


def test_it_turns_about_its_drive_axle_and_its_tail_swings_out(run: ry.Run) -> None:
    robot = run.add("scitos")
    run.run_for(1.0)
    assert abs(robot.truth.pose.z) < 1e-3
    send = run.bus.publisher("/cmd_vel", ry.msg.Twist, "/operator")
    tail = []
    for _ in range(60):
        send.publish(ry.msg.Twist(angular=ry.msg.Vector3(z=0.6)))
        run.run_for(0.1)
        tail.append(robot.truth.pose @ (-0.54, 0.0, 0.1))
    pose = robot.truth.pose
    assert math.hypot(pose.x, pose.y) < 0.02
    assert pose.yaw == pytest.approx(0.6 * 6.0, abs=0.2) or pose.yaw == pytest.approx(3.6 - 2 * math.pi, abs=0.2)
    assert np.ptp(np.array(tail)[:, 1]) > 0.6


def test_its_lasers_see_all_about_it_and_nothing_of_itself() -> None:
    with ry.Run("arena", record=False) as run:
        run.add("scitos")
        scans: dict[str, Any] = {}
        for topic in ("scan", "scan_rear"):
            run.bus.subscribe(f"/{topic}", ry.msg.LaserScan, "/test", lambda m, topic=topic: scans.update({topic: m}))
        run.run_for(0.5)
    assert (len(scans["scan"].ranges), len(scans["scan_rear"].ranges)) == (180, 683)
    for scan in scans.values():
        assert np.nanmin(scan.ranges) > 0.4


def test_no_sonar_hears_the_robot_itself_and_each_hears_a_wall_ahead(run: ry.Run) -> None:
    run.add("scitos_base")
    heard: dict[str, float] = {}
    for k in range(24):
        run.bus.subscribe(f"/sonar_{k}", ry.msg.Range, "/test", lambda m, k=k: heard.update({f"{k}": m.range}))
    run.run_for(1.0)
    assert len(heard) == 24
    assert sum(math.isfinite(value) for value in heard.values()) <= 2, "but for phantoms there is nothing"


def test_the_arm_holds_its_pose_and_goes_to_another_without_a_lurch(run: ry.Run) -> None:
    run.add("scitos_arm")
    seen: list[Any] = []
    run.bus.subscribe("/joint_states", ry.msg.JointState, "/test", seen.append)
    run.run_for(1.0)
    index = [list(seen[-1].name).index(joint) for joint in ARM]
    assert np.abs(np.array(seen[-1].position)[index] - POSE).max() < 0.01
    move = run.bus.publisher("/schunk/move_position", ry.msg.IDAndFloat, "/test")
    seen.clear()
    move.publish(ry.msg.IDAndFloat(id=3, value=0.7))
    run.run_for(1.6 / 0.33 + 0.33 / 0.42 + 0.5)
    speeds = np.array([m.velocity for m in seen])[:, index[2]]
    assert seen[-1].position[index[2]] == pytest.approx(0.7, abs=0.01)
    assert np.abs(speeds).max() < 0.33 * 1.1
    smooth = np.convolve(speeds, np.full(5, 0.2), "valid")
    assert np.abs(np.diff(smooth)).max() / 0.02 < 0.42 * 2.0


def test_a_velocity_moves_a_joint_and_is_over_when_nobody_repeats_it(run: ry.Run) -> None:
    run.add("scitos_arm")
    seen: list[Any] = []
    run.bus.subscribe("/joint_states", ry.msg.JointState, "/test", seen.append)
    move = run.bus.publisher("/schunk/move_velocity", ry.msg.IDAndFloat, "/test")
    run.run_for(0.2)
    for _ in range(20):
        move.publish(ry.msg.IDAndFloat(id=1, value=-0.2))
        run.run_for(0.1)
    index = list(seen[-1].name).index("arm_joint_1")
    assert seen[-1].velocity[index] == pytest.approx(-0.2, abs=0.02)
    run.run_for(1.5)
    stood = seen[-1].position[index]
    run.run_for(0.5)
    assert seen[-1].position[index] == pytest.approx(stood, abs=0.015)
    for bad in (
        ry.msg.IDAndFloat(id=0, value=1.0),
        ry.msg.IDAndFloat(id=6, value=1.0),
        ry.msg.IDAndFloat(id=1, value=math.nan),
    ):
        move.publish(bad)
    run.run_for(0.5)
    assert seen[-1].position[index] == pytest.approx(stood, abs=0.015)


def test_without_power_the_brakes_hold_the_arm_and_with_it_the_arm_goes_on(run: ry.Run) -> None:
    robot = run.add("scitos_arm")
    run.run_for(0.5)
    move = run.bus.publisher("/schunk/move_position", ry.msg.IDAndFloat, "/test")
    move.publish(ry.msg.IDAndFloat(id=3, value=0.0))
    run.run_for(2.0)

    def angles() -> np.ndarray:
        data = run.simulation.data
        placement = run.simulation.placement(robot.name)
        return np.array([data.qpos[place.qpos] for place in placement.joints if place.name in ARM])

    stood = angles()
    run.simulation.faults.begin("dark", PowerFault(robot.name))
    run.run_for(5.0)
    assert np.abs(angles() - stood).max() < 0.01
    run.simulation.faults.end("dark")
    run.run_for(10.0)
    assert angles()[2] == pytest.approx(0.0, abs=0.02)


def test_a_trajectory_without_power_ends_with_its_cause_and_the_arm_does_not_spring_later(run: ry.Run) -> None:
    robot = run.add("scitos_arm")
    follow = ry.action.FollowJointTrajectory
    client = run.add_node(ry.Node(), "client").action_client("/schunk/follow_joint_trajectory", follow)
    data, places = run.simulation.data, run.simulation.placement(robot.name).joints
    qpos = [place.qpos for place in places if place.name in ARM]
    dofs = [place.dof for place in places if place.name in ARM]

    def goal(change: float) -> Any:
        point = ry.msg.JointTrajectoryPoint(
            positions=data.qpos[qpos] + change, velocities=np.zeros(len(ARM)), time_from_start=ry.msg.Duration(sec=3)
        )
        return client.send(follow.Goal(trajectory=ry.msg.JointTrajectory(joint_names=list(ARM), points=[point])))

    run.run_for(0.3)
    asked = goal(0.4)
    run.run_for(1.2)
    run.simulation.faults.begin("dark", PowerFault(robot.name))
    braked = data.qpos[qpos].copy()
    assert run.until(asked.done, 3.0)
    assert asked.result.error_code == follow.Result.PATH_TOLERANCE_VIOLATED
    assert "off its path" in asked.result.error_string
    again = goal(0.4)
    assert run.until(again.done, 5.0)
    assert not again.succeeded
    run.run_for(2.0)
    assert np.abs(data.qpos[qpos] - braked).max() < 0.01, "the brakes hold"
    run.simulation.faults.end("dark")
    fastest = 0.0
    for _ in range(50):
        run.run_for(0.02)
        fastest = max(fastest, float(np.abs(data.qvel[dofs]).max()))
    assert fastest < 0.1
    assert np.abs(data.qpos[qpos] - braked).max() < 0.01
    last = goal(0.2)
    assert run.until(last.done, 5.0)
    assert last.succeeded


def test_without_brakes_it_would_fall(tmp_path: Path, run: ry.Run) -> None:
    text = (FOLDER / "scitos_arm" / "arm.xacro").read_text().replace('<param name="brake">true</param>', "")
    (tmp_path / "arm.xacro").write_text(text)
    path = tmp_path / "arm.urdf.xacro"
    path.write_text((FOLDER / "scitos_arm" / "scitos_arm.urdf.xacro").read_text())
    robot = run.add(str(path), nodes="none")
    run.simulation.faults.begin("dark", PowerFault(robot.name))
    data, before = run.simulation.data, run.simulation.data.qpos.copy()
    run.run_for(2.0)
    assert np.abs(data.qpos - before).max() > 0.5


def test_one_source_at_a_time_moves_the_arm(run: ry.Run) -> None:
    run.add("scitos_arm")
    seen: list[Any] = []
    run.bus.subscribe("/joint_states", ry.msg.JointState, "/test", seen.append)
    follow = ry.action.FollowJointTrajectory
    client = run.add_node(ry.Node(), "client").action_client("/schunk/follow_joint_trajectory", follow)
    move = run.bus.publisher("/schunk/move_position", ry.msg.IDAndFloat, "/test")
    run.run_for(0.2)

    def goal(value: float) -> Any:
        now = dict(zip(seen[-1].name, seen[-1].position, strict=True))
        point = ry.msg.JointTrajectoryPoint(
            positions=np.array([value, *(now[joint] for joint in ARM[1:])]),
            velocities=np.zeros(len(ARM)),
            time_from_start=ry.msg.Duration(sec=3),
        )
        return client.send(follow.Goal(trajectory=ry.msg.JointTrajectory(joint_names=list(ARM), points=[point])))

    def first() -> float:
        return float(seen[-1].position[list(seen[-1].name).index(ARM[0])])

    asked = goal(0.5)
    run.run_for(1.0)
    move.publish(ry.msg.IDAndFloat(id=1, value=-0.5))  # refused: the trajectory goes on
    assert run.until(asked.done, 4.0)
    assert asked.succeeded
    run.run_for(0.5)
    assert first() == pytest.approx(0.5, abs=2e-3)
    move.publish(ry.msg.IDAndFloat(id=1, value=0.2))
    run.run_for(0.5)
    refused = goal(0.6)
    run.run_for(2.5)
    assert refused.done()
    assert not refused.succeeded
    assert first() == pytest.approx(0.2, abs=2e-3)
    again = goal(0.4)
    assert run.until(again.done, 4.0)
    assert again.succeeded


def test_the_gripper_takes_its_opening(run: ry.Run) -> None:
    run.add("scitos_arm")
    grip = ry.action.GripperCommand
    client = run.add_node(ry.Node(), "client").action_client("/schunk/gripper", grip)
    run.run_for(0.2)
    done = client.send(grip.Goal(command=ry.msg.GripperCommand(position=0.03)))
    assert run.until(done.done, 5.0)
    assert done.result.reached_goal
    assert done.result.position == pytest.approx(0.03, abs=0.002)
    wide = client.send(grip.Goal(command=ry.msg.GripperCommand(position=0.07)))
    run.run_for(0.1)
    assert wide.done()
    assert not wide.succeeded
