"""The Akrobat in figures: inverse kinematics, walking in physics on both servo profiles, and how fast that runs."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from roboyard.scenarios.catalog import find_robot
from roboyard.scenarios.robot_legs import find_walker
from roboyard.scenarios.run import Run

FEET = 200_000
THESIS, FAST = 0.107, 0.45
"""Commanded [m/s]."""


def solved() -> tuple[float, float]:
    """Leg solutions a second, and the largest error there and back [rad]."""
    walker = find_walker("akrobat")
    rng, count = np.random.default_rng(0), FEET // len(walker.legs)
    q = rng.uniform(walker.lower, walker.upper, (count, len(walker.legs), 3))
    q[..., 2] = -np.abs(q[..., 2])
    feet = walker.feet(q)
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        found = walker.reach(feet, q)
        best = min(best, time.perf_counter() - start)
    return count * len(walker.legs) / best, float(np.abs(walker.feet(found) - feet).max())


def walked(profile: str, speed: float, lift: float, seconds: float) -> dict[str, Any]:
    """Metrics of walking straight on, with how fast that ran."""
    arguments = {"profile": profile}
    package = find_robot("akrobat", None, arguments).customised({"gait": {"lift": lift}}, {})
    with Run("empty", seed=0) as run:
        robot = run.add(package, "akrobat", arguments=arguments)
        run.run_for(4.2)
        robot.drive(speed)
        run.run_for(1.0)
        start, wall = run.time, time.perf_counter()
        run.run_for(seconds)
        factor = (run.time - start) / (time.perf_counter() - wall)
        return {**run.evaluation.by_robot()["akrobat"], "factor": factor}


def run(nightly: bool = False) -> dict[str, Any]:
    rate, error = solved()
    seconds = 60.0 if nightly else 20.0
    thesis, fast = walked("configured", THESIS, 0.015, seconds), walked("fast", FAST, 0.025, seconds)
    drift = [math.degrees(one["heading_error"]) / one["distance"] for one in (thesis, fast)]
    return {
        "figures": [
            {"name": "leg inverse kinematics, batched", "value": rate / 1e6, "unit": "M/s", "target": ">= 1"},
            {"name": "foot, there and back", "value": error, "unit": "m", "target": "<= 1e-12"},
            {"name": f"tripod of {THESIS} m/s at 1 rad/s, off its speed",
             "value": 100.0 * abs(thesis["speed"] / THESIS - 1.0), "unit": "%", "target": "<= 5"},
            {"name": "  heading drift", "value": drift[0], "unit": "deg/m", "target": "<= 3"},
            {"name": "  cost of transport", "value": thesis["cost_of_transport"], "unit": ""},
            {"name": f"tripod of {FAST} m/s, profile fast", "value": fast["speed"], "unit": "m/s",
             "target": ">= 0.4"},
            {"name": "  saturated samples", "value": 100.0 * fast["saturated_fraction"], "unit": "%",
             "target": "<= 10"},
            {"name": "  heading drift", "value": drift[1], "unit": "deg/m", "target": "<= 3"},
            {"name": "  cost of transport", "value": fast["cost_of_transport"], "unit": ""},
            {"name": "walking with inertial unit, contacts and recording", "value": thesis["factor"],
             "unit": "x real time", "target": ">= 25"},
        ]
    }  # fmt: skip


if __name__ == "__main__":
    for figure in run()["figures"]:
        print(figure["name"], f"{figure['value']:.4g}", figure["unit"])
