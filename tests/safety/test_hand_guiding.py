"""Hand guiding: the tool follows the hand, within its speed limit, and stops when the switch is released."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.harness.bus import BusHarness

import roboyard as ry
from roboyard.errors import InputError
from roboyard.geometry import SE3
from roboyard.messages import msg
from roboyard.safety.collaborative.hand_guiding import (
    ARM_REACH,
    AdmittanceConfig,
    AdmittanceController,
    find_guiding_person,
)
from roboyard.safety.nodes import HandGuidingNode

FORCES = st.lists(st.floats(-200.0, 200.0), min_size=3, max_size=3)
CONFIGS = st.builds(
    AdmittanceConfig, mass=st.floats(0.5, 50.0), damping=st.floats(1.0, 500.0), speed=st.floats(0.01, 1.0)
)


@given(CONFIGS, st.lists(FORCES, min_size=1, max_size=20), st.floats(0.001, 0.1))
def test_guiding_keeps_speed_limit_and_takes_no_energy(config, forces, dt) -> None:
    guide = AdmittanceController(config)
    for force in forces:
        before = 0.5 * config.mass * float(guide.velocity @ guide.velocity)
        velocity = guide.step(force, dt, is_enabled=True)
        assert np.linalg.norm(velocity) <= config.speed * (1.0 + 1e-9)
        after = 0.5 * config.mass * float(velocity @ velocity)
        # what is gained is at most the hand's power at the largest speed of the step
        assert (
            after - before
            <= np.linalg.norm(force) * max(np.sqrt(2.0 * max(before, after) / config.mass), 0.0) * dt + 1e-9
        )


@given(CONFIGS, FORCES)
def test_guiding_speed_is_force_over_damping(config, force) -> None:
    guide = AdmittanceController(config)
    for _ in range(200):
        guide.step(force, config.mass / config.damping, is_enabled=True)
    size = float(np.linalg.norm(force))
    expected = min(max(size - config.dead_band, 0.0) / config.damping, config.speed)
    assert np.linalg.norm(guide.velocity) == pytest.approx(expected, abs=1e-9)
    if expected > 0.0:
        assert guide.velocity / expected == pytest.approx(np.array(force) / size, abs=1e-6)


@given(FORCES, st.integers(1, 20))
def test_guiding_is_independent_of_the_time_step(force, parts) -> None:
    config = AdmittanceConfig(speed=5.0)
    single, split = AdmittanceController(config), AdmittanceController(config)
    single.step(force, 0.1, is_enabled=True)
    for _ in range(parts):
        split.step(force, 0.1 / parts, is_enabled=True)
    assert split.velocity == pytest.approx(single.velocity, abs=1e-9)


@given(st.dictionaries(st.text(min_size=1), st.floats(-0.2, 3.0), max_size=5))
def test_guiding_person_is_the_nearest_within_reach(distances: dict[str, float]) -> None:
    person = find_guiding_person(distances)
    assert (person == "") == (min(distances.values(), default=9.0) > ARM_REACH)
    assert not person or distances[person] == min(distances.values())


def test_guiding_stops_soon_without_the_switch() -> None:
    guide = AdmittanceController(AdmittanceConfig(deceleration=2.0))
    for _ in range(100):
        guide.step((50.0, 0.0, 0.0), 0.02, is_enabled=True)
    assert guide.velocity[0] == pytest.approx(0.25)
    for _ in range(7):
        guide.step((50.0, 0.0, 0.0), 0.02, is_enabled=False)
    assert not guide.velocity.any()
    with pytest.raises(InputError, match="three finite"):
        guide.step((np.nan, 0.0, 0.0), 0.02, is_enabled=True)


def push(force: tuple[float, float, float], frame: str) -> object:
    return msg.WrenchStamped(header=msg.Header(frame_id=frame), wrench=msg.Wrench(force=msg.Vector3(*force)))


def test_guiding_node_needs_switch_and_force(harness: BusHarness) -> None:
    harness.set_transform(SE3.from_xyz_rpy((0, 0, 1), (0, 0, np.pi / 2)), "base_link", "hand", static=True)
    node = harness.add(HandGuidingNode(wrench_topics=("push",)), "hand_guiding")
    output = harness.published(node.resolve(node.config.command_topic))

    def run(seconds: float, *, is_enabled: bool, pushing: bool, value: float = 40.0) -> None:
        for _ in range(round(seconds / 0.1)):
            if is_enabled:
                harness.publish("/hand_guiding/enable", msg.Bool(data=True), source="/hand")
            if pushing:
                harness.publish("/push", push((value, 0.0, 0.0), "hand"), source="/hand")
            harness.run_for(0.1)

    run(0.5, is_enabled=False, pushing=True)
    run(0.5, is_enabled=False, pushing=False)
    run(0.5, is_enabled=True, pushing=False)
    assert not output or not any(message.twist.linear.y for message in output.messages)
    run(1.0, is_enabled=True, pushing=True)
    twist = output.last.twist.linear
    assert (twist.x, twist.y) == pytest.approx((0.0, 0.25), abs=1e-9), "in the axes of the base"
    assert output.last.header.frame_id == "base_link"
    run(1.0, is_enabled=False, pushing=True)
    count = len(output)
    assert output.last.twist.linear.y == 0.0
    run(0.5, is_enabled=False, pushing=True)
    assert len(output) == count
    run(0.5, is_enabled=True, pushing=True, value=np.nan)
    assert output.last.twist.linear.y == 0.0
    assert any("ignored a force" in line and "not finite" in line for line in harness.log_lines)


class GuidingHand(ry.Node):
    """Pushes the tool upwards and back, holding the switch at first."""

    def setup(self) -> None:
        self.force = self.publisher("push", msg.WrenchStamped)
        self.switch = self.publisher("hand_guiding/enable", msg.Bool)
        self.timer(rate=20.0, callback=self.publish_force)

    def publish_force(self) -> None:
        self.force.publish(push((-10.0, 0.0, 20.0), "base_link"))
        if self.now < 1.5:
            self.switch.publish(msg.Bool(data=True))


def test_guided_iisy_follows_the_hand_and_stops() -> None:
    run = ry.Run("empty", record=False)
    arm = run.add_robot("iisy", nodes=["joint_states", "robot_state", "servo"])
    arm.add_node("hand_guiding", "hand_guiding", parameters={"wrench_topics": ["push"]})
    arm.add_node(GuidingHand(), "hand")
    tip = arm.arm_truth.tip_poses
    run.run_for(0.3)
    start, positions = np.array(tip("arm")[1].xyz), []
    for _ in range(24):
        run.run_for(0.05)
        positions.append(np.array(tip("arm")[1].xyz))
    displacement = positions[-1] - start
    assert displacement[2] > 0.05
    assert displacement[0] == pytest.approx(-0.5 * displacement[2], abs=0.02)
    speeds = np.linalg.norm(np.diff(positions, axis=0), axis=1) / 0.05
    assert speeds.max() < 0.26
    run.run_for(1.0)
    stop_position = np.array(tip("arm")[1].xyz)
    run.run_for(0.5)
    assert np.linalg.norm(np.array(tip("arm")[1].xyz) - stop_position) < 1e-3
    run.close()
