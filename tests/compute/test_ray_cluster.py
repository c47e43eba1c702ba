"""Ray pools return the results of local calls, pass errors on, replace killed workers, and reject bad addresses."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from roboyard.bringup.legged_robot import load_free_gait_model
from roboyard.compute import RayPool
from roboyard.errors import ConfigError, InputError, RunError
from roboyard.grids.terrain import generate_terrain
from roboyard.walking.free_gait.foothold_map import FootholdMap
from roboyard.walking.free_gait.planning import plan_steps
from roboyard.walking.free_gait.problem import StepPlanningProblem

NO_RAY = "a Ray cluster needs the extra 'batch', which is not installed (pip install 'roboyard[batch]')"


def square(x: float) -> float:
    return x * x


def total(values: np.ndarray, scale: float) -> float:
    return float(values.sum()) * scale


def raise_config_error() -> None:
    raise ConfigError("no such thing", location="there", valid="this or that")


def kill_process_once(mark: Path) -> str:
    """Kill the process at the first call."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def kill_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_local_ray_pool_behaves_like_a_process_pool(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason=NO_RAY)
    with RayPool(workers=2) as pool:
        assert [future.result() for future in [pool.submit(square, x) for x in range(20)]] == [x * x for x in range(20)]
        shared = pool.put_shared(np.arange(1000.0))
        assert pool.submit(total, shared, 2.0).result() == 999_000.0
        with pytest.raises(ConfigError, match="no such thing"):
            pool.submit(raise_config_error).result()
        assert pool.submit(kill_process_once, tmp_path / "mark").result() == "done"
        with pytest.raises(RunError, match="worker"):
            pool.submit(kill_process).result(timeout=120)
        assert pool.workers == 2
    with pytest.raises(RunError, match="closed"):
        pool.submit(square, 1.0)


@pytest.mark.slow
def test_step_plans_of_a_ray_pool_equal_local_plans() -> None:
    pytest.importorskip("ray", reason=NO_RAY)
    rig, terrain = load_free_gait_model("akrobat"), generate_terrain("flat", (1.0, 1.0), np.random.default_rng(0))
    ground = FootholdMap.from_terrain(terrain, rig, [(0.0, 0.0), (0.6, 0.1)])
    problem = StepPlanningProblem.create(rig, ground, (0.0, 0.0), (0.6, 0.1))
    local_plan = plan_steps(problem, budget=420_000, seed=3)
    cluster_plan = plan_steps(problem, budget=420_000, seed=3, cluster="local")
    assert local_plan.statistics == cluster_plan.statistics
    assert local_plan.swings == cluster_plan.swings
    assert local_plan.body_track.tobytes() == cluster_plan.body_track.tobytes()


@pytest.mark.parametrize("address", ["nowhere", "host:", ":1", "host:port", "127.0.0.1:99999", "ray://"])
def test_ray_pool_refuses_invalid_addresses(address: str) -> None:
    with pytest.raises(InputError, match="HOST:PORT"):
        RayPool(address)


def test_ray_pool_without_a_listening_cluster_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray itself would repeat the connection attempt for minutes."""
    attempts: list[object] = []

    def init(**options: object) -> None:
        attempts.append(options)

    with socket.socket() as bound_socket:
        bound_socket.bind(("127.0.0.1", 0))
        port = bound_socket.getsockname()[1]
        monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init))  # type: ignore[arg-type]
        with pytest.raises(InputError, match=f"no response from 127.0.0.1:{port}"):
            RayPool(f"127.0.0.1:{port}")
    assert attempts == []
