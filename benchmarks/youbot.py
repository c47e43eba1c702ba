"""The youBot's pick-and-place loop: rates of success, errors of placed objects, speed, and collisions.

The scenario is ``youbot-pick-place-loop``; seeds differ in the positions of objects and places and in the camera's
noise.  The method ``thesis``, with its constants measured on our arm, runs with the same seeds and fewer objects.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.compute import ProcessPool, count_usable_cores
from roboyard.scenarios.batch.statistics import wilson_interval
from roboyard.scenarios.batch.worker import TrialJob, TrialResult, run_trial

SCENARIO, N_OBJECTS, N_THESIS_OBJECTS = "youbot-pick-place-loop", 20, 5
THESIS = (
    "method=thesis-trimmed",
    f"stop_when=place_attempts >= {N_THESIS_OBJECTS}",
    f"nodes.skills.parameters.loop={N_THESIS_OBJECTS}",
    "duration=900",
)


def run(nightly: bool, runs: int | None = None, seed: int = 301) -> dict[str, Any]:
    """Run loops of 20 objects each, with 5 seeds; nightly with 30."""
    count = runs or (30 if nightly else 5)
    jobs = [
        TrialJob(SCENARIO, seed + k, overrides, False, "", stored_runs="none")
        for overrides in ((), THESIS)
        for k in range(count)
    ]
    with ProcessPool(min(count_usable_cores(), count), preload=("roboyard.scenarios.batch.worker",)) as pool:
        results = [future.result() for future in [pool.submit(run_trial, job) for job in jobs]]
    own, thesis = _figures(results[:count], N_OBJECTS), _prefix_figures(_figures(results[count:], N_THESIS_OBJECTS))
    return {key: own[key] + thesis[key] for key in own}


def _prefix_figures(own: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the figures of the thesis's method, without targets."""
    figures = [{k: v for k, v in one.items() if k != "target"} for one in own["figures"]]
    return {
        "figures": [{**one, "name": f"thesis: {one['name']}"} for one in figures],
        "details": [f"thesis, {line}" for line in own["details"]],
    }


def _figures(results: list[TrialResult], n_objects: int) -> dict[str, list[Any]]:
    def known_values(name: str) -> list[float]:
        return [float(value) for r in results if (value := r.metrics.get(name)) is not None]

    def values(name: str) -> np.ndarray:
        return np.array(known_values(name) or [math.nan])

    def total(name: str) -> int:
        return int(sum(known_values(name)))

    picks, places = (
        wilson_interval(total("picks_succeeded"), total("pick_attempts")),
        wilson_interval(total("places_succeeded"), total("place_attempts")),
    )
    worst_p95_error = float(values("place_error_p95_mm").max())
    speeds, factors = values("objects_per_hour"), values("real_time_factor")
    complete_fraction = sum(placed >= n_objects for placed in known_values("places_succeeded")) / len(results)
    error = float(values("place_error_mean_mm").mean())
    lowest_rate = float(speeds.min())
    return {
        "figures": [
            {"name": "picked of those gone for", "value": picks.value, "target": ">= 0.99"},
            {"name": "placed of those brought", "value": places.value, "target": ">= 0.99"},
            {"name": f"runs that placed {n_objects}", "value": complete_fraction, "target": ">= 1"},
            {"name": "off the place, mean", "value": error, "unit": "mm", "target": "<= 1"},
            {"name": "off the place at 95 %, worst run", "value": worst_p95_error, "unit": "mm", "target": "<= 2.5"},
            {"name": "things an hour, slowest run", "value": lowest_rate, "unit": "1/h", "target": ">= 60"},
            {"name": "collisions", "value": total("collisions"), "target": "<= 0"},
            {"name": "recoveries", "value": total("recoveries")},
            {"name": "real-time factor, least", "value": float(factors.min()), "target": ">= 3"},
        ],
        "details": [f"picked: {picks}", f"placed: {places}", *(f"seed {r.seed}: {_format_result(r)}" for r in results)],
    }


def _format_result(result: TrialResult) -> str:
    if result.state != "done":
        return result.reason
    m = result.metrics
    return (
        f"{m['picks_succeeded']} of {m['pick_attempts']} picked, "
        f"{m['places_succeeded']} of {m['place_attempts']} placed, "
        f"{m['place_error_mean_mm'] or math.nan:.2f} mm, {m['objects_per_hour'] or math.nan:.0f}/h, "
        f"{m['recoveries']} recoveries, {m['collisions']} collisions, {m['real_time_factor']:.2f} x real time"
    )
