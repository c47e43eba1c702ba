"""Batches: two workers against one, what a run costs beside its simulation, and Ray's results beside processes'.

Runs are `rover-drive`, whole; workers are warm, and one and two take turns, so that the pace of a shared machine
strikes both alike.  Beside them stands what the machine itself gives: plain sums in Python, one and two at a time,
which take turns with the batches.  What a run costs besides is the batch's time for each run on one worker, less what
the run says it took between its first and its last instant: reading the scenario, building the simulation, writing
metrics and folder.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from roboyard.compute import Pool, ProcessPool, count_usable_cores
from roboyard.errors import RoboyardError
from roboyard.scenarios import BatchOptions, run_batch_and_report

SCENARIO = "rover-drive"
RUNS, ROUNDS, NIGHTLY = 6, 4, 12
ALIKE = 4
SUM = range(60_000_000)
PRELOAD = ("roboyard.scenarios.batch.worker",)


def timed(pool: Pool, runs: int, seed: int, place: Path) -> tuple[float, float]:
    """A batch's time for each run [s], and what its runs took by themselves [s, mean]."""
    start = time.perf_counter()
    found = run_batch_and_report(SCENARIO, BatchOptions(runs=runs, first_seed=seed, out=place), pool=pool)
    took = (time.perf_counter() - start) / runs
    return took, sum(float(result.metrics["wall_time"] or 0.0) for result in found.results) / runs


def summed(pool: Pool) -> float:
    """Time for each of two plain sums [s]."""
    start = time.perf_counter()
    for future in [pool.submit(sum, SUM) for _ in range(2)]:
        future.result()
    return (time.perf_counter() - start) / 2.0


def digests(place: Path, **how: Any) -> list[str]:
    """Recordings of a few short runs."""
    run_batch_and_report(SCENARIO, BatchOptions(runs=ALIKE, out=place, smoke=True, stored_runs="all", workers=2, **how))
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(place.glob("seed-*/recording.mcap"))]


def run(nightly: bool, runs: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Rounds of one batch on one worker and one on two."""
    runs = runs or RUNS
    ratios, limits, costs, singles = [], [], [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPool(1, preload=PRELOAD) as one,
        ProcessPool(2, preload=PRELOAD) as two,
    ):
        root = Path(folder)
        for pool in (one, two):
            timed(pool, 2, seed, root / f"warm-{pool.workers}")
        for k in range(NIGHTLY if nightly else ROUNDS):
            limits.append(summed(one) / summed(two))
            alone, own = timed(one, runs, seed, root / f"one-{k}")
            both, _ = timed(two, runs, seed, root / f"two-{k}")
            ratios.append(alone / both)
            costs.append(alone - own)
            singles.append(alone)
        ours = digests(root / "processes")
        missing, differing = None, None
        try:
            theirs = digests(root / "ray", cluster="local")
            differing = sum(a != b for a, b in zip(ours, theirs, strict=True))
        except RoboyardError as error:
            missing = str(error)
    figures: list[dict[str, Any]] = [
        {
            "name": f"{runs} runs on two workers, times as fast as on one", "value": median(ratios), "unit": "",
            "target": ">= 1.8" if count_usable_cores() > 1 else None, "peer": "plain sums, this machine's limit",
            "peer_value": median(limits), "ratio": median(ratios) / median(limits),
        },
        {"name": "a run on one warm worker", "value": median(singles), "unit": "s"},
        {"name": "of these, not its simulation", "value": median(costs), "unit": "s", "target": "<= 0.5"},
        {
            "name": f"of {ALIKE} recordings, those that differ on Ray", "value": differing, "unit": "",
            "target": "<= 0", "missing": missing,
        },
    ]  # fmt: skip
    details = [
        f"{what} in {len(found)} rounds: {', '.join(f'{ratio:.2f}' for ratio in found)} times as fast on two"
        for what, found in (("batches", ratios), ("sums", limits))
    ]
    return {"figures": figures, "details": details}
