"""Joints moved one by one, by number and by name, on a bus with ideal joints."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.bus import Bus, Node
from roboyard.control.limits import JointRates
from roboyard.control.nodes import (
    GripperNode,
    JointCommandNode,
    JointMovesNode,
    JointTrajectoryNode,
    JointValuesNode,
)
from roboyard.control.nodes.moving import MovingNode
from roboyard.control.owners import JointOwners
from roboyard.description.model import Axis, Joint, Limits, Link, Model
from roboyard.geometry import SE3
from roboyard.hardware.interface import CommandMode, JointCommand, JointReadings
from roboyard.messages import action, msg, srv

NAMES = ("turn", "slide")
SPEED, ACCELERATION = 1.0, 2.0
KINDS = {"turn": "revolute", "slide": "prismatic"}
ARM = Model(
    "arm",
    tuple(Link(name, SE3.identity()) for name in ("base", "upper", "lower")),
    tuple(
        Joint(
            name, KINDS[name], parent, child, SE3.identity(), SE3.identity(),
            (Axis((0, 0, 1), Limits(-2.0, 2.0, effort=5.0, velocity=SPEED)),),
        )
        for name, parent, child in zip(NAMES, ("base", "upper"), ("upper", "lower"), strict=True)
    ),
)  # fmt: skip


class Arm:
    """Joints that are where they are told."""

    joint_names = NAMES

    def __init__(self) -> None:
        self.position, self.history = np.array([0.1, -0.1]), [np.array([0.1, -0.1])]

    def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
        return ("position",)

    def read(self) -> JointReadings:
        return JointReadings(0, self.position.copy(), np.zeros(2), np.zeros(2))

    def write(self, command: JointCommand) -> None:
        for joint, value in zip(command.joints, command.values, strict=True):
            self.position[NAMES.index(joint)] = value
        self.history.append(self.position.copy())


def made(bus: Bus, kind: type[MovingNode], **more: object) -> tuple[Arm, MovingNode]:
    arm = Arm()
    rates = JointRates(dict.fromkeys(NAMES, ACCELERATION))
    node = kind(hardware=arm, description=ARM, joints=NAMES, rate=1000.0, rates=rates, **more)
    return arm, bus.add(node, "moves")


def keeps_limits(arm: Arm) -> bool:
    speeds = np.diff(np.array(arm.history), axis=0) * 1000.0
    rates = np.diff(speeds, axis=0) * 1000.0
    return bool(np.abs(speeds).max() <= SPEED * (1 + 1e-9) and np.abs(rates).max() <= ACCELERATION * (1 + 1e-6))


def values(kind: str, *rows: tuple[str, str, float]) -> object:
    rows_said = [msg.JointValue(joint_uri=uri, unit=unit, value=value) for uri, unit, value in rows]
    return msg.JointPositions(positions=rows_said) if kind == "position" else msg.JointVelocities(velocities=rows_said)


def by_number(bus: Bus, what: str, value: float) -> None:
    bus.publisher(f"/move_{what}", msg.IDAndFloat, "/t").publish(msg.IDAndFloat(id=1, value=value))


def by_name(bus: Bus, what: str, value: float) -> None:
    kind = msg.JointPositions if what == "position" else msg.JointVelocities
    unit = "rad" if what == "position" else "s^-1 rad"
    bus.publisher(f"/{what}_command", kind, "/t").publish(values(what, ("turn", unit, value)))


BOTH = pytest.mark.parametrize(("kind", "tell"), [(JointMovesNode, by_number), (JointValuesNode, by_name)])


@BOTH
def test_a_large_jump_is_a_limited_profile_and_a_velocity_ends_when_nobody_repeats_it(kind, tell) -> None:
    with Bus() as bus:
        arm, _ = made(bus, kind)
        tell(bus, "position", 1.5)
        bus.executor.run_for(1.4 / SPEED + SPEED / ACCELERATION + 0.01)  # the least time there is
        assert arm.position == pytest.approx([1.5, -0.1])
        tell(bus, "velocity", -0.8)
        bus.executor.run_for(0.6)
        assert arm.position[0] == pytest.approx(1.5 - 0.8 * 0.6 + 0.8**2 / 2 / ACCELERATION, abs=0.02)
        bus.executor.run_for(1.0)
        stood = arm.position.copy()
        bus.executor.run_for(1.0)
        assert (arm.position == stood).all()
        tell(bus, "position", 5.0)
        bus.executor.run_for(4.0)
        assert arm.position[0] == 2.0, "its limit"
        assert keeps_limits(arm)


@BOTH
def test_a_stop_and_a_pause_slow_it_down_within_limits(kind, tell) -> None:
    with Bus() as bus:
        arm, _ = made(bus, kind)
        caller = Node()
        bus.add(caller, "caller")
        pause = caller.service_client("/moves/pause", srv.SetBool)
        tell(bus, "position", 1.5)
        bus.executor.run_for(0.8)
        pause.call(srv.SetBool.Request(data=True))
        bus.executor.run_for(0.6)
        stood = arm.position.copy()
        bus.executor.run_for(0.5)
        assert (arm.position == stood).all()
        pause.call(srv.SetBool.Request(data=False))
        bus.executor.run_for(0.3)
        assert arm.position[0] > stood[0] + 0.05
        answer = caller.service_client("/moves/stop", srv.Trigger).call(srv.Trigger.Request())
        bus.executor.run_for(0.6)
        assert answer.result.success
        stood = arm.position.copy()
        bus.executor.run_for(1.0)
        assert (arm.position == stood).all()
        assert stood[0] < 1.4
        assert keeps_limits(arm)


@pytest.mark.parametrize(
    ("what", "rows", "reason"),
    [
        ("position", [("turn", "rad", 0.5), ("arm_joint_9", "rad", 0.0)], "no joint 'arm_joint_9'"),
        ("position", [("turn", "deg", 0.5)], "unit 'deg' for turn ('rad')"),
        ("position", [("slide", "rad", 0.5)], "unit 'rad' for slide ('m')"),
        ("position", [("turn", "rad", 0.5), ("turn", "rad", 0.6)], "turn twice"),
        ("position", [("turn", "rad", math.inf)], "inf for turn"),
        ("velocity", [("turn", "rad", 0.5)], "unit 'rad' for turn ('s^-1 rad')"),
        ("velocity", [("slide", "s^-1 rad", 0.5)], "'s^-1 m'"),
        ("velocity", [("turn", "s^-1 rad", -math.inf)], "-inf for turn"),
        ("velocity", [("", "s^-1 rad", 0.1)], "no joint ''"),
    ],
)  # fmt: skip
def test_bad_lists_are_refused_as_a_whole_and_no_set_point_changes(what: str, rows: list, reason: str) -> None:
    with Bus() as bus:
        arm, _ = made(bus, JointValuesNode)
        lines: list[str] = []
        bus.log_sinks.append(lambda record: lines.append(record.text))
        kind = msg.JointPositions if what == "position" else msg.JointVelocities
        bus.publisher(f"/{what}_command", kind, "/t").publish(values(what, *rows))
        bus.executor.run_for(0.3)
        assert any(reason in line for line in lines), lines
        assert (np.array(arm.history) == [0.1, -0.1]).all()


def test_a_value_that_is_no_number_leaves_its_joint_as_it_is() -> None:
    with Bus() as bus:
        arm, _ = made(bus, JointValuesNode)
        positions = bus.publisher("/position_command", msg.JointPositions, "/t")
        positions.publish(values("position", ("turn", "rad", 0.4), ("slide", "m", math.nan)))
        bus.executor.run_for(1.5)
        assert arm.position == pytest.approx([0.4, -0.1])
        positions.publish(values("position", ("turn", "rad", 1.4)))
        positions.publish(values("position", ("turn", "rad", math.nan), ("slide", "m", 0.2)))
        bus.executor.run_for(3.0)
        assert arm.position == pytest.approx([1.4, 0.2]), "the first joint went on"


def test_bad_numbers_are_refused() -> None:
    with Bus() as bus:
        arm, _ = made(bus, JointMovesNode)
        lines: list[str] = []
        bus.log_sinks.append(lambda record: lines.append(record.text))
        move = bus.publisher("/move_position", msg.IDAndFloat, "/t")
        for number, value in ((0, 0.5), (3, 0.5), (1, math.nan), (2, math.inf)):
            move.publish(msg.IDAndFloat(id=number, value=value))
        bus.executor.run_for(0.3)
        assert any("joint 0" in line and "there are 1 to 2" in line for line in lines), lines
        assert (np.array(arm.history) == [0.1, -0.1]).all()


def test_beside_a_trajectory_one_moves_the_joints_and_a_stop_of_either_stops_it() -> None:
    with Bus() as bus:
        arm, owners = Arm(), JointOwners()
        parts = {"hardware": arm, "description": ARM, "joints": NAMES, "owners": owners}
        bus.add(JointTrajectoryNode(**parts), "jtc")
        bus.add(JointValuesNode(hold=False, **parts), "moves")
        caller = bus.add(Node(), "caller")
        follow = action.FollowJointTrajectory
        client = caller.action_client("/jtc/follow_joint_trajectory", follow)
        point = msg.JointTrajectoryPoint(
            positions=np.array([1.0, 0.0]), velocities=np.zeros(2), time_from_start=msg.Duration(sec=3)
        )
        goal = client.send(follow.Goal(trajectory=msg.JointTrajectory(joint_names=list(NAMES), points=[point])))
        bus.executor.run_for(1.0)
        by_name(bus, "position", -1.0)
        bus.executor.run_for(0.2)
        assert arm.position[0] > 0.2, "refused: the trajectory goes on"
        caller.service_client("/moves/stop", srv.Trigger).call(srv.Trigger.Request())
        bus.executor.run_for(0.5)
        assert goal.done()
        assert goal.result.error_string == "stopped"
        by_name(bus, "position", -1.0)
        bus.executor.run_for(3.0)
        assert arm.position[0] == pytest.approx(-1.0)


def test_single_set_points_and_grippers_keep_to_the_rule_of_owners() -> None:
    with Bus() as bus:
        arm, owners = Arm(), JointOwners()
        parts = {"hardware": arm, "description": ARM, "owners": owners}
        bus.add(JointMovesNode(joints=NAMES, **parts), "moves")
        bus.add(JointCommandNode(joints=NAMES, **parts), "commands")
        bus.add(GripperNode(joints=("slide",), **parts), "gripper")
        grip = action.GripperCommand
        client = bus.add(Node(), "client").action_client("/gripper/gripper_cmd", grip)
        said: list[str] = []
        bus.log_sinks.append(lambda record: said.append(record.text))
        by_number(bus, "position", 1.0)
        bus.executor.run_for(0.2)
        bus.publisher("/turn/cmd", msg.Float64, "/t").publish(msg.Float64(data=-1.0))
        refused = client.send(grip.Goal(command=msg.GripperCommand(position=0.5)))
        bus.executor.run_for(2.0)
        assert not refused.succeeded
        assert arm.position == pytest.approx([1.0, -0.1])
        assert sum("being moved by /moves" in line for line in said) == 2, said
        bus.publisher("/turn/cmd", msg.Float64, "/t").publish(msg.Float64(data=0.4))  # at rest the next one takes them
        gripped = client.send(grip.Goal(command=msg.GripperCommand(position=0.5)))
        bus.executor.run_for(0.5)
        assert gripped.succeeded
        assert arm.position == pytest.approx([0.4, 0.5])


def test_the_state_goes_on() -> None:
    def half_way() -> tuple[Bus, Arm, MovingNode]:
        bus = Bus()
        arm, node = made(bus, JointMovesNode)
        by_number(bus, "position", 1.0)
        bus.executor.run_for(0.4)
        by_number(bus, "velocity", 0.3)
        bus.executor.run_for(0.2)
        return bus, arm, node

    bus, arm, node = half_way()
    state = node.save()
    with bus:
        bus.executor.run_for(1.5)
    bus, again, node = half_way()
    node.load(state)
    with bus:
        bus.executor.run_for(1.5)
    assert (again.position == arm.position).all()


class Jogger(Node):
    """Steps joints as a client does: the newest message of joint_targets, and a step more."""

    def setup(self) -> None:
        self.targets: list[float] = []
        self.told = 0
        self.subscribe("joint_targets", msg.JointState, self.on_targets)
        self.positions = self.publisher("move_position", msg.IDAndFloat)

    def on_targets(self, message: object) -> None:
        self.targets, self.told = message.position.tolist(), self.told + 1  # type: ignore[attr-defined]

    def step(self, number: int, step: float) -> None:
        self.targets[number - 1] += step
        self.positions.publish(msg.IDAndFloat(id=number, value=self.targets[number - 1]))


class Yard:
    """Joints that a trajectory node, set-points and two nodes for single joints move, and somebody who jogs them."""

    def __init__(self, bus: Bus) -> None:
        self.bus, self.arm = bus, Arm()
        parts = {"hardware": self.arm, "description": ARM, "joints": NAMES, "owners": JointOwners()}
        rates = JointRates(dict.fromkeys(NAMES, ACCELERATION))
        bus.add(JointTrajectoryNode(rates=rates, **parts), "jtc")
        bus.add(JointMovesNode(rates=rates, **parts), "moves")
        bus.add(JointCommandNode(topics=("/turn/cmd", "/slide/cmd"), **parts), "commands")
        self.jogger = bus.add(Jogger(), "jogger")
        self.caller = bus.add(Node(), "caller")
        self.follow = action.FollowJointTrajectory
        self.client = self.caller.action_client("/jtc/follow_joint_trajectory", self.follow)
        bus.executor.run_for(0.1)

    def send(self, end: tuple[float, float], seconds: int = 3) -> object:
        point = msg.JointTrajectoryPoint(
            positions=np.array(end), velocities=np.zeros(2), time_from_start=msg.Duration(sec=seconds)
        )
        return self.client.send(
            self.follow.Goal(trajectory=msg.JointTrajectory(joint_names=list(NAMES), points=[point]))
        )

    def call(self, service: str) -> None:
        self.caller.service_client(service, srv.Trigger).call(srv.Trigger.Request())

    def move(self, how: str, end: tuple[float, float]) -> None:
        """Bring the joints somewhere by another route than single joints, to rest."""
        if how == "set-points":
            for topic, value in zip(("/turn/cmd", "/slide/cmd"), end, strict=True):
                self.bus.publisher(topic, msg.Float64, "/t").publish(msg.Float64(data=value))
            self.bus.executor.run_for(0.5)
            return
        self.send(end)
        self.bus.executor.run_for(4.0 if how == "trajectory" else 1.2)
        if how == "stopped trajectory":
            self.call("/moves/stop")
            self.bus.executor.run_for(1.0)


@pytest.mark.parametrize("how", ["trajectory", "stopped trajectory", "set-points"])
@given(
    end=st.tuples(st.floats(-1.5, 1.5), st.floats(-1.5, 1.5)),
    number=st.sampled_from([1, 2]),
    step=st.sampled_from([-0.1, -0.05, 0.05, 0.1]),
)
@settings(max_examples=8, deadline=None)
def test_a_jog_begins_where_another_source_left_the_joints_and_never_goes_the_wrong_way(
    how: str, end: tuple[float, float], number: int, step: float
) -> None:
    with Bus() as bus:
        yard = Yard(bus)
        yard.move(how, end)
        stood = yard.arm.position.copy()
        yard.arm.history.clear()
        yard.jogger.step(number, step)
        bus.executor.run_for(2.0)
        way = (np.array(yard.arm.history) - stood) * np.sign(step)
        assert way[:, number - 1].min() > -2e-3
        assert way[-1, number - 1] == pytest.approx(abs(step), abs=2e-3)
        assert np.abs(way[:, 2 - number]).max() < 2e-3, "the other joint stays"


def test_a_step_that_is_refused_is_not_reckoned_with_later() -> None:
    with Bus() as bus:
        yard = Yard(bus)
        goal = yard.send((1.0, 0.0))
        bus.executor.run_for(0.5)
        pause = yard.caller.service_client("/jtc/pause", srv.SetBool)
        pause.call(srv.SetBool.Request(data=True))
        bus.executor.run_for(1.0)
        stood = yard.arm.position[0]
        for _ in range(5):
            yard.jogger.step(1, 0.1)
            bus.executor.run_for(0.1)
        assert yard.arm.position[0] == stood
        yard.call("/jtc/stop")
        pause.call(srv.SetBool.Request(data=False))
        bus.executor.run_for(0.5)
        assert goal.done()  # type: ignore[attr-defined]
        stood = yard.arm.position[0]
        yard.arm.history.clear()
        yard.jogger.step(1, -0.1)
        bus.executor.run_for(1.0)
        assert max(position[0] for position in yard.arm.history) < stood + 2e-3
        assert yard.arm.position[0] == pytest.approx(stood - 0.1, abs=2e-3)


def test_targets_are_published_seldom_while_a_trajectory_moves_the_joints_and_not_when_they_stand() -> None:
    with Bus() as bus:
        yard = Yard(bus)
        before = yard.jogger.told
        yard.move("trajectory", (1.0, 0.5))
        assert 5 < yard.jogger.told - before <= 31, "ten times a second"
        before = yard.jogger.told
        bus.executor.run_for(5.0)
        assert yard.jogger.told == before
        assert yard.jogger.targets == pytest.approx(yard.arm.position.tolist(), abs=2e-3)


@BOTH
@pytest.mark.parametrize("what", ["position", "velocity"])
def test_a_joint_that_something_pushed_away_starts_from_where_it_is(kind, tell, what: str) -> None:
    with Bus() as bus:
        arm, _ = made(bus, kind)
        tell(bus, "position", 0.2)
        bus.executor.run_for(1.0)
        arm.write = lambda command: None  # the drives are off, and somebody moves the arm by hand
        arm.position[0] = 1.0
        bus.executor.run_for(0.5)
        del arm.write
        arm.history.clear()
        tell(bus, what, 1.2 if what == "position" else 0.5)
        bus.executor.run_for(0.3)
        assert min(position[0] for position in arm.history) >= 1.0 - 1e-9
        assert keeps_limits(arm)
