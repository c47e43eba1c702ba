"""The collaborative safety monitor: in a loop with an arm that follows its speed scalings, and its stops and zones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import ConfigError
from roboyard.safety.collaborative.capsule_distance import compute_capsule_distances
from roboyard.safety.collaborative.capsules import LinkCapsules, PersonCapsules
from roboyard.safety.collaborative.monitor import (
    CollaborativeMode,
    CollaborativeSafetyConfig,
    CollaborativeSafetyMonitor,
    PlannedMotion,
)
from roboyard.safety.collaborative.separation import (
    STANDSTILL_SPEED,
    SeparationParameters,
    protective_distance,
    stopping_time,
)

GROUPS = load_joint_groups("iisy")
CHAIN = GROUPS.chain("arm")
CAPSULES = LinkCapsules.from_model(GROUPS.model, CHAIN)
BRAKES = 0.8 * CHAIN.max_acceleration
CENTER_POSITION = np.array([0.0, -1.2, 1.6, 0.0, 1.2, 0.0])
NO_PEOPLE = PersonCapsules.concatenate([])


def make_monitor(
    mode: CollaborativeMode, separation: SeparationParameters | None = None, **config: float
) -> CollaborativeSafetyMonitor:
    return CollaborativeSafetyMonitor(
        CHAIN, CAPSULES, BRAKES, 8.0, mode, CollaborativeSafetyConfig(**config), separation or SeparationParameters()
    )


def make_person(x: float, y: float, velocity: tuple[float, float] = (0.0, 0.0)) -> PersonCapsules:
    """An upright trunk and a level arm ahead of it, that go on alike."""
    ends = np.array([[[x, y, 0.3], [x, y, 1.5]], [[x, y, 0.9], [0.7 * x, 0.7 * y, 0.9]]])
    moving = np.broadcast_to([*velocity, 0.0], (2, 2, 3)).copy()
    return PersonCapsules(("anna",) * 2, ("chest", "left_hand"), ends, np.array([0.15, 0.05]), moving)


class SwingingArm:
    """An arm that moves to and fro on a path, with a speed scaling that changes no faster than its joints can brake."""

    def __init__(self, amplitude: np.ndarray, rate: float) -> None:
        self.amplitude, self.rate = amplitude, rate
        self.path_time, self.scaling, self.desired_scaling = 0.0, 0.0, 0.0

    def sample(self, path_times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        phase = self.rate * np.asarray(path_times)[..., None]
        return CENTER_POSITION + self.amplitude * np.sin(phase), self.amplitude * self.rate * np.cos(phase)

    def step(self, dt: float) -> None:
        speeds = np.abs(self.sample(self.path_time)[1])
        deceleration = float((BRAKES / np.maximum(speeds, 1e-9)).min())
        self.scaling = (
            max(self.desired_scaling, self.scaling - deceleration * dt)
            if self.desired_scaling < self.scaling
            else self.desired_scaling
        )
        self.path_time += self.scaling * dt

    @property
    def motion(self) -> PlannedMotion:
        q, velocity = self.sample(self.path_time)
        return PlannedMotion(q, velocity * self.scaling, lambda times: self.sample(self.path_time + times))


@given(
    st.integers(0, 2**32 - 1), st.floats(0.0, 0.15), st.sampled_from([0.02, 0.04, 0.1]),
    st.lists(st.floats(-0.9, 0.9), min_size=6, max_size=6),
)  # fmt: skip
@settings(max_examples=15)
def test_monitor_keeps_protective_distance_to_random_pedestrians(seed, latency, period, swing) -> None:
    """People turn as they like and go up to 1.6 m/s; sensors are late; the arm brakes as it is known to."""
    rng, separation = np.random.default_rng(seed), SeparationParameters()
    arm, monitor = SwingingArm(np.array(swing), 1.5), make_monitor(CollaborativeMode.SSM, separation)
    dt, x, y, vx, vy = 0.01, 2.5, 0.5, 0.0, 0.0
    observations: list[tuple[float, PersonCapsules]] = []
    distance = 0.0
    for k in range(600):
        now = k * dt
        if k % 30 == 0:
            angle, speed = math.atan2(-y, -x) + rng.uniform(-1.2, 1.2), rng.uniform(0.0, 1.6)
            if math.hypot(x, y) < 0.5:
                angle += math.pi
            vx, vy = speed * math.cos(angle), speed * math.sin(angle)
        if k % max(1, round(period / dt)) == 0:
            observations.append((now, make_person(x, y, (vx, vy))))
        if k % 2 == 0:
            available = [one for one in observations if one[0] <= now - latency] or observations[:1]
            decision = monitor.update(round(now * 1e9), arm.motion, available[-1][1], now - available[-1][0])
            arm.desired_scaling = decision.speed_scaling
        arm.step(dt)
        x, y = x + vx * dt, y + vy * dt
        distance += arm.scaling * dt
        person, (q, velocity, _) = make_person(x, y, (vx, vy)), arm.motion
        distances = compute_capsule_distances(CHAIN, CAPSULES, q[None], velocity[None], person)
        required_distance = protective_distance(
            separation, separation.person_speed, distances.robot_approach_speed[0], stopping_time(velocity, BRAKES)
        )
        bad = (distances.max_speed[0] > STANDSTILL_SPEED)[:, None] & (distances.distance[0] < required_distance)
        assert not bad.any(), (now, float((distances.distance[0] - required_distance)[bad].min()))
    assert distance > 0.0


@pytest.mark.parametrize("sharp", [0.3, 1.0, 3.0, 8.0])
def test_monitor_stops_before_motion_near_a_person_begins(sharp: float) -> None:
    """As when a hand-over ends and the arm draws back: what is beside it leaves no time to get faster first."""

    class StartingArm(SwingingArm):
        def sample(self, path_times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            t = np.maximum(np.asarray(path_times)[..., None], 0.0)
            return CENTER_POSITION + self.amplitude * 0.5 * sharp * t**2, self.amplitude * sharp * t

    arm, monitor, scalings = (
        StartingArm(np.array([1.0, 0.0, 0.5, 0.0, 0.0, 0.0]), 1.0),
        make_monitor(CollaborativeMode.SSM),
        [],
    )
    people = make_person(0.7, 0.0)
    for k in range(200):
        if k % 4 == 0:
            scalings.append((k + 8, monitor.update(k * 10_000_000, arm.motion, people, 0.04).speed_scaling))
        arm.desired_scaling = next((scaling for due, scaling in reversed(scalings) if due <= k), scalings[0][1])
        arm.step(0.01)
        q, velocity, _ = arm.motion
        distances = compute_capsule_distances(CHAIN, CAPSULES, q[None], velocity[None], people)
        assert (distances.max_speed[0] <= STANDSTILL_SPEED).all() or distances.distance.min() > 0.5


def test_monitor_allows_full_speed_without_people_or_when_off() -> None:
    motion = PlannedMotion(CENTER_POSITION, np.ones(6))
    assert make_monitor(CollaborativeMode.SSM).update(0, motion, NO_PEOPLE, 0.0).speed_scaling == 1.0
    decision = make_monitor(CollaborativeMode.OFF).update(0, motion, make_person(0.5, 0.0), 0.0)
    assert (decision.speed_scaling, decision.is_stopped) == (1.0, False)
    assert decision.min_separation < decision.protective_distance  # but it tells
    assert decision.person == "anna"


@given(st.floats(0.3, 4.0), st.floats(0.0, 2.0), st.floats(0.0, 1.0), st.floats(0.0, 0.3))
def test_speed_scaling_falls_with_proximity_speed_and_latency(x, speed, more, age) -> None:
    motion = PlannedMotion(CENTER_POSITION, np.full(6, 0.5))
    before = (
        make_monitor(CollaborativeMode.SSM)
        .update(0, motion, make_person(x + more, 0.0, (-speed, 0.0)), age)
        .speed_scaling
    )
    assert (
        make_monitor(CollaborativeMode.SSM).update(0, motion, make_person(x, 0.0, (-speed, 0.0)), age).speed_scaling
        <= before + 1e-9
    )
    assert (
        make_monitor(CollaborativeMode.SSM)
        .update(0, motion, make_person(x + more, 0.0, (-speed - more, 0.0)), age)
        .speed_scaling
        <= before + 1e-9
    )
    assert (
        make_monitor(CollaborativeMode.SSM)
        .update(0, motion, make_person(x + more, 0.0, (-speed, 0.0)), age + more)
        .speed_scaling
        <= before + 1e-9
    )


@given(st.floats(0.2, 4.0), st.floats(0.1, 1.0))
def test_contact_mode_allows_at_least_separation_mode(x, rate) -> None:
    motion, measured = PlannedMotion(CENTER_POSITION, np.full(6, rate)), SeparationParameters(person_speed=0.0)
    separated = make_monitor(CollaborativeMode.SSM, measured).update(0, motion, make_person(x, 0.0), 0.0).speed_scaling
    touching = make_monitor(CollaborativeMode.PFL, measured).update(0, motion, make_person(x, 0.0), 0.0).speed_scaling
    assert touching >= separated
    handed = (
        make_monitor(CollaborativeMode.SSM, measured)
        .update(0, motion, make_person(x, 0.0), 0.0, is_handover=True)
        .speed_scaling
    )
    assert handed == touching


def test_protective_stop_lasts_until_clear_for_a_while() -> None:
    monitor, motion = (
        make_monitor(CollaborativeMode.SSM, restart_time=0.3, recovery_rate=2.0),
        PlannedMotion(CENTER_POSITION, np.full(6, 0.5)),
    )
    scalings = []
    for k in range(100):
        x = 0.6 if 20 <= k < 40 or k == 45 else 20.0
        decision = monitor.update(k * 20_000_000, motion, make_person(x, 0.0), 0.0)
        scalings.append(decision.speed_scaling)
        assert decision.is_stopped == (decision.speed_scaling == 0.0)
    assert scalings[:20] == [1.0] * 20
    assert scalings[20:61] == [0.0] * 41  # the moment at k = 45 begins the wait anew
    assert np.diff(scalings[61:]).max() <= 0.04 + 1e-9
    assert scalings[-1] == 1.0


def test_zones_slow_and_stop_with_hysteresis() -> None:
    monitor = make_monitor(
        CollaborativeMode.ZONES,
        slow_radius=2.0,
        stop_radius=1.0,
        hysteresis=0.2,
        slow_speed_scaling=0.3,
        restart_time=0.0,
        recovery_rate=1e3,
    )
    motion = PlannedMotion(CENTER_POSITION, np.full(6, 0.5))
    distances = [2.9, 2.1, 1.9, 1.1, 0.9, 1.1, 1.25, 1.9, 2.1, 2.9]
    # the arm reaches to seven tenths of where the trunk is
    scalings = [
        monitor.update(k * 10**9, motion, make_person((x + 0.05) / 0.7, 0.0), 0.0).speed_scaling
        for k, x in enumerate(distances)
    ]
    assert scalings == pytest.approx([1.0, 1.0, 0.3, 0.3, 0.0, 0.0, 0.3, 0.3, 0.3, 1.0])


def test_loaded_monitor_decides_alike() -> None:
    monitor, motion = make_monitor(CollaborativeMode.SSM), PlannedMotion(CENTER_POSITION, np.full(6, 0.5))
    monitor.update(0, motion, make_person(0.6, 0.0), 0.0)
    other = make_monitor(CollaborativeMode.SSM)
    other.load_state(monitor.save_state())
    for k in range(1, 40):
        both = [one.update(k * 20_000_000, motion, make_person(20.0, 0.0), 0.0) for one in (monitor, other)]
        assert both[0] == both[1]


def test_slow_zone_within_the_stop_zone_is_refused() -> None:
    with pytest.raises(ConfigError, match="slow_radius"):
        CollaborativeSafetyConfig(slow_radius=0.5, stop_radius=1.0)
