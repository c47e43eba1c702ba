"""Planning steps: how fast on level ground, how often on stepping stones, how soon, and whether plans are right.

Stepping stones: 2 m to go, of which 1.3 m are cells of 6 cm, each of which can be stood on with probability p; one
core, as many events as a second allows (on level ground three).  Times are the thread's own, so that a busy machine
counts little.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roboyard.bringup.legged_robot import load_free_gait_model
from roboyard.errors import RoboyardError
from roboyard.grids.terrain import generate_terrain
from roboyard.walking.free_gait.foothold_map import FootholdMap
from roboyard.walking.free_gait.partial_plans import derive_key
from roboyard.walking.free_gait.plan_checker import PlanCheckLimits, check_plan
from roboyard.walking.free_gait.planning import EVENTS_PER_PART, PLANNERS, best_plan, plan_steps, search_statistics
from roboyard.walking.free_gait.problem import StepPlanningProblem
from roboyard.walking.free_gait.robot_model import FreeGaitModel

Array = NDArray[np.float64]
Task = tuple[Any, tuple[float, float]]
"""Ground and goal."""
GOAL = (2.0, 0.0)
CHUNK, FINE_CHUNK = 2_000, 200
TERRAINS, NIGHTLY = 12, 200
MOMENTS = (0.05, 0.2, 1.0, 3.0)
"""At which the best plan so far is compared [s]."""


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


def stones(robot_model: FreeGaitModel, share: float, seed: int) -> Any:
    """A terrain of the prototype."""
    rng = np.random.default_rng([0x57E9, seed, round(1e3 * share)])
    return generate_terrain(
        "stones", (1.32, 2.4), rng, corner=(0.34, -1.2), cell_size=0.06, height_range=0.3, fraction=share
    )


def blocks(seed: int) -> Any:
    """A terrain of the scenario `akrobat-free-gait`."""
    rng = np.random.default_rng([0xB10C, seed])
    return generate_terrain("blocks", (1.4, 2.4), rng, corner=(0.4, -1.2), cell_size=0.2, height_range=0.1)


def searched(
    robot_model: FreeGaitModel, terrain: Any, goal: tuple[float, float], planner: str, seed: int, seconds: float
) -> Spent:
    """Look for so long, on the thread's own time."""
    foothold_map = FootholdMap.from_terrain(terrain, robot_model, [(0.0, 0.0), goal])
    problem, chosen = StepPlanningProblem.create(robot_model, foothold_map, (0.0, 0.0), goal), PLANNERS[planner]
    context, leg_arrays, search = problem.context, problem.leg_arrays, chosen.create_search(len(problem.feet))
    key, begin, first = np.uint64(derive_key(np.uint64(seed), 0)), time.thread_time(), math.inf
    while time.thread_time() - begin < seconds:
        chosen.run_search(context, leg_arrays, search, key, CHUNK)
        if math.isinf(first) and np.isfinite(search.best_cost[0]):
            first = time.thread_time() - begin
    whole, statistics = time.thread_time() - begin, search_statistics(planner, seed, search)
    plan, faults = best_plan(problem, search, statistics), 0
    if plan is not None:
        found = check_plan(
            plan,
            robot_model.legged_robot,
            robot_model.body_box,
            terrain.height,
            goal,
            PlanCheckLimits(min_stability_margin=robot_model.min_stability_margin),
        )
        faults = len(found.faults)
    return Spent(first, whole, statistics.events, statistics.candidates, plan is not None, faults)


@dataclass(frozen=True)
class Watched:
    """Searches of one planner over several grounds of a kind.

    Attributes:
        costs: (n, m) of the best plan so far after each moment of thread time; infinite without one.
        firsts: (n,) time to the first plan, infinite without one [s].
        begun: (n,) cost of that one.
    """

    costs: Array
    firsts: Array
    begun: Array

    @property
    def solved(self) -> int:
        """On how many there was a plan at the end."""
        return int(np.isfinite(self.costs[:, -1]).sum())


def watched(robot_model: FreeGaitModel, tasks: list[Task], planner: str, moments: Array) -> Watched:
    """Costs over thread time, searched once on each ground."""
    costs = np.full((len(tasks), len(moments)), math.inf)
    firsts, begun = np.full(len(tasks), math.inf), np.full(len(tasks), math.inf)
    for k, (terrain, goal) in enumerate(tasks):
        foothold_map = FootholdMap.from_terrain(terrain, robot_model, [(0.0, 0.0), goal])
        problem, chosen = StepPlanningProblem.create(robot_model, foothold_map, (0.0, 0.0), goal), PLANNERS[planner]
        context, leg_arrays, search = problem.context, problem.leg_arrays, chosen.create_search(len(problem.feet))
        key, begin = np.uint64(derive_key(np.uint64(k), 0)), time.thread_time()
        now = 0.0
        while now < moments[-1]:
            chosen.run_search(context, leg_arrays, search, key, FINE_CHUNK if now < 0.5 else CHUNK)
            now = time.thread_time() - begin
            costs[k, moments >= now] = search.best_cost[0]
            if math.isinf(firsts[k]) and np.isfinite(search.best_cost[0]):
                firsts[k], begun[k] = now, search.best_cost[0]
    return Watched(costs, firsts, begun)


def memory(robot_model: FreeGaitModel, planner: str) -> float:
    """What all arrays of a search take [MiB]."""

    def held(part: Any) -> int:
        return int(part.nbytes) if isinstance(part, np.ndarray) else sum(map(held, part))

    return held(PLANNERS[planner].create_search(len(robot_model.legged_robot.legs))) / 2.0**20


def speed_up(robot_model: FreeGaitModel, planner: str, parts: int) -> float:
    """How much sooner two threads are done with a budget of so many parts than one."""
    level = generate_terrain("flat", (1.0, 1.0), np.random.default_rng(0))
    foothold_map = FootholdMap.from_terrain(level, robot_model, [(0.0, 0.0), (1.0, 0.0)])
    problem, took = StepPlanningProblem.create(robot_model, foothold_map, (0.0, 0.0), (1.0, 0.0)), []
    for workers in (1, 2):
        begin = time.perf_counter()
        plan_steps(problem, planner, budget=parts * EVENTS_PER_PART, seed=1, workers=workers)
        took.append(time.perf_counter() - begin)
    return took[0] / took[1]


def draw(file: Path, moments: Array, found: dict[str, dict[str, Watched]]) -> None:
    """Over planning time: the share of grounds solved, and the cost of the best plan so far, median and quartiles."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(found), 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, len(found), sharex=True, squeeze=False, height_ratios=(1, 2.2))
    for (name, planners), (above, below) in zip(found.items(), axes.T, strict=True):
        for k, (planner, one) in enumerate(planners.items()):
            color = f"C{k % 10}"
            above.step(moments, np.isfinite(one.costs).mean(axis=0), where="post", color=color, linewidth=1.2)
            low, middle, high = np.percentile(one.costs, [25, 50, 75], axis=0, method="inverted_cdf")
            below.fill_between(moments, low, high, where=np.isfinite(high), step="post", color=color, alpha=0.12, lw=0)
            below.step(moments, middle, where="post", color=color, linewidth=1.4, label=planner)
        above.set(title=name, ylim=(-0.03, 1.03))
        below.set(xscale="log", xlabel="time of one core [s]")
        below.grid(alpha=0.3)
        above.grid(alpha=0.3)
    axes[0, 0].set_ylabel("share solved")
    axes[1, 0].set_ylabel("cost of the best plan so far [s]")
    axes[1, 0].legend(fontsize="small")
    figure.savefig(file, dpi=100)


def compare(
    nightly: bool, seed: int | None = None, terrains: int | None = None, plot: Path | None = None
) -> dict[str, Any]:
    """Compare all planners by Herms's criteria: anytime, parallel, memory, where they apply; and over time."""
    robot_model, first, count = load_free_gait_model("akrobat"), seed or 0, terrains or (20 if nightly else 2)
    moments = np.geomspace(0.02, 10.0 if nightly else 3.0, 28)
    level = generate_terrain("flat", (1.0, 1.0), np.random.default_rng(0))
    for planner in PLANNERS:
        watched(robot_model, [(level, (0.4, 0.0))], planner, moments[:1])  # compile
    grounds: dict[str, list[Task]] = {
        "level, 1 m": [(level, (1.0, 0.0))] * count,
        "blocks of 0.10 m": [(blocks(first + k), GOAL) for k in range(count)],
        "stones, p = 0.20": [(stones(robot_model, 0.20, first + k), GOAL) for k in range(count)],
        "stones, p = 0.10": [(stones(robot_model, 0.10, first + k), GOAL) for k in range(count)],
    }
    found = {
        name: {planner: watched(robot_model, tasks, planner, moments) for planner in PLANNERS}
        for name, tasks in grounds.items()
    }
    if plot is not None:
        draw(plot, moments, found)
    rows = []
    for name, planners in found.items():
        told = np.searchsorted(moments, MOMENTS, side="right") - 1
        rows.append(f"{name}: median cost after " + ", ".join(f"{moment:g} s" for moment in MOMENTS) + "; solved")
        for planner, one in planners.items():
            middle = np.percentile(one.costs[:, told], 50, axis=0, method="inverted_cdf")
            said = ", ".join("-" if np.isinf(value) else f"{value:.1f}" for value in middle)
            rows.append(f"  {planner:16s} {said}; {one.solved} of {count}")
    rows.append("planner: first plan, median [ms]; cost at the end beside the first one's; speed-up by two threads;")
    rows.append("  memory [MiB]; grounds solved")
    figures = []
    for planner in PLANNERS:
        every = [planners[planner] for planners in found.values()]
        firsts = np.concatenate([one.firsts for one in every])
        gain = np.concatenate([one.costs[:, -1] / one.begun for one in every if one.solved])
        solved, tried = sum(one.solved for one in every), count * len(every)
        late = 1e3 * float(np.percentile(firsts, 50, method="inverted_cdf"))
        rows.append(
            f"  {planner:16s} {'-' if math.isinf(late) else f'{late:.0f}'}; {np.nanmedian(gain):.2f}; "
            f"{speed_up(robot_model, planner, 2):.2f}; {memory(robot_model, planner):.1f}; {solved} of {tried}"
        )
        figures.append(
            {"name": f"grounds of all kinds solved, {planner}", "value": 100.0 * solved / tried, "unit": "%"}
        )
    return {"figures": figures, "details": rows}


def check(nightly: bool, seed: int | None = None, runs: int | None = None) -> dict[str, Any]:
    """Look at plans of all planners over all kinds of ground, of both robots, with the checker."""
    count, first = runs or (10_000 if nightly else 60), seed or 0
    robot_models = {name: load_free_gait_model(name) for name in ("akrobat", "lauron")}
    returned, faulty, details = 0, 0, []
    for k in range(first, first + count):
        robot = "lauron" if k % 4 == 3 else "akrobat"
        robot_model, planner = robot_models[robot], list(PLANNERS)[k % len(PLANNERS)]
        kind, terrain, goal = random_task(k, robot_model.scale)
        try:
            problem = StepPlanningProblem.create(
                robot_model, FootholdMap.from_terrain(terrain, robot_model, [(0.0, 0.0), goal]), (0.0, 0.0), goal
            )
            plan = plan_steps(problem, planner, budget=20_000, seed=k)
        except RoboyardError:  # no way there, or none found
            continue
        seen = check_plan(
            plan,
            robot_model.legged_robot,
            robot_model.body_box,
            terrain.height,
            goal,
            PlanCheckLimits(min_stability_margin=robot_model.min_stability_margin),
        )
        returned, faulty = returned + 1, faulty + bool(seen.faults)
        details += [
            f"task {k}, {robot}, {kind}, {planner}: {one.kind} at {one.time:.2f} s, {one.description}"
            for one in seen.faults
        ]
    figures = [
        {"name": "plans of all planners that the checker looked at", "value": returned, "unit": ""},
        {"name": "  with a fault", "value": faulty, "unit": "", "target": "<= 0"},
    ]
    return {"figures": figures, "details": details}


def random_task(number: int, scale: float) -> tuple[str, Any, tuple[float, float]]:
    """A kind of ground, ground, and a goal, drawn by a number, for a robot so large beside the Akrobat."""
    rng = np.random.default_rng([0xC4EC, number])
    kind = ("flat", "blocks", "stones", "rough", "slope", "stairs", "ditch")[int(rng.integers(7))]
    options: dict[str, dict[str, float]] = {
        "blocks": {"cell_size": 0.2, "height_range": float(rng.uniform(0.02, 0.1))},
        "stones": {"cell_size": 0.06, "height_range": 0.3, "fraction": float(rng.uniform(0.15, 0.5))},
        "rough": {"cell_size": 0.1, "height_range": float(rng.uniform(0.02, 0.12))},
        "slope": {"height_range": float(rng.uniform(0.0, 0.15))},
        "stairs": {"cell_size": 0.28, "height_range": float(rng.uniform(0.02, 0.05)), "fraction": 0.2},
        "ditch": {"cell_size": 0.06, "height_range": 0.3, "fraction": float(rng.uniform(0.03, 0.1))},
    }
    scaled = {key: value if key == "fraction" else value * scale for key, value in options.get(kind, {}).items()}
    corner, size = (0.34 * scale, -1.2 * scale), (float(rng.uniform(0.3, 1.3)) * scale, 2.4 * scale)
    far, turn = float(rng.uniform(0.2, 2.0)) * scale, float(rng.uniform(-0.8, 0.8))
    return (
        kind,
        generate_terrain(kind, size, rng, corner=corner, **scaled),
        (far * math.cos(turn), far * math.sin(turn)),
    )


def run(nightly: bool, seed: int | None = None, terrains: int | None = None) -> dict[str, Any]:
    """Steps over level ground and stepping stones."""
    robot_model, count, first = (
        load_free_gait_model("akrobat"),
        terrains or (NIGHTLY if nightly else TERRAINS),
        seed or 0,
    )
    level = generate_terrain("flat", (1.0, 1.0), np.random.default_rng(0))
    for planner in PLANNERS:
        searched(robot_model, level, (0.4, 0.0), planner, 0, 0.01)  # compile
    flat = [searched(robot_model, level, (1.0, 0.0), "random-sampling", first + k, 3.0) for k in range(3)]
    rate = sum(one.candidates for one in flat) / sum(one.whole for one in flat)
    cost = 1e6 * sum(one.whole for one in flat) / sum(one.events for one in flat)
    figures: list[dict[str, Any]] = [
        {"name": "level, 1 m: candidates of random sampling", "value": rate, "unit": "1/s", "target": ">= 10000"},
        {"name": "  an event", "value": cost, "unit": "µs"},
        {
            "name": "  two threads beside one",
            "value": speed_up(robot_model, "random-sampling", 20),
            "unit": "x",
            "target": ">= 1.8",
        },
    ]
    every, details = list(flat), [f"load {os.getloadavg()[0]:.1f}; times are the thread's own"]
    for share, target in ((0.10, None), (0.08, ">= 95"), (0.05, ">= 70")):
        for planner in ("splitting", "greedy", "random-sampling"):
            found = [
                searched(robot_model, stones(robot_model, share, first + k), GOAL, planner, k, 1.0)
                for k in range(count)
            ]
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


PARTS = (run, compare, check)
