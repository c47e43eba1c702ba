"""Reactive driving by a lidar: free distances against geometry, and no contact with walls."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roboyard.geometry import SE2
from roboyard.grids.floor_plan import TopDownMap
from roboyard.scenarios.operator import (
    _HEADINGS,
    OperatorController,
    ScanPoints,
    ScanWanderer,
    WanderStep,
    free_distances,
)


def test_free_distance_towards_a_point() -> None:
    free = free_distances(np.array([[2.0, 0.0]]), 0.3)
    center = len(_HEADINGS) // 2
    assert free[center] == pytest.approx(1.7)
    assert free[0] == free[-1] == 3.0
    assert (free_distances(np.zeros((0, 2)), 0.3) == 3.0).all()


@given(x=st.floats(-3, 3), y=st.floats(-3, 3), radius=st.floats(0.05, 0.6), index=st.integers(0, len(_HEADINGS) - 1))
def test_free_distance_is_that_of_a_marched_disc(x: float, y: float, radius: float, index: int) -> None:
    """Marching the disc along the heading finds the same place."""
    if math.hypot(x, y) < radius:
        return
    distance = free_distances(np.array([[x, y]]), radius)[index]
    u = np.array([math.cos(_HEADINGS[index]), math.sin(_HEADINGS[index])])
    steps = np.linspace(0.0, 3.0, 30_001)
    gaps = np.hypot(steps * u[0] - x, steps * u[1] - y)
    touching = np.flatnonzero(gaps < radius - 1e-9)
    marched = steps[touching[0]] if len(touching) else 3.0
    if x * u[0] + y * u[1] <= 0.0:
        return  # behind: the disc leaves it
    assert (
        distance == pytest.approx(marched, abs=0.02 + 0.02 * radius) or abs(abs(-x * u[1] + y * u[0]) - radius) < 1e-3
    )


def scan_walls(pose: SE2, walls: np.ndarray, width: float) -> ScanPoints:
    local = pose.inverse() @ walls
    bearing = np.arctan2(local[:, 1], local[:, 0])
    return ScanPoints(local[np.abs(bearing) <= width / 2])


@pytest.mark.slow
@pytest.mark.parametrize("width", [math.pi, 2 * math.pi])
@pytest.mark.parametrize("theta", [0.0, 1.0, 2.5, -2.0])
def test_wanderer_keeps_moving_without_contact(width: float, theta: float) -> None:
    """Two minutes in a room of 6 × 4 m with pillars."""
    s, pillars = np.linspace(-1, 1, 400), ((1.0, 0.5), (-1.0, -0.4))
    walls = np.concatenate(
        [np.column_stack([3 * s, np.full(400, 2.0)]), np.column_stack([3 * s, np.full(400, -2.0)]),
         np.column_stack([np.full(400, 3.0), 2 * s]), np.column_stack([np.full(400, -3.0), 2 * s])]
        + [np.column_stack([x + 0.2 * np.cos(np.pi * s), y + 0.2 * np.sin(np.pi * s)]) for x, y in pillars]
    )  # fmt: skip
    wanderer, pose, path, dt, radius = ScanWanderer(), SE2(0.0, 0.0, theta), 0.0, 0.1, 0.2
    nearest = math.inf
    for k in range(1200):
        v, w = wanderer.update(k * dt, scan_walls(pose, walls, width), radius + 0.1, 0.4, 1.0)
        assert 0.0 <= v <= 0.4
        assert abs(w) <= 1.0
        pose = pose @ SE2.exp((v * dt, 0.0, w * dt))
        path += v * dt
        nearest = min(nearest, float(np.hypot(walls[:, 0] - pose.x, walls[:, 1] - pose.y).min()))
    assert nearest > radius
    assert path > 10.0


def test_wanderer_without_scan_waits() -> None:
    assert ScanWanderer().update(0.0, None, 0.3, 1.0, 1.0) == (0.0, 0.0)


def test_wanderer_without_lidar_drives_a_circle() -> None:
    """For two seconds it waits for a scan; a circle as wide as the robot and its margin, at half the speed."""
    pilot = OperatorController((WanderStep(duration=60.0, speed=0.5, angular=1.0, margin=0.1),), radius=0.3)
    pilot.update(0.0, None)
    assert pilot.update(1.9, None).twist == (0.0, 0.0)
    assert not pilot.is_without_scan(1.9, None)
    v, w = pilot.update(2.1, None).twist or (0.0, 0.0)
    assert v / w == pytest.approx(0.4)
    assert v == pytest.approx(0.25)
    assert pilot.is_without_scan(2.1, None)
    observed = ScanPoints(np.array([[2.0, 0.0]]))
    assert not pilot.is_without_scan(2.2, observed)
    assert pilot.update(2.2, None, observed).twist not in (None, (v, w))


def test_floor_has_free_places() -> None:
    low = np.zeros((100, 100), bool)
    low[40:60, 40:60] = True  # a block of 1 m round the origin
    floor = TopDownMap(low, np.zeros_like(low), (-2.5, -2.5), 0.05)
    x, y = floor.find_free_position(0.4)
    assert max(abs(x), abs(y)) == pytest.approx(0.5 + 0.4, abs=0.12)
    assert TopDownMap(np.zeros((4, 4), bool), np.zeros((4, 4), bool), (0.0, 0.0), 0.05).find_free_position(1.0) == (
        0.0,
        0.0,
    )
    with pytest.raises(Exception, match="no free place"):
        floor.find_free_position(5.0)
