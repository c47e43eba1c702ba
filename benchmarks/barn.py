"""The BARN benchmark: fields of pillars that the robot has not seen, crossed in the full simulation.

Success is a place within 1 m of the goal in 100 s without any contact.  The score is the benchmark's, optimal time over
time, at most 0.5; the time runs from when the goal is sent.  Beside it the same robot drives by the Dynamic Window.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

import numpy as np

from roboyard.compute import ProcessPool, usable_cores
from roboyard.scenarios.barn import barn_world, numbers
from roboyard.scenarios.batch_worker import Job, run_job
from roboyard.scenarios.statistics import wilson

SENT = 1.0
"""When the mission sends the goal [s]."""
CONTROL = "robots.courier.parameters.navigator.settings.controller.use='window'"


def run(nightly: bool = False, worlds: Path | None = None, seeds: int | None = None) -> dict[str, Any]:
    """Cross worlds with several seeds each.

    Args:
        nightly: All worlds; else an evenly spread choice that is done in some minutes.
        worlds: File of worlds; else those that the scenario makes itself.
        seeds: Of each world.
    """
    known = list(range(100)) if worlds is None else numbers(worlds)
    names = [f"{'barn' if worlds is None else worlds.resolve()}#{number}" for number in known]
    chosen = names if nightly else names[:: max(len(names) // 15, 1)]
    count = 3 if seeds is None else seeds
    ours = cross([(name, seed, ()) for name in chosen for seed in range(count)])
    control = cross([(name, 0, (CONTROL,)) for name in (names if nightly else chosen[::3])])
    rate = wilson(sum(score > 0.0 for _, score, _ in ours), len(ours))
    failed = [f"{name}, seed {seed}: {why}" for (name, seed), score, why in ours if score == 0.0]
    return {
        "figures": [
            {"name": f"success, {len(chosen)} worlds x {count} seeds", "value": 100.0 * rate.value, "unit": "%",
             "target": ">= 95", "peer": "Dynamic Window",
             "peer_value": 100.0 * float(np.mean([score > 0.0 for _, score, _ in control]))},
            {"name": "score, at most 0.5", "value": float(np.mean([score for _, score, _ in ours])),
             "target": ">= 0.45", "peer": "Dynamic Window",
             "peer_value": float(np.mean([score for _, score, _ in control]))},
        ],
        "details": [f"success lies between {100 * rate.low:.1f} and {100 * rate.high:.1f} % (95 %)", *failed],
    }  # fmt: skip


def cross(runs: list[tuple[str, int, tuple[str, ...]]]) -> list[tuple[tuple[str, int], float, str]]:
    """Score of each run, and why it is 0, in order."""
    results: dict[int, tuple[tuple[str, int], float, str]] = {}
    with tempfile.TemporaryDirectory() as scratch, ProcessPool(usable_cores()) as pool:
        waiting = {
            pool.submit(run_job, Job("barn", seed, (f"world={name}", *more), False, f"{scratch}/{k}", "none")): k
            for k, (name, seed, more) in enumerate(runs)
        }
        for future in as_completed(waiting):
            k, found = waiting[future], future.result()
            name, seed, _ = runs[k]
            time = float(found.metrics.get("sim_seconds") or 101.0) - SENT
            why = found.reason or ", ".join(f"{key} {found.metrics.get(key)}" for key in ("contacts", "sim_seconds"))
            results[k] = ((Path(name).name, seed), barn_world(name).score(found.success, time), why)
    return [results[k] for k in sorted(results)]
