"""The guard of an arm beside people: in a loop with an arm that follows its paces, and its stops and zones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.bringup.joint_groups import load_joint_groups
from roboyard.errors import ConfigError
from roboyard.safety.capsules import LinkCapsules
from roboyard.safety.nearness import BodyCapsules, nearness
from roboyard.safety.person_guard import GuardConfig, Mode, Motion, PersonGuard
from roboyard.safety.separation import STANDSTILL, SeparationRules, protective_distance, stopping_time

GROUPS = load_joint_groups("iisy")
CHAIN = GROUPS.chain("arm")
CAPSULES = LinkCapsules.of(GROUPS.model, CHAIN)
BRAKES = 0.8 * CHAIN.max_acceleration
MIDDLE = np.array([0.0, -1.2, 1.6, 0.0, 1.2, 0.0])
NOBODY = BodyCapsules.joined([])


def guard(mode: Mode, rules: SeparationRules | None = None, **config: float) -> PersonGuard:
    return PersonGuard(CHAIN, CAPSULES, BRAKES, 8.0, mode, GuardConfig(**config), rules or SeparationRules())


def somebody(x: float, y: float, velocity: tuple[float, float] = (0.0, 0.0)) -> BodyCapsules:
    """An upright trunk and a level arm ahead of it, that go on alike."""
    ends = np.array([[[x, y, 0.3], [x, y, 1.5]], [[x, y, 0.9], [0.7 * x, 0.7 * y, 0.9]]])
    moving = np.broadcast_to([*velocity, 0.0], (2, 2, 3)).copy()
    return BodyCapsules(("anna",) * 2, ("chest", "left_hand"), ends, np.array([0.15, 0.05]), moving)


class Swinging:
    """An arm that swings for ever on a path whose pace changes no faster than its joints can brake."""

    def __init__(self, swing: np.ndarray, rate: float) -> None:
        self.swing, self.rate = swing, rate
        self.place, self.pace, self.wanted = 0.0, 0.0, 0.0

    def at(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        phase = self.rate * np.asarray(places)[..., None]
        return MIDDLE + self.swing * np.sin(phase), self.swing * self.rate * np.cos(phase)

    def step(self, dt: float) -> None:
        fastest = np.abs(self.at(self.place)[1])
        slowing = float((BRAKES / np.maximum(fastest, 1e-9)).min())
        self.pace = max(self.wanted, self.pace - slowing * dt) if self.wanted < self.pace else self.wanted
        self.place += self.pace * dt

    @property
    def motion(self) -> Motion:
        q, velocity = self.at(self.place)
        return Motion(q, velocity * self.pace, lambda times: self.at(self.place + times))


@given(
    st.integers(0, 2**32 - 1), st.floats(0.0, 0.15), st.sampled_from([0.02, 0.04, 0.1]),
    st.lists(st.floats(-0.9, 0.9), min_size=6, max_size=6),
)  # fmt: skip
@settings(max_examples=15)
def test_guard_keeps_protective_distance_to_random_walkers(seed, latency, period, swing) -> None:
    """People turn as they like and go up to 1.6 m/s; sensors are late; the arm brakes as it is known to."""
    rng, rules = np.random.default_rng(seed), SeparationRules()
    arm, judge = Swinging(np.array(swing), 1.5), guard(Mode.SSM, rules)
    dt, x, y, vx, vy = 0.01, 2.5, 0.5, 0.0, 0.0
    seen: list[tuple[float, BodyCapsules]] = []
    moved = 0.0
    for k in range(600):
        now = k * dt
        if k % 30 == 0:
            angle, speed = math.atan2(-y, -x) + rng.uniform(-1.2, 1.2), rng.uniform(0.0, 1.6)
            if math.hypot(x, y) < 0.5:
                angle += math.pi
            vx, vy = speed * math.cos(angle), speed * math.sin(angle)
        if k % max(1, round(period / dt)) == 0:
            seen.append((now, somebody(x, y, (vx, vy))))
        if k % 2 == 0:
            known = [one for one in seen if one[0] <= now - latency] or seen[:1]
            verdict = judge.judge(round(now * 1e9), arm.motion, known[-1][1], now - known[-1][0])
            arm.wanted = verdict.pace
        arm.step(dt)
        x, y = x + vx * dt, y + vy * dt
        moved += arm.pace * dt
        there, (q, velocity, _) = somebody(x, y, (vx, vy)), arm.motion
        near = nearness(CHAIN, CAPSULES, q[None], velocity[None], there)
        apart = protective_distance(rules, rules.person_speed, near.toward[0], stopping_time(velocity, BRAKES))
        bad = (near.speed[0] > STANDSTILL)[:, None] & (near.gap[0] < apart)
        assert not bad.any(), (now, float((near.gap[0] - apart)[bad].min()))
    assert moved > 0.0


@pytest.mark.parametrize("sharp", [0.3, 1.0, 3.0, 8.0])
def test_guard_stops_before_motion_near_a_person_begins(sharp: float) -> None:
    """As when a hand-over ends and the arm draws back: what is beside it leaves no time to get faster first."""

    class Starting(Swinging):
        def at(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            t = np.maximum(np.asarray(places)[..., None], 0.0)
            return MIDDLE + self.swing * 0.5 * sharp * t**2, self.swing * sharp * t

    arm, judge, told = Starting(np.array([1.0, 0.0, 0.5, 0.0, 0.0, 0.0]), 1.0), guard(Mode.SSM), []
    people = somebody(0.7, 0.0)
    for k in range(200):
        if k % 4 == 0:
            told.append((k + 8, judge.judge(k * 10_000_000, arm.motion, people, 0.04).pace))
        arm.wanted = next((pace for due, pace in reversed(told) if due <= k), told[0][1])
        arm.step(0.01)
        q, velocity, _ = arm.motion
        near = nearness(CHAIN, CAPSULES, q[None], velocity[None], people)
        assert (near.speed[0] <= STANDSTILL).all() or near.gap.min() > 0.5


def test_guard_allows_full_pace_without_people_or_when_off() -> None:
    motion = Motion(MIDDLE, np.ones(6))
    assert guard(Mode.SSM).judge(0, motion, NOBODY, 0.0).pace == 1.0
    verdict = guard(Mode.OFF).judge(0, motion, somebody(0.5, 0.0), 0.0)
    assert (verdict.pace, verdict.stopped) == (1.0, False)
    assert verdict.separation < verdict.protective  # but it tells
    assert verdict.person == "anna"


@given(st.floats(0.3, 4.0), st.floats(0.0, 2.0), st.floats(0.0, 1.0), st.floats(0.0, 0.3))
def test_pace_falls_with_nearness_speed_and_latency(x, speed, more, age) -> None:
    motion = Motion(MIDDLE, np.full(6, 0.5))
    before = guard(Mode.SSM).judge(0, motion, somebody(x + more, 0.0, (-speed, 0.0)), age).pace
    assert guard(Mode.SSM).judge(0, motion, somebody(x, 0.0, (-speed, 0.0)), age).pace <= before + 1e-9
    assert guard(Mode.SSM).judge(0, motion, somebody(x + more, 0.0, (-speed - more, 0.0)), age).pace <= before + 1e-9
    assert guard(Mode.SSM).judge(0, motion, somebody(x + more, 0.0, (-speed, 0.0)), age + more).pace <= before + 1e-9


@given(st.floats(0.2, 4.0), st.floats(0.1, 1.0))
def test_contact_mode_allows_at_least_separation_mode(x, rate) -> None:
    motion, measured = Motion(MIDDLE, np.full(6, rate)), SeparationRules(person_speed=0.0)
    apart = guard(Mode.SSM, measured).judge(0, motion, somebody(x, 0.0), 0.0).pace
    touching = guard(Mode.PFL, measured).judge(0, motion, somebody(x, 0.0), 0.0).pace
    assert touching >= apart
    handed = guard(Mode.SSM, measured).judge(0, motion, somebody(x, 0.0), 0.0, handover=True).pace
    assert handed == touching


def test_protective_stop_lasts_until_clear_for_a_while() -> None:
    judge, motion = guard(Mode.SSM, restart_time=0.3, rise=2.0), Motion(MIDDLE, np.full(6, 0.5))
    paces = []
    for k in range(100):
        x = 0.6 if 20 <= k < 40 or k == 45 else 20.0
        verdict = judge.judge(k * 20_000_000, motion, somebody(x, 0.0), 0.0)
        paces.append(verdict.pace)
        assert verdict.stopped == (verdict.pace == 0.0)
    assert paces[:20] == [1.0] * 20
    assert paces[20:61] == [0.0] * 41  # the moment at k = 45 begins the wait anew
    assert np.diff(paces[61:]).max() <= 0.04 + 1e-9
    assert paces[-1] == 1.0


def test_guard_zones_slow_and_stop_with_hysteresis() -> None:
    judge = guard(
        Mode.ZONES, slow_radius=2.0, stop_radius=1.0, hysteresis=0.2, slow_pace=0.3, restart_time=0.0, rise=1e3
    )
    motion = Motion(MIDDLE, np.full(6, 0.5))
    ways = [2.9, 2.1, 1.9, 1.1, 0.9, 1.1, 1.25, 1.9, 2.1, 2.9]
    # the arm reaches to seven tenths of where the trunk is
    paces = [judge.judge(k * 10**9, motion, somebody((x + 0.05) / 0.7, 0.0), 0.0).pace for k, x in enumerate(ways)]
    assert paces == pytest.approx([1.0, 1.0, 0.3, 0.3, 0.0, 0.0, 0.3, 0.3, 0.3, 1.0])


def test_loaded_guard_judges_alike() -> None:
    judge, motion = guard(Mode.SSM), Motion(MIDDLE, np.full(6, 0.5))
    judge.judge(0, motion, somebody(0.6, 0.0), 0.0)
    other = guard(Mode.SSM)
    other.load_state(judge.save_state())
    for k in range(1, 40):
        both = [one.judge(k * 20_000_000, motion, somebody(20.0, 0.0), 0.0) for one in (judge, other)]
        assert both[0] == both[1]


def test_slow_zone_within_the_stop_zone_is_refused() -> None:
    with pytest.raises(ConfigError, match="slow_radius"):
        GuardConfig(slow_radius=0.5, stop_radius=1.0)
