"""Joints moved one by one, by number and by name, on a bus with ideal joints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.bus import Bus, Node
from roboyard.control.limits import JointRates
from roboyard.control.nodes import (
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


class JoggedArm:
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
def test_jog_starts_where_another_source_left_the_joints(
    how: str, end: tuple[float, float], number: int, step: float
) -> None:
    with Bus() as bus:
        jogged = JoggedArm(bus)
        jogged.move(how, end)
        stood = jogged.arm.position.copy()
        jogged.arm.history.clear()
        jogged.jogger.step(number, step)
        bus.executor.run_for(2.0)
        way = (np.array(jogged.arm.history) - stood) * np.sign(step)
        assert way[:, number - 1].min() > -2e-3
        assert way[-1, number - 1] == pytest.approx(abs(step), abs=2e-3)
        assert np.abs(way[:, 2 - number]).max() < 2e-3, "the other joint stays"


def test_refused_step_is_not_added_to_later_steps() -> None:
    with Bus() as bus:
        jogged = JoggedArm(bus)
        goal = jogged.send((1.0, 0.0))
        bus.executor.run_for(0.5)
        pause = jogged.caller.service_client("/jtc/pause", srv.SetBool)
        pause.call(srv.SetBool.Request(data=True))
        bus.executor.run_for(1.0)
        stood = jogged.arm.position[0]
        for _ in range(5):
            jogged.jogger.step(1, 0.1)
            bus.executor.run_for(0.1)
        assert jogged.arm.position[0] == stood
        jogged.call("/jtc/stop")
        pause.call(srv.SetBool.Request(data=False))
        bus.executor.run_for(0.5)
        assert goal.done()  # type: ignore[attr-defined]
        stood = jogged.arm.position[0]
        jogged.arm.history.clear()
        jogged.jogger.step(1, -0.1)
        bus.executor.run_for(1.0)
        assert max(position[0] for position in jogged.arm.history) < stood + 2e-3
        assert jogged.arm.position[0] == pytest.approx(stood - 0.1, abs=2e-3)


def test_targets_are_published_while_a_trajectory_moves_the_joints() -> None:
    with Bus() as bus:
        jogged = JoggedArm(bus)
        before = jogged.jogger.told
        jogged.move("trajectory", (1.0, 0.5))
        assert 5 < jogged.jogger.told - before <= 31, "ten times a second"
        before = jogged.jogger.told
        bus.executor.run_for(5.0)
        assert jogged.jogger.told == before
        assert jogged.jogger.targets == pytest.approx(jogged.arm.position.tolist(), abs=2e-3)


@BOTH
@pytest.mark.parametrize("what", ["position", "velocity"])
def test_pushed_joint_starts_from_where_it_is(kind, tell, what: str) -> None:
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
