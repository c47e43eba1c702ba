"""The servo node: twists and jogs on the bus, in frames, until they cease; what makes no sense stops the arm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from roboyard.bus import Node
from roboyard.geometry import SE3
from roboyard.manipulation.servoing import ServoCode
from roboyard.messages import action, msg, srv
from roboyard.messages.convert import header, pose_to_msg
from roboyard.scenarios.run import Run
from roboyard.scenarios.state.codec import decode, encode


class Hand(Node):
    """Sends what a hand at a stick does."""

    def setup(self) -> None:
        self.twists = self.publisher("servo/delta_twist_cmds", msg.TwistStamped)
        self.jogs = self.publisher("servo/delta_joint_cmds", msg.JointJog)
        self.objects = self.publisher("collision_object", msg.moveit_msgs.CollisionObject)
        self.said: list[Any] = []
        self.subscribe("servo/status", msg.moveit_msgs.ServoStatus, self.said.append)


class Cell:
    """An iisy with the servo node."""

    def __init__(self) -> None:
        self.run = Run("empty", seed=2, record=False)
        self.robot = self.run.add("iisy", nodes=["joint_states", "robot_state", "arm", "servo"])
        self.hand: Any = self.robot.add_node(Hand(), "hand")
        self.chain = self.robot.groups.chain()
        self.run.run_for(0.2)
        home = self.robot.groups.group().pose("home")
        for _ in range(400):
            off = home - self.joints()
            if np.abs(off).max() < 0.01:
                break
            self.jog(dict(zip(self.chain.joints, np.clip(3.0 * off, -1.0, 1.0), strict=True)))
        self.run.run_for(1.0)

    def joints(self) -> np.ndarray:
        names = self.robot.hardware.joint_names
        return self.robot.hardware.read().position[[names.index(joint) for joint in self.chain.joints]]

    def tip(self) -> SE3:
        return SE3.from_matrix(self.chain.forward(self.joints()))

    def jog(self, speeds: dict[str, float], seconds: float = 0.05) -> None:
        for _ in range(round(seconds / 0.05)):
            self.hand.jogs.publish(
                msg.JointJog(joint_names=list(speeds), velocities=np.array(list(speeds.values()), dtype=np.float64))
            )
            self.run.run_for(0.05)

    def twist(self, linear: Any, frame: str = "", angular: Any = (0.0, 0.0, 0.0), seconds: float = 1.0) -> None:
        for _ in range(round(seconds / 0.05)):
            kinds = [msg.Vector3(**dict(zip("xyz", map(float, one), strict=True))) for one in (linear, angular)]
            twist = msg.Twist(linear=kinds[0], angular=kinds[1])
            self.hand.twists.publish(msg.TwistStamped(header=header(frame, 0), twist=twist))
            self.run.run_for(0.05)

    def stands(self) -> bool:
        before = self.joints()
        self.run.run_for(0.2)
        return bool(np.abs(self.joints() - before).max() < 1e-3)


@pytest.fixture(scope="module")
def cell() -> Iterator[Cell]:
    made = Cell()
    yield made
    made.run.close()


@pytest.mark.parametrize("frame", ["", "base_link", "tcp"])
def test_the_tool_goes_as_told_in_the_frame_that_is_told_and_stops_in_silence(cell: Cell, frame: str) -> None:
    T = cell.tip()
    cell.twist((0.0, 0.04, 0.0), frame)
    cell.run.run_for(0.6)
    assert cell.stands()
    way = cell.tip().translation - T.translation
    wanted = T.rotation_matrix()[:, 1] if frame == "tcp" else np.array([0.0, 1.0, 0.0])
    assert 0.04 < way @ wanted < 0.052  # a second, and what the last command holds
    assert np.linalg.norm(way - (way @ wanted) * wanted) < 0.003
    cell.twist((0.0, -0.04, 0.0), frame)
    cell.run.run_for(0.6)


def test_joints_are_jogged_by_name(cell: Cell) -> None:
    before = cell.joints()
    cell.jog({"joint_6": 0.4}, 0.5)
    cell.run.run_for(1.0)
    change = cell.joints() - before
    assert change[5] == pytest.approx(0.4 * 0.65, abs=0.03)
    assert np.abs(change[:5]).max() < 5e-3


@pytest.mark.parametrize("speed", [-0.4, 0.4])
@pytest.mark.parametrize("how", ["joint", "tool"])
def test_after_a_trajectory_it_goes_on_from_where_the_joints_are(cell: Cell, how: str, speed: float) -> None:
    begin = cell.joints()
    cell.jog({"joint_6": -speed}, 0.3)  # the servo node has had the joints before
    cell.run.run_for(0.6)
    follow = action.FollowJointTrajectory
    client = cell.hand.action_client("arm/follow_joint_trajectory", follow)
    point = msg.JointTrajectoryPoint(
        positions=begin + np.array([0.3, 0.0, 0.0, 0.0, 0.0, 0.3]),
        velocities=np.zeros(6), time_from_start=msg.Duration(sec=2),
    )  # fmt: skip
    goal = client.send(follow.Goal(trajectory=msg.JointTrajectory(joint_names=list(cell.chain.joints), points=[point])))
    cell.run.run_for(2.5)
    assert goal.succeeded
    before, T, seen = cell.joints(), cell.tip(), []
    for _ in range(6):
        if how == "joint":
            cell.jog({"joint_6": speed})
        else:
            cell.twist((0.0, 0.0, 0.1 * speed), seconds=0.05)
        seen.append((cell.joints() - before, cell.tip().translation - T.translation))
    ways = np.array([joints[5] if how == "joint" else tip[2] for joints, tip in seen]) * np.sign(speed)
    assert ways.min() > -2e-3
    assert ways[-1] > (0.05 if how == "joint" else 0.005)
    assert np.abs([joints[:5] for joints, _ in seen]).max() < (5e-3 if how == "joint" else 0.1)
    cell.run.run_for(0.6)
    point.positions = begin
    goal = client.send(follow.Goal(trajectory=msg.JointTrajectory(joint_names=list(cell.chain.joints), points=[point])))
    cell.run.run_for(2.5)
    assert goal.succeeded, "back for the other tests"


def test_an_arm_that_something_pushed_away_starts_from_where_it_is(cell: Cell, monkeypatch) -> None:
    cell.jog({"joint_6": 0.2}, 0.2)
    cell.run.run_for(1.0)
    node: Any = cell.run.bus.nodes["/servo"]
    there = cell.joints() + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.4])
    written: list[np.ndarray] = []
    monkeypatch.setattr(node, "_actual", lambda: there)
    monkeypatch.setattr(node.hardware, "write", lambda command: written.append(np.array(command.values)))
    cell.jog({"joint_6": 0.2}, 0.2)
    monkeypatch.undo()  # the drives were off, and are on again
    told = np.array([values[5] for values in written if len(values) == len(there)])
    assert len(told) > 10
    assert told.min() >= there[5] - 1e-9
    assert told.max() > there[5]
    node._servoing.be_at(cell.joints())
    cell.run.run_for(0.5)


BAD: dict[str, Any] = {
    "nan": lambda c: c.twist((float("nan"), 0.0, 0.0), seconds=0.05),
    "unknown frame": lambda c: c.twist((0.1, 0.0, 0.0), "nowhere", seconds=0.05),
    "unknown joint": lambda c: c.jog({"joint_9": 0.1}),
    "infinite": lambda c: c.jog({"joint_1": float("inf")}),
}


@pytest.mark.parametrize("name", list(BAD))
def test_a_bad_command_stops_the_arm_and_is_told(cell: Cell, name: str) -> None:
    cell.jog({"joint_6": -0.4}, 0.3)
    BAD[name](cell)
    assert cell.hand.said[-1].code == ServoCode.INVALID
    assert {"nan": "finite", "unknown frame": "nowhere", "unknown joint": "joint_9", "infinite": "inf"}[name] in (
        cell.hand.said[-1].message
    )
    cell.run.run_for(0.5)
    assert cell.stands()
    cell.jog({"joint_6": 0.4}, 0.3)
    assert cell.hand.said[-1].code == ServoCode.NO_WARNING
    cell.run.run_for(0.6)


def test_it_takes_no_commands_when_switched_off(cell: Cell) -> None:
    off = cell.robot.nodes["servo"]
    client = cell.hand.service_client("servo/pause_servo", srv.SetBool)
    assert off is not None
    for on in (True, False):
        done = client.call(srv.SetBool.Request(data=on))
        cell.run.until(done.done, timeout=1.0)
        cell.jog({"joint_6": 0.1}, 0.1)
        assert (cell.hand.said[-1].code == ServoCode.INVALID) == on
    cell.run.run_for(0.5)


def test_it_stops_before_an_object(cell: Cell) -> None:
    T = cell.tip()
    kind = msg.moveit_msgs.CollisionObject
    place = SE3(translation=T.translation + np.array([0.0, 0.3, 0.0]))
    wall = kind(header=header("base_link", 0), id="wall", pose=pose_to_msg(place), operation=kind.ADD)
    wall.primitives = [msg.SolidPrimitive(type=1, dimensions=np.array([0.6, 0.02, 0.6]))]
    cell.hand.objects.publish(wall)
    cell.twist((0.0, 0.1, 0.0), seconds=3.5)
    assert cell.hand.said[-1].code == ServoCode.HALT_FOR_COLLISION
    assert 0.01 < (cell.tip().translation - T.translation)[1] < 0.29
    cell.hand.objects.publish(kind(id="wall", operation=kind.REMOVE))
    cell.twist((0.0, -0.1, 0.0), seconds=0.3)
    assert cell.hand.said[-1].code == ServoCode.NO_WARNING
    cell.run.run_for(0.5)


def test_a_command_under_way_is_saved_and_restored(cell: Cell) -> None:
    cell.twist((0.0, 0.02, 0.0), "tcp", seconds=0.1)
    node: Any = cell.robot.nodes["servo"]
    saved = decode(*encode(node.save()))
    before = node._servoing.position.copy()
    cell.run.run_for(0.6)
    assert np.abs(node._servoing.position - before).max() > 1e-4
    node.load(saved)
    np.testing.assert_array_equal(node._servoing.position, before)
    assert node._twist[1] == "tcp"
    cell.run.run_for(0.6)
    assert cell.stands()
