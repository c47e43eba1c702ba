"""Parts of the localization benchmark: consistency of the filters, and drives through a world."""

from __future__ import annotations

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FILE = Path(__file__).resolve().parents[2] / "benchmarks" / "localization.py"


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("roboyard_benchmark_localization_tested", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_benchmark_nees_lies_within_its_bounds(benchmark: ModuleType) -> None:
    figure = benchmark.nees("ekf", 8)
    low, high = (float(part.split()[1]) for part in figure["target"].split(","))
    assert low <= figure["value"] <= high


def test_benchmark_drives_keep_clearance_and_localize(benchmark: ModuleType) -> None:
    arena, rng = benchmark.LidarWorld("arena"), np.random.default_rng(0)
    poses = arena.sample_drive(arena.sample_pose(rng), 10.0, rng)
    assert arena.clearance(np.array([[pose.x, pose.y] for pose in poses])).min() > 0.25
    assert sum(a.distance(b) for a, b in pairwise(poses)) > 2.0
    model, free_space = benchmark.make_laser_model(arena.grid, benchmark.AmclConfig()), benchmark.FreeSpace(arena.grid)
    assert not arena.is_ambiguous(poses[0], model, free_space)
    result = benchmark.localize_drive(arena, poses, rng, is_global=True)
    assert result.localized_since is not None
    assert np.median(result.errors) < 0.04
