"""The guard over arms that are driven and guided by hand: what is wanted, what is allowed, and who may touch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.safety.test_person_guard import MIDDLE, guard, somebody

import roboyard as ry
from roboyard.messages import msg
from roboyard.safety.allowance import Allowance, going_on
from roboyard.safety.person_guard import Mode, Motion

PUSH = np.array([0.0, 0.6, -0.4, 0.0, 0.0, 0.0])
"""Leans the arm forward [rad/s]."""


@given(st.lists(st.tuples(st.floats(allow_nan=True), st.integers(0, 10)), max_size=20))
def test_allowance_expires_without_guard_messages(told: list[tuple[float, int]]) -> None:
    allowance, now, last = Allowance(0.3), 0, None
    assert allowance.share(0) == 0.0
    for share, later in told:
        now += later * 100_000_000
        expected = 0.0 if last is None or now - last[1] > 300_000_000 or not 0.0 <= last[0] <= 1.0 else last[0]
        assert allowance.share(now) == expected
        again = Allowance(0.3)
        again.load_state(allowance.save_state())
        assert again.share(now) == expected
        allowance.tell(share, now)
        last = share, now


def test_only_the_guiding_person_may_be_touched() -> None:
    motion = Motion(MIDDLE, 0.2 * PUSH, going_on(MIDDLE, 0.2 * PUSH))
    near = somebody(0.75, 0.0)
    for mode in (Mode.SSM, Mode.ZONES):
        assert guard(mode).judge(0, motion, near, 0.05).stopped
        assert guard(mode).judge(0, motion, near, 0.05, guided=True).pace > 0.3
        for x in (1.0, 9.0):
            other = somebody(x, 0.3)
            other = type(near)(("ben",) * 2, other.parts, other.ends, other.radii, other.velocities)
            both = type(near).joined([near, other])
            assert guard(mode).judge(0, motion, both, 0.05, guided=True).stopped == (x == 1.0)
    fast = Motion(MIDDLE, PUSH, going_on(MIDDLE, PUSH))
    without, with_switch = (
        guard(Mode.SSM).judge(0, fast, somebody(1.15, 0.0), 0.05, guided=held).pace for held in (False, True)
    )
    assert without == with_switch < 0.8, "who does not reach the arm does not guide it"


class JogPublisher(ry.Node):
    """Commands speeds of joints all the time."""

    def setup(self) -> None:
        self.jog = self.publisher("servo/delta_joint_cmds", msg.JointJog)
        self.timer(rate=20.0, callback=self.publish)

    def publish(self) -> None:
        back_and_forth = [np.sin(2.0 * self.now), 0.0, 0.0, 0.0, 0.0, 0.0]
        self.jog.publish(msg.JointJog(joint_names=[f"joint_{k}" for k in range(1, 7)], velocities=back_and_forth))


class GuidingHand(ry.Node):
    """Pushes the tool and holds the switch."""

    def setup(self) -> None:
        self.force = self.publisher("push", msg.WrenchStamped)
        self.switch = self.publisher("hand_guiding/enable", msg.Bool)
        self.timer(rate=20.0, callback=self.publish)

    def publish(self) -> None:
        sideways = msg.Vector3(0.0, 40.0 * np.sin(2.0 * self.now), 0.0)
        self.force.publish(msg.WrenchStamped(msg.Header(frame_id="base_link"), msg.Wrench(force=sideways)))
        self.switch.publish(msg.Bool(data=True))


def make_guarded_arm(*nodes: str, people: tuple[str, ...] = ("anna",), **guard: object) -> ry.Run:
    run = ry.Run("empty", record=False)
    arm = run.add_robot("iisy", nodes=["joint_states", "robot_state"])
    arm.add_node("servo", "servo", parameters={"guarded": True, "speed": 1.0})
    joints = [f"joint_{k}" for k in range(1, 7)]
    arm.add_node(
        "collaborative_safety", "collaborative_safety", parameters={"people": list(people), "joints": joints, **guard}
    )
    return run


def largest_speed(run: ry.Run, seconds: float) -> float:
    """Largest of any joint in a while [rad/s]."""
    most = 0.0
    for _ in range(round(seconds / 0.02)):
        run.run_for(0.02)
        most = max(most, float(np.abs(run.robots["iisy"].arm_truth.state().velocity).max()))
    return most


@pytest.fixture
def kept() -> Iterator[list[ry.Run]]:
    runs: list[ry.Run] = []
    yield runs
    for run in runs:
        run.close()


@pytest.mark.slow
def test_driven_arm_stops_near_people_and_resumes(kept: list[ry.Run]) -> None:
    run = make_guarded_arm()
    kept.append(run)
    run.add_person("anna", pose=(3.5, 0.0, 3.14), body_publish_rate=25.0)
    run.robots["iisy"].add_node(JogPublisher(), "driver")
    assert largest_speed(run, 2.0) > 0.8
    run.remove("anna")
    run.add_person("anna", pose=(1.0, 0.0, 3.14), body_publish_rate=25.0)
    largest_speed(run, 1.0)
    assert largest_speed(run, 2.0) < 0.02
    run.bus.nodes["/collaborative_safety"].set_parameter("mode", "off")
    assert largest_speed(run, 2.0) > 0.8


def test_silent_guard_stops_a_driven_arm(kept: list[ry.Run]) -> None:
    run = make_guarded_arm()
    kept.append(run)
    run.add_person("anna", pose=(3.5, 0.0, 3.14), body_publish_rate=25.0)
    run.robots["iisy"].add_node(JogPublisher(), "driver")
    assert largest_speed(run, 1.0) > 0.5
    run.bus.remove(run.bus.nodes["/collaborative_safety"])
    largest_speed(run, 0.4)
    assert largest_speed(run, 2.0) < 0.02


@pytest.mark.slow
def test_guided_arm_moves_until_another_person_comes(kept: list[ry.Run]) -> None:
    run = make_guarded_arm(people=("anna", "ben"))
    kept.append(run)
    arm = run.robots["iisy"]
    arm.add_node("hand_guiding", "hand_guiding", parameters={"wrench_topics": ["push"]})
    arm.add_node(GuidingHand(), "hand")
    run.add_person("anna", pose=(0.8, 0.0, 3.14), body_publish_rate=25.0)
    run.add_person("ben", pose=(0.0, 4.0, -1.57), body_publish_rate=25.0)
    assert largest_speed(run, 2.5) > 0.1
    run.remove("ben")
    run.add_person("ben", pose=(0.0, 1.0, -1.57), body_publish_rate=25.0)
    largest_speed(run, 1.0)
    assert largest_speed(run, 2.0) < 0.02
