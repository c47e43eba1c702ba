"""The safety monitor of arms in teleoperation and hand guiding: commanded and allowed speeds, and allowed contacts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.safety.test_collaborative_monitor import CENTER_POSITION, make_monitor, make_person

import roboyard as ry
from roboyard.messages import msg
from roboyard.safety.collaborative.monitor import (
    CollaborativeMode,
    PlannedMotion,
    SpeedScalingWatchdog,
    extrapolate_motion,
)

PUSH = np.array([0.0, 0.6, -0.4, 0.0, 0.0, 0.0])
"""Leans the arm forward [rad/s]."""


@given(st.lists(st.tuples(st.floats(allow_nan=True), st.integers(0, 10)), max_size=20))
def test_speed_scaling_expires_without_monitor_messages(messages: list[tuple[float, int]]) -> None:
    watchdog, now, last = SpeedScalingWatchdog(0.3), 0, None
    assert watchdog.scaling(0) == 0.0
    for scaling, later in messages:
        now += later * 100_000_000
        expected = 0.0 if last is None or now - last[1] > 300_000_000 or not 0.0 <= last[0] <= 1.0 else last[0]
        assert watchdog.scaling(now) == expected
        restored = SpeedScalingWatchdog(0.3)
        restored.load_state(watchdog.save_state())
        assert restored.scaling(now) == expected
        watchdog.set_scaling(scaling, now)
        last = scaling, now


def test_only_the_guiding_person_may_be_touched() -> None:
    motion = PlannedMotion(CENTER_POSITION, 0.2 * PUSH, extrapolate_motion(CENTER_POSITION, 0.2 * PUSH))
    person = make_person(0.75, 0.0)
    for mode in (CollaborativeMode.SSM, CollaborativeMode.ZONES):
        assert make_monitor(mode).update(0, motion, person, 0.05).is_stopped
        assert make_monitor(mode).update(0, motion, person, 0.05, is_hand_guided=True).speed_scaling > 0.3
        for x in (1.0, 9.0):
            other = make_person(x, 0.3)
            other = type(person)(("ben",) * 2, other.parts, other.ends, other.radii, other.velocities)
            both = type(person).concatenate([person, other])
            assert make_monitor(mode).update(0, motion, both, 0.05, is_hand_guided=True).is_stopped == (x == 1.0)
    fast = PlannedMotion(CENTER_POSITION, PUSH, extrapolate_motion(CENTER_POSITION, PUSH))
    without, with_switch = (
        make_monitor(CollaborativeMode.SSM)
        .update(0, fast, make_person(1.15, 0.0), 0.05, is_hand_guided=is_enabled)
        .speed_scaling
        for is_enabled in (False, True)
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
    arm.add_node("servo", "servo", parameters={"is_person_limited": True, "speed_scaling": 1.0})
    joints = [f"joint_{k}" for k in range(1, 7)]
    arm.add_node(
        "collaborative_safety", "collaborative_safety", parameters={"people": list(people), "joints": joints, **guard}
    )
    return run


def measure_max_speed(run: ry.Run, seconds: float) -> float:
    """Largest of any joint in a while [rad/s]."""
    max_speed = 0.0
    for _ in range(round(seconds / 0.02)):
        run.run_for(0.02)
        max_speed = max(max_speed, float(np.abs(run.robots["iisy"].arm_truth.state().velocity).max()))
    return max_speed


@pytest.fixture
def open_runs() -> Iterator[list[ry.Run]]:
    runs: list[ry.Run] = []
    yield runs
    for run in runs:
        run.close()


@pytest.mark.slow
def test_driven_arm_stops_near_people_and_resumes(open_runs: list[ry.Run]) -> None:
    run = make_guarded_arm()
    open_runs.append(run)
    run.add_person("anna", pose=(3.5, 0.0, 3.14), body_publish_rate=25.0)
    run.robots["iisy"].add_node(JogPublisher(), "driver")
    assert measure_max_speed(run, 2.0) > 0.8
    run.remove("anna")
    run.add_person("anna", pose=(1.0, 0.0, 3.14), body_publish_rate=25.0)
    measure_max_speed(run, 1.0)
    assert measure_max_speed(run, 2.0) < 0.02
    run.bus.nodes["/collaborative_safety"].set_parameter("mode", "off")
    assert measure_max_speed(run, 2.0) > 0.8


def test_silent_guard_stops_a_driven_arm(open_runs: list[ry.Run]) -> None:
    run = make_guarded_arm()
    open_runs.append(run)
    run.add_person("anna", pose=(3.5, 0.0, 3.14), body_publish_rate=25.0)
    run.robots["iisy"].add_node(JogPublisher(), "driver")
    assert measure_max_speed(run, 1.0) > 0.5
    run.bus.remove(run.bus.nodes["/collaborative_safety"])
    measure_max_speed(run, 0.4)
    assert measure_max_speed(run, 2.0) < 0.02


@pytest.mark.slow
def test_guided_arm_moves_until_another_person_comes(open_runs: list[ry.Run]) -> None:
    run = make_guarded_arm(people=("anna", "ben"))
    open_runs.append(run)
    arm = run.robots["iisy"]
    arm.add_node("hand_guiding", "hand_guiding", parameters={"wrench_topics": ["push"]})
    arm.add_node(GuidingHand(), "hand")
    run.add_person("anna", pose=(0.8, 0.0, 3.14), body_publish_rate=25.0)
    run.add_person("ben", pose=(0.0, 4.0, -1.57), body_publish_rate=25.0)
    assert measure_max_speed(run, 2.5) > 0.1
    run.remove("ben")
    run.add_person("ben", pose=(0.0, 1.0, -1.57), body_publish_rate=25.0)
    measure_max_speed(run, 1.0)
    assert measure_max_speed(run, 2.0) < 0.02
