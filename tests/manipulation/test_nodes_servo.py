"""The servo node: twists and jogs on the bus, in frames, until they cease; what makes no sense stops the arm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.harness.arms import ARM_NODES, ArmCell

from roboyard.geometry import SE3
from roboyard.manipulation.servo import ServoCode
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import make_header, pose_stamped_to_msg
from roboyard.scenarios.snapshot_file import decode_snapshot, encode_snapshot

FOLLOW = action.FollowJointTrajectory
TWISTS, JOGS, STATUS = "/servo/delta_twist_cmds", "/servo/delta_joint_cmds", "/servo/status"
POSES, SWITCH = "/servo/pose_target_cmds", "/servo/switch_command_type"
COMMAND_TYPE = srv.moveit_msgs.ServoCommandType
STEP = 0.05  # s between commands


class ServoCell(ArmCell):
    """An iisy at its home pose, driven by the servo node."""

    def __init__(self) -> None:
        super().__init__("iisy", (*ARM_NODES, "servo"), seed=2, settle=0.2)
        home = self.pose("home")
        for _ in range(400):
            off = home - self.joints()
            if np.abs(off).max() < 0.01:
                break
            self.jog(dict(zip(self.chain.joints, np.clip(3.0 * off, -1.0, 1.0), strict=True)))
        self.wait_until_still()

    def jog(self, speeds: dict[str, float], seconds: float = STEP) -> None:
        """Command speeds of joints [rad/s] for a while."""
        jog = msg.JointJog(joint_names=list(speeds), velocities=np.array(list(speeds.values()), dtype=np.float64))
        for _ in range(round(seconds / STEP)):
            self.harness.publish(JOGS, jog)
            self.run.run_for(STEP)

    def twist(self, linear: tuple[float, float, float], frame: str = "", *, seconds: float = 1.0) -> None:
        """Command a velocity of the tool [m/s] in a frame for a while."""
        twist = msg.Twist(linear=msg.Vector3(**dict(zip("xyz", map(float, linear), strict=True))))
        for _ in range(round(seconds / STEP)):
            self.harness.publish(TWISTS, msg.TwistStamped(header=make_header(frame, 0), twist=twist))
            self.run.run_for(STEP)

    def pose_target(self, target: Any, *, seconds: float = 1.0) -> None:
        """Command a pose target, a geometry_msgs/PoseStamped, for a while."""
        for _ in range(round(seconds / STEP)):
            self.harness.publish(POSES, target)
            self.run.run_for(STEP)

    @property
    def status(self) -> Any:
        """The newest message of the servo node."""
        return self.harness.last(STATUS)

    def is_stopped(self) -> bool:
        """Whether the arm does not move for a while."""
        before = self.joints()
        self.run.run_for(0.2)
        return bool(np.abs(self.joints() - before).max() < 1e-3)

    def move_to(self, q: np.ndarray) -> bool:
        """Let the arm's controller take the joints to positions in 2 s, at rest; whether it did."""
        point = msg.JointTrajectoryPoint(positions=q, velocities=np.zeros(6), time_from_start=msg.Duration(sec=2))
        trajectory = msg.JointTrajectory(joint_names=list(self.chain.joints), points=[point])
        return self.harness.send_goal("/arm/follow_joint_trajectory", FOLLOW, trajectory=trajectory).succeeded


@pytest.fixture(scope="module")
def cell() -> Iterator[ServoCell]:
    with ServoCell() as cell:
        yield cell


@pytest.mark.parametrize("frame", ["", "base_link", "tcp"])
def test_twist_moves_the_tool_in_its_frame_until_commands_stop(cell: ServoCell, frame: str) -> None:
    T = cell.tool_pose()
    cell.twist((0.0, 0.04, 0.0), frame)
    cell.run.run_for(0.6)
    assert cell.is_stopped()
    displacement = cell.tool_pose().translation - T.translation
    direction = T.rotation_matrix()[:, 1] if frame == "tcp" else np.array([0.0, 1.0, 0.0])
    assert 0.04 < displacement @ direction < 0.052  # a second, and what the last command holds
    assert np.linalg.norm(displacement - (displacement @ direction) * direction) < 0.003
    cell.twist((0.0, -0.04, 0.0), frame)
    cell.run.run_for(0.6)


def test_joint_jog_moves_the_named_joint(cell: ServoCell) -> None:
    before = cell.joints()
    cell.jog({"joint_6": 0.4}, 0.5)
    cell.run.run_for(1.0)
    change = cell.joints() - before
    assert change[5] == pytest.approx(0.4 * 0.65, abs=0.03)
    assert np.abs(change[:5]).max() < 5e-3


@pytest.mark.parametrize("speed", [-0.4, 0.4])
@pytest.mark.parametrize("command_kind", ["joint", "tool"])
def test_jog_after_a_trajectory_starts_at_the_measured_joints(cell: ServoCell, command_kind: str, speed: float) -> None:
    start = cell.joints()
    cell.jog({"joint_6": -speed}, 0.3)  # the servo node has had the joints before
    cell.run.run_for(0.6)
    assert cell.move_to(start + np.array([0.3, 0.0, 0.0, 0.0, 0.0, 0.3]))
    cell.wait_until_still()
    before, T, displacements = cell.joints(), cell.tool_pose(), []
    for _ in range(6):
        if command_kind == "joint":
            cell.jog({"joint_6": speed})
        else:
            cell.twist((0.0, 0.0, 0.1 * speed), seconds=0.05)
        displacements.append((cell.joints() - before, cell.tool_pose().translation - T.translation))
    distances = np.array([joints[5] if command_kind == "joint" else tip[2] for joints, tip in displacements]) * np.sign(
        speed
    )
    assert distances.min() > -2e-3
    assert distances[-1] > (0.05 if command_kind == "joint" else 0.005)
    assert np.abs([joints[:5] for joints, _ in displacements]).max() < (5e-3 if command_kind == "joint" else 0.1)
    cell.run.run_for(0.6)
    assert cell.move_to(start), "back for the other tests"


def test_jog_of_a_displaced_arm_starts_at_the_measured_joints(cell: ServoCell, monkeypatch) -> None:
    cell.jog({"joint_6": 0.2}, 0.2)
    cell.run.run_for(1.0)
    node: Any = cell.run.bus.nodes["/servo"]
    displaced_joints = cell.joints() + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.4])
    written: list[np.ndarray] = []
    monkeypatch.setattr(node, "_measured_position", lambda: displaced_joints)
    monkeypatch.setattr(node.hardware, "write", lambda command: written.append(np.array(command.setpoints)))
    cell.jog({"joint_6": 0.2}, 0.2)
    monkeypatch.undo()  # the drives were off, and are on again
    commanded = np.array([values[5] for values in written if len(values) == len(displaced_joints)])
    assert len(commanded) > 10
    assert commanded.min() >= displaced_joints[5] - 1e-9
    assert commanded.max() > displaced_joints[5]
    node._servo.reset_to(cell.joints())
    cell.run.run_for(0.5)


@pytest.fixture
def any_command_type(cell: ServoCell) -> Iterator[None]:
    """Undoes a chosen command type, for the other tests."""
    yield
    node: Any = cell.robot.nodes["servo"]
    node._command_type = None
    cell.run.run_for(0.6)


def offset_target(cell: ServoCell, offset: tuple[float, float, float], frame: str = "base_link") -> tuple[SE3, Any]:
    """T_base_target beside the tool [m] in the axes of a frame, and the command that asks for it in this frame."""
    T = cell.tool_pose()
    if frame == "tcp":
        T_tool_target = SE3(translation=offset)
        return T @ T_tool_target, pose_stamped_to_msg(T_tool_target, frame, 0)
    target = SE3(T.quaternion, T.translation + np.array(offset))
    return target, pose_stamped_to_msg(target, frame, 0)


@pytest.mark.parametrize("frame", ["", "base_link"])
def test_tool_moves_to_the_pose_target_and_stops_there(cell: ServoCell, frame: str) -> None:
    start = cell.tool_pose()
    for offset in ((0.0, 0.06, -0.02), (0.0, -0.06, 0.02)):
        target, message = offset_target(cell, offset)
        message.header.frame_id = frame
        cell.pose_target(message, seconds=2.0)
        assert (cell.status.code, cell.status.message) == (ServoCode.NO_WARNING, "the pose target is reached")
        assert cell.is_stopped()
        assert np.linalg.norm(cell.tool_pose().translation - target.translation) < 2e-3
    assert np.linalg.norm(cell.tool_pose().translation - start.translation) < 4e-3
    cell.run.run_for(0.6)


def test_pose_target_in_the_frame_of_the_tool_starts_at_its_pose_on_arrival(cell: ServoCell) -> None:
    target, message = offset_target(cell, (0.0, 0.0, -0.01), "tcp")
    cell.pose_target(message, seconds=STEP)
    node: Any = cell.robot.nodes["servo"]
    np.testing.assert_allclose(node._pose_command[0], target.matrix(), atol=3e-3)
    before = node._pose_command[0].copy()
    cell.run.run_for(STEP)
    np.testing.assert_array_equal(node._pose_command[0], before)
    cell.run.run_for(0.6)


def test_unreachable_pose_target_stops_the_arm_and_is_reported(cell: ServoCell) -> None:
    start = cell.joints()
    _, message = offset_target(cell, (0.0, 3.0, 0.0))
    node: Any = cell.robot.nodes["servo"]
    cell.pose_target(message, seconds=12.0)
    assert cell.is_stopped()
    assert cell.status.code not in (ServoCode.NO_WARNING, ServoCode.INVALID)
    assert cell.status.message.startswith("stopped before the pose target: ")
    assert node._servo.is_stopped
    cell.run.run_for(0.6)
    assert cell.move_to(start), "back for the other tests"


def test_arm_stops_when_pose_targets_cease(cell: ServoCell) -> None:
    _, message = offset_target(cell, (0.0, 0.2, 0.0))
    node: Any = cell.robot.nodes["servo"]
    T = cell.tool_pose()
    cell.pose_target(message, seconds=0.3)
    assert node._pose_command is not None
    assert not node._servo.is_stopped
    cell.run.run_for(node.config.incoming_command_timeout + 0.5)
    assert node._pose_command is None
    assert node._servo.is_stopped
    assert 0.005 < (cell.tool_pose().translation - T.translation)[1] < 0.19
    cell.twist((0.0, -0.1, 0.0), seconds=0.4)
    cell.run.run_for(0.6)


def invalid_pose(cell: ServoCell, name: str) -> Any:
    """Return a pose command that has one fault."""
    _, message = offset_target(cell, (0.0, 0.05, 0.0))
    if name == "unknown frame":
        message.header.frame_id = "nowhere"
    elif name == "not finite":
        message.pose.position.x = float("nan")
    elif name == "zero quaternion":
        message.pose.orientation = msg.Quaternion(x=0.0, y=0.0, z=0.0, w=0.0)
    else:
        message.pose.orientation = msg.Quaternion(x=0.0, y=0.0, z=0.0, w=1.01)
    return message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("unknown frame", "nowhere"),
        ("not finite", "finite"),
        ("zero quaternion", "norm 0"),
        ("no unit quaternion", "norm 1.01"),
    ],
)
def test_invalid_pose_stops_the_arm_and_is_reported(cell: ServoCell, name: str, text: str) -> None:
    cell.jog({"joint_6": -0.4}, 0.3)
    cell.pose_target(invalid_pose(cell, name), seconds=STEP)
    assert cell.status.code == ServoCode.INVALID
    assert text in cell.status.message
    cell.run.run_for(0.5)
    assert cell.is_stopped()
    cell.jog({"joint_6": 0.4}, 0.3)
    assert cell.status.code == ServoCode.NO_WARNING
    cell.run.run_for(0.6)


def test_newest_command_is_used_until_a_type_is_chosen(cell: ServoCell, any_command_type: None) -> None:
    _, message = offset_target(cell, (0.0, 0.1, 0.0))
    node: Any = cell.robot.nodes["servo"]
    jog = {"joint_6": 0.1}
    cell.pose_target(message, seconds=STEP)
    assert node._pose_command is not None
    cell.jog(jog)
    assert node._pose_command is None
    assert node._joint_command is not None
    assert cell.harness.call(SWITCH, COMMAND_TYPE, command_type=COMMAND_TYPE.Request.POSE).success
    assert not node._has_command, "a command of another type ends"
    cell.pose_target(message, seconds=STEP)
    cell.jog(jog)
    cell.twist((0.0, 0.0, 0.01), seconds=STEP)
    assert node._pose_command is not None
    assert node._joint_command is None
    assert node._twist_command is None
    assert not cell.harness.call(SWITCH, COMMAND_TYPE, command_type=3).success
    assert node._command_type == COMMAND_TYPE.Request.POSE
    assert node._pose_command is not None
    assert cell.harness.call(SWITCH, COMMAND_TYPE, command_type=COMMAND_TYPE.Request.JOINT_JOG).success
    cell.pose_target(message, seconds=STEP)
    assert not node._has_command
    cell.jog(jog)
    assert node._joint_command is not None


def test_paused_servo_rejects_pose_targets(cell: ServoCell) -> None:
    _, message = offset_target(cell, (0.0, 0.0, 0.01))
    cell.harness.call("/servo/pause_servo", srv.SetBool, data=True)
    cell.pose_target(message, seconds=STEP)
    assert cell.status.code == ServoCode.INVALID
    cell.harness.call("/servo/pause_servo", srv.SetBool, data=False)
    cell.run.run_for(0.5)


def test_restored_pose_command_continues_equally(cell: ServoCell, any_command_type: None) -> None:
    node: Any = cell.robot.nodes["servo"]
    cell.harness.call(SWITCH, COMMAND_TYPE, command_type=COMMAND_TYPE.Request.POSE)
    _, message = offset_target(cell, (0.0, 0.08, 0.0))
    cell.pose_target(message, seconds=0.2)
    saved = decode_snapshot(*encode_snapshot(node.save_state()))

    def follow() -> list[bytes]:
        """Return the set-points of ten steps."""
        scene = node._monitor.current_scene()
        return [node._next_setpoint(scene, 0.01).position.tobytes() for _ in range(10)]

    first = follow()
    node.load_state(saved)
    assert node._command_type == COMMAND_TYPE.Request.POSE
    assert follow() == first
    assert len(set(first)) > 5
    node._servo.reset_to(cell.joints())
    cell.run.run_for(0.6)


def follow_to_pose(cell: ArmCell, n_steps: int) -> list[bytes]:
    """Return the joint positions after each step of commands with one pose target."""
    T = SE3.from_matrix(cell.chain.forward(cell.pose("home")))
    message = pose_stamped_to_msg(SE3(T.quaternion, T.translation + np.array([0.05, 0.05, -0.05])), "base_link", 0)
    positions = []
    for _ in range(n_steps):
        cell.harness.publish(POSES, message)
        cell.run.run_for(STEP)
        positions.append(cell.joints().tobytes())
    return positions


def test_repeated_and_restored_runs_to_a_pose_are_equal() -> None:
    nodes = (*ARM_NODES, "servo")
    with ArmCell("iisy", nodes, seed=5, settle=0.2) as first:
        expected = follow_to_pose(first, 20)
    assert len(set(expected)) > 10
    with ArmCell("iisy", nodes, seed=5, settle=0.2) as second:
        assert follow_to_pose(second, 8) == expected[:8]
        saved = decode_snapshot(*encode_snapshot(second.run.bus.save_state()))
        assert follow_to_pose(second, 12) == expected[8:]
    with ArmCell("iisy", nodes, seed=5, settle=0.0) as restored:
        restored.run.bus.load_state(saved)
        assert follow_to_pose(restored, 12) == expected[8:]


BAD: dict[str, Any] = {
    "nan": lambda c: c.twist((float("nan"), 0.0, 0.0), seconds=0.05),
    "unknown frame": lambda c: c.twist((0.1, 0.0, 0.0), "nowhere", seconds=0.05),
    "unknown joint": lambda c: c.jog({"joint_9": 0.1}),
    "infinite": lambda c: c.jog({"joint_1": float("inf")}),
}


@pytest.mark.parametrize("name", list(BAD))
def test_invalid_command_stops_the_arm_and_is_reported(cell: ServoCell, name: str) -> None:
    cell.jog({"joint_6": -0.4}, 0.3)
    BAD[name](cell)
    assert cell.status.code == ServoCode.INVALID
    assert {"nan": "finite", "unknown frame": "nowhere", "unknown joint": "joint_9", "infinite": "inf"}[name] in (
        cell.status.message
    )
    cell.run.run_for(0.5)
    assert cell.is_stopped()
    cell.jog({"joint_6": 0.4}, 0.3)
    assert cell.status.code == ServoCode.NO_WARNING
    cell.run.run_for(0.6)


def test_paused_servo_takes_no_commands(cell: ServoCell) -> None:
    for on in (True, False):
        cell.harness.call("/servo/pause_servo", srv.SetBool, data=on)
        cell.jog({"joint_6": 0.1}, 0.1)
        assert (cell.status.code == ServoCode.INVALID) == on
    cell.run.run_for(0.5)


def test_servo_stops_before_an_object(cell: ServoCell) -> None:
    T = cell.tool_pose()
    cell.add_box("wall", (0.6, 0.02, 0.6), T.translation + np.array([0.0, 0.3, 0.0]), "base_link")
    cell.twist((0.0, 0.1, 0.0), seconds=3.5)
    assert cell.status.code == ServoCode.HALT_FOR_COLLISION
    assert 0.01 < (cell.tool_pose().translation - T.translation)[1] < 0.29
    cell.remove_object("wall")
    cell.twist((0.0, -0.1, 0.0), seconds=0.3)
    assert cell.status.code == ServoCode.NO_WARNING
    cell.run.run_for(0.5)


def test_saved_servo_command_is_restored(cell: ServoCell) -> None:
    cell.twist((0.0, 0.02, 0.0), "tcp", seconds=0.1)
    node: Any = cell.robot.nodes["servo"]
    saved = decode_snapshot(*encode_snapshot(node.save_state()))
    before = node._servo.position.copy()
    cell.run.run_for(0.6)
    assert np.abs(node._servo.position - before).max() > 1e-4
    node.load_state(saved)
    np.testing.assert_array_equal(node._servo.position, before)
    assert node._twist_command[1] == "tcp"
    cell.run.run_for(0.6)
    assert cell.is_stopped()


@pytest.mark.parametrize("speed", [0.1, 0.4])
def test_arm_stops_after_the_command_timeout(cell: ServoCell, speed: float) -> None:
    node: Any = cell.robot.nodes["servo"]
    cell.jog({"joint_6": speed}, 0.3)
    assert node._joint_command is not None
    assert not node._servo.is_stopped
    timeout, acceleration = node.config.incoming_command_timeout, node._servo._max_acceleration[5]
    cell.run.run_for(timeout + speed / acceleration + 2.0 / node.config.rate)
    assert node._joint_command is None
    assert node._servo.is_stopped
    cell.jog({"joint_6": -speed}, 0.3)
    cell.run.run_for(0.6)
