"""Figures of hexapods: inverse kinematics, walking in physics with both servo profiles and over blocks without
perception, and the speed of the simulation."""

from __future__ import annotations

import math
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bringup.legged_robot import load_legged_robot
from roboyard.bringup.robot_loader import load_robot
from roboyard.scenarios import BatchOptions, run_batch_and_report
from roboyard.scenarios.execution import reduced_garbage_collection
from roboyard.scenarios.run import Run
from roboyard.walking.gait import make_gait
from roboyard.walking.gait_generator import GaitGenerator, SteppingConfig
from roboyard.walking.legged_robot import LeggedRobot

FEET = 200_000
THESIS_SPEED, FAST_SPEED = 0.107, 0.45
"""Commanded speeds [m/s]; the first is that of the thesis."""
RUNS, NIGHTLY_RUNS = 4, 40
"""Numbers of seeds of each randomized scenario."""


def measure_inverse_kinematics() -> tuple[float, float, float]:
    """Return leg solutions per second, the largest error of the feet of the solutions [m], and the solutions per second
    of `solve_by_law_of_cosines`."""
    legged_robot = load_legged_robot("akrobat")
    rng, count = np.random.default_rng(0), FEET // len(legged_robot.legs)
    q = rng.uniform(legged_robot.lower, legged_robot.upper, (count, len(legged_robot.legs), 3))
    q[..., 2] = -np.abs(q[..., 2])
    feet = legged_robot.foot_positions(q)
    duration = numpy_duration = math.inf
    for _ in range(5):
        start = time.perf_counter()
        solutions = legged_robot.solve_ik(feet, q)
        duration = min(duration, time.perf_counter() - start)
        start = time.perf_counter()
        solve_by_law_of_cosines(legged_robot, feet)
        numpy_duration = min(numpy_duration, time.perf_counter() - start)
    n_solutions, error = count * len(legged_robot.legs), np.abs(legged_robot.foot_positions(solutions) - feet).max()
    return n_solutions / duration, float(error), n_solutions / numpy_duration


def solve_by_law_of_cosines(legged_robot: LeggedRobot, feet: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return one solution of each leg (n, l, 3) by the law of cosines in NumPy, without limits and other solutions."""
    arrays = legged_robot.arrays
    coxa = arrays.T_hip_knee[:, 0, 3]
    femur, tibia = np.hypot(*arrays.thigh.T), np.hypot(*arrays.shank.T)
    hip_feet = np.einsum("lji,nlj->nli", arrays.T_body_hip[:, :3, :3], feet - arrays.T_body_hip[:, :3, 3])
    horizontal, vertical = np.hypot(hip_feet[..., 0], hip_feet[..., 1]) - coxa, hip_feet[..., 2]
    cosine = (horizontal**2 + vertical**2 - femur**2 - tibia**2) / (2.0 * femur * tibia)
    knee = -np.arccos(np.clip(cosine, -1.0, 1.0))
    hip = np.arctan2(vertical, horizontal) - np.arctan2(tibia * np.sin(knee), femur + tibia * np.cos(knee))
    return np.stack([np.arctan2(hip_feet[..., 1], hip_feet[..., 0]), hip, knee], axis=-1)


def walk(robot: str, profile: str, speed: float, lift: float, seconds: float) -> dict[str, Any]:
    """Return the metrics of walking straight ahead, with the real-time factors by wall time and by processor time."""
    arguments = {"profile": profile} if profile else {}
    package = load_robot(robot, None, arguments).with_overrides({"gait": {"lift": lift}}, {})
    with reduced_garbage_collection(), Run("empty", seed=0) as run:
        running_robot = run.add_robot(package, robot, xacro_args=arguments)
        run.run_for(4.2)
        running_robot.drive(speed)
        run.run_for(1.0)
        start, wall_start, cpu_start = run.time, time.perf_counter(), time.thread_time()
        run.run_for(seconds)
        duration = run.time - start
        factors = {
            "wall_factor": duration / (time.perf_counter() - wall_start),
            "cpu_factor": duration / (time.thread_time() - cpu_start),
        }
        return {**run.evaluation.metrics_by_robot()[robot], **factors}


def run_seeds(scenario: str, runs: int, *overrides: str) -> tuple[float, float]:
    """Return the percentage of a scenario's seeds that succeed, and the median speed of those [m/s]."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "batch"
        batch = run_batch_and_report(
            scenario, BatchOptions(runs=runs, out=out, overrides=tuple(overrides), stored_runs="none")
        )
    speeds = [float(speed) for r in batch.results if r.success and (speed := r.metrics.get("speed")) is not None]
    return 100.0 * batch.success_rate.value, float(np.median(speeds)) if speeds else math.nan


def run(nightly: bool = False, runs: int | None = None) -> dict[str, Any]:
    """Return all figures.

    Args:
        nightly: Walk longer, and run more seeds.
        runs: Number of seeds of each randomized scenario.
    """
    rate, error, numpy_rate = measure_inverse_kinematics()
    seconds, seeds = 60.0 if nightly else 20.0, runs or (NIGHTLY_RUNS if nightly else RUNS)
    thesis = walk("akrobat", "configured", THESIS_SPEED, 0.015, seconds)
    fast = walk("akrobat", "fast", FAST_SPEED, 0.025, seconds)
    lauron = walk("lauron", "", 0.4, 0.05, 0.5 * seconds)
    drift = [math.degrees(one["heading_error"]) / one["distance"] for one in (thesis, fast, lauron)]
    legs = load_legged_robot("akrobat", arguments={"profile": "fast"})
    generator = GaitGenerator(legs, make_gait("tripod", legs), SteppingConfig(lift=0.025))
    max_speed = float(generator.feasible_twist((9.0, 0.0, 0.0))[0][0])
    low, low_speed = run_seeds("akrobat-rough-terrain", seeds)
    changes = ("terrain.height_range=0.14", "robots.akrobat.parameters.gait.lift=0.1")
    high, high_speed = run_seeds("akrobat-rough-terrain", seeds, *changes)
    randomized, _ = run_seeds("akrobat-randomized", seeds)
    return {
        "figures": [
            {"name": "leg inverse kinematics, batched", "value": rate / 1e6, "unit": "M/s", "target": ">= 1"},
            {"name": "  one solution by the law of cosines in numpy", "value": numpy_rate / 1e6, "unit": "M/s"},
            {"name": "foot, there and back", "value": error, "unit": "m", "target": "<= 1e-12"},
            {"name": f"tripod of {THESIS_SPEED} m/s at 1 rad/s, off its speed",
             "value": 100.0 * abs(thesis["speed"] / THESIS_SPEED - 1.0), "unit": "%", "target": "<= 5"},
            {"name": "  heading drift", "value": drift[0], "unit": "deg/m", "target": "<= 3"},
            {"name": "  odometry off, of the way", "value": 100.0 * thesis["odom_final_error"] / thesis["distance"],
             "unit": "%"},
            {"name": "  cost of transport", "value": thesis["cost_of_transport"], "unit": ""},
            {"name": f"tripod of {FAST_SPEED} m/s, profile fast", "value": fast["speed"], "unit": "m/s",
             "target": ">= 0.4"},
            {"name": "  the servos' limit at this lift and stride", "value": max_speed, "unit": "m/s"},
            {"name": "  saturated samples", "value": 100.0 * fast["motor_saturation"], "unit": "%",
             "target": "<= 10"},
            {"name": "  heading drift", "value": drift[1], "unit": "deg/m", "target": "<= 3"},
            {"name": "  odometry off, of the way", "value": 100.0 * fast["odom_final_error"] / fast["distance"],
             "unit": "%"},
            {"name": "  cost of transport", "value": fast["cost_of_transport"], "unit": ""},
            {"name": "lauron at 0.4 m/s", "value": lauron["speed"], "unit": "m/s", "target": ">= 0.38"},
            {"name": f"payloads and frictions, {seeds} seeds, no fall", "value": randomized, "unit": "%",
             "target": ">= 100"},
            {"name": f"blocks of 0.10 m, {seeds} seeds across", "value": low, "unit": "%", "target": ">= 95"},
            {"name": "  speed", "value": low_speed, "unit": "m/s"},
            {"name": f"blocks of 0.14 m, {seeds} seeds across", "value": high, "unit": "%", "target": ">= 50"},
            {"name": "  speed", "value": high_speed, "unit": "m/s"},
            {"name": "walking with inertial unit, contacts and recording", "value": thesis["wall_factor"],
             "unit": "x real time", "target": ">= 25"},
            {"name": f"  on the process's own time (load {os.getloadavg()[0]:.1f})", "value": thesis["cpu_factor"],
             "unit": "x real time"},
        ]
    }  # fmt: skip


if __name__ == "__main__":
    for figure in run()["figures"]:
        print(figure["name"], f"{figure['value']:.4g}", figure["unit"])
