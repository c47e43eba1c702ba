"""The gripper node on a bus, with fingers that move at a bounded speed and may meet something."""

from __future__ import annotations

import math

import numpy as np
import pytest

from roboyard.bus import Bus, Node
from roboyard.control.nodes import GripperNode
from roboyard.description.model import Axis, Joint, Limits, Link, Model
from roboyard.geometry import SE3
from roboyard.hardware.interface import CommandMode, JointCommand, JointReadings
from roboyard.messages import action, msg

SPEED = 0.1
HAND = Model(
    "hand",
    (Link("palm", SE3.identity()), Link("finger", SE3.identity())),
    (
        Joint(
            "slide",
            "prismatic",
            "palm",
            "finger",
            SE3.identity(),
            SE3.identity(),
            (Axis((0, 1, 0), Limits(0.0, 0.08)),),
        ),
    ),
)


class Fingers:
    """They go where they are told at ``SPEED``, but not below ``held``, where something is between them."""

    joint_names = ("slide",)

    def __init__(self, bus: Bus, held: float) -> None:
        self.bus, self.held, self.target = bus, held, 0.08
        self.start, self.begun_ns = 0.08, 0

    def command_modes(self, joint: str) -> tuple[CommandMode, ...]:
        return ("position",)

    def _way(self) -> float:
        gone = SPEED * (self.bus.now_ns - self.begun_ns) * 1e-9
        return self.start + math.copysign(min(gone, abs(self.target - self.start)), self.target - self.start)

    def read(self) -> JointReadings:
        here = max(self._way(), self.held)
        moving = here not in (self.target, self.held)
        return JointReadings(self.bus.now_ns, np.array([here]), np.array([SPEED * moving]), np.array([2.5]))

    def write(self, command: JointCommand) -> None:
        self.start, self.begun_ns = float(self.read().position[0]), self.bus.now_ns
        self.target = float(command.values[0])


def send(bus: Bus, position: float, held: float = 0.0, **parameters: object) -> tuple[Fingers, object, object]:
    """The fingers, a client, and a goal that was sent to it."""
    fingers = Fingers(bus, held)
    bus.add(GripperNode(hardware=fingers, description=HAND, joints=("slide",), **parameters), "gripper")
    client = bus.add(Node(), "client").action_client("/gripper/gripper_cmd", action.GripperCommand)
    return fingers, client, client.send(goal_of(position))


def goal_of(position: float) -> object:
    return action.GripperCommand.Goal(command=msg.GripperCommand(position=position))


def test_a_goal_is_reached_and_told_when_the_fingers_are_there() -> None:
    with Bus() as bus:
        fingers, _, goal = send(bus, 0.03, goal_tolerance=0.001)
        bus.executor.run_for(0.45)
        assert not goal.done()
        bus.executor.run_for(0.1)
        assert goal.succeeded
        assert goal.result.reached_goal
        assert not goal.result.stalled
        assert goal.result.position == pytest.approx(fingers.read().position[0], abs=0.003)


@pytest.mark.parametrize("allowed", [False, True])
def test_fingers_that_stand_still_on_something_are_stalled(allowed: bool) -> None:
    with Bus() as bus:
        fingers, _, goal = send(bus, 0.0, held=0.05, stall_timeout=0.5, allow_stalling=allowed)
        bus.executor.run_for(0.7)
        assert not goal.done(), "0.3 s on the way, then half a second of standing still"
        bus.executor.run_for(0.3)
        assert goal.done()
        assert goal.succeeded is allowed
        assert goal.result.stalled
        assert not goal.result.reached_goal
        assert (goal.result.position, goal.result.effort) == (0.05, 2.5)
        assert fingers.target == 0.0, "they go on pressing"


def test_what_is_beyond_the_joint_s_range_is_refused() -> None:
    with Bus() as bus:
        fingers, client, goal = send(bus, 0.09)
        nothing = client.send(goal_of(math.nan))
        bus.executor.run_for(0.2)
        assert goal.done()
        assert nothing.done()
        assert not goal.accepted
        assert not nothing.accepted
        assert fingers.target == 0.08


def test_a_cancel_stops_the_fingers_and_a_newer_goal_takes_over() -> None:
    with Bus() as bus:
        fingers, client, goal = send(bus, 0.0)
        bus.executor.run_for(0.3)
        goal.cancel()
        bus.executor.run_for(0.1)
        assert goal.done()
        assert fingers.target == pytest.approx(0.05, abs=0.003)
        first, second = client.send(goal_of(0.0)), client.send(goal_of(0.06))
        bus.executor.run_for(0.5)
        assert not first.succeeded
        assert second.succeeded
