"""Planning steps: how fast on level ground, how often on stepping stones, how soon, and whether plans are right.

Stepping stones: 2 m to go, of which 1.3 m are cells of 6 cm, each of which can be stood on
with probability p; one core, as many events as a second allows.  Times are the thread's own, so that a busy machine
counts little.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from roboyard.grids.terrain_kinds import make_terrain
from roboyard.scenarios.robot_steps import find_rig
from roboyard.walking.steps.checker import Limits, check_plan
from roboyard.walking.steps.draws import key_of
from roboyard.walking.steps.ground import Ground
from roboyard.walking.steps.plan import effort_of, plan_of
from roboyard.walking.steps.planning import PLANNERS
from roboyard.walking.steps.problem import Problem
from roboyard.walking.steps.rig import Rig

GOAL = (2.0, 0.0)
CHUNK = 2_000
TERRAINS, NIGHTLY = 12, 200


@dataclass
class Spent:
    """One search: time to the first plan [s], whole time [s], what it did, and faults of its plan."""

    first: float
    whole: float
    events: int
    candidates: int
    solved: bool
    faults: int


def wilson(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """The interval of a share in which 95 of 100 lie."""
    if of == 0:
        return 0.0, 1.0
    p, zz = hits / of, z * z / of
    middle, half = p + 0.5 * zz, z * math.sqrt(p * (1.0 - p) / of + 0.25 * zz / of)
    return (middle - half) / (1.0 + zz), (middle + half) / (1.0 + zz)


def stones(rig: Rig, share: float, seed: int) -> Any:
    """A terrain of the prototype."""
    rng = np.random.default_rng([0x57E9, seed, round(1e3 * share)])
    return make_terrain("stones", (1.32, 2.4), rng, corner=(0.34, -1.2), cell=0.06, relief=0.3, share=share)


def searched(rig: Rig, terrain: Any, goal: tuple[float, float], planner: str, seed: int, seconds: float) -> Spent:
    """Look for so long, on the thread's own time."""
    ground = Ground.of_terrain(terrain, rig, [(0.0, 0.0), goal])
    problem, chosen = Problem.of(rig, ground, (0.0, 0.0), goal), PLANNERS[planner]
    world, limbs, search = problem.world, problem.limbs, chosen.search(len(problem.feet))
    key, begin, first = np.uint64(key_of(np.uint64(seed), 0)), time.thread_time(), math.inf
    while time.thread_time() - begin < seconds:
        chosen.spend(world, limbs, search, key, CHUNK)
        if math.isinf(first) and np.isfinite(search.cost[0]):
            first = time.thread_time() - begin
    whole, effort = time.thread_time() - begin, effort_of(planner, seed, search)
    plan, faults = plan_of(problem, search, effort), 0
    if plan is not None:
        found = check_plan(plan, rig.walker, rig.body, terrain.height, goal, Limits(margin=rig.margin))
        faults = len(found.faults)
    return Spent(first, whole, effort.events, effort.candidates, plan is not None, faults)


def run(nightly: bool, seed: int | None = None, terrains: int | None = None) -> dict[str, Any]:
    """Steps over level ground and stepping stones."""
    rig, count, first = find_rig("akrobat"), terrains or (NIGHTLY if nightly else TERRAINS), seed or 0
    level = make_terrain("flat", (1.0, 1.0), np.random.default_rng(0))
    for planner in PLANNERS:
        searched(rig, level, (0.4, 0.0), planner, 0, 0.01)  # compile
    flat = [searched(rig, level, (1.0, 0.0), "random-sampling", first + k, 1.0) for k in range(3)]
    rate = sum(one.candidates for one in flat) / sum(one.whole for one in flat)
    cost = 1e6 * sum(one.whole for one in flat) / sum(one.events for one in flat)
    figures: list[dict[str, Any]] = [
        {"name": "level, 1 m: candidates of random sampling", "value": rate, "unit": "1/s", "target": ">= 10000"},
        {"name": "  an event", "value": cost, "unit": "µs"},
    ]
    every, details = list(flat), [f"load {os.getloadavg()[0]:.1f}; times are the thread's own"]
    for share, target in ((0.10, None), (0.08, ">= 95"), (0.05, ">= 70")):
        for planner in ("splitting", "greedy", "random-sampling"):
            found = [searched(rig, stones(rig, share, first + k), GOAL, planner, k, 1.0) for k in range(count)]
            every += found
            hits = sum(one.solved for one in found)
            low, high = wilson(hits, count)
            figures.append({
                "name": f"stones, p = {share:.2f}, {planner}", "value": 100.0 * hits / count, "unit": "%",
                "target": target if planner == "splitting" else None,
            })  # fmt: skip
            times = [1e3 * one.first for one in found if one.solved]
            if planner == "splitting" and times:
                median, late = np.percentile(times, [50, 95])
                goals = ("<= 50", "<= 250") if share == 0.10 else (None, None)
                figures += [
                    {"name": "  first plan, median", "value": float(median), "unit": "ms", "target": goals[0]},
                    {"name": "  95 of 100", "value": float(late), "unit": "ms", "target": goals[1]},
                ]
            details.append(
                f"p = {share:.2f}, {planner}: {hits} of {count}, 95 % within {100 * low:.0f} to {100 * high:.0f} %"
            )
    solved = [one for one in every if one.solved]
    figures.append({
        "name": f"plans of {len(solved)} with a fault for the checker", "value": sum(one.faults > 0 for one in solved),
        "unit": "", "target": "<= 0",
    })  # fmt: skip
    return {"figures": figures, "details": details}
