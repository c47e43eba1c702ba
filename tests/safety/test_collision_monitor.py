"""The collision monitor: no collision, and no robot that cannot move away."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from roboyard.control import PlanarTwist, RampLimits, RampState, step_velocity
from roboyard.errors import ConfigError, UnknownNameError
from roboyard.geometry import SE2, polygons
from roboyard.safety import BrakingConfig, CollisionMonitor, CollisionMonitorConfig, MonitorAction, SafetyZone
from roboyard.safety.obstacle_memory import ObstacleMemory, SensorView

FOOTPRINT = polygons.rectangle(0.5, 0.4)
SEEDS = st.integers(0, 2**32 - 1)
PERIOD = 0.04


def _distances(points: np.ndarray) -> np.ndarray:
    distances = polygons.boundary_distance(FOOTPRINT, points)
    return np.where(polygons.contains(FOOTPRINT, points), -distances, distances)


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
    """A base with ramps whose commands are checked every period; yields the clearances."""
    monitor = CollisionMonitor(CollisionMonitorConfig(FOOTPRINT, margin=0.05, braking=braking))
    ground = RampLimits(acceleration=1.5, deceleration=deceleration)
    turning = RampLimits(acceleration=4.0, deceleration=2.0 * deceleration)
    pose, twist, points = SE2(), PlanarTwist(), _walls(rng)
    for command in commands:
        for _ in range(10):
            allowed = monitor.check(command, twist, pose.inverse() @ points).twist
            for _ in range(4):
                dt = PERIOD / 4
                after = [
                    step_velocity(RampState(now), goal, dt, axis).velocity
                    for now, goal, axis in zip(twist, allowed, (ground, ground, turning), strict=True)
                ]
                pose = pose @ SE2.exp([0.5 * (a + b) * dt for a, b in zip(twist, after, strict=True)])
                twist = PlanarTwist(*after)
            yield _clearance(pose.inverse() @ points), twist, allowed, command


def _braking(deceleration: float = 1.0, angular_deceleration: float = 2.0, latency: float = 0.1) -> BrakingConfig:
    return BrakingConfig(deceleration=deceleration, angular_deceleration=angular_deceleration, latency=latency)


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
    is_stopped = [abs(twist.vx) < 0.02 for _, twist, *_ in states]
    assume(is_stopped[-11])
    assert states[-1][1].vx < -0.1


@settings(max_examples=80, deadline=None)
@given(SEEDS, st.tuples(*[st.floats(-1.5, 1.5)] * 3).map(lambda t: PlanarTwist(*t)))
def test_motion_away_from_obstacles_always_passes(seed, command) -> None:
    rng = np.random.default_rng(seed)
    braking = _braking()
    points = rng.uniform(-1.0, 1.0, (rng.integers(1, 4), 2))
    zone = SafetyZone("about", MonitorAction.STOP, polygons.regular_polygon(0.8), min_points=1)
    monitor = CollisionMonitor(CollisionMonitorConfig(FOOTPRINT, zones=(zone,), braking=braking))
    # the way by itself, in small steps: from rest, towards the command, and to rest
    pose, twist = SE2(), PlanarTwist()
    ramps = [RampLimits(acceleration=1.5, deceleration=1.0)] * 2 + [RampLimits(acceleration=4.0, deceleration=2.0)]
    first = _distances(points)
    nearest = first.copy()
    for k in range(1000):
        goal = command if k * 0.002 < braking.latency - 1e-9 else PlanarTwist()
        after = [step_velocity(RampState(v), g, 0.002, r).velocity for v, g, r in zip(twist, goal, ramps, strict=True)]
        pose = pose @ SE2.exp([0.5 * (a + b) * 0.002 for a, b in zip(twist, after, strict=True)])
        twist = PlanarTwist(*after)
        if k % 5 == 0:
            nearest = np.minimum(nearest, _distances(pose.inverse() @ points))
        if not any(twist):
            break
    assume((nearest >= first - 1e-12).all())
    decision = monitor.check(command, PlanarTwist(), points)
    assert decision.action is MonitorAction.DO_NOTHING
    assert decision.twist == command


def test_monitor_stops_at_the_margin_with_reason() -> None:
    wall = np.column_stack([np.full(101, 1.25), np.linspace(-1.0, 1.0, 101)])
    monitor = CollisionMonitor(CollisionMonitorConfig(FOOTPRINT, braking=_braking(latency=PERIOD)))
    x, v = 0.0, 0.0
    for _ in range(200):
        decision = monitor.check(PlanarTwist(2.0), PlanarTwist(v), wall - (x, 0.0))
        before, v = v, step_velocity(RampState(v), decision.twist.vx, PERIOD, RampLimits(acceleration=1.5)).velocity
        x += 0.5 * (before + v) * PERIOD
    assert 0.045 < 1.25 - x - 0.25 < 0.06
    assert v < 0.01
    assert (decision.zone, decision.speed_scaling < 0.01) == ("footprint", True)
    assert "closer than 0.05 m" in decision.reason


def _hits_with(gap: float, speed: float, command: float) -> float:
    """The speed with which a base, 0.25 m long ahead, reaches something, if it takes a command for 0.2 s and brakes."""
    x, dt, limits = 0.25, 0.001, RampLimits(acceleration=1.5, deceleration=1.0)
    for k in range(5000):
        if x >= gap:
            return speed
        speed = step_velocity(RampState(speed), command if k < 200 else 0.0, dt, limits).velocity
        x += speed * dt
    return 0.0


@settings(max_examples=40, deadline=None)
@given(st.floats(0.26, 0.6), st.floats(0.3, 2.0), st.floats(0.1, 2.0))
def test_monitor_brakes_for_thin_obstacles_too_near_to_stop(gap, speed, command) -> None:
    post = np.array([[gap, 0.0], [gap, 0.05]])
    braking = _braking(latency=0.2)
    monitor = CollisionMonitor(CollisionMonitorConfig(FOOTPRINT, margin=0.0, braking=braking))
    decision = monitor.check(PlanarTwist(command), PlanarTwist(speed), post)
    assert _hits_with(gap, speed, decision.twist.vx) <= _hits_with(gap, speed, 0.0) + 0.05
    assert monitor.check(PlanarTwist(-command), PlanarTwist(speed), post).action is MonitorAction.DO_NOTHING


def test_point_inside_the_footprint_hides_no_other() -> None:
    monitor = CollisionMonitor(CollisionMonitorConfig(FOOTPRINT))
    outside, inside = np.array([[0.29, 0.0]]), np.array([[-0.1, 0.0]])
    for points in (outside, np.vstack([outside, inside])):
        assert monitor.check(PlanarTwist(0.3), PlanarTwist(), points).action is MonitorAction.STOP


def test_commands_pass_without_obstacles() -> None:
    monitor = CollisionMonitor(CollisionMonitorConfig(FOOTPRINT))
    command = PlanarTwist(2.0, 0.0, 1.0)
    assert monitor.check(command, command, np.zeros((0, 2))).twist == command
    assert monitor.check(command, command, np.full((9, 2), 9.0)).twist == command


POINTS_IN_FRONT = np.array([[0.7, 0.0]] * 5)


@pytest.mark.parametrize(
    ("zone", "command", "scaling"),
    [
        (SafetyZone("z", MonitorAction.STOP, polygons.regular_polygon(1.0)), PlanarTwist(0.2), 0.0),
        (SafetyZone("z", MonitorAction.STOP, polygons.regular_polygon(0.6)), PlanarTwist(0.2), 1.0),
        (SafetyZone("z", MonitorAction.STOP, polygons.regular_polygon(1.0), min_points=6), PlanarTwist(0.2), 1.0),
        (
            SafetyZone("z", MonitorAction.SLOWDOWN, polygons.regular_polygon(1.0), slowdown_ratio=0.3),
            PlanarTwist(0.2, 0.0, 0.1),
            0.3,
        ),
        (SafetyZone("z", MonitorAction.LIMIT, polygons.regular_polygon(1.0), linear_limit=0.1), PlanarTwist(0.2), 0.5),
        (
            SafetyZone("z", MonitorAction.LIMIT, polygons.regular_polygon(1.0), angular_limit=0.1),
            PlanarTwist(0.2, 0.0, 0.4),
            0.25,
        ),
        (SafetyZone("z", MonitorAction.LIMIT, polygons.regular_polygon(1.0), linear_limit=0.5), PlanarTwist(0.2), 1.0),
        (
            SafetyZone("z", MonitorAction.SLOWDOWN, polygons.regular_polygon(1.0), linear_speeds=(0.5, 2.0)),
            PlanarTwist(0.2),
            1.0,
        ),
        (
            SafetyZone("z", MonitorAction.SLOWDOWN, polygons.regular_polygon(1.0), angular_speeds=(-0.1, 0.1)),
            PlanarTwist(0.2, 0.0, 0.2),
            1.0,
        ),
        (
            SafetyZone("z", MonitorAction.APPROACH, FOOTPRINT, time_before_collision=4.5),
            PlanarTwist(0.2),
            0.5,
        ),  # 2.25 s from touching
        (SafetyZone("z", MonitorAction.APPROACH, FOOTPRINT, time_before_collision=2.0), PlanarTwist(0.2), 1.0),
        (SafetyZone("z", MonitorAction.STOP, polygons.regular_polygon(1.0)), PlanarTwist(-0.2), 1.0),  # leads away
    ],
)
def test_zones_stop_slow_and_limit(zone, command, scaling) -> None:
    monitor = CollisionMonitor(CollisionMonitorConfig(FOOTPRINT, margin=0.0, zones=(zone,)))
    decision = monitor.check(command, PlanarTwist(), POINTS_IN_FRONT)
    assert decision.speed_scaling == pytest.approx(scaling, abs=0.01)
    assert decision.twist == pytest.approx(tuple(decision.speed_scaling * speed for speed in command))
    assert (decision.zone == "z") == (scaling < 1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CollisionMonitorConfig([[0, 0], [1, 1], [1, 0], [0, 1]]),
        lambda: CollisionMonitorConfig([[0, 0], [1, 1]]),
        lambda: CollisionMonitorConfig([[0, 0], [1, 1], [2, 2]]),
        lambda: CollisionMonitorConfig([[0, 0], [1, math.nan], [1, 0]]),
        lambda: CollisionMonitorConfig(FOOTPRINT, margin=-0.1),
        lambda: CollisionMonitorConfig(FOOTPRINT, zones=(SafetyZone("z", MonitorAction.STOP, FOOTPRINT),) * 2),
        lambda: SafetyZone("z", MonitorAction.DO_NOTHING, FOOTPRINT),
        lambda: SafetyZone("z", MonitorAction.STOP, FOOTPRINT, min_points=0),
        lambda: SafetyZone("z", MonitorAction.SLOWDOWN, FOOTPRINT, slowdown_ratio=1.5),
        lambda: SafetyZone("z", MonitorAction.LIMIT, FOOTPRINT, linear_limit=math.inf),
        lambda: SafetyZone("z", MonitorAction.APPROACH, FOOTPRINT, time_before_collision=-1.0),
        lambda: SafetyZone("z", MonitorAction.STOP, FOOTPRINT, linear_speeds=(1.0, 0.0)),
        lambda: BrakingConfig(deceleration=0.0),
        lambda: BrakingConfig(latency=math.nan),
        lambda: ObstacleMemory({"scan": 0.0}),
        lambda: ObstacleMemory({"scan": 1.0}, memory=math.nan),
    ],
)
def test_invalid_monitor_config_is_refused(make) -> None:
    with pytest.raises(ConfigError):
        make()


# -- surroundings ----------------------------------------------------------------------------------------------------
def test_hidden_points_are_remembered_until_observed_again() -> None:
    obstacles = ObstacleMemory({"scan": 0.5}, memory=3.0)
    view = {"min_angle": -1.5, "max_angle": 1.5, "max_range": 5.0}
    obstacles.update("scan", SensorView(SE2(), np.array([[1.0, 0.0]]), **view), 0)
    obstacles.update("scan", SensorView(SE2(0.0, 0.0, math.pi), np.array([[-2.0, 0.0]]), **view), 10**9)
    assert sorted(obstacles.points(SE2())[:, 0].tolist()) == [-2.0, 1.0]
    obstacles.update("scan", SensorView(SE2(0.0, 0.0, 0.1), np.zeros((0, 2)), **view), 2 * 10**9)
    assert obstacles.points(SE2())[:, 0].tolist() == [-2.0]
    obstacles.update("scan", SensorView(SE2(), np.zeros((0, 2)), **view), 5 * 10**9)
    assert len(obstacles.points(SE2())) == 0
    assert obstacles.silent_sensors(6 * 10**9) == {"scan": 1.0}
    assert not obstacles.silent_sensors(5 * 10**9)
    with pytest.raises(UnknownNameError):
        obstacles.update("scam", SensorView(SE2(), np.zeros((0, 2))), 0)


def test_points_are_in_the_base_frame_and_survive_saving() -> None:
    obstacles = ObstacleMemory({"a": 1.0, "b": 1.0})
    assert set(obstacles.silent_sensors(0)) == {"a", "b"}
    obstacles.update("a", SensorView(SE2(), np.array([[1.0, 0.0]])), 0)
    obstacles.update("b", SensorView(SE2(), np.array([[0.0, 1.0]])), 0)
    other = ObstacleMemory({"a": 1.0, "b": 1.0})
    other.load_state(obstacles.save_state())
    for one in (obstacles, other):
        assert np.allclose(one.points(SE2(0.0, 0.0, math.pi / 2)), [[0.0, -1.0], [1.0, 0.0]])
