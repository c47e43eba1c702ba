"""Foothold map: height of the body over stairs, gaps and stones."""

from __future__ import annotations

import numpy as np
import pytest
from tests.walking.free_gait.step_planning_problems import robot_model_named

from roboyard.walking.free_gait.foothold_map import FootholdMap


def test_body_height_follows_stairs_and_not_gaps() -> None:
    robot_model, stairs = robot_model_named("akrobat"), np.repeat(0.1 * np.arange(14.0), 12)[None].repeat(80, axis=0)
    up = FootholdMap.from_heights(stairs, (0.0, -0.8), robot_model, start=(0.4, 0.0)).arrays.body_height
    assert up[40, 150] - up[40, 30] == pytest.approx(1.0, abs=0.1)
    rng, deep = np.random.default_rng(3), np.zeros((80, 160))
    deep[:, 40:] = np.where(rng.random((20, 30)) < 0.2, 0.0, -0.3).repeat(4, axis=0).repeat(4, axis=1)
    body = FootholdMap.from_heights(deep, (0.0, -0.8), robot_model, start=(0.4, 0.0)).arrays.body_height
    assert np.nanmin(body) == pytest.approx(np.nanmax(body), abs=1e-9)
    # the body keeps its height over stones that the feet stand on, whatever is below its center
    stones = np.argwhere(deep == 0.0)[:, ::-1] * 0.02 + np.array([0.01, -0.79])
    for x in np.linspace(1.2, 2.6, 8):
        homes = robot_model.arrays.stance_feet[:, :2] + np.array([x, 0.0])
        feet = np.array([stones[np.argmin(np.hypot(*(stones - home).T))] for home in homes])
        assert (
            np.nanmax(
                np.abs(FootholdMap.from_heights(deep, (0.0, -0.8), robot_model, start=feet).arrays.body_height - body)
            )
            < 1e-9
        )
