"""The collision monitor: never touches anything, never holds a robot that wants away."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from roboyard.control import PlanarTwist, RampLimits, RampState, next_velocity
from roboyard.errors import ConfigError, UnknownNameError
from roboyard.geometry import SE2, polygons
from roboyard.safety import Action, BrakingConfig, CollisionMonitor, MonitorConfig, Zone
from roboyard.safety.surroundings import Surroundings, View

FOOTPRINT = polygons.rectangle(0.5, 0.4)
SEEDS = st.integers(0, 2**32 - 1)
PERIOD = 0.04


def _distances(points: np.ndarray) -> np.ndarray:
    away = polygons.boundary_distance(FOOTPRINT, points)
    return np.where(polygons.contains(FOOTPRINT, points), -away, away)


def _clearance(points: np.ndarray) -> float:
    return float(_distances(points).min())


def _walls(rng: np.random.Generator) -> np.ndarray:
    """Points 2 cm apart on the walls of a room with boxes and posts, none of them on the robot."""
    boxes = [polygons.rectangle(*rng.uniform(0.02, 0.8, 2), rng.uniform(-2.5, 2.5, 2)) for _ in range(8)]
    corners = [polygons.rectangle(*rng.uniform(2.0, 6.0, 2)), *boxes]
    pieces = []
    for shape in corners:
        for a, b in zip(shape, np.roll(shape, -1, axis=0), strict=True):
            pieces.append(a + np.linspace(0.0, 1.0, max(int(np.linalg.norm(b - a) / 0.02), 2))[:, None] * (b - a))
    points = np.concatenate(pieces)
    return points[np.hypot(*points.T) > 0.45]


def _drive(rng: np.random.Generator, commands, braking: BrakingConfig, deceleration: float, vy: bool = False):
    """A base that ramps, judged every period; yields what is left about it."""
    monitor = CollisionMonitor(MonitorConfig(FOOTPRINT, margin=0.05, braking=braking))
    ground = RampLimits(acceleration=1.5, deceleration=deceleration)
    turning = RampLimits(acceleration=4.0, deceleration=2.0 * deceleration)
    pose, twist, points = SE2(), PlanarTwist(), _walls(rng)
    for command in commands:
        for _ in range(10):
            allowed = monitor.judge(command, twist, pose.inverse() @ points).twist
            for _ in range(4):
                dt = PERIOD / 4
                after = [
                    next_velocity(RampState(now), goal, dt, axis).velocity
                    for now, goal, axis in zip(twist, allowed, (ground, ground, turning), strict=True)
                ]
                pose = pose @ SE2.exp([0.5 * (a + b) * dt for a, b in zip(twist, after, strict=True)])
                twist = PlanarTwist(*after)
            yield _clearance(pose.inverse() @ points), twist, allowed, command


def _braking(deceleration: float = 1.0, turn_deceleration: float = 2.0, latency: float = 0.1) -> BrakingConfig:
    return BrakingConfig(deceleration=deceleration, turn_deceleration=turn_deceleration, latency=latency)


COMMANDS = st.lists(
    st.tuples(st.sampled_from([-2.0, -0.5, 0.0, 0.3, 2.0]), st.sampled_from([-1.0, 0.0, 0.0, 0.7]),
              st.sampled_from([-2.0, -0.7, 0.0, 0.0, 1.5])).map(lambda t: PlanarTwist(*t)),
    min_size=4, max_size=10,
)  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(SEEDS, COMMANDS, st.floats(1.0, 3.0))
def test_monitored_robot_touches_nothing(seed, commands, deceleration) -> None:
    braking = _braking(deceleration, 2.0 * deceleration, PERIOD)
    for clearance, *_ in _drive(np.random.default_rng(seed), commands, braking, deceleration):
        assert clearance > 0.03  # of a margin of 0.05


@settings(max_examples=8, deadline=None)
@given(SEEDS, COMMANDS)
def test_stronger_brakes_stay_clear_too(seed, commands) -> None:
    for clearance, *_ in _drive(np.random.default_rng(seed), commands, _braking(), 2.0):
        assert clearance > 0.01  # other brakes, another arc


@settings(max_examples=8, deadline=None)
@given(SEEDS)
def test_robot_in_a_corner_gets_out_backwards(seed) -> None:
    rng = np.random.default_rng(seed)
    forth = [PlanarTwist(1.0, 0.0, float(rng.uniform(-0.3, 0.3)))] * 12
    braking = _braking(2.0, 4.0, PERIOD)
    states = list(_drive(rng, [*forth, PlanarTwist(-0.5)], braking, 2.0))
    stood = [abs(twist.vx) < 0.02 for _, twist, *_ in states]
    assume(stood[-11])
    assert states[-1][1].vx < -0.1


@settings(max_examples=80, deadline=None)
@given(SEEDS, st.tuples(*[st.floats(-1.5, 1.5)] * 3).map(lambda t: PlanarTwist(*t)))
def test_motion_away_from_obstacles_always_passes(seed, command) -> None:
    rng = np.random.default_rng(seed)
    braking = _braking()
    points = rng.uniform(-1.0, 1.0, (rng.integers(1, 4), 2))
    zone = Zone("about", Action.STOP, polygons.regular_polygon(0.8), min_points=1)
    monitor = CollisionMonitor(MonitorConfig(FOOTPRINT, zones=(zone,), braking=braking))
    # the way by itself, in small steps: from rest, towards the command, and to rest
    pose, twist = SE2(), PlanarTwist()
    ramps = [RampLimits(acceleration=1.5, deceleration=1.0)] * 2 + [RampLimits(acceleration=4.0, deceleration=2.0)]
    first = _distances(points)
    nearest = first.copy()
    for k in range(1000):
        goal = command if k * 0.002 < braking.latency - 1e-9 else PlanarTwist()
        after = [next_velocity(RampState(v), g, 0.002, r).velocity for v, g, r in zip(twist, goal, ramps, strict=True)]
        pose = pose @ SE2.exp([0.5 * (a + b) * 0.002 for a, b in zip(twist, after, strict=True)])
        twist = PlanarTwist(*after)
        if k % 5 == 0:
            nearest = np.minimum(nearest, _distances(pose.inverse() @ points))
        if not any(twist):
            break
    assume((nearest >= first - 1e-12).all())
    verdict = monitor.judge(command, PlanarTwist(), points)
    assert verdict.action is Action.NONE
    assert verdict.twist == command


def test_monitor_stops_at_the_margin_with_reason() -> None:
    wall = np.column_stack([np.full(101, 1.25), np.linspace(-1.0, 1.0, 101)])
    monitor = CollisionMonitor(MonitorConfig(FOOTPRINT, braking=_braking(latency=PERIOD)))
    x, v = 0.0, 0.0
    for _ in range(200):
        verdict = monitor.judge(PlanarTwist(2.0), PlanarTwist(v), wall - (x, 0.0))
        before, v = v, next_velocity(RampState(v), verdict.twist.vx, PERIOD, RampLimits(acceleration=1.5)).velocity
        x += 0.5 * (before + v) * PERIOD
    assert 0.045 < 1.25 - x - 0.25 < 0.06
    assert v < 0.01
    assert (verdict.zone, verdict.share < 0.01) == ("footprint", True)
    assert "nearer than 0.05 m" in verdict.reason


def _hits_with(gap: float, speed: float, command: float) -> float:
    """The speed with which a base, 0.25 m long ahead, reaches something, if it takes a command for 0.2 s and brakes."""
    x, dt, limits = 0.25, 0.001, RampLimits(acceleration=1.5, deceleration=1.0)
    for k in range(5000):
        if x >= gap:
            return speed
        speed = next_velocity(RampState(speed), command if k < 200 else 0.0, dt, limits).velocity
        x += speed * dt
    return 0.0


@settings(max_examples=40, deadline=None)
@given(st.floats(0.26, 0.6), st.floats(0.3, 2.0), st.floats(0.1, 2.0))
def test_monitor_brakes_for_thin_obstacles_too_near_to_stop(gap, speed, wanted) -> None:
    post = np.array([[gap, 0.0], [gap, 0.05]])
    braking = _braking(latency=0.2)
    monitor = CollisionMonitor(MonitorConfig(FOOTPRINT, margin=0.0, braking=braking))
    verdict = monitor.judge(PlanarTwist(wanted), PlanarTwist(speed), post)
    assert _hits_with(gap, speed, verdict.twist.vx) <= _hits_with(gap, speed, 0.0) + 0.05
    assert monitor.judge(PlanarTwist(-wanted), PlanarTwist(speed), post).action is Action.NONE


def test_point_inside_the_footprint_hides_no_other() -> None:
    monitor = CollisionMonitor(MonitorConfig(FOOTPRINT))
    ahead, inside = np.array([[0.29, 0.0]]), np.array([[-0.1, 0.0]])
    for points in (ahead, np.vstack([ahead, inside])):
        assert monitor.judge(PlanarTwist(0.3), PlanarTwist(), points).action is Action.STOP


def test_commands_pass_without_obstacles() -> None:
    monitor = CollisionMonitor(MonitorConfig(FOOTPRINT))
    command = PlanarTwist(2.0, 0.0, 1.0)
    assert monitor.judge(command, command, np.zeros((0, 2))).twist == command
    assert monitor.judge(command, command, np.full((9, 2), 9.0)).twist == command


AHEAD = np.array([[0.7, 0.0]] * 5)


@pytest.mark.parametrize(
    ("zone", "command", "share"),
    [
        (Zone("z", Action.STOP, polygons.regular_polygon(1.0)), PlanarTwist(0.2), 0.0),
        (Zone("z", Action.STOP, polygons.regular_polygon(0.6)), PlanarTwist(0.2), 1.0),
        (Zone("z", Action.STOP, polygons.regular_polygon(1.0), min_points=6), PlanarTwist(0.2), 1.0),
        (Zone("z", Action.SLOWDOWN, polygons.regular_polygon(1.0), ratio=0.3), PlanarTwist(0.2, 0.0, 0.1), 0.3),
        (Zone("z", Action.LIMIT, polygons.regular_polygon(1.0), linear_limit=0.1), PlanarTwist(0.2), 0.5),
        (Zone("z", Action.LIMIT, polygons.regular_polygon(1.0), angular_limit=0.1), PlanarTwist(0.2, 0.0, 0.4), 0.25),
        (Zone("z", Action.LIMIT, polygons.regular_polygon(1.0), linear_limit=0.5), PlanarTwist(0.2), 1.0),
        (Zone("z", Action.SLOWDOWN, polygons.regular_polygon(1.0), speeds=(0.5, 2.0)), PlanarTwist(0.2), 1.0),
        (Zone("z", Action.SLOWDOWN, polygons.regular_polygon(1.0), turns=(-0.1, 0.1)), PlanarTwist(0.2, 0.0, 0.2), 1.0),
        (Zone("z", Action.APPROACH, FOOTPRINT, time=4.5), PlanarTwist(0.2), 0.5),  # 2.25 s from touching
        (Zone("z", Action.APPROACH, FOOTPRINT, time=2.0), PlanarTwist(0.2), 1.0),
        (Zone("z", Action.STOP, polygons.regular_polygon(1.0)), PlanarTwist(-0.2), 1.0),  # leads away
    ],
)
def test_zones_stop_slow_and_limit(zone, command, share) -> None:
    monitor = CollisionMonitor(MonitorConfig(FOOTPRINT, margin=0.0, zones=(zone,)))
    verdict = monitor.judge(command, PlanarTwist(), AHEAD)
    assert verdict.share == pytest.approx(share, abs=0.01)
    assert verdict.twist == pytest.approx(tuple(verdict.share * speed for speed in command))
    assert (verdict.zone == "z") == (share < 1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: MonitorConfig([[0, 0], [1, 1], [1, 0], [0, 1]]),
        lambda: MonitorConfig([[0, 0], [1, 1]]),
        lambda: MonitorConfig([[0, 0], [1, 1], [2, 2]]),
        lambda: MonitorConfig([[0, 0], [1, math.nan], [1, 0]]),
        lambda: MonitorConfig(FOOTPRINT, margin=-0.1),
        lambda: MonitorConfig(FOOTPRINT, zones=(Zone("z", Action.STOP, FOOTPRINT),) * 2),
        lambda: Zone("z", Action.NONE, FOOTPRINT),
        lambda: Zone("z", Action.STOP, FOOTPRINT, min_points=0),
        lambda: Zone("z", Action.SLOWDOWN, FOOTPRINT, ratio=1.5),
        lambda: Zone("z", Action.LIMIT, FOOTPRINT, linear_limit=math.inf),
        lambda: Zone("z", Action.APPROACH, FOOTPRINT, time=-1.0),
        lambda: Zone("z", Action.STOP, FOOTPRINT, speeds=(1.0, 0.0)),
        lambda: BrakingConfig(deceleration=0.0),
        lambda: BrakingConfig(latency=math.nan),
        lambda: Surroundings({"scan": 0.0}),
        lambda: Surroundings({"scan": 1.0}, memory=math.nan),
    ],
)
def test_invalid_monitor_config_is_refused(make) -> None:
    with pytest.raises(ConfigError):
        make()


# -- surroundings ----------------------------------------------------------------------------------------------------
def test_hidden_points_are_remembered_until_observed_again() -> None:
    seen = Surroundings({"scan": 0.5}, memory=3.0)
    ahead = {"first": -1.5, "last": 1.5, "reach": 5.0}
    seen.see("scan", View(SE2(), np.array([[1.0, 0.0]]), **ahead), 0)
    seen.see("scan", View(SE2(0.0, 0.0, math.pi), np.array([[-2.0, 0.0]]), **ahead), 10**9)
    assert sorted(seen.points(SE2())[:, 0].tolist()) == [-2.0, 1.0]
    seen.see("scan", View(SE2(0.0, 0.0, 0.1), np.zeros((0, 2)), **ahead), 2 * 10**9)
    assert seen.points(SE2())[:, 0].tolist() == [-2.0]
    seen.see("scan", View(SE2(), np.zeros((0, 2)), **ahead), 5 * 10**9)
    assert len(seen.points(SE2())) == 0
    assert seen.silent(6 * 10**9) == {"scan": 1.0}
    assert not seen.silent(5 * 10**9)
    with pytest.raises(UnknownNameError):
        seen.see("scam", View(SE2(), np.zeros((0, 2))), 0)


def test_points_are_in_the_base_frame_and_survive_saving() -> None:
    seen = Surroundings({"a": 1.0, "b": 1.0})
    assert set(seen.silent(0)) == {"a", "b"}
    seen.see("a", View(SE2(), np.array([[1.0, 0.0]])), 0)
    seen.see("b", View(SE2(), np.array([[0.0, 1.0]])), 0)
    other = Surroundings({"a": 1.0, "b": 1.0})
    other.load_state(seen.save_state())
    for one in (seen, other):
        assert np.allclose(one.points(SE2(0.0, 0.0, math.pi / 2)), [[0.0, -1.0], [1.0, 0.0]])
