"""Hexapods in figures: inverse kinematics, walking in physics on both servo profiles, blind over blocks, and how fast
that runs."""

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
THESIS, FAST = 0.107, 0.45
"""Commanded [m/s]."""
RUNS, NIGHTLY = 4, 40
"""Seeds of each scenario that draws something by its seed."""


def solved() -> tuple[float, float, float]:
    """Leg solutions a second, the largest error there and back [m], and solutions a second of a peer in numpy."""
    legged_robot = load_legged_robot("akrobat")
    rng, count = np.random.default_rng(0), FEET // len(legged_robot.legs)
    q = rng.uniform(legged_robot.lower, legged_robot.upper, (count, len(legged_robot.legs), 3))
    q[..., 2] = -np.abs(q[..., 2])
    feet = legged_robot.foot_positions(q)
    best = peer = math.inf
    for _ in range(5):
        start = time.perf_counter()
        found = legged_robot.solve_ik(feet, q)
        best = min(best, time.perf_counter() - start)
        start = time.perf_counter()
        textbook(legged_robot, feet)
        peer = min(peer, time.perf_counter() - start)
    legs = count * len(legged_robot.legs)
    return legs / best, float(np.abs(legged_robot.foot_positions(found) - feet).max()), legs / peer


def textbook(legged_robot: LeggedRobot, feet: NDArray[np.float64]) -> NDArray[np.float64]:
    """One solution of each leg (n, l, 3), by the law of cosines in numpy; limits and further solutions aside."""
    arrays = legged_robot.arrays
    coxa = arrays.T_hip_knee[:, 0, 3]
    femur, tibia = np.hypot(*arrays.thigh.T), np.hypot(*arrays.shank.T)
    place = np.einsum("lji,nlj->nli", arrays.T_body_hip[:, :3, :3], feet - arrays.T_body_hip[:, :3, 3])
    away, down = np.hypot(place[..., 0], place[..., 1]) - coxa, place[..., 2]
    square = away**2 + down**2
    cosine = (square - femur**2 - tibia**2) / (2.0 * femur * tibia)
    knee = -np.arccos(np.clip(cosine, -1.0, 1.0))
    hip = np.arctan2(down, away) - np.arctan2(tibia * np.sin(knee), femur + tibia * np.cos(knee))
    return np.stack([np.arctan2(place[..., 1], place[..., 0]), hip, knee], axis=-1)


def walked(robot: str, profile: str, speed: float, lift: float, seconds: float) -> dict[str, Any]:
    """Metrics of walking straight on, with how fast that ran on the wall's clock and on the processor's."""
    arguments = {"profile": profile} if profile else {}
    package = load_robot(robot, None, arguments).with_overrides({"gait": {"lift": lift}}, {})
    with reduced_garbage_collection(), Run("empty", seed=0) as run:
        running_robot = run.add_robot(package, robot, xacro_args=arguments)
        run.run_for(4.2)
        running_robot.drive(speed)
        run.run_for(1.0)
        start, wall, spent = run.time, time.perf_counter(), time.thread_time()
        run.run_for(seconds)
        done = run.time - start
        factors = {"factor": done / (time.perf_counter() - wall), "own": done / (time.thread_time() - spent)}
        return {**run.evaluation.metrics_by_robot()[robot], **factors}


def drawn(scenario: str, runs: int, *overrides: str) -> tuple[float, float]:
    """Share of a scenario's seeds that succeed [%], and the median speed of those [m/s]."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "batch"
        found = run_batch_and_report(
            scenario, BatchOptions(runs=runs, out=out, overrides=tuple(overrides), stored_runs="none")
        )
    speeds = [float(speed) for r in found.results if r.success and (speed := r.metrics.get("speed")) is not None]
    return 100.0 * found.success_rate.value, float(np.median(speeds)) if speeds else math.nan


def run(nightly: bool = False, runs: int | None = None) -> dict[str, Any]:
    rate, error, peer = solved()
    seconds, seeds = 60.0 if nightly else 20.0, runs or (NIGHTLY if nightly else RUNS)
    thesis = walked("akrobat", "configured", THESIS, 0.015, seconds)
    fast = walked("akrobat", "fast", FAST, 0.025, seconds)
    lauron = walked("lauron", "", 0.4, 0.05, 0.5 * seconds)
    drift = [math.degrees(one["heading_error"]) / one["distance"] for one in (thesis, fast, lauron)]
    legs = load_legged_robot("akrobat", arguments={"profile": "fast"})
    most = GaitGenerator(legs, make_gait("tripod", legs), SteppingConfig(lift=0.025)).feasible_twist((9.0, 0.0, 0.0))[
        0
    ][0]
    low, low_speed = drawn("akrobat-rough-terrain", seeds)
    changes = ("terrain.height_range=0.14", "robots.akrobat.parameters.gait.lift=0.1")
    high, high_speed = drawn("akrobat-rough-terrain", seeds, *changes)
    varied, _ = drawn("akrobat-randomized", seeds)
    return {
        "figures": [
            {"name": "leg inverse kinematics, batched", "value": rate / 1e6, "unit": "M/s", "target": ">= 1"},
            {"name": "  one solution by the law of cosines in numpy", "value": peer / 1e6, "unit": "M/s"},
            {"name": "foot, there and back", "value": error, "unit": "m", "target": "<= 1e-12"},
            {"name": f"tripod of {THESIS} m/s at 1 rad/s, off its speed",
             "value": 100.0 * abs(thesis["speed"] / THESIS - 1.0), "unit": "%", "target": "<= 5"},
            {"name": "  heading drift", "value": drift[0], "unit": "deg/m", "target": "<= 3"},
            {"name": "  odometry off, of the way", "value": 100.0 * thesis["odom_final_error"] / thesis["distance"],
             "unit": "%"},
            {"name": "  cost of transport", "value": thesis["cost_of_transport"], "unit": ""},
            {"name": f"tripod of {FAST} m/s, profile fast", "value": fast["speed"], "unit": "m/s",
             "target": ">= 0.4"},
            {"name": "  the servos' limit at this lift and stride", "value": float(most), "unit": "m/s"},
            {"name": "  saturated samples", "value": 100.0 * fast["motor_saturation"], "unit": "%",
             "target": "<= 10"},
            {"name": "  heading drift", "value": drift[1], "unit": "deg/m", "target": "<= 3"},
            {"name": "  odometry off, of the way", "value": 100.0 * fast["odom_final_error"] / fast["distance"],
             "unit": "%"},
            {"name": "  cost of transport", "value": fast["cost_of_transport"], "unit": ""},
            {"name": "lauron at 0.4 m/s", "value": lauron["speed"], "unit": "m/s", "target": ">= 0.38"},
            {"name": f"payloads and frictions, {seeds} seeds, no fall", "value": varied, "unit": "%",
             "target": ">= 100"},
            {"name": f"blocks of 0.10 m, {seeds} seeds across", "value": low, "unit": "%", "target": ">= 95"},
            {"name": "  speed", "value": low_speed, "unit": "m/s"},
            {"name": f"blocks of 0.14 m, {seeds} seeds across", "value": high, "unit": "%", "target": ">= 50"},
            {"name": "  speed", "value": high_speed, "unit": "m/s"},
            {"name": "walking with inertial unit, contacts and recording", "value": thesis["factor"],
             "unit": "x real time", "target": ">= 25"},
            {"name": f"  on the process's own time (load {os.getloadavg()[0]:.1f})", "value": thesis["own"],
             "unit": "x real time"},
        ]
    }  # fmt: skip


if __name__ == "__main__":
    for figure in run()["figures"]:
        print(figure["name"], f"{figure['value']:.4g}", figure["unit"])
