"""The youBot's loop: how much of what it goes for it picks and places, how exactly, how fast, and what it touches.

Seeds differ in where things and places lie and in the camera's noise; everything runs as in scenario ``youbot-loop``.
Beside it the thesis's own method, with its constants measured anew, with the same seeds and fewer things.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from roboyard.compute import ProcessPool, usable_cores
from roboyard.scenarios.batch_worker import Job, Result, run_job
from roboyard.scenarios.statistics import wilson

SCENARIO, OBJECTS, FEW = "youbot-loop", 20, 5
THESIS = (
    "method=thesis-trimmed", f"until=places >= {FEW}", f"nodes.skills.parameters.loop={FEW}", "duration=900",
)  # fmt: skip


def run(nightly: bool, runs: int | None = None, seed: int = 301) -> dict[str, Any]:
    """Loops of 20 things each, with 5 seeds; nightly 30."""
    count = runs or (30 if nightly else 5)
    jobs = [Job(SCENARIO, seed + k, how, False, "", keep="none") for how in ((), THESIS) for k in range(count)]
    with ProcessPool(min(usable_cores(), count), preload=("roboyard.scenarios.batch_worker",)) as pool:
        results = [future.result() for future in [pool.submit(run_job, job) for job in jobs]]
    own, thesis = _figures(results[:count]), _beside(results[count:])
    return {key: own[key] + thesis[key] for key in own}


def _beside(results: list[Result]) -> dict[str, list[Any]]:
    """What the thesis's method does: no figure of it is promised."""
    done = [r.metrics for r in results if r.state == "done"]

    def total(name: str) -> int:
        return sum(int(m[name] or 0) for m in done)

    errors = [float(m["place_error_mean_mm"]) for m in done if m["place_error_mean_mm"] is not None]
    speeds = [float(m["objects_per_hour"]) for m in done if m["objects_per_hour"] is not None]
    picks, places = wilson(total("picks_ok"), total("picks")), wilson(total("places_ok"), total("places"))
    return {
        "figures": [
            {"name": "thesis: picked of those gone for", "value": picks.value},
            {"name": "thesis: placed of those brought", "value": places.value},
            {"name": "thesis: off the place, mean", "value": float(np.mean(errors or [math.nan])), "unit": "mm"},
            {"name": "thesis: things an hour, mean", "value": float(np.mean(speeds or [math.nan])), "unit": "1/h"},
            {"name": "thesis: collisions", "value": total("collisions")},
        ],
        "details": [
            f"thesis, picked: {picks}", f"thesis, placed: {places}",
            *(f"thesis, seed {r.seed}: {_line(r)}" for r in results),
        ],
    }  # fmt: skip


def _figures(results: list[Result]) -> dict[str, list[Any]]:
    def values(name: str) -> np.ndarray:
        found = [r.metrics.get(name) for r in results]
        return np.array([math.nan if value is None else float(value) for value in found])

    def total(name: str) -> int:
        return int(np.nansum(values(name)))

    picks, places = wilson(total("picks_ok"), total("picks")), wilson(total("places_ok"), total("places"))
    worst = float(np.nanmax(values("place_error_p95_mm")))
    speeds, factors = values("objects_per_hour"), values("real_time_factor")
    full = float((values("places_ok") >= OBJECTS).mean())
    error = float(np.nanmean(values("place_error_mean_mm")))
    slowest = float(np.nanmin(speeds))
    return {
        "figures": [
            {"name": "picked of those gone for", "value": picks.value, "target": ">= 0.99"},
            {"name": "placed of those brought", "value": places.value, "target": ">= 0.99"},
            {"name": f"runs that placed {OBJECTS}", "value": full, "target": ">= 1"},
            {"name": "off the place, mean", "value": error, "unit": "mm", "target": "<= 1"},
            {"name": "off the place at 95 %, worst run", "value": worst, "unit": "mm", "target": "<= 2.5"},
            {"name": "things an hour, slowest run", "value": slowest, "unit": "1/h", "target": ">= 60"},
            {"name": "collisions", "value": total("collisions"), "target": "<= 0"},
            {"name": "recoveries", "value": total("recoveries")},
            {"name": "real-time factor, least", "value": float(np.nanmin(factors)), "target": ">= 3"},
        ],
        "details": [f"picked: {picks}", f"placed: {places}", *(f"seed {r.seed}: {_line(r)}" for r in results)],
    }


def _line(result: Result) -> str:
    if result.state != "done":
        return result.reason
    m = result.metrics
    return (
        f"{m['picks_ok']} of {m['picks']} picked, {m['places_ok']} of {m['places']} placed, "
        f"{m['place_error_mean_mm'] or math.nan:.2f} mm, {m['objects_per_hour'] or math.nan:.0f}/h, "
        f"{m['recoveries']} recoveries, {m['collisions']} collisions, {m['real_time_factor']:.2f} x real time"
    )
