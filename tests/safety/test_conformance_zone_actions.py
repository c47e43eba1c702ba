"""Laws of all zone actions of the collision monitor, of the registry and of a class of the user's own."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roboyard.config import registry
from roboyard.control import PlanarTwist
from roboyard.errors import ConfigError
from roboyard.geometry import polygons
from roboyard.safety import CollisionMonitor, CollisionMonitorConfig, MonitorAction, SafetyZone, ZoneAction
from roboyard.safety.collision_monitor import ZONE_ACTIONS
from roboyard.safety.nodes.collision_monitor import ZoneConfig

FOOTPRINT = polygons.rectangle(0.5, 0.4)
SEEDS = st.integers(0, 2**32 - 1)


class NearestPointAction(ZoneAction):
    """Scales the speed linearly with the distance of the nearest obstacle in the zone."""

    reported_action = MonitorAction.SLOWDOWN

    def scale_command(self, zone: SafetyZone, command: PlanarTwist, points: np.ndarray) -> tuple[float, str]:
        """Return the distance of the nearest obstacle over 2 m."""
        distance = float(np.hypot(*points.T).min())
        return min(distance / 2.0, 1.0), f"obstacle at {distance:.2f} m"


ACTIONS = [*(ZONE_ACTIONS[name] for name in ZONE_ACTIONS.names()), NearestPointAction]
each_action = pytest.mark.parametrize("make_action", ACTIONS, ids=lambda make: make.__name__)


def monitor_of(action: ZoneAction) -> CollisionMonitor:
    zone = SafetyZone("zone", action, polygons.regular_polygon(1.2), min_points=1)
    return CollisionMonitor(CollisionMonitorConfig(FOOTPRINT, margin=0.0, zones=(zone,)))


def points_around(rng: np.random.Generator, n: int) -> np.ndarray:
    bearing, distance = rng.uniform(-np.pi, np.pi, n), rng.uniform(0.4, 2.0, n)
    return distance[:, None] * np.column_stack([np.cos(bearing), np.sin(bearing)])


def random_command(rng: np.random.Generator) -> PlanarTwist:
    return PlanarTwist(*rng.uniform(-0.8, 0.8, 2), rng.uniform(-1.0, 1.0))


def test_actions_are_those_of_nav2() -> None:
    assert set(ZONE_ACTIONS.names()) >= {"stop", "slowdown", "limit", "approach"}


@each_action
@given(seed=SEEDS)
@settings(max_examples=40, deadline=None)
def test_decision_scales_the_command_and_states_a_reason(make_action, seed: int) -> None:
    rng = np.random.default_rng(seed)
    action, command = make_action(), random_command(rng)
    decision = monitor_of(action).check(command, PlanarTwist(), points_around(rng, 12))
    assert 0.0 <= decision.speed_scaling <= 1.0
    assert decision.twist == pytest.approx(tuple(decision.speed_scaling * speed for speed in command))
    assert bool(decision.reason) == (decision.speed_scaling < 1.0)
    if decision.zone == "zone":
        assert decision.action is action.reported_action


@each_action
@given(seed=SEEDS)
@settings(max_examples=40, deadline=None)
def test_more_obstacles_never_allow_a_larger_scaling(make_action, seed: int) -> None:
    rng = np.random.default_rng(seed)
    action, command, points = make_action(), random_command(rng), points_around(rng, 10)
    zone = SafetyZone("zone", action, polygons.regular_polygon(1.2), min_points=1)
    fewer_scaling, more_scaling = (action.scale_command(zone, command, points[:n])[0] for n in (4, 10))
    assert 0.0 <= more_scaling <= fewer_scaling + 1e-9


@each_action
def test_commands_pass_without_obstacles(make_action) -> None:
    command = PlanarTwist(0.5, 0.1, 0.4)
    assert monitor_of(make_action()).check(command, PlanarTwist(), np.zeros((0, 2))).twist == command


@each_action
def test_motion_away_from_all_obstacles_passes(make_action) -> None:
    wall = np.column_stack([np.full(21, 0.6), np.linspace(-0.5, 0.5, 21)])
    command = PlanarTwist(-0.5)
    assert monitor_of(make_action()).check(command, PlanarTwist(), wall).twist == command


def test_package_adds_an_action_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("nearest_point", f"{__name__}:NearestPointAction", ZONE_ACTIONS.group)
    installed = registry._entry_points
    monkeypatch.setattr(
        registry, "_entry_points", lambda group: {point.name: point} if group == point.group else installed(group)
    )
    zone = ZoneConfig(action="nearest_point", radius=1.2, min_points=1).to_zone("zone", FOOTPRINT)
    monitor = CollisionMonitor(CollisionMonitorConfig(FOOTPRINT, zones=(zone,)))
    decision = monitor.check(PlanarTwist(0.2), PlanarTwist(), np.array([[1.0, 0.0]]))
    assert (decision.speed_scaling, decision.reason) == (0.5, "obstacle at 1.00 m")


def test_unknown_action_is_rejected_with_the_known_ones() -> None:
    from roboyard.config import load

    with pytest.raises(ConfigError, match="hover") as caught:
        load(ZoneConfig, {"action": "hover"})
    assert "slowdown" in str(caught.value)
