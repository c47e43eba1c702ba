"""The BARN benchmark: fields of pillars that the robot has not seen, crossed in the full simulation.

Success is a place within 1 m of the goal in 100 s without any contact.  The score is that of the benchmark's later
years: optimal time over time, between a half and an eighth, where the optimal time is that of the file's way at 2 m/s.
Time counts from when the goal is sent, which the benchmark's own clock, begun by the first 0.1 m, is kinder about.
Beside it the same robot drives by the Dynamic Window.
"""

from __future__ import annotations

import json
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from roboyard.cli.terminal import print_note
from roboyard.compute import ProcessPool, count_usable_cores
from roboyard.scenarios.batch.statistics import wilson_interval
from roboyard.scenarios.batch.worker import TrialJob, TrialResult, run_trial
from roboyard.scenarios.run_folder import create_numbered_folder
from roboyard.scenarios.world.barn import barn_world_ids, load_barn_world

SENT = 1.0
"""When the mission sends the goal [s]."""
CONTROL = "robots.courier.parameters.navigator.controller={type: dwa}"
WORLDS = 40
"""That are crossed unless all are asked for: some minutes on two cores."""


@dataclass(frozen=True, slots=True)
class Crossing:
    """One run, and what became of it.

    Attributes:
        world: Its name.
        seed: Of the run.
        control: Whether the Dynamic Window drove.
        score: 0 without success.
        why: What went wrong; "" after success.
    """

    world: str
    seed: int
    control: bool
    score: float = 0.0
    why: str = ""


def run(nightly: bool = False, worlds: Path | None = None, seeds: int | None = None) -> dict[str, Any]:
    """Cross worlds with several seeds each.

    Args:
        nightly: All worlds; else an evenly spread choice that is done in some minutes.
        worlds: File of worlds; else those that the scenario makes itself.
        seeds: Of each world; the control run has the first of them, in every fourth world unless nightly.
    """
    known = list(range(100)) if worlds is None else barn_world_ids(worlds)
    names = [f"{'barn' if worlds is None else worlds.resolve()}#{number}" for number in known]
    chosen = (
        names if nightly else [names[k] for k in np.linspace(0, len(names) - 1, min(WORLDS, len(names))).astype(int)]
    )
    wanted = [Crossing(name, seed, False) for seed in range(seeds or 3) for name in chosen]
    wanted += [Crossing(name, 0, True) for name in (chosen if nightly else chosen[::4])]
    folder = create_numbered_folder("bench-barn").path
    done: list[Crossing] = []
    try:
        cross(wanted, folder, done)
    except KeyboardInterrupt:
        for line in summary(done):
            print_note(line)
        print_note(f"stopped after {len(done)} of {len(wanted)} runs; they are in {folder}/results.jsonl")
        raise
    ours, control = ([c for c in done if c.control is which] for which in (False, True))
    return {
        "figures": [
            {"name": f"success, {len(chosen)} of {len(names)} worlds x {seeds or 3} seeds", "unit": "%",
             "value": 100.0 * share(ours), "target": ">= 95", "peer": "Dynamic Window",
             "peer_value": 100.0 * share(control)},
            {"name": "score, at most 0.5", "value": score(ours), "target": ">= 0.45", "peer": "Dynamic Window",
             "peer_value": score(control)},
        ],
        "details": [*summary(done), f"each run: {folder}/results.jsonl, with the recordings of those that failed"],
    }  # fmt: skip


def cross(wanted: list[Crossing], folder: Path, done: list[Crossing]) -> None:
    """Run all, adding to ``done`` and to a file as they come; few are under way at once, so that Ctrl-C ends them."""
    running: dict[Future[TrialResult], Crossing] = {}
    waiting = iter(enumerate(wanted))
    workers = min(count_usable_cores(), len(wanted))
    with ProcessPool(workers, preload=("roboyard.scenarios.batch.worker",)) as pool, (
        folder / "results.jsonl"
    ).open("w", encoding="utf-8") as log:  # fmt: skip
        while True:
            while len(running) < 2 * pool.workers and (following := next(waiting, None)) is not None:
                number, crossing = following
                settings = (f"world={crossing.world}", *((CONTROL,) if crossing.control else ()))
                job = TrialJob("barn", crossing.seed, settings, False, str(folder / f"run-{number:04d}"), "failed")
                running[pool.submit(run_trial, job)] = crossing
            if not running:
                return
            ready, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ready:
                crossing = judged(running.pop(future), future.result())
                done.append(crossing)
                log.write(json.dumps(asdict(crossing)) + "\n")
                log.flush()
                print_note(f"  {len(done)} of {len(wanted)}: {about(crossing)}")


def judged(crossing: Crossing, result: TrialResult) -> Crossing:
    """With its score."""
    time = float(result.metrics.get("sim_time") or 101.0) - SENT
    names = ("contacts", "sim_time", "navigation_failure", "final_x", "final_y")
    why = result.reason or ", ".join(f"{name} {result.metrics.get(name)}" for name in names)
    points = load_barn_world(crossing.world).score(result.success, time)
    return Crossing(crossing.world, crossing.seed, crossing.control, points, "" if result.success else why)


def about(crossing: Crossing) -> str:
    """A line for people."""
    who = " by the Dynamic Window" if crossing.control else ""
    verdict = f"score {crossing.score:.3f}" if not crossing.why else crossing.why
    return f"{Path(crossing.world).name}, seed {crossing.seed}{who}: {verdict}"


def share(crossings: list[Crossing]) -> float:
    """Of those that succeeded; NaN of none."""
    return float(np.mean([not c.why for c in crossings])) if crossings else float("nan")


def score(crossings: list[Crossing]) -> float:
    """Mean; NaN of none."""
    return float(np.mean([c.score for c in crossings])) if crossings else float("nan")


def summary(done: list[Crossing]) -> list[str]:
    """Lines about what was done, with the runs that failed."""
    lines = []
    for control, who in ((False, "pursuit"), (True, "Dynamic Window")):
        mine = [c for c in done if c.control is control]
        if mine:
            rate = wilson_interval(sum(not c.why for c in mine), len(mine))
            interval = f"95 %: {100 * rate.low:.1f} to {100 * rate.high:.1f}"
            lines.append(f"{who}: success {100 * rate.value:.1f} % ({interval}), score {score(mine):.3f}")
    lines += sorted(about(c) for c in done if c.why)
    return lines
